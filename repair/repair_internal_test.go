package repair

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

func record(n int) abd.Record {
	return abd.Record{Tag: tags.Tag{Seq: tags.Seq(n), PID: tags.NewPID(1, 1, uint64(n))}, Value: fmt.Appendf(nil, "value %d", n)}
}

// newReplica makes the replica of node n, on what m holds.
func newReplica(t *testing.T, m *memory) *Replica {
	t.Helper()
	r, err := NewReplica(Config{Self: "n", MaxValue: 100}, m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// step hands a message to a replica that answers it at once.
func step(t *testing.T, r *Replica, from quorum.NodeID, msg env.Message) env.Out {
	t.Helper()
	out, err := r.Step(env.Address{Node: from}, msg, nil)
	if err != nil || len(out) != 1 {
		t.Fatal(out, err)
	}
	return out[0]
}

// The bounds of the two kinds of range: a page ends with a key that is in it, a
// gap ends before a sound one.
func TestRanges(t *testing.T) {
	in, gap := Range{After: "b", To: "d"}, &Attest{After: "b", Before: "d"}
	for key, want := range map[abd.Key][2]bool{"a": {}, "b": {}, "ba": {true, true}, "d": {true, false}, "da": {}} {
		if got := [2]bool{in.Has(key), gap.has(key)}; got != want {
			t.Errorf("%q: in the range and in the gap: %v, want %v", key, got, want)
		}
	}
	for _, key := range []abd.Key{"c", "z"} {
		if !(Range{After: "b"}).Has(key) || !(&Attest{After: "b"}).has(key) {
			t.Errorf("%q isn't in what has no end", key)
		}
	}
}

// Pages count up to the smallest of their ends: behind it a member hasn't
// spoken. Of each key the largest record wins.
func TestMergePages(t *testing.T) {
	a := &Attested{Records{Entries: []Entry{{"a", record(1)}, {"b", record(5)}, {"c", record(1)}}, More: true, Last: "c"}}
	b := &Attested{Records{Entries: []Entry{{"b", record(7)}, {"d", record(9)}}}}
	for _, pages := range [][]*Attested{{a, b}, {b, a}} {
		got, end := mergePages(pages)
		var text []string
		for _, e := range got {
			text = append(text, fmt.Sprintf("%s:%d", e.Key, e.Record.Tag.Seq))
		}
		if s := strings.Join(text, " "); s != "a:1 b:7 c:1" || end != "c" {
			t.Errorf("got %s up to %q", s, end)
		}
	}
	if _, end := mergePages([]*Attested{b}); end != "" {
		t.Errorf("pages that reach the end go on behind %q", end)
	}
}

// What can't be an answer isn't taken for one.
func TestFits(t *testing.T) {
	req := &Attest{After: "b", Before: "f"}
	for _, c := range []struct {
		what string
		page Attested
		want bool
	}{
		{"in order", Attested{Records{Entries: []Entry{{"c", record(1)}, {"d", record(1)}}}}, true},
		{"goes on", Attested{Records{Entries: []Entry{{"c", record(1)}}, More: true, Last: "c"}}, true},
		{"out of order", Attested{Records{Entries: []Entry{{"d", record(1)}, {"c", record(1)}}}}, false},
		{"twice", Attested{Records{Entries: []Entry{{"c", record(1)}, {"c", record(1)}}}}, false},
		{"before the gap", Attested{Records{Entries: []Entry{{"b", record(1)}}}}, false},
		{"behind the gap", Attested{Records{Entries: []Entry{{"f", record(1)}}}}, false},
		{"goes on before what it has", Attested{Records{Entries: []Entry{{"d", record(1)}}, More: true, Last: "c"}}, false},
		{"goes on where it began", Attested{Records{More: true, Last: "b"}}, false},
	} {
		if got := c.page.fits(req); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// Lives are what they were after a restart, and nothing else passes for them.
func TestLives(t *testing.T) {
	s := abd.Standing{Life: 3}.With("b", 2).With("a", 7).With("b", 1)
	if s.Of("b") != 2 || s.Of("a") != 7 || s.Of("c") != 0 {
		t.Fatalf("got %+v: a life never goes back", s)
	}
	b := encodeLives(s)
	got, err := decodeLives(b)
	if err != nil || got.Life != 3 || !slices.Equal(got.Others, s.Others) {
		t.Errorf("got %+v, %v, want %+v", got, err, s)
	}
	if none, err := decodeLives(nil); err != nil || none.Life != 0 || len(none.Others) > 0 {
		t.Errorf("never written: %+v, %v", none, err)
	}
	for n := 1; n < len(b); n++ {
		if _, err := decodeLives(b[:n]); err == nil {
			t.Errorf("%d of %d bytes pass", n, len(b))
		}
	}
	if _, err := decodeLives(append(b, 0)); err == nil {
		t.Error("a byte too many passes")
	}
}

// A life shows when it is durable: renew's answer and an attester's wait for
// the cell, in this process and in the next.
func TestLivesAreDurableFirst(t *testing.T) {
	m := newMemory()
	r := newReplica(t, m)
	if o := step(t, r, "n", &renew{}); o.After != 1 || o.Message.(*renewed).Life != 1 {
		t.Errorf("renewed: %+v", o)
	}
	if o := step(t, r, "b", &Attest{Life: 4}); o.After != 2 {
		t.Errorf("attested: %+v", o)
	}
	if o := step(t, r, "b", &Attest{Life: 3}); o.After != 2 {
		t.Errorf("attested once more: %+v", o)
	}
	r = newReplica(t, m)
	if s, at := r.Standing(); s.Life != 1 || s.Of("b") != 4 || at != 2 {
		t.Errorf("in the next process: %+v at %d", s, at)
	}
	if !IsOwn(&renew{}) || IsOwn(&Attest{}) || OnlyReads(&renew{}) || OnlyReads(&Attest{}) || !OnlyReads(&Summarize{}) {
		t.Error("who may send what, and what it writes")
	}
}

// An answer holds about MaxEntryBytes and says where it ends.
func TestAttestInPages(t *testing.T) {
	m := newMemory()
	big := record(1)
	big.Value = make([]byte, MaxEntryBytes/2)
	for _, key := range []abd.Key{"a", "b", "c", "d", "e"} {
		m.records[key] = big
	}
	r, err := NewReplica(Config{Self: "a", MaxValue: MaxEntryBytes}, m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	req := &Attest{After: "a", Before: "e", Life: 1}
	for more := true; more; {
		out, err := r.Step(env.Address{Node: "b"}, req, nil)
		if err != nil {
			t.Fatal(err)
		}
		page := out[0].Message.(*Attested)
		if !page.fits(req) || len(page.Entries) > 2 {
			t.Fatalf("%d entries, more %v behind %q", len(page.Entries), page.More, page.Last)
		}
		for _, e := range page.Entries {
			got = append(got, string(e.Key))
		}
		more = page.More
		req = &Attest{After: page.Last, Before: "e", Life: 1}
	}
	if s := strings.Join(got, " "); s != "b c d" {
		t.Errorf("attested %s", s)
	}
}

// A heal replaces what its life was begun for.
func TestMendOnlyWhatTheLifeIsFor(t *testing.T) {
	m := newMemory()
	m.records["a"], m.records["b"] = record(1), record(2)
	m.damaged["a"] = true
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "n", msg).Message }
	gap := ask(&ail{}).(*ailment)
	if gap.Begun || !slices.Equal(gap.Damaged, []abd.Key{"a"}) {
		t.Fatalf("gap: %+v", gap)
	}
	part := &mend{Entries: []Entry{{"a", record(1)}, {"b", record(1)}}, Damaged: gap.Damaged, Done: true}
	if _, refused := ask(part).(*env.Refused); !refused {
		t.Error("healed before another life began")
	}
	part.Life = ask(&renew{}).(*renewed).Life
	m.damaged["b"] = true // since then
	if _, refused := ask(part).(*env.Refused); !refused || m.damaged["a"] || !m.damaged["b"] {
		t.Errorf("damaged after healing a: %v", m.damaged)
	}
	if gap := ask(&ail{}).(*ailment); gap.Begun || !slices.Equal(gap.Damaged, []abd.Key{"b"}) {
		t.Errorf("the next gap: %+v", gap)
	}
}

// A life that was begun before a damage was noticed heals others and not that.
func TestMendOfAnEarlierLife(t *testing.T) {
	m := newMemory()
	m.records["a"], m.records["b"] = record(1), record(2)
	m.damaged["a"] = true
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "n", msg).Message }
	first := ask(&renew{}).(*renewed).Life
	m.damaged["b"] = true
	ask(&merge{[]Entry{{"b", record(3)}}}) // it notices
	second := ask(&renew{}).(*renewed).Life
	part := &mend{Entries: []Entry{{"b", record(2)}}, Damaged: []abd.Key{"b"}, Done: true, Life: first}
	if _, refused := ask(part).(*env.Refused); !refused || !m.damaged["b"] {
		t.Error("healed by what others have attested before the damage was noticed")
	}
	part.Life = second
	if _, done := ask(part).(*mended); !done || m.damaged["b"] {
		t.Error("not healed by what they have attested since")
	}
	if got := r.Progress(); got.Healed != 1 || got.Damaged != 1 {
		t.Errorf("progress: %+v", got)
	}
}

// A damaged key is one damage: that it takes two changes, one under the name that
// it has now and one under the right name, doesn't make it two that were healed.
func TestHealingOfAKeyCountsOnce(t *testing.T) {
	m := newMemory()
	m.records["kez"], m.damaged["kez"] = record(1), true // it was "key"
	m.beside = map[abd.Key]abd.Key{"key": "kez"}
	r := newReplica(t, m)
	if first, found := r.Damaged(); !found || first != "kez" {
		t.Errorf("damaged is %q, %t", first, found)
	}
	for _, msg := range []env.Message{&renew{}, &mend{Entries: []Entry{{"key", record(1)}}, Damaged: []abd.Key{"kez"}, Done: true, Life: 1}} {
		step(t, r, "n", msg)
	}
	if got := r.Progress(); got.Healed != 1 || got.Damaged != 0 || m.records["key"].Tag != record(1).Tag {
		t.Errorf("progress: %+v, and the key is %v", got, m.records["key"].Tag)
	}
	if first, found := r.Damaged(); found {
		t.Errorf("%q is still damaged", first)
	}
}

// What can't be read because of another damage isn't removed: that one is
// noticed, and waits for its life.
func TestMendBesideAnotherDamage(t *testing.T) {
	m := newMemory()
	m.records["a"], m.records["z"] = record(1), record(2)
	m.damaged["a"] = true
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "n", msg).Message }
	life := ask(&renew{}).(*renewed).Life
	m.damaged["a"], m.damaged["z"] = false, true
	m.beside = map[abd.Key]abd.Key{"a": "z"}
	healed := m.last
	if _, refused := ask(&mend{Damaged: []abd.Key{"a"}, Done: true, Life: life}).(*env.Refused); !refused || m.last != healed {
		t.Error("removed what nothing can be said of")
	}
	if _, known := r.find("z"); !known {
		t.Error("the other damage wasn't noticed")
	}
}

// Damage is told of in turn, with all that is beside it, and no longer than it is
// there.
func TestAilments(t *testing.T) {
	m := newMemory()
	for i, key := range []abd.Key{"a", "b", "c", "d", "e"} {
		m.records[key] = record(i + 1)
	}
	m.damaged["a"], m.damaged["d"] = true, true
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "n", msg).Message }
	m.damaged["b"] = true // nobody has met it yet
	told := make(map[abd.Key]bool)
	for range 4 {
		for _, key := range ask(&ail{}).(*ailment).Damaged {
			told[key] = true
		}
	}
	if !told["a"] || !told["b"] || !told["d"] || r.Progress().Damaged != 3 {
		t.Errorf("told of %v, and %d are known", told, r.Progress().Damaged)
	}
	clear(m.damaged)
	if gap := ask(&ail{}).(*ailment); len(gap.Damaged) > 0 || r.Progress().Damaged != 0 {
		t.Errorf("all can be read again, and told is of %+v; %d are known", gap, r.Progress().Damaged)
	}
}

// A record that one part of a healing has replaced is served at once.
func TestHealedIsServed(t *testing.T) {
	m := newMemory()
	m.records["a"], m.damaged["a"] = record(1), true
	r := newReplica(t, m)
	if _, _, err := r.Watched().Load("a", true); err == nil {
		t.Fatal("it is served before it is healed")
	}
	step(t, r, "n", &renew{})
	step(t, r, "n", &mend{Entries: []Entry{{"a", record(2)}}, Damaged: []abd.Key{"a"}, Life: 1})
	if got, _, err := r.Watched().Load("a", true); err != nil || got.Tag != record(2).Tag {
		t.Errorf("healed, and not served: %v, %v", got, err)
	}
}

// Pages of a node's own keys go on behind damage, and a summary counts one key
// more than the asker has, if there is one.
func TestWalksGoOn(t *testing.T) {
	m := newMemory()
	for i, key := range []abd.Key{"a", "b", "c"} {
		m.records[key] = record(i + 1)
	}
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "n", msg).Message }
	for asked, want := range map[int]int{0: 1, 1: 2, 2: 3, 3: 3, 9: 3} {
		if got := ask(&Summarize{Keys: asked}).(*Summary).Keys; got != want {
			t.Errorf("an asker with %d keys is told of %d, want %d", asked, got, want)
		}
	}
	m.damaged["b"] = true
	r.ail("b")
	page := ask(&inventory{}).(*stock)
	if len(page.Items) != 1 || !page.More {
		t.Errorf("the page before the damage: %+v", page)
	}
	if page = ask(&inventory{After: "a"}).(*stock); len(page.Items) > 0 || page.Skip == "" {
		t.Errorf("at the damage: %+v", page)
	}
}

// A summary that is cut stands for the first keys of a range, and says where those
// end; one that needn't be is like any other.
func TestASummaryThatIsCut(t *testing.T) {
	m := newMemory()
	r := newReplica(t, m)
	ask := func(s Summarize) *Summary { return step(t, r, "p", &s).Message.(*Summary) }
	for _, key := range []abd.Key{"a", "b", "c", "d"} {
		m.records[key] = record(1)
	}
	for _, c := range []struct {
		in   Range
		keys int
		last abd.Key
	}{
		{Range{}, 1, "a"}, {Range{}, 3, "c"}, {Range{}, 4, ""}, {Range{}, 5, ""},
		{Range{After: "a"}, 2, "c"}, {Range{After: "a"}, 3, ""}, {Range{After: "a", To: "c"}, 1, "b"},
		{Range{After: "a", To: "c"}, 2, ""}, {Range{After: "d"}, 1, ""},
	} {
		got := ask(Summarize{Range: c.in, Keys: c.keys, Cut: true})
		if got.Last != c.last {
			t.Errorf("the first %d of %+v end with %q, want %q", c.keys, c.in, got.Last, c.last)
		}
		if c.last != "" {
			c.in.To = c.last
		}
		if want := ask(Summarize{Range: c.in, Keys: c.keys}); got.Keys != want.Keys || got.Hash != want.Hash {
			t.Errorf("the first %d of %+v: %+v, want %+v", c.keys, c.in, got, want)
		}
	}
}

// However many records a node has, one answer costs it no more than the limits say:
// what it looks at and needn't give counts, and what it leaves out because it can't
// be read. The answer says where to go on.
func TestAnAnswerCostsSoMuch(t *testing.T) {
	m := newMemory()
	r := newReplica(t, m)
	ask := func(msg env.Message) env.Message { return step(t, r, "p", msg).Message }
	var known []abd.Item
	for i := range maxExamined + 2 {
		key := abd.Key(fmt.Sprintf("%06d", i))
		m.records[key] = record(1)
		known = append(known, abd.Item{Key: key, Tag: record(1).Tag})
	}
	if got := ask(&Summarize{Keys: 2 * maxExamined}).(*Summary); got.Keys != maxExamined+1 {
		t.Errorf("a summary is of %d keys", got.Keys)
	}
	if got := ask(&Summarize{Keys: 2 * maxExamined, Cut: true}).(*Summary); got.Keys != maxExamined+1 || got.Last != "" {
		t.Errorf("a summary that may be cut is of %d keys, to %q", got.Keys, got.Last)
	}
	if got := ask(&Offer{Items: known}).(*Missing); len(got.Entries) > 0 || !got.More || got.Last != known[maxExamined-1].Key {
		t.Errorf("to one that has all: %d records, more %v behind %q", len(got.Entries), got.More, got.Last)
	}
	if got := ask(&Offer{Range: Range{After: known[maxExamined-1].Key}, Items: known[maxExamined:]}).(*Missing); got.More {
		t.Errorf("the rest: %+v", got)
	}
	for i := range 3 {
		m.damaged[known[i].Key] = true
	}
	if got := ask(&Offer{Limit: 2}).(*Missing); len(got.Entries) > 0 || !got.More || got.Last != known[1].Key {
		t.Errorf("two records, which are damaged: %d records, more %v behind %q", len(got.Entries), got.More, got.Last)
	}
}

// Answers wait for whatever they show: the records, and that there are no others.
func TestAnswersWaitForWhatTheyShow(t *testing.T) {
	for _, c := range []struct{ load, scan, want env.Position }{{7, 5, 7}, {5, 7, 7}} {
		m := newMemory()
		m.records["a"] = record(1)
		m.loadAt, m.scanAt = c.load, c.scan
		r := newReplica(t, m)
		for _, msg := range []env.Message{&Attest{Life: 0}, &Offer{}} {
			if out := step(t, r, "p", msg); out.After != c.want {
				t.Errorf("loaded at %d, scanned at %d: the answer to %T is %+v; want it to wait for %d", c.load, c.scan, msg, out, c.want)
			}
		}
		if out := step(t, r, "p", &Summarize{Keys: 9}); out.After != c.scan {
			t.Errorf("scanned at %d: the answer is %+v", c.scan, out)
		}
	}
}

// memory is a View without a disk. What is damaged in it is values.
type memory struct {
	records map[abd.Key]abd.Record
	damaged map[abd.Key]bool
	cells   map[string][]byte
	at      map[string]env.Position
	last    env.Position
	// beside are keys of which nothing can be said because of the damage of
	// another, and that one.
	beside map[abd.Key]abd.Key
	// Where what is loaded, and what is scanned, stands in the journal.
	loadAt, scanAt env.Position
}

func newMemory() *memory {
	return &memory{records: map[abd.Key]abd.Record{}, damaged: map[abd.Key]bool{}, cells: map[string][]byte{}, at: map[string]env.Position{}}
}

func (m *memory) Load(key abd.Key, _ bool) (abd.Record, env.Position, error) {
	if m.damaged[key] {
		return abd.Record{}, 0, &abd.DamagedRecord{Key: key}
	}
	if other := m.beside[key]; other != "" {
		return abd.Record{}, 0, &abd.DamagedRecord{Key: other}
	}
	return m.records[key], m.loadAt, nil
}

func (m *memory) Store(key abd.Key, r abd.Record) (env.Position, error) {
	m.records[key] = r
	m.last++
	return m.last, nil
}

func (m *memory) Heal(key abd.Key, r abd.Record) (env.Position, error) {
	delete(m.damaged, key)
	return m.Store(key, r)
}

func (m *memory) keys() []abd.Key {
	var keys []abd.Key
	for key := range m.records {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (m *memory) Scan(prefix, after abd.Key, each func(abd.Key, tags.Tag, bool) bool) (env.Position, error) {
	for _, key := range m.keys() {
		if key <= after || !strings.HasPrefix(string(key), string(prefix)) {
			continue
		}
		if !each(key, m.records[key].Tag, m.records[key].Deleted) {
			break
		}
	}
	return m.scanAt, nil
}

func (m *memory) Walk(after abd.Key, each func(abd.Key, tags.Tag, bool, func() ([]byte, error)) bool) (env.Position, error) {
	loaded := env.Position(0)
	scanned, err := m.Scan("", after, func(key abd.Key, tag tags.Tag, deleted bool) bool {
		return each(key, tag, deleted, func() ([]byte, error) {
			r, at, err := m.Load(key, true)
			loaded = max(loaded, at)
			return r.Value, err
		})
	})
	return max(scanned, loaded), err
}

func (m *memory) Expect(iter.Seq[abd.Key]) {}

func (m *memory) Suspects() []abd.Key {
	var keys []abd.Key
	for _, key := range m.keys() {
		if m.damaged[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *memory) Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error) {
	if !m.damaged[key] {
		return "", "", nil, nil
	}
	for _, k := range m.keys() {
		switch {
		case k < key && !m.damaged[k]:
			after = k
		case k > key && !m.damaged[k] && to == "":
			to = k
		}
	}
	for _, k := range m.keys() {
		if m.damaged[k] && k > after && (to == "" || k < to) {
			damaged = append(damaged, k)
		}
	}
	return after, to, damaged, nil
}

func (m *memory) Cell(name string) ([]byte, env.Position) { return m.cells[name], m.at[name] }

func (m *memory) SetCell(name string, value []byte) (env.Position, error) {
	m.last++
	m.cells[name], m.at[name] = slices.Clone(value), m.last
	return m.last, nil
}

// A damaged value behind a range is no damage of the range, known or not; in it,
// it is.
func TestDamageBehindARange(t *testing.T) {
	m := newMemory()
	m.records["a"], m.records["b"], m.records["c"] = record(1), record(2), record(3)
	m.damaged["c"] = true
	for _, known := range []bool{true, false} {
		r := newReplica(t, m)
		if !known {
			r.recovered("c")
		}
		for _, req := range []env.Message{&Summarize{Range: Range{To: "b"}, Keys: 9}, &Offer{Range: Range{To: "b"}}, &Attest{Before: "c", Life: 1}} {
			if refused, is := step(t, r, "p", req).Message.(*env.Refused); is {
				t.Errorf("known %v: %T: %v", known, req, refused)
			}
		}
		answer := step(t, r, "p", &Attest{Life: 1}).Message
		if _, is := answer.(*env.Refused); !is {
			t.Errorf("known %v: attested beyond the damage: %+v", known, answer)
		}
	}
}

// What a node takes over for good leaves nothing out: who says that it has all
// must have it. What it takes because it was missed may.
func TestTakeLeavesNothingOut(t *testing.T) {
	r, err := NewReplica(Config{Self: "n", MaxValue: 5}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	entries := []Entry{{"a", record(1)}, {"b", abd.Record{Tag: record(2).Tag, Value: []byte("small")}}}
	if _, _, err := r.Take(entries); abd.Refusal(err) == nil {
		t.Errorf("a value that is too large: %v", err)
	}
	if _, err := r.Step(env.Address{Node: "n"}, &merge{entries}, nil); err != nil || r.Progress().Merged != 1 {
		t.Errorf("it has merged %d, %v", r.Progress().Merged, err)
	}
}

// The node that comes one too late isn't attested, nor does it begin another life; who
// has healed before may again. What members then know together still fits into a message.
func TestOnlySoManyNodesHeal(t *testing.T) {
	r := newReplica(t, newMemory())
	attest := func(from quorum.NodeID, life abd.Life) bool {
		_, is := step(t, r, from, &Attest{Life: life}).Message.(*Attested)
		return is
	}
	node := func(i int) quorum.NodeID { return quorum.NodeID(fmt.Sprintf("p%d", i)) }
	for i := range MaxHealed {
		if !attest(node(i), 1) {
			t.Fatalf("node %d isn't attested", i)
		}
	}
	if attest("late", 1) || !attest("p3", 2) {
		t.Error("one too late, or one that has healed before")
	}
	if _, _, err := r.renew(); err == nil || !strings.Contains(err.Error(), "a new node has to take its place") {
		t.Errorf("its own first heal: %v", err)
	}
	var others []abd.LifeOf // of members that have attested others at the same time
	for i := range abd.MaxLives - 1 {
		others = append(others, abd.LifeOf{Node: node(i), Life: 3})
	}
	if err := r.Learn(others); err != nil {
		t.Error(err)
	}
	if err := r.Learn([]abd.LifeOf{{Node: "more", Life: 1}}); abd.Refusal(err) == nil {
		t.Errorf("one more than fits beside its own: %v", err)
	}
}
