package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/sim/history"
)

// parse makes a history of one key from lines like "1-4 c1 write a", with a
// read's result, or - for nothing, and a last word for other outcomes than ok.
// The end of an unknown operation is left out: "5- c2 delete unknown".
func parse(t *testing.T, text string) history.History {
	t.Helper()
	var h history.History
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.Fields(line)
		op := history.Operation{Key: "k", Client: words[1], Outcome: history.OK}
		span := words[0]
		if strings.HasSuffix(span, "-") {
			span += "0"
		}
		if _, err := fmt.Sscanf(span, "%d-%d", &op.Call, &op.Return); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rest := words[3:]
		switch words[2] {
		case "write":
			op.Kind, op.Value, rest = history.Write, rest[0], rest[1:]
		case "delete":
			op.Kind = history.Delete
		case "read":
			op.Kind = history.Read
			if rest[0] != "-" {
				op.Found, op.Value = true, rest[0]
			}
			rest = rest[1:]
		}
		if len(rest) > 0 {
			op.Outcome = map[string]history.Outcome{"unknown": history.Unknown, "failed": history.Failed}[rest[0]]
		}
		h = append(h, op)
	}
	return h
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       history.Rule
	}{
		{"nothing at first", "1-2 c1 read -", ""},
		{"what was written", "1-2 c1 write a\n3-4 c2 read a", ""},
		{"nobody's value", "1-2 c1 read a", history.FromNowhere},
		{"a failed write's value", "1-2 c1 write a failed\n3-4 c2 read a", history.FromFailed},
		{"a failed delete", "1-2 c1 write a\n3-4 c1 delete failed\n5-6 c2 read -", history.Unexplained},
		{"a value of the future", "1-2 c1 read a\n3-4 c2 write a", history.FromFuture},
		{"at the same instant", "1-3 c1 read a\n3-4 c2 write a", ""},
		{"an old value", "1-2 c1 write a\n3-4 c1 write b\n5-6 c2 read a", history.Interleaved},
		{"new, then old", "1-2 c1 write a\n3-9 c1 write b\n4-5 c2 read b\n6-7 c2 read a", history.Interleaved},
		{"old, then new", "1-2 c1 write a\n3-9 c1 write b\n4-5 c2 read a\n6-7 c2 read b", ""},
		{"back and forth", "1-9 c1 write a\n1-9 c2 write b\n2-3 c3 read a\n4-5 c3 read b\n6-7 c3 read a", history.Interleaved},
		{"a write that may have been", "1-2 c1 write a unknown\n3-4 c2 read -\n5-6 c2 read a", ""},
		{"and then was not", "1-2 c1 write a unknown\n3-4 c2 read a\n5-6 c2 read -", history.Unexplained},
		{"late, over another", "1- c1 write a unknown\n3-4 c2 write b\n5-6 c2 read b\n7-8 c2 read a\n9-10 c2 read b", history.Interleaved},
		{"deleted", "1-2 c1 write a\n3-4 c1 delete\n5-6 c2 read -", ""},
		{"deleted and there", "1-2 c1 write a\n3-4 c1 delete\n5-6 c2 read a", history.Resurrected},
		{"lost", "1-2 c1 write a\n3-4 c2 read -\n5-6 c2 read a", history.LostValue},
		{"a lost value is lost despite deletes", "1-2 c1 write a\n1-9 c1 delete\n3-4 c2 read -\n5-6 c2 read a", history.LostValue},
		{"lost for good", "1-2 c1 write a\n3-4 c2 read -", history.Unexplained},
		{"deleted late", "1-2 c1 write a\n3-4 c2 read -\n5- c1 delete unknown", history.Unexplained},
		{"deleted at any time", "1-2 c1 write a\n2- c1 delete unknown\n3-4 c2 read a\n5-6 c2 read -", ""},
		{"two deletes of the same", "1-2 c1 write a\n3-4 c1 delete\n3-4 c2 delete\n5-6 c2 read -", ""},
		{"one delete for two reads", "1-2 c1 write a\n3-4 c1 delete\n5-6 c2 read -\n7-8 c2 read -\n9-10 c2 write b", ""},
		{"one delete for two values",
			"1- c1 delete unknown\n2-3 c2 write a\n4-5 c2 read -\n6-7 c2 write b\n8-9 c2 read -", history.Unexplained},
		{"a delete for each",
			"1- c1 delete unknown\n1-20 c3 delete\n2-3 c2 write a\n4-5 c2 read -\n6-7 c2 write b\n8-9 c2 read -", ""},
		// The delete that ends first must be taken, though the other was
		// called first and would do for this read.
		{"the shorter delete first",
			"1-20 c1 delete\n2-6 c2 delete\n2-3 c3 write a\n4-5 c3 read -\n7-8 c3 write b\n9-10 c3 read -", ""},
		// A delete between two stretches of b's is no delete of a's.
		{"a delete in the way of nothing",
			"1-2 c1 write a\n3-4 c1 read -\n5-6 c1 write b\n7-8 c2 delete\n9-10 c1 read -", history.Unexplained},
		{"written while deleted", "1-2 c1 write a\n3-8 c1 delete\n3-8 c2 write b\n9-10 c2 read -\n11-12 c2 read -", ""},
		{"deleted or written, not both",
			"1-2 c1 write a\n3-8 c1 delete\n3-8 c2 write b\n9-10 c2 read -\n11-12 c2 read b", history.LostValue},
		{"a delete that could only come while there is another value",
			"1-2 c1 write a\n5-15 c2 read -\n12-30 c3 delete\n7-10 c1 write b\n20-21 c1 read b", history.Unexplained},
		{"before all time", "-9223372036854775808--9223372036854775808 c1 write a\n1-2 c2 read -", history.Unexplained},
		{"until the end of time",
			"1-9223372036854775807 c1 write a\n1-9223372036854775807 c1 read a\n1-9223372036854775807 c1 read -", ""},
		{"reads that never ended", "1- c1 read - unknown\n3-4 c2 read - failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := parse(t, c.text)
			v, err := history.Check(h)
			if err != nil {
				t.Fatal(err)
			}
			var got history.Rule
			if v != nil {
				got = v.Rule
				if err := proven(v); err != nil {
					t.Errorf("%v\n%v", err, v)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNoHistory has what can't be judged. The last operation is to blame.
func TestNoHistory(t *testing.T) {
	fine := history.Operation{Kind: history.Write, Outcome: history.OK, Key: "k", Value: "a", Call: 1, Return: 2}
	for reason, change := range map[string]func(*history.Operation){
		"already written":    func(*history.Operation) {},
		"no such kind":       func(op *history.Operation) { op.Kind = 0 },
		"no such outcome":    func(op *history.Operation) { op.Outcome = history.Unknown + 1 },
		"before it was call": func(op *history.Operation) { op.Return = 0 },
		"finds something":    func(op *history.Operation) { op.Found = true },
		"neither written":    func(op *history.Operation) { op.Kind = history.Delete },
	} {
		h := history.History{fine, fine}
		change(&h[1])
		v, err := history.Check(h)
		var invalid *history.InvalidError
		if v != nil || !errors.As(err, &invalid) || invalid.At != 1 || invalid.Operation != h[1] || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v and %v, want operation 1: … %s …", v, err, reason)
		}
	}
	other := fine
	other.Key = "l"
	if v, err := history.Check(history.History{fine, other}); v != nil || err != nil {
		t.Errorf("the same value under two keys: %v, %v", v, err)
	}
}

// TestManyReadsAndDeletes has k reads of nothing, at times that need a delete
// each, and one delete too few, all of them long: the proof needs everything.
func TestManyReadsAndDeletes(t *testing.T) {
	const k = 200
	var h history.History
	at := time.Duration(0)
	add := func(op history.Operation) {
		op.Key, op.Client, op.Outcome = "k", "c", history.OK
		op.Call, op.Return, at = at, at+1, at+2
		h = append(h, op)
	}
	for i := range k {
		add(history.Operation{Kind: history.Write, Value: fmt.Sprint(i)})
		add(history.Operation{Kind: history.Read})
	}
	for range k - 1 {
		h = append(h, history.Operation{Key: "k", Client: "d", Kind: history.Delete, Outcome: history.Unknown})
	}
	v, err := history.Check(h)
	if err != nil || v == nil || v.Rule != history.Unexplained || len(v.Operations) != 3*k-1 {
		t.Fatalf("got %v, %v", v, err)
	}
	if text := v.String(); strings.Count(text, "\n") > 60 || !strings.Contains(text, "more") {
		t.Errorf("a long history isn't cut:\n%s", text)
	}
	for _, enough := range []history.Operation{
		{Key: "k", Client: "d", Kind: history.Delete, Outcome: history.Unknown},
		{Key: "k", Client: "d", Kind: history.Delete, Outcome: history.OK, Call: 5, Return: 6}, // between write and read 1
	} {
		if v, err := history.Check(append(h, enough)); v != nil || err != nil {
			t.Errorf("with %v: %v, %v", enough, v, err)
		}
	}
}

func TestRecorder(t *testing.T) {
	var r history.Recorder
	write := r.Began(-5, history.Operation{Client: "p", Key: "k", Kind: history.Write, Value: "a"})
	read := r.Began(7, history.Operation{Client: "q", Key: "k", Kind: history.Read})
	lost := r.Began(7, history.Operation{Client: "q", Key: "k", Kind: history.Read})
	r.Ended(7, write, history.OK)
	r.Found(7, read, "a")
	empty := r.Began(20, history.Operation{Client: "q", Key: "l", Kind: history.Read})
	r.Ended(21, empty, history.OK)
	want := history.History{
		{Client: "p", Key: "k", Kind: history.Write, Value: "a", Outcome: history.OK, Call: -5, Return: 9},
		{Client: "q", Key: "k", Kind: history.Read, Value: "a", Found: true, Outcome: history.OK, Call: 7, Return: 10},
		{Client: "q", Key: "k", Kind: history.Read, Outcome: history.Unknown, Call: 8, Return: 8},
		{Client: "q", Key: "l", Kind: history.Read, Outcome: history.OK, Call: 20, Return: 21},
	}
	if got := r.History(); !slices.Equal(got, want) || lost != 2 {
		t.Errorf("got\n%s\nwant\n%s", show(got), show(want))
	}
}
