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
	level    level // the states that are to be gone on from
	workers  []*worker
	parents  [][]parent // of the states of each level
	outcomes map[string]bool
}

// level are states, packed one after the other.
type level struct {
	words  []uint32
	begins []int // where each begins, and where the last ends
}

func (l *level) len() int { return len(l.begins) - 1 }

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
	next    level
	parents []parent
	from, s state
	found   *found
	err     error

	made, ends int // moves, and states that had none
}

// found is a promise that was broken by a move from a state of the level.
type found struct {
	at   int
	move move
	rule string // if no judge has found it
}

// search looks at every state of a scope, level by level.
func search(b *beginning, o Options) (r Report, err error) {
	c, err := newCast(b)
	if err != nil {
		return r, err
	}
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
		x.collect()
		r.States += x.level.len()
		if x.level.len() == 0 {
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

// collect makes what the workers have found the level to go on from.
func (x *breadth) collect() {
	x.level.words, x.level.begins = x.level.words[:0], append(x.level.begins[:0], 0)
	var parents []parent
	for _, w := range x.workers {
		for i := range w.next.begins {
			from, to := w.next.begins[i], len(w.next.words)
			if i+1 < len(w.next.begins) {
				to = w.next.begins[i+1]
			}
			x.level.words = append(x.level.words, w.next.words[from:to]...)
			x.level.begins = append(x.level.begins, len(x.level.words))
		}
		parents = append(parents, w.parents...)
		w.next.words, w.next.begins, w.parents = w.next.words[:0], w.next.begins[:0], w.parents[:0]
		w.refresh()
	}
	x.parents = append(x.parents, parents)
}

// share is how many states a worker takes at a time.
const share = 256

// expand makes every move from every state of the level.
func (x *breadth) expand() (f *found, stopped bool, err error) {
	var next atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for _, w := range x.workers {
		all.Go(func() {
			for !stop.Load() {
				from := int(next.Add(share)) - share
				if from >= x.level.len() {
					return
				}
				for at := from; at < min(from+share, x.level.len()); at++ {
					w.goOn(at)
				}
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

// goOn makes every move from one state of the level.
func (w *worker) goOn(at int) {
	l := &w.b.level
	w.from.unpack(l.words[l.begins[at]:l.begins[at+1]], len(w.roles))
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
		w.add(&w.s, parent{uint32(at), m})
		moves = w.variants(&w.from, m, moves)
	}
	w.moves = moves
}

// add notes a state that was come to, unless it was seen.
func (w *worker) add(s *state, from parent) {
	begins := len(w.next.words)
	w.next.words = s.pack(w.next.words, len(w.roles))
	left := budget{s.crashes, s.lost}
	h := s.hash(len(w.roles))
	if w.b.o.Plain {
		h = uint64(hash(h).add(uint64(left.crashes)).add(uint64(left.lost)))
	}
	if !w.b.seen.add(h, left) {
		w.next.words = w.next.words[:begins]
		return
	}
	w.next.begins = append(w.next.begins, begins)
	w.parents = append(w.parents, from)
}

// confirm makes the moves to what was found in a whole world, and returns what is
// wrong with it.
func (x *breadth) confirm(f *found) (*Violation, error) {
	world, p, err := x.whole(len(x.parents)-1, uint32(f.at), f.move)
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
		from := x.parents[level][at]
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
