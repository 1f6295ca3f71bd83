package explore

import (
	"fmt"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim/history"
	"atoll/sim/succession"
	"atoll/tags"
)

// event is something that happens which the judge wants to know.
type event struct {
	what eventKind
	by   int // the process, by index, or the operation
	tag  tags.Tag
	// known is what a node durably knows.
	known *quorum.Map
	// in and message are those of a request or of a node's answer.
	in      succession.Asked
	message env.Message
	// found is what an operation has ended with.
	found abd.Record
	// rule and text are of a promise that is broken whatever others do.
	rule, text string
}

// eventKind is what an event is about.
type eventKind uint8

const (
	holds   eventKind = iota // a node durably holds tag
	learns                   // a node durably knows
	asked                    // a node is asked
	answers                  // a node answers
	begins                   // an operation begins, for the history
	ends                     // it ends
	breaks                   // a promise is broken
)

// judge holds all that happens in a world against the promises.
type judge struct {
	*beginning
	watch   *succession.Watch
	durable []tags.Tag // of each node
	// order is in which order operations have begun and ended, for the history:
	// each is there once or twice.
	order     []int
	found     []abd.Record // with what they have ended
	violation *Violation
}

func (b *beginning) judge(text func(tags.Tag) string) (*judge, error) {
	j := &judge{beginning: b, durable: make([]tags.Tag, len(b.parts.nodes)), found: make([]abd.Record, len(b.scope.Operations))}
	var err error
	j.watch, err = succession.New(succession.Config{First: b.parts.configurations[0], Nodes: b.parts.nodes, Registers: 1,
		Holds: j.holds, Text: text, Broken: j.broken})
	return j, err
}

// clone returns a judge who has seen the same.
func (j *judge) clone() *judge {
	c := *j
	c.durable, c.order, c.found = slices.Clone(j.durable), slices.Clone(j.order), slices.Clone(j.found)
	c.watch = j.watch.Clone(c.holds, c.broken)
	return &c
}

func (j *judge) holds(node, _ int) tags.Tag { return j.durable[node] }

func (j *judge) broken(rule string, _ int, text string) {
	if j.violation == nil {
		j.violation = &Violation{Rule: rule, Text: text}
	}
}

// take is told what happens.
func (j *judge) take(e event) {
	switch e.what {
	case holds:
		if e.tag.Less(j.durable[e.by]) {
			j.broken("durable-tag-falls", 0, fmt.Sprintf("%s durably held %v, and now %v", j.parts.nodes[e.by], j.durable[e.by], e.tag))
		}
		j.durable[e.by] = e.tag
	case learns:
		j.watch.Learns(e.by, e.known)
	case asked:
		j.watch.Asks(e.in, e.message)
	case answers:
		j.watch.Answers(e.in, e.by, e.message)
	case begins:
		if !slices.Contains(j.order, e.by) {
			j.order = append(j.order, e.by)
		}
	case ends:
		j.end(e)
	case breaks:
		j.broken(e.rule, 0, e.text)
	}
}

// end holds what an operation on the register has ended with against what is on
// the disks, and all that clients have seen against what registers do.
func (j *judge) end(e event) {
	j.order, j.found[e.by] = append(j.order, e.by), e.found
	j.watch.Ended(j.scope.Operations[e.by].String(), 0, e.found.Tag)
	v, err := history.Check(j.history())
	switch {
	case err != nil:
		panic(err) // there are no such histories here
	case v != nil:
		j.broken("linearizable", 0, string(v.Rule)+"\n"+v.String())
	}
}

// history returns what clients have seen.
func (j *judge) history() history.History {
	var r history.Recorder
	at := make(map[int]int)
	for _, i := range j.order {
		o, found := &j.scope.Operations[i], j.found[i]
		place, begun := at[i]
		switch {
		case !begun && o.Do == Write:
			at[i] = r.Began(0, history.Operation{Client: string(o.On), Key: string(theKey), Kind: history.Write, Value: o.Value})
		case !begun:
			at[i] = r.Began(0, history.Operation{Client: string(o.On), Key: string(theKey), Kind: history.Read})
		case o.Do == Write || found.Absent():
			r.Ended(0, place, history.OK)
		default:
			r.Found(0, place, string(found.Value))
		}
	}
	return r.History()
}

// ended reports whether an operation has ended, and with what after which others:
// in words that are the same wherever it was the same.
func (j *judge) outcome() string {
	text := ""
	for at, i := range j.order {
		if slices.Contains(j.order[:at], i) {
			text += fmt.Sprintf("%v: %v; ", &j.scope.Operations[i], j.found[i].Tag.Seq)
		} else {
			text += fmt.Sprintf("%v begins; ", &j.scope.Operations[i])
		}
	}
	return text
}

// state returns a hash of what the judge knows, as far as it matters for what
// comes.
func (j *judge) state() uint64 {
	x := hash(len(j.order))
	for _, i := range j.order {
		x = x.add(uint64(i))
	}
	for _, r := range j.found {
		x = x.tag(r.Tag)
	}
	for place := range j.parts.nodes {
		x = x.tag(j.durable[place]).bytes(j.watch.KnownBy(place).Append(nil))
		for k := range j.parts.configurations {
			held, fenced := j.watch.Fenced(k, place)
			if fenced {
				x = x.add(uint64(k + 1))
			}
			for _, t := range held {
				x = x.tag(t)
			}
		}
	}
	return uint64(x.bytes(j.watch.Known().Append(nil)))
}

// hash is a hash of words under way.
type hash uint64

func (h hash) add(x uint64) hash {
	h = (h^hash(x))*0xff51afd7ed558ccd + 0x9e3779b97f4a7c15
	return h ^ h>>32
}

func (h hash) bytes(b []byte) hash {
	for _, c := range b {
		h = h.add(uint64(c))
	}
	return h.add(uint64(len(b)))
}

func (h hash) tag(t tags.Tag) hash {
	id := t.PID.Bytes()
	return h.bytes(id[:]).add(uint64(t.Seq)).add(uint64(t.RMW))
}
