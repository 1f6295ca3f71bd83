package explore

import "slices"

// state is a state of the world: in which state each process is, which requests
// are under way, what the judge knows, and what may still go wrong.
type state struct {
	at      [maxProcesses]uint32
	judge   uint32
	crashes uint8
	lost    uint8
	hanging uint8    // the node whose disk hangs, by index and one more; 0: none
	held    []uint32 // letters under way, sorted, each once
	owed    []uint32 // letters that have come and whose answer somebody awaits, sorted
}

// set makes s what another state is.
func (s *state) set(t *state) {
	held, owed := append(s.held[:0], t.held...), append(s.owed[:0], t.owed...)
	*s = *t
	s.held, s.owed = held, owed
}

// pack appends s as words to b, for a world of so many processes.
func (s *state) pack(b []uint32, processes int) []uint32 {
	b = append(b, s.at[:processes]...)
	b = append(b, s.judge, uint32(s.crashes)|uint32(s.lost)<<8|uint32(s.hanging)<<16|uint32(len(s.held))<<24)
	return append(append(b, s.held...), s.owed...)
}

// hash returns a hash of s but for its budget.
func (s *state) hash(processes int) uint64 {
	h := hash(len(s.held)).add(uint64(s.judge)).add(uint64(s.hanging))
	for _, words := range [...][]uint32{s.at[:processes], s.held, s.owed} {
		for _, word := range words {
			h = h.add(uint64(word))
		}
	}
	return uint64(h)
}

// unpack makes s the state that was packed.
func (s *state) unpack(b []uint32, processes int) {
	copy(s.at[:], b[:processes])
	s.judge, b = b[processes], b[processes+1:]
	s.crashes, s.lost, s.hanging = uint8(b[0]), uint8(b[0]>>8), uint8(b[0]>>16)
	n := b[0]>>24 + 1
	s.held, s.owed = append(s.held[:0], b[1:n]...), append(s.owed[:0], b[n:]...)
}

// send puts a letter under way, unless it is already: the second copy would do
// nothing.
func (s *state) send(id uint32) {
	if i, found := slices.BinarySearch(s.held, id); !found && id != none {
		s.held = slices.Insert(s.held, i, id)
	}
}

// owe notes that somebody awaits the answer to a letter that has come.
func (s *state) owe(id uint32) {
	if i, found := slices.BinarySearch(s.owed, id); !found {
		s.owed = slices.Insert(s.owed, i, id)
	}
}

func (s *state) pay(id uint32) {
	if i, found := slices.BinarySearch(s.owed, id); found {
		s.owed = slices.Delete(s.owed, i, i+1)
	}
}

// actor makes moves. It looks up what is known of processes, and keeps what it has
// found for itself.
type actor struct {
	*cast
	known    map[lookup]*step
	verdicts map[judgment]uint32
	letters  []letter // all that were known lately

	said  []said
	loud  bool
	wrote uint64 // nodes whose journals have grown, by index
	moves []move
}

// refresh brings in the letters that there are by now.
func (a *actor) refresh() {
	a.mu.RLock()
	a.letters = a.cast.letters
	a.mu.RUnlock()
}

type lookup struct {
	who   uint8
	state uint32
	input input
}

// start begins all operations that may begin.
func (a *actor) start(s *state) error {
	for i := range a.scope.Operations {
		if s.at[a.on[i]]&started != 0 || !a.overBefore(s, a.scope.Operations[i].After) {
			continue
		}
		if err := a.apply(s, a.on[i], input{what: starts, by: uint8(i)}); err != nil {
			return err
		}
	}
	return nil
}

// overBefore reports whether so many operations are over, the first ones.
func (a *actor) overBefore(s *state, n int) bool {
	for i := range n {
		if s.at[a.on[i]]&over == 0 {
			return false
		}
	}
	return true
}

func (a *actor) over(s *state) bool { return a.overBefore(s, len(a.scope.Operations)) }

// find looks up what a process does.
func (a *actor) find(who uint8, state uint32, in input) (*step, error) {
	key := lookup{who, state, in}
	x, ok := a.known[key]
	if ok {
		return x, nil
	}
	x, err := a.step(who, state, in)
	if err != nil {
		return nil, err
	}
	a.known[key] = x
	a.refresh()
	return x, nil
}

// judged looks up who the judge is who has seen what happens.
func (a *actor) judged(key judgment, events []event) uint32 {
	id, ok := a.verdicts[key]
	if !ok {
		id = a.judgeAfter(key, events)
		a.verdicts[key] = id
	}
	return id
}

// apply lets something happen to a process, but for what it answers (a.said).
func (a *actor) apply(s *state, who uint8, in input) error {
	x, err := a.find(who, s.at[who], in)
	if err != nil {
		return err
	}
	s.at[who] = x.to
	if len(x.events) > 0 {
		s.judge = a.judged(judgment{judge: s.judge, step: x}, x.events)
	}
	for _, caller := range x.silent {
		a.silence(s, who, caller)
	}
	for _, id := range x.sent {
		s.send(id)
	}
	a.said = append(a.said, x.said...)
	if x.wrote {
		a.wrote |= 1 << who
	}
	return nil
}

// silence is called when a caller of a process, or all of them (0), awaits no
// answers any more.
func (a *actor) silence(s *state, who uint8, caller uint64) {
	is := func(id uint32) bool {
		l := &a.letters[id]
		return l.from == who && l.asker.Caller != 0 && (caller == 0 || l.asker.Caller == caller)
	}
	s.owed = slices.DeleteFunc(s.owed, is)
	for i := 0; i < len(s.held); {
		id := s.held[i]
		if !is(id) {
			i++
			continue
		}
		s.held = slices.Delete(s.held, i, i+1)
		s.send(a.letters[id].unasked)
		i = 0
	}
}

// settle lets all be heard that is said, and what may begin begin.
func (a *actor) settle(s *state, losing bool) error {
	for at := 0; at < len(a.said); at++ {
		x := a.said[at]
		i := slices.IndexFunc(s.owed, func(id uint32) bool {
			l := &a.letters[id]
			return l.from == x.to && l.to == x.input.by && l.letterKey.asker == x.asker
		})
		if i < 0 || losing && x.loud {
			continue
		}
		a.loud = a.loud || x.loud
		x.input.letter = s.owed[i]
		if err := a.apply(s, x.to, x.input); err != nil {
			return err
		}
	}
	a.said = a.said[:0]
	return a.start(s)
}

// do lets a move happen, and all that follows from it at once. At is the letter
// that arrives, or the process that dies.
func (a *actor) do(s *state, m move) error {
	a.loud, a.wrote, a.said = false, 0, a.said[:0]
	switch m.kind {
	case arrives, unheard, hangs:
		return a.deliver(s, m)
	case dies:
		return a.die(s, uint8(m.at))
	}
	for i := range pauses {
		for who := range a.roles {
			if err := a.apply(s, uint8(who), input{what: waits, by: uint8(i)}); err != nil {
				return err
			}
		}
		if err := a.settle(s, false); err != nil || len(s.held) > 0 {
			return err
		}
	}
	return nil
}

// deliver lets a letter arrive.
func (a *actor) deliver(s *state, m move) error {
	l := &a.letters[m.at]
	i, _ := slices.BinarySearch(s.held, m.at)
	s.held = slices.Delete(s.held, i, i+1)
	switch m.kind {
	case unheard:
		s.lost--
	case hangs:
		s.crashes--
		s.hanging = m.by + 1
		if err := a.apply(s, m.by, input{what: stalls}); err != nil {
			return err
		}
	}
	if first := a.firsts[l.from]; len(first) > 0 {
		s.judge = a.judged(judgment{judge: s.judge, first: l.from}, first)
	}
	if l.asker.Caller != 0 {
		s.owe(m.at)
	}
	if err := a.apply(s, l.to, input{what: takes, by: l.from, letter: m.at}); err != nil {
		return err
	}
	if err := a.settle(s, m.kind == unheard); err != nil {
		return err
	}
	if !l.late {
		s.pay(m.at)
	}
	return nil
}

// die ends a life of a process, and begins the next.
func (a *actor) die(s *state, who uint8) error {
	if s.hanging == who+1 {
		s.hanging = 0
	} else {
		s.crashes--
	}
	s.held = slices.DeleteFunc(s.held, func(id uint32) bool { return a.letters[id].to == who })
	s.owed = slices.DeleteFunc(s.owed, func(id uint32) bool { return a.letters[id].to == who })
	a.silence(s, who, 0)
	if err := a.apply(s, who, input{what: falls}); err != nil {
		return err
	}
	for other := range a.roles {
		if uint8(other) == who {
			continue
		}
		if err := a.apply(s, uint8(other), input{what: misses, by: who}); err != nil {
			return err
		}
	}
	return a.settle(s, false)
}

// possible returns all moves that may come next, but for what is known only once a
// letter has arrived (variants).
func (a *actor) possible(s *state) []move {
	all := a.moves[:0]
	if a.over(s) {
		return nil
	}
	for _, id := range s.held {
		all = append(all, move{kind: arrives, at: id})
	}
	if len(all) == 0 && s.hanging == 0 {
		all = append(all, move{kind: passes})
	}
	for who := range a.roles {
		if s.hanging == uint8(who)+1 || s.crashes > 0 && a.mortal[who] && a.busy(s, who) {
			all = append(all, move{kind: dies, at: uint32(who)})
		}
	}
	a.moves = all
	return all
}

// busy reports whether a process has anything to lose: a node, or an operation
// under way.
func (a *actor) busy(s *state, who int) bool {
	return who < len(a.parts.nodes) || s.at[who]&(started|over) == started
}

// tidy drops letters whose answer nobody awaits and that change nothing: what they
// would have a node know it knows, durably, and nodes don't forget.
func (a *actor) tidy(s *state) error {
	for i := 0; i < len(s.held); {
		id := s.held[i]
		l := &a.letters[id]
		i++
		if l.asker.Caller != 0 || s.hanging == l.to+1 {
			continue
		}
		x, err := a.find(l.to, s.at[l.to], input{what: takes, by: l.from, letter: id})
		if err != nil {
			return err
		}
		if x.to == s.at[l.to] && !x.wrote && len(x.sent) == 0 {
			i--
			s.held = slices.Delete(s.held, i, i+1)
		}
	}
	return nil
}

// variants appends the other ways in which a letter can arrive from s that has had
// an effect.
func (a *actor) variants(s *state, m move, all []move) []move {
	if m.kind != arrives {
		return all
	}
	if a.loud && s.lost > 0 {
		all = append(all, move{kind: unheard, at: m.at})
	}
	for who := range a.parts.nodes {
		if a.wrote&(1<<who) != 0 && s.crashes > 0 && s.hanging == 0 && a.mortal[who] {
			all = append(all, move{kind: hangs, at: m.at, by: uint8(who)})
		}
	}
	return all
}
