package explore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"atoll/sim"
)

// breadth is an exploration under way: breadth first, so that a path to a broken
// promise is as short as there are any.
type breadth struct {
	*cast
	o Options

	seen     seen
	level    []*chunk // the states that are to be gone on from
	workers  []*worker
	parents  [][][]parent // of the states of each level, by chunk
	outcomes map[string]bool
}

// chunk is a part of the states of a level: what a worker takes at a time. They are
// packed one after the other.
type chunk struct {
	words   []uint32
	begins  []uint32 // where each begins
	parents []parent
}

// chunkBits says how many states a chunk has at most. A state of a level is named by
// the number of its chunk, and its place in that in the lowest bits.
const chunkBits = 8

// state returns where a state is packed.
func (c *chunk) state(place int) []uint32 {
	if place+1 == len(c.begins) {
		return c.words[c.begins[place]:]
	}
	return c.words[c.begins[place]:c.begins[place+1]]
}

// parent is where a state was first come to from: which of the level before, and
// by what.
type parent struct {
	at   uint32
	move move
}

// worker looks at a part of the states of a level.
type worker struct {
	actor
	b       *breadth
	next    []*chunk // that it has found
	free    []*chunk // that it has done with
	from, s state
	found   *found
	err     error

	made, ends int // moves, and states that had none
}

// found is a promise that was broken by a move from a state of the level.
type found struct {
	at   uint32
	move move
	rule string // if no judge has found it
}

// search looks at every state of a scope, level by level.
func search(c *cast, o Options) (r Report, err error) {
	x := &breadth{cast: c, o: o, outcomes: make(map[string]bool)}
	for range max(1, o.Workers) {
		w := &worker{actor: actor{cast: c, known: make(map[lookup]*step), verdicts: make(map[judgment]uint32)}, b: x}
		x.workers = append(x.workers, w)
	}
	first, err := c.begin()
	if err != nil {
		return r, err
	}
	w := x.workers[0]
	w.refresh()
	if err := w.settle(first, false); err != nil {
		return r, err
	}
	w.add(first, parent{})
	return x.run()
}

// run goes from level to level.
func (x *breadth) run() (r Report, err error) {
	for {
		states := x.collect()
		r.States += states
		if states == 0 {
			r.Complete = true
			break
		}
		r.Depth = len(x.parents) - 1
		if x.o.MaxStates > 0 && r.States >= x.o.MaxStates || x.o.Stop != nil && x.o.Stop() {
			break
		}
		f, stopped, err := x.expand()
		if err != nil {
			return r, err
		}
		if f != nil {
			r.Violation, err = x.confirm(f)
			if err != nil {
				return r, err
			}
		}
		if f != nil || stopped {
			break
		}
	}
	for _, w := range x.workers {
		r.Moves, r.Ends = r.Moves+w.made, r.Ends+w.ends
	}
	for i := range x.roles {
		r.Local += len(x.roles[i].states)
	}
	r.Outcomes = slices.Sorted(maps.Keys(x.outcomes))
	return r, nil
}

// collect makes what the workers have found the level to go on from, and returns how
// many states that has.
func (x *breadth) collect() (states int) {
	x.level = x.level[:0]
	for _, w := range x.workers {
		x.level = append(x.level, w.next...)
		w.next = w.next[:0]
		w.refresh()
	}
	parents := make([][]parent, len(x.level))
	for i, c := range x.level {
		parents[i] = slices.Clone(c.parents)
		states += len(c.parents)
	}
	x.parents = append(x.parents, parents)
	return states
}

// expand makes every move from every state of the level.
func (x *breadth) expand() (f *found, stopped bool, err error) {
	var next atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for _, w := range x.workers {
		all.Go(func() {
			for !stop.Load() {
				number := int(next.Add(1)) - 1
				if number >= len(x.level) {
					return
				}
				w.goOnFrom(number)
				if x.o.Stop != nil && w == x.workers[0] && x.o.Stop() {
					stopped = true
					stop.Store(true)
				}
				if w.err != nil || w.found != nil {
					stop.Store(true)
				}
			}
		})
	}
	all.Wait()
	for _, w := range x.workers {
		if w.err != nil {
			return nil, false, w.err
		}
		if w.found != nil && (f == nil || w.found.at < f.at) {
			f = w.found
		}
	}
	return f, stopped, nil
}

// goOnFrom makes every move from the states of a chunk of the level.
func (w *worker) goOnFrom(number int) {
	c := w.b.level[number]
	for place := range c.begins {
		w.from.unpack(c.state(place), len(w.roles))
		w.goOn(uint32(number<<chunkBits | place))
	}
	w.free = append(w.free, c)
}

// room returns the chunk into which the next state goes.
func (w *worker) room() *chunk {
	if last := len(w.next) - 1; last >= 0 && len(w.next[last].begins) < 1<<chunkBits {
		return w.next[last]
	}
	c := &chunk{}
	if last := len(w.free) - 1; last >= 0 {
		c, w.free = w.free[last], w.free[:last]
		c.words, c.begins, c.parents = c.words[:0], c.begins[:0], c.parents[:0]
	}
	w.next = append(w.next, c)
	return c
}

// goOn makes every move from one state of the level, which has been unpacked.
func (w *worker) goOn(at uint32) {
	moves := w.possible(&w.from)
	if len(moves) == 0 {
		w.ends++
		w.mu.Lock()
		w.b.outcomes[w.judges[w.from.judge>>1].outcome()] = true
		w.mu.Unlock()
	}
	for i := 0; i < len(moves) && w.found == nil && w.err == nil; i++ {
		m := moves[i]
		w.s.set(&w.from)
		w.err = w.do(&w.s, m)
		w.made++
		if w.s.judge&violated != 0 {
			w.found = &found{at: at, move: m}
			return
		}
		if m.kind == passes && len(w.s.held) == 0 && !w.over(&w.s) {
			w.found = &found{at: at, move: m, rule: "liveness"}
			return
		}
		if w.err == nil && !w.b.o.Plain {
			w.err = w.tidy(&w.s)
		}
		w.add(&w.s, parent{at, m})
		moves = w.variants(&w.from, m, moves)
	}
	w.moves = moves
}

// add notes a state that was come to, unless it was seen.
func (w *worker) add(s *state, from parent) {
	left := budget{s.crashes, s.lost}
	h := s.hash(len(w.roles))
	if w.b.o.Plain {
		h = uint64(hash(h).add(uint64(left.crashes)).add(uint64(left.lost)))
	}
	if !w.b.seen.add(h, left) {
		return
	}
	c := w.room()
	c.begins = append(c.begins, uint32(len(c.words)))
	c.words = s.pack(c.words, len(w.roles))
	c.parents = append(c.parents, from)
}

// confirm makes the moves to what was found in a whole world, and returns what is
// wrong with it.
func (x *breadth) confirm(f *found) (*Violation, error) {
	world, p, err := x.whole(len(x.parents)-1, f.at, f.move)
	if err != nil {
		return nil, err
	}
	defer world.w.Close()
	v := world.judge.violation
	if v == nil && f.rule != "" {
		v = &Violation{Rule: f.rule, Text: "nothing is left to happen, and not all operations have ended"}
	}
	if v == nil {
		return nil, fmt.Errorf("explore: on %v something was found in parts that a whole world doesn't show", p)
	}
	v.Path = p.String()
	return v, nil
}

// whole returns a whole world that has come to a state of a level, and has made
// some moves more, and the path to there.
func (x *breadth) whole(level int, at uint32, more ...move) (world *world, p path, err error) {
	for ; level > 0; level-- {
		from := x.parents[level][at>>chunkBits][at&(1<<chunkBits-1)]
		more = append([]move{from.move}, more...)
		at = from.at
	}
	if world, err = x.world(nil); err != nil {
		return nil, nil, err
	}
	for _, m := range more {
		if m.kind == arrives || m.kind == unheard || m.kind == hangs {
			l := &x.letters[m.at]
			i := slices.IndexFunc(world.w.Held(), func(h sim.Held) bool {
				return h.From.Index() == int(l.from) && h.To.Index() == int(l.to) && x.memory.Message(h.Message) == l.hash && world.w.Asker(h) == l.asker
			})
			if i < 0 {
				world.w.Close()
				return nil, nil, fmt.Errorf("explore: after %v a whole world has no %T from %d to %d", p, l.message, l.from, l.to)
			}
			m.at = uint32(i)
		}
		p = append(p, m)
		if err := world.do(m); err != nil {
			world.w.Close()
			return nil, nil, err
		}
	}
	return world, p, nil
}
