package abd_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// memory is a View whose every record has a position of its own.
type memory struct {
	records map[abd.Key]abd.Record
	at      map[abd.Key]env.Position
	end     env.Position
	damaged abd.Key // the record that can't be trusted
	full    bool
}

func newMemory() *memory {
	return &memory{records: make(map[abd.Key]abd.Record), at: make(map[abd.Key]env.Position)}
}

func (m *memory) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	if key == m.damaged {
		return abd.Record{}, 0, fmt.Errorf("state.db: key %q: %w", key, abd.ErrDamaged)
	}
	r := m.records[key]
	if !withValue {
		r.Value = nil
	}
	return r, m.at[key], nil
}

func (m *memory) Store(key abd.Key, r abd.Record) (env.Position, error) {
	if m.full {
		return 0, fmt.Errorf("journal: %w", abd.ErrFull)
	}
	m.end += 10
	m.records[key], m.at[key] = r, m.end
	return m.end, nil
}

func (m *memory) Scan(prefix, after abd.Key, each func(abd.Key, tags.Tag, bool) bool) (env.Position, error) {
	var pos env.Position
	for _, k := range slices.Sorted(maps.Keys(m.records)) {
		if k <= after || !strings.HasPrefix(string(k), string(prefix)) {
			continue
		}
		if k == m.damaged {
			return 0, fmt.Errorf("state.db: key %q: %w", k, abd.ErrDamaged)
		}
		pos = max(pos, m.at[k])
		if !each(k, m.records[k].Tag, m.records[k].Deleted) {
			break
		}
	}
	return pos, nil
}

// pid returns the nth operation id of a test's only process.
func pid(n uint64) tags.PID { return tags.NewPID(1, 1, n) }

func record(seq tags.Seq, value string) abd.Record {
	return abd.Record{Tag: tags.Tag{Seq: seq, PID: pid(1)}, Value: []byte(value)}
}

var caller = env.Address{Node: "p", Session: 1, Conversation: 1}

// step has r act on m, and returns its only answer.
func step(t *testing.T, r *abd.Replica, m env.Message) env.Out {
	t.Helper()
	outs, err := r.Step(caller, m, nil)
	if err != nil {
		t.Fatalf("Step(%T): %v", m, err)
	}
	if len(outs) != 1 || outs[0].To != caller {
		t.Fatalf("Step(%T) = %v, want one answer to %v", m, outs, caller)
	}
	return outs[0]
}

func TestPutKeepsTheLargerTagAndWaitsForIt(t *testing.T) {
	m := newMemory()
	r := abd.NewReplica(m, 100, abd.Rules{})
	for _, test := range []struct {
		put   abd.Record
		want  string
		after env.Position
	}{
		{record(2, "two"), "two", 10},
		{record(1, "one"), "two", 10}, // smaller: acked, once what is there is durable
		{record(2, "two"), "two", 10}, // the same again
		{record(3, "three"), "three", 20},
	} {
		out := step(t, r, &abd.Put{Key: "k", Record: test.put})
		if _, ok := out.Message.(*abd.PutAck); !ok || out.After != test.after {
			t.Errorf("put %v: %T after %d, want an ack after %d", test.put.Tag, out.Message, out.After, test.after)
		}
		out = step(t, r, &abd.Get{Key: "k"})
		ack := out.Message.(*abd.GetAck)
		if string(ack.Record.Value) != test.want || out.After != test.after {
			t.Errorf("get after put %v: %q after %d, want %q after %d", test.put.Tag, ack.Record.Value, out.After, test.want, test.after)
		}
	}
}

func TestGetOfWhatNobodyWrote(t *testing.T) {
	out := step(t, abd.NewReplica(newMemory(), 100, abd.Rules{}), &abd.Get{Key: "k"})
	ack, ok := out.Message.(*abd.GetAck)
	if !ok || !ack.Record.Tag.IsZero() || !ack.Record.Absent() || ack.Confirmed || out.After != 0 {
		t.Errorf("got %+v after %d, want the zero record, unconfirmed, at once", out.Message, out.After)
	}
}

func TestEmptyValueIsNotAbsent(t *testing.T) {
	r := abd.NewReplica(newMemory(), 100, abd.Rules{})
	step(t, r, &abd.Put{Key: "k", Record: record(1, "")})
	ack := step(t, r, &abd.Get{Key: "k"}).Message.(*abd.GetAck)
	if ack.Record.Absent() || len(ack.Record.Value) != 0 {
		t.Errorf("got %+v, want an empty value", ack.Record)
	}
	step(t, r, &abd.Put{Key: "k", Record: abd.Record{Tag: tags.Tag{Seq: 2, PID: pid(1)}, Deleted: true}})
	ack = step(t, r, &abd.Get{Key: "k"}).Message.(*abd.GetAck)
	if !ack.Record.Absent() {
		t.Errorf("got %+v, want a tombstone", ack.Record)
	}
}

func TestTagOnlyLeavesTheValueOut(t *testing.T) {
	r := abd.NewReplica(newMemory(), 100, abd.Rules{})
	step(t, r, &abd.Put{Key: "k", Record: record(1, "value")})
	ack := step(t, r, &abd.Get{Key: "k", TagOnly: true}).Message.(*abd.GetAck)
	if ack.Record.Tag.Seq != 1 || ack.Record.Value != nil {
		t.Errorf("got %+v, want the tag alone", ack.Record)
	}
}

func TestConfirmCountsForTheStoredTagOnly(t *testing.T) {
	r := abd.NewReplica(newMemory(), 100, abd.Rules{})
	confirmed := func() bool { return step(t, r, &abd.Get{Key: "k"}).Message.(*abd.GetAck).Confirmed }
	confirm := func(rec abd.Record) {
		t.Helper()
		if outs, err := r.Step(caller, &abd.Confirm{Key: "k", Tag: rec.Tag}, nil); err != nil || len(outs) != 0 {
			t.Fatalf("confirm: %v, %v, want neither answer nor error", outs, err)
		}
	}
	confirm(abd.Record{})
	if confirmed() {
		t.Error("the zero tag was confirmed by a message")
	}
	step(t, r, &abd.Put{Key: "k", Record: record(2, "two")})
	confirm(record(1, ""))
	confirm(record(3, ""))
	if confirmed() {
		t.Error("a confirmation of another tag counted")
	}
	confirm(record(2, ""))
	if !confirmed() {
		t.Error("the confirmation was forgotten")
	}
	step(t, r, &abd.Put{Key: "k", Record: record(3, "three")})
	if confirmed() {
		t.Error("a confirmation outlived its tag")
	}
	confirm(record(3, ""))
	if !confirmed() {
		t.Error("the second confirmation of a key was forgotten")
	}
}

func TestPages(t *testing.T) {
	r := abd.NewReplica(newMemory(), 100, abd.Rules{})
	for i := range 5 {
		step(t, r, &abd.Put{Key: abd.Key(fmt.Sprint("k", i)), Record: record(1, "v")})
	}
	step(t, r, &abd.Put{Key: "k1", Record: abd.Record{Tag: tags.Tag{Seq: 2, PID: pid(1)}, Deleted: true}})
	step(t, r, &abd.Put{Key: "other", Record: record(1, "v")})
	for _, test := range []struct {
		list abd.List
		want string
		more bool
	}{
		{abd.List{Prefix: "k", Limit: 100}, "k0 k1† k2 k3 k4", false},
		{abd.List{Prefix: "k", Limit: 2}, "k0 k1†", true},
		{abd.List{Prefix: "k", After: "k1", Limit: 2}, "k2 k3", true},
		{abd.List{Prefix: "k", After: "k3", Limit: 2}, "k4", false},
		{abd.List{After: "k4", Limit: 2}, "other", false},
		{abd.List{Prefix: "nothing", Limit: 2}, "", false},
	} {
		page := step(t, r, &test.list).Message.(*abd.Page)
		var got []string
		for _, item := range page.Items {
			s := string(item.Key)
			if item.Deleted {
				s += "†"
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != test.want || page.More != test.more {
			t.Errorf("%+v: %q more %v, want %q more %v", test.list, got, page.More, test.want, test.more)
		}
	}
}

func TestRefusals(t *testing.T) {
	long := abd.Key(strings.Repeat("k", abd.MaxKey+1))
	for _, test := range []struct {
		name string
		m    env.Message
		want env.Reason
	}{
		{"empty key", &abd.Get{}, env.ReasonBadRequest},
		{"long key", &abd.Get{Key: long}, env.ReasonTooLarge},
		{"put under a long key", &abd.Put{Key: long, Record: record(1, "v")}, env.ReasonTooLarge},
		{"large value", &abd.Put{Key: "k", Record: record(1, strings.Repeat("v", 101))}, env.ReasonTooLarge},
		{"zero tag", &abd.Put{Key: "k"}, env.ReasonBadRequest},
		{"tombstone with a value", &abd.Put{Key: "k", Record: abd.Record{Tag: tags.Tag{Seq: 1}, Deleted: true, Value: []byte("v")}}, env.ReasonBadRequest},
		{"page of no keys", &abd.List{}, env.ReasonBadRequest},
		{"page of too many keys", &abd.List{Limit: abd.MaxPage + 1}, env.ReasonBadRequest},
		{"get of a damaged record", &abd.Get{Key: "damaged"}, env.ReasonDamaged},
		{"put over a damaged record", &abd.Put{Key: "damaged", Record: record(9, "v")}, env.ReasonDamaged},
		{"page with a damaged record", &abd.List{Limit: 10}, env.ReasonDamaged},
		{"put without space", &abd.Put{Key: "k", Record: record(1, "v")}, env.ReasonFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMemory()
			m.records["damaged"], m.damaged, m.full = record(1, "v"), "damaged", test.want == env.ReasonFull
			out := step(t, abd.NewReplica(m, 100, abd.Rules{}), test.m)
			refused, ok := out.Message.(*env.Refused)
			if !ok || refused.Reason != test.want {
				t.Errorf("got %T %v, want a refusal: %v", out.Message, out.Message, test.want)
			}
			if len(m.records) != 1 {
				t.Errorf("the refused request changed something: %v", m.records)
			}
		})
	}
}

func TestADamagedRecordTakesNoConfirmation(t *testing.T) {
	m := newMemory()
	m.damaged = "damaged"
	outs, err := abd.NewReplica(m, 100, abd.Rules{}).Step(caller, &abd.Confirm{Key: "damaged", Tag: tags.Tag{Seq: 1}}, nil)
	if err != nil || len(outs) != 0 {
		t.Errorf("got %v, %v, want nothing", outs, err)
	}
}

// broken is a View that has lost its disk.
type broken struct{ memory }

var errBroken = errors.New("input/output error")

func (*broken) Load(abd.Key, bool) (abd.Record, env.Position, error) {
	return abd.Record{}, 0, errBroken
}

func TestABrokenStoreIsAnErrorAndNoAnswer(t *testing.T) {
	for _, m := range []env.Message{&abd.Get{Key: "k"}, &abd.Put{Key: "k", Record: record(1, "v")}, &abd.Confirm{Key: "k"}} {
		outs, err := abd.NewReplica(&broken{}, 100, abd.Rules{}).Step(caller, m, nil)
		if !errors.Is(err, errBroken) || len(outs) != 0 {
			t.Errorf("%T: %v, %v, want no answer and %v", m, outs, err, errBroken)
		}
	}
}

// What an answer says of lives is durable before the answer leaves, whatever it
// answers.
func TestAnswersWaitForTheLifeThatTheyTell(t *testing.T) {
	r := abd.NewReplica(newMemory(), 100, abd.Rules{})
	r.Stand(abd.Standing{Life: 2}.With("b", 1), nil, true, 7)
	tag := tags.Tag{Seq: 1, PID: tags.NewPID(1, 1, 1)}
	for _, m := range []env.Message{&abd.Get{Key: "k"}, &abd.Put{Key: "k", Record: abd.Record{Tag: tag}}, &abd.List{Limit: 1}} {
		out, err := r.Step(env.Address{Node: "p"}, m, nil)
		if err != nil || len(out) != 1 || out[0].After < 7 {
			t.Errorf("%T: %+v, %v, want an answer that waits for position 7", m, out, err)
		}
	}
}
