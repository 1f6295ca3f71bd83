package synod_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

var caller = env.Address{Node: "p", Session: 1, Conversation: 1}

// step has an acceptor act on m, and returns its only answer.
func step(t *testing.T, a *synod.Acceptor, m env.Message) env.Out {
	t.Helper()
	outs, err := a.Step(caller, m, nil)
	if err != nil || len(outs) != 1 || outs[0].To != caller {
		t.Fatalf("Step(%T) = %v, %v, want one answer", m, outs, err)
	}
	return outs[0]
}

func prepare(b synod.Ballot) *synod.Prepare { return &synod.Prepare{Instance: instance, Ballot: b} }

func accept(b synod.Ballot, value string) *synod.Accept {
	return &synod.Accept{Instance: instance, Ballot: b, Value: []byte(value)}
}

// text puts an answer into words.
func text(m env.Message) string {
	switch m := m.(type) {
	case *synod.Promise:
		return fmt.Sprintf("promise %d, %s@%d", m.Ballot.Round, m.Accepted.Value, m.Accepted.Ballot.Round)
	case *synod.Accepted:
		return fmt.Sprintf("accepted %d", m.Ballot.Round)
	case *synod.Rejected:
		return fmt.Sprintf("rejected %d, promised %d", m.Ballot.Round, m.Promised.Round)
	case *synod.Closed:
		return fmt.Sprintf("closed, next %d", m.Horizon.Next)
	case *env.Refused:
		return m.Reason.String()
	}
	return fmt.Sprintf("%T", m)
}

// Each answer, and the position that it waits for: of the record that it shows or
// wrote, and of what it tells of configurations.
func TestAcceptor(t *testing.T) {
	g := &guard{at: 5}
	a := synod.NewAcceptor(newMemory(), g, synod.Rules{})
	for _, c := range []struct {
		m     env.Message
		want  string
		after env.Position
	}{
		{prepare(ballot(3, 1)), "promise 3, @0", 10},
		{prepare(ballot(3, 1)), "promise 3, @0", 10}, // a copy
		{prepare(ballot(2, 1)), "rejected 2, promised 3", 10},
		{accept(ballot(2, 1), "x"), "rejected 2, promised 3", 10},
		{accept(ballot(3, 1), "x"), "accepted 3", 20},
		{accept(ballot(3, 1), "x"), "accepted 3", 20}, // a copy
		{accept(ballot(3, 1), "y"), "bad request", 0},
		{prepare(ballot(5, 1)), "promise 5, x@3", 30},
		{accept(ballot(3, 1), "x"), "rejected 3, promised 5", 30}, // a copy that comes too late
		{accept(ballot(6, 2), "x"), "accepted 6", 40},             // promised elsewhere
		{prepare(ballot(6, 1)), "rejected 6, promised 6", 40},     // the smaller id
		{prepare(ballot(6, 3)), "promise 6, x@6", 50},
		{prepare(synod.Ballot{Round: 1}), "bad request", 0},
		{prepare(synod.Ballot{ID: ballot(1, 1).ID}), "bad request", 0},
		{&synod.Prepare{Ballot: ballot(1, 1)}, "bad request", 0},
		{&synod.Prepare{Instance: "other", Ballot: ballot(1, 1)}, "promise 1, @0", 60},
		{&synod.Accept{Instance: instance, Ballot: ballot(9, 1)}, "bad request", 0},
		{accept(ballot(9, 1), strings.Repeat("v", synod.MaxValue+1)), "too large", 0},
	} {
		out := step(t, a, c.m)
		if got := text(out.Message); got != c.want || out.After != c.after {
			t.Errorf("%T %+v: %s after %d, want %s after %d", c.m, c.m, got, out.After, c.want, c.after)
		}
	}
	g.closed, g.at = true, 77
	for _, m := range []env.Message{prepare(ballot(99, 1)), accept(ballot(99, 1), "x")} {
		if out := step(t, a, m); text(out.Message) != "closed, next 1" || out.After != 77 {
			t.Errorf("%T: %s after %d, where nobody votes", m, text(out.Message), out.After)
		}
	}
}

// Who knows less of configurations is told, by whatever answer he gets.
func TestAnswersTellOfConfigurations(t *testing.T) {
	m, err := quorum.NewMap(configuration(t, 0, "majority", "a"), configuration(t, 1, "majority", "b"))
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{news: &quorum.News{Map: m}}
	a := synod.NewAcceptor(newMemory(), g, synod.Rules{})
	for _, knows := range []bool{false, true} {
		var h quorum.Horizon
		if knows {
			h = m.Horizon()
		}
		g.closed = false
		answers := []synod.Told{
			step(t, a, &synod.Prepare{Instance: instance, Ballot: ballot(1, 1), Horizon: h}).Message.(*synod.Promise).Told,
			step(t, a, &synod.Accept{Instance: instance, Ballot: ballot(1, 1), Value: []byte("x"), Horizon: h}).Message.(*synod.Accepted).Told,
			step(t, a, &synod.Accept{Instance: instance, Ballot: ballot(1, 0), Value: []byte("x"), Horizon: h}).Message.(*synod.Rejected).Told,
		}
		g.closed = true
		answers = append(answers, step(t, a, &synod.Prepare{Instance: instance, Ballot: ballot(1, 1), Horizon: h}).Message.(*synod.Closed).Told)
		for i, told := range answers {
			if told.Horizon != m.Horizon() || (told.News == nil) != knows {
				t.Errorf("answer %d to who knows %+v: %+v", i, h, told)
			}
		}
	}
}

// A flipped bit anywhere in a record makes the acceptor abstain on that instance,
// which it names, and on no other; nothing is overwritten.
func TestADamagedRecordAbstains(t *testing.T) {
	m := newMemory()
	a := synod.NewAcceptor(m, &guard{}, synod.Rules{})
	step(t, a, accept(ballot(3, 1), "the value"))
	step(t, a, &synod.Prepare{Instance: "other", Ballot: ballot(2, 1)})
	whole := slices.Clone(m.records[instance])
	damages := [][]byte{whole[:len(whole)-1], whole[:3], m.records["other"], append(slices.Clone(whole), 0)}
	for i := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		damages = append(damages, b)
	}
	for i, b := range damages {
		m.records[instance] = b
		for _, req := range []env.Message{prepare(ballot(9, 1)), accept(ballot(9, 1), "y")} {
			out := step(t, a, req)
			refused, ok := out.Message.(*env.Refused)
			if !ok || refused.Reason != env.ReasonDamaged || !strings.Contains(refused.Text, string(instance)) {
				t.Fatalf("damage %d: %T was answered by %v", i, req, text(out.Message))
			}
		}
		if !bytes.Equal(m.records[instance], b) {
			t.Fatalf("damage %d: the record was overwritten", i)
		}
		_, _, err := a.Record(instance)
		if damaged, ok := errors.AsType[*synod.DamagedError](err); !ok || damaged.Instance != instance {
			t.Fatalf("damage %d: %v", i, err)
		}
	}
	if got := text(step(t, a, &synod.Prepare{Instance: "other", Ballot: ballot(3, 1)}).Message); got != "promise 3, @0" {
		t.Errorf("another instance: %s", got)
	}
	if err := a.Forget(instance); err != nil {
		t.Fatal(err)
	}
	if r, _, err := a.Record(instance); err != nil || !r.Accepted.IsZero() || !r.Promised.IsZero() {
		t.Errorf("forgotten: %+v, %v", r, err)
	}
	end := m.end
	if err := a.Forget(instance); err != nil || m.end != end {
		t.Errorf("forgotten once more: %v, and the journal grew by %d", err, m.end-end)
	}
}

// A record is what it was after a restart, and says whose it is.
func TestRecords(t *testing.T) {
	m := newMemory()
	value := bytes.Repeat([]byte{0, 0xff}, synod.MaxValue/2)
	b := ballot(1<<64-1, 7)
	step(t, synod.NewAcceptor(m, &guard{}, synod.Rules{}), accept(b, string(value)))
	if size := len(m.records[instance]); size > 64<<10 {
		t.Errorf("the largest record has %d bytes, and a cell 64 KiB", size)
	}
	r, at, err := synod.NewAcceptor(m, &guard{}, synod.Rules{}).Record(instance)
	if err != nil || at != 10 || r.Promised != b || r.Accepted.Ballot != b || !bytes.Equal(r.Accepted.Value, value) {
		t.Errorf("%v accepted %v at %d, %v", r.Promised, r.Accepted.Ballot, at, err)
	}
	if i, err := synod.InstanceOf(m.records[instance]); i != instance || err != nil {
		t.Errorf("the record of %q, %v", i, err)
	}
	if _, err := synod.InstanceOf(nil); err == nil {
		t.Error("nothing is a record")
	}
}

var errBroken = errors.New("input/output error")

func TestAStoreThatCant(t *testing.T) {
	m := newMemory()
	a := synod.NewAcceptor(m, &guard{}, synod.Rules{})
	m.err = fmt.Errorf("journal: %w", abd.ErrFull)
	for _, req := range []env.Message{prepare(ballot(1, 1)), accept(ballot(1, 1), "x")} {
		if got := text(step(t, a, req).Message); got != "no space" {
			t.Errorf("%T without space: %s", req, got)
		}
	}
	m.err = errBroken
	for _, req := range []env.Message{prepare(ballot(1, 1)), accept(ballot(1, 1), "x"), &synod.Closed{}} {
		if outs, err := a.Step(caller, req, nil); err == nil || len(outs) != 0 {
			t.Errorf("%T: %v, %v, want an error and no answer", req, outs, err)
		}
	}
}

// FuzzRecord: whatever stands in the place of a record, with or without the
// checksum that belongs to it, the acceptor answers, and by what the record says
// or not at all.
func FuzzRecord(f *testing.F) {
	m := newMemory()
	if _, err := synod.NewAcceptor(m, &guard{}, synod.Rules{}).Step(caller, accept(ballot(3, 1), "x"), nil); err != nil {
		f.Fatal(err)
	}
	whole := m.records[instance]
	f.Add(whole)
	f.Add(whole[:len(whole)-4])
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, record := range [][]byte{b, binary.BigEndian.AppendUint32(slices.Clone(b), crc32.ChecksumIEEE(b))} {
			m := newMemory()
			m.records[instance] = record
			a := synod.NewAcceptor(m, &guard{}, synod.Rules{})
			r, _, err := a.Record(instance)
			with := ballot(1<<63, 1)
			var want string
			switch {
			case err != nil:
				want = "damaged record"
			case with.Less(r.Promised) || with.Less(r.Accepted.Ballot):
				want = "rejected"
			default:
				want = "promise"
			}
			if got := text(step(t, a, prepare(with)).Message); !strings.HasPrefix(got, want) {
				t.Fatalf("the record is %+v, %v, and the answer %s", r, err, got)
			}
		}
	})
}
