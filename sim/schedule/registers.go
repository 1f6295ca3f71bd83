package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/history"
)

// Registers are the operations of package abd, over the configurations that are
// active on the process that begins them:
//
//	write p k x      the value x under key k
//	delete p k
//	read p k
//	list p prefix n  all pages of n keys
//	retry p          the last write that p began once more, under its handle
//	work p k n       n operations one after the other, every second a write
//	outdated p       from now on p is of a version that knows nothing of other
//	                 configurations than its own: it says nothing of them, and
//	                 what answers say it doesn't see
//	inline 4         from now on values of more bytes are sent by one member
//	permutations     see the method
func Registers(r *Run) Table {
	s := &registers{Run: r, last: make(map[quorum.NodeID]*attempt), outdated: make(map[quorum.NodeID]bool)}
	return Table{
		Operations: map[string]sim.Operation{
			"write":  s.write,
			"delete": s.write,
			"retry":  s.retry,
			"read":   s.read,
			"list":   s.list,
			"work":   s.work,
		},
		Commands: map[string]func([]string) (string, error){
			"inline":       s.setInline,
			"outdated":     s.outdate,
			"permutations": s.permutations,
		},
	}
}

type registers struct {
	*Run
	inline   int
	last     map[quorum.NodeID]*attempt
	outdated map[quorum.NodeID]bool
}

// attempt is the last write that a client began, which it may try again.
type attempt struct {
	op abd.Operation
	at int // in the history
}

// of returns the registers as a process reaches them.
func (s *registers) of(process quorum.NodeID) *abd.Registers {
	return &abd.Registers{Known: s.Known(process), MaxValue: abd.DefaultMaxValue, Inline: s.inline, Rules: s.Rules.ABD}
}

// outdate is "outdated p".
func (s *registers) outdate(processes []string) (string, error) {
	for _, p := range processes {
		s.outdated[quorum.NodeID(p)] = true
	}
	return "", nil
}

// within returns the registers as a process reaches them, and the Env in which
// its operations run.
func (s *registers) within(process quorum.NodeID, e env.Env) (*abd.Registers, env.Env) {
	r := s.of(process)
	if s.outdated[process] {
		r.Rules.IgnoreNews = true
		e = mute{e}
	}
	return r, e
}

// mute is the Env of an outdated process: what it asks says nothing of
// configurations.
type mute struct{ env.Env }

// AskSome is that of the Env, but for what is asked.
func (m mute) AskSome(first, spare []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	switch r := req.(type) {
	case *abd.Get:
		silent := *r
		silent.Horizon = quorum.Horizon{}
		req = &silent
	case *abd.Put:
		silent := *r
		silent.Horizon = quorum.Horizon{}
		req = &silent
	case *abd.List:
		silent := *r
		silent.Horizon = quorum.Horizon{}
		req = &silent
	}
	return m.Env.AskSome(first, spare, req, each)
}

// Go is that of the Env, for a task that is as outdated.
func (m mute) Go(name string, f func(env.Env) error) env.Task {
	return m.Env.Go(name, func(e env.Env) error { return f(mute{e}) })
}

// began, and ended with the value that was found, if any, write down an
// operation. Their order is all that counts.
func (s *registers) began(process quorum.NodeID, kind history.Kind, key, value string) int {
	return s.History.Began(s.Script.World.Now(), history.Operation{Client: string(process), Key: key, Kind: kind, Value: value})
}

func (s *registers) ended(at int, outcome history.Outcome) {
	s.History.Ended(s.Script.World.Now(), at, outcome)
}

func (s *registers) found(at int, value string) {
	s.History.Found(s.Script.World.Now(), at, value)
}

// setInline is "inline 4".
func (s *registers) setInline(args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want a number of bytes")
	}
	var err error
	s.inline, err = strconv.Atoi(args[0])
	return "", err
}

// write is "write p key value" and "delete p key".
func (s *registers) write(process quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("want a key, and a value to write")
	}
	op, kind := abd.Operation{Key: abd.Key(args[0])}, history.Write
	if len(args) > 1 {
		op.Value = []byte(args[1])
	} else {
		op.Delete, kind = true, history.Delete
	}
	a := &attempt{op: op, at: s.began(process, kind, args[0], string(op.Value))}
	s.last[process] = a
	return s.try(process, e, a)
}

// retry is "retry p": the last write of p once more, under its handle.
func (s *registers) retry(process quorum.NodeID, e env.Env, _ []string) (string, error) {
	a := s.last[process]
	if a == nil {
		return "", errors.New("nothing to retry")
	}
	return s.try(process, e, a)
}

func (s *registers) try(process quorum.NodeID, e env.Env, a *attempt) (string, error) {
	var err error
	began := e.Now()
	r, in := s.within(process, e)
	a.op, err = r.Write(in, a.op)
	s.Took(e.Now() - began)
	if err != nil {
		if q, ok := errors.AsType[*abd.QuorumError](err); ok {
			if q.Effect == abd.NotApplied {
				s.ended(a.at, history.Failed)
				return "", fmt.Errorf("%w (not applied)", err)
			}
			return "", fmt.Errorf("%w (unknown)", err)
		}
		return "", err
	}
	s.ended(a.at, history.OK)
	return s.Script.World.TagText(a.op.Tag), nil
}

// read is "read p key".
func (s *registers) read(process quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want a key")
	}
	at := s.began(process, history.Read, args[0], "")
	began := e.Now()
	registers, in := s.within(process, e)
	r, err := registers.Read(in, abd.Key(args[0]))
	s.Took(e.Now() - began)
	if err != nil {
		return "", err
	}
	if r.Absent() {
		s.ended(at, history.OK)
		return "absent", nil
	}
	s.found(at, string(r.Value))
	return string(r.Value), nil
}

// list is "list p prefix limit": all pages. A list is a read of each key that
// anybody has begun to write: of those that it lacks, one that finds nothing.
func (s *registers) list(process quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) != 2 {
		return "", errors.New("want a prefix and the length of a page")
	}
	limit, err := strconv.Atoi(args[1])
	if err != nil {
		return "", err
	}
	keys := s.written(args[0])
	reads := make([]int, len(keys))
	for i, key := range keys {
		reads[i] = s.began(process, history.Read, key, "")
	}
	var listed []string
	after, more := abd.Key(""), true
	r, in := s.within(process, e)
	for more {
		var page []abd.Listed
		page, after, more, err = r.List(in, abd.Key(args[0]), after, limit)
		if err != nil {
			return "", err
		}
		for _, item := range page {
			listed = append(listed, string(item.Key))
			i := slices.Index(keys, string(item.Key))
			if i < 0 {
				s.Fail("a key was listed that nobody wrote: %s", item.Key)
				continue
			}
			s.found(reads[i], s.valueOf(item))
		}
	}
	for i, key := range keys {
		if !slices.Contains(listed, key) {
			s.ended(reads[i], history.OK)
		}
	}
	return fmt.Sprint(listed), nil
}

// written returns the keys with a prefix that anybody has begun to write.
func (s *registers) written(prefix string) []string {
	var keys []string
	for _, op := range s.History.History() {
		if op.Kind != history.Read && strings.HasPrefix(op.Key, prefix) && !slices.Contains(keys, op.Key) {
			keys = append(keys, op.Key)
		}
	}
	return keys
}

// valueOf returns the value that was written under a listed key's tag, which
// some disk holds.
func (s *registers) valueOf(item abd.Listed) string {
	for _, p := range s.Script.World.Processes() {
		if p.Disk() == nil {
			continue
		}
		if r, _, err := p.Disk().Load(item.Key, true); err == nil && r.Tag == item.Tag {
			return string(r.Value)
		}
	}
	return "a value that nobody holds"
}

// work is "work p key n".
func (s *registers) work(process quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) != 2 {
		return "", errors.New("want a key and how many operations")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return "", err
	}
	for i := range n {
		if i%2 == 0 {
			_, err = s.write(process, e, []string{args[0], fmt.Sprintf("%s%d", process, i)})
		} else {
			_, err = s.read(process, e, args[:1])
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the slowest took %v", s.Took(0)), nil
}

// permutations is schedule 27: a write has reached a alone when its client
// dies. Then the three nodes are stopped in every order, and started in every
// order, and whenever two of them live somebody reads. Each line is one run:
// what was read after the first stop, and after the second and third start.
func (s *registers) permutations([]string) (string, error) {
	var out strings.Builder
	orders := [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}}
	wrong := 0
	for _, stop := range orders {
		for _, start := range orders {
			run, err := s.Again()
			if err != nil {
				return "", err
			}
			reads, err := stopAndStart(run, stop, start)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "stop %s, start %s: %s\n", strings.Join(stop, " "), strings.Join(start, " "), strings.Join(reads, ", "))
			if run.Judge(nil) != "" {
				wrong++
			}
		}
	}
	if wrong > 0 {
		s.Fail("not linearizable in %d of %d", wrong, len(orders)*len(orders))
	}
	return out.String(), nil
}

// stopAndStart is one of the permutations.
func stopAndStart(r *Run, stop, start []string) (reads []string, err error) {
	r.Do(strings.Join([]string{"cluster majority", "client p q", "write p k x", "deliver-all p->* get-tag", "deliver-all *->p get-ack",
		"deliver p->a put", "crash p", "drop-all p->*", "drop-all *->p"}, "\n"))
	read := func() {
		const said = "q: read k: "
		out := r.Do("read q k\nexchange")
		_, result, ok := strings.Cut(out, said)
		if !ok {
			err = fmt.Errorf("two nodes live, and a read doesn't end:\n%s", out)
		}
		result, _, _ = strings.Cut(result, "\n")
		reads = append(reads, result)
	}
	for i, id := range stop {
		r.Do("crash " + id)
		if i == 0 {
			read()
		}
	}
	for i, id := range start {
		r.Do("restart " + id)
		if i > 0 {
			read()
		}
	}
	return reads, err
}
