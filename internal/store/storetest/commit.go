package storetest

import (
	"fmt"
	"testing"

	"atoll/abd"
	"atoll/env"
)

func positionsGrow(t *testing.T, h Harness) {
	s := h.Store()
	last := s.Cut()
	for i := range 50 {
		p := put(t, s, abd.Key(fmt.Sprint("k", i%7)), record(i+1, "v"))
		if p <= last {
			t.Fatalf("Store returned %d after %d", p, last)
		}
		if i%3 == 0 {
			if c := s.Cut(); c != p {
				t.Fatalf("Cut = %d, want %d: the position behind the last record", c, p)
			}
		}
		if i%10 == 9 {
			cut := s.Cut()
			if c := commit(t, s); c != cut {
				t.Fatalf("Commit = %d, want %d", c, cut)
			}
		}
		last = p
	}
	durable := commit(t, s)
	for _, reopen := range []func(){h.Crash, h.Reopen} {
		reopen()
		s = h.Store()
		if c := commit(t, s); c != durable {
			t.Errorf("after reopening, the journal is durable up to %d, want %d", c, durable)
		}
		if p := put(t, s, "more", record(1000, "v")); p <= durable {
			t.Errorf("after reopening, a record has position %d, want more than %d", p, durable)
		}
	}
}

func commitTakesWhatWasCut(t *testing.T, h Harness) {
	s := h.Store()
	if p := commit(t, s); p != 0 {
		t.Errorf("Commit of nothing = %d, want 0", p)
	}
	put(t, s, "a", record(1, "1"))
	if p := commit(t, s); p != 0 {
		t.Errorf("Commit before Cut = %d, want 0", p)
	}
	first := s.Cut()
	open := put(t, s, "b", record(2, "2"))
	if p := commit(t, s); p != first || p >= open {
		t.Errorf("Commit = %d, want %d: the open group isn't part of it", p, first)
	}
	second := s.Cut()
	if second != open {
		t.Errorf("Cut = %d, want %d", second, open)
	}
	if p := s.Cut(); p != second {
		t.Errorf("Cut of an empty group = %d, want %d", p, second)
	}
	if p := commit(t, s); p != second {
		t.Errorf("Commit = %d, want %d", p, second)
	}
	if p := commit(t, s); p != second {
		t.Errorf("Commit again = %d, want %d", p, second)
	}
}

func commitBesideSteps(t *testing.T, h Harness) {
	s := h.Store()
	const steps = 300
	cuts, done := make(chan env.Position, steps), make(chan error, 1)
	go func() {
		last := env.Position(0)
		for cut := range cuts {
			p, err := s.Commit()
			if err == nil && (p < cut || p < last) {
				err = fmt.Errorf("a Commit = %d after a Cut at %d and a Commit of %d", p, cut, last)
			}
			if err != nil {
				done <- err
				return
			}
			last = p
		}
		done <- nil
	}()
	for i := range steps {
		key := abd.Key(fmt.Sprint("k", i%17))
		put(t, s, key, record(i+1, fmt.Sprint(i)))
		wantRecord(t, s, key, record(i+1, fmt.Sprint(i)))
		cuts <- s.Cut()
	}
	close(cuts)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.Crash()
	for i := steps - 17; i < steps; i++ {
		wantRecord(t, h.Store(), abd.Key(fmt.Sprint("k", i%17)), record(i+1, fmt.Sprint(i)))
	}
	wantUsage(t, h.Store(), 17, 0)
}

func committedSurvives(t *testing.T, h Harness) {
	for round := range 4 {
		for i := range 20 {
			put(t, h.Store(), abd.Key(fmt.Sprint("k", i)), record(round*20+i+1, fmt.Sprint(round, i)))
		}
		h.Store().Cut()
		commit(t, h.Store())
		if round%2 == 0 {
			h.Crash()
		} else {
			h.Reopen()
		}
		for i := range 20 {
			wantRecord(t, h.Store(), abd.Key(fmt.Sprint("k", i)), record(round*20+i+1, fmt.Sprint(round, i)))
		}
		wantUsage(t, h.Store(), 20, 0)
	}
}

func uncommittedIsLost(t *testing.T, h Harness) {
	s := h.Store()
	put(t, s, "a", record(1, "kept"))
	s.Cut()
	commit(t, s)
	// The group is still open, so there is no end of it to be kept.
	put(t, s, "a", record(2, "lost"))
	put(t, s, "b", record(3, "lost"))
	h.Crash()
	wantRecord(t, h.Store(), "a", record(1, "kept"))
	wantRecord(t, h.Store(), "b", abd.Record{})
	wantUsage(t, h.Store(), 1, 0)
	if got := list(t, h.Store(), "", "", 10); len(got) != 1 || got[0].tag != tag(1) {
		t.Errorf("Scan after the crash = %v, want only a", got)
	}
}

func groupsAreAtomic(t *testing.T, h Harness) {
	s := h.Store()
	const groups, size = 5, 7
	for g := range groups {
		for i := range size {
			put(t, s, abd.Key(fmt.Sprint("g", g, ".", i)), record(g*size+i+1, "v"))
		}
		s.Cut()
	}
	h.Crash()
	kept := len(list(t, h.Store(), "", "", groups*size+1))
	if kept%size != 0 {
		t.Fatalf("%d records of groups of %d survived", kept, size)
	}
	for g := range groups {
		for i := range size {
			want := abd.Record{}
			if g < kept/size {
				want = record(g*size+i+1, "v")
			}
			wantRecord(t, h.Store(), abd.Key(fmt.Sprint("g", g, ".", i)), want)
		}
	}
	wantUsage(t, h.Store(), int64(kept), 0)
}

func crashTwice(t *testing.T, h Harness) {
	for i := range 6 {
		put(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
		h.Store().Cut()
		commit(t, h.Store())
		put(t, h.Store(), "k", record(100+i, "lost"))
		h.Crash()
		wantRecord(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
		h.Crash()
		wantRecord(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
	}
}
