package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
)

func setCell(t *testing.T, s replica.Store, name, value string) env.Position {
	t.Helper()
	p, err := s.SetCell(name, []byte(value))
	if err != nil {
		t.Fatalf("SetCell(%.40q): %v", name, err)
	}
	return p
}

// wantCell checks a cell that was set, and returns its position.
func wantCell(t *testing.T, s replica.Store, name, want string) env.Position {
	t.Helper()
	got, p := s.Cell(name)
	if got == nil || string(got) != want {
		t.Fatalf("Cell(%.40q) = %.40q (nil: %t), want %.40q", name, got, got == nil, want)
	}
	return p
}

func wantNoCell(t *testing.T, s replica.Store, name string) {
	t.Helper()
	if got, p := s.Cell(name); got != nil || p != 0 {
		t.Fatalf("Cell(%.40q), which was never set, = %.40q at %d", name, got, p)
	}
}

// cells are visible at once, stand at a position of the journal like records,
// and are nobody's business else.
func cells(t *testing.T, h Harness) {
	s := h.Store()
	wantNoCell(t, s, "life")
	value := []byte("one")
	p, err := s.SetCell("life", value)
	if err != nil {
		t.Fatal(err)
	}
	copy(value, "two")
	if at := wantCell(t, s, "life", "one"); at != p {
		t.Errorf("it stands at %d, SetCell said %d", at, p)
	}
	if q := put(t, s, "life", record(1, "a register of the same name")); q != p+1 {
		t.Errorf("the record behind the cell at %d has position %d", p, q)
	}
	empty := setCell(t, s, "empty", "")
	if got := s.Cells(""); !slices.Equal(got, []string{"empty", "life"}) {
		t.Errorf("the cells are %q", got)
	}
	if got := s.Cells("li"); !slices.Equal(got, []string{"life"}) {
		t.Errorf("the cells that begin with li are %q", got)
	}
	if got := s.Cut(); got != empty {
		t.Errorf("Cut = %d, want %d", got, empty)
	}
	if got := commit(t, s); got != empty {
		t.Errorf("Commit = %d, want %d", got, empty)
	}
	for _, reopen := range []func(){func() {}, h.Crash, h.Reopen, h.Crash} {
		reopen()
		s := h.Store()
		if at := wantCell(t, s, "life", "one"); at > empty {
			t.Errorf("a durable cell stands at %d, the journal at %d", at, empty)
		}
		wantCell(t, s, "empty", "")
		wantRecord(t, s, "life", record(1, "a register of the same name"))
		wantRecord(t, s, "empty", abd.Record{})
		wantUsage(t, s, 1, 0)
		if got := list(t, s, "", "", 10); len(got) != 1 || got[0].key != "life" {
			t.Errorf("Scan = %v, want life alone", got)
		}
	}
}

// Cells share the fate of the records of their group.
func cellsInGroups(t *testing.T, h Harness) {
	s := h.Store()
	setCell(t, s, "c", "kept")
	s.Cut()
	commit(t, s)
	setCell(t, s, "c", "lost")
	setCell(t, s, "d", "lost")
	h.Crash() // the group was open
	wantCell(t, h.Store(), "c", "kept")
	wantNoCell(t, h.Store(), "d")

	s = h.Store()
	const groups = 5
	for g := range groups {
		setCell(t, s, "c", fmt.Sprint("c", g))
		put(t, s, "k", record(g+1, fmt.Sprint("k", g)))
		setCell(t, s, fmt.Sprint("of group ", g), "v")
		s.Cut()
	}
	h.Crash()
	s = h.Store()
	r, _, err := s.Load("k", true)
	if err != nil {
		t.Fatal(err)
	}
	kept := int(r.Tag.Seq)
	for g := range groups {
		name := fmt.Sprint("of group ", g)
		if g < kept {
			wantCell(t, s, name, "v")
		} else {
			wantNoCell(t, s, name)
		}
	}
	if kept == 0 {
		wantCell(t, s, "c", "kept")
	} else {
		wantCell(t, s, "c", fmt.Sprint("c", kept-1))
	}
}

func cellLimits(t *testing.T, h Harness) {
	s := h.Store()
	long, large := strings.Repeat("n", replica.MaxCellName), strings.Repeat("v", replica.MaxCellBytes)
	for _, c := range []struct{ name, value string }{{"", "v"}, {long + "n", "v"}, {"n", large + "v"}} {
		var size *abd.SizeError
		if _, err := s.SetCell(c.name, []byte(c.value)); !errors.As(err, &size) {
			t.Errorf("SetCell of %d bytes under a name of %d: %v, want a *SizeError", len(c.value), len(c.name), err)
		}
		wantNoCell(t, s, c.name)
	}
	setCell(t, s, long, large)
	s.Cut()
	for i := 1; i < replica.MaxCells; i++ {
		setCell(t, s, fmt.Sprint("cell ", i), fmt.Sprint(i))
	}
	check := func() {
		t.Helper()
		s := h.Store()
		if _, err := s.SetCell("one more", nil); !errors.Is(err, replica.ErrCells) {
			t.Errorf("SetCell of one more: %v, want ErrCells", err)
		}
		wantNoCell(t, s, "one more")
		wantCell(t, s, long, large)
		for i := 1; i < replica.MaxCells; i++ {
			wantCell(t, s, fmt.Sprint("cell ", i), fmt.Sprint(i))
		}
	}
	check()
	s.Cut()
	commit(t, s)
	h.Reopen()
	check()
	setCell(t, h.Store(), "cell 1", "one that is there can be set")
	h.Crash()
	check()
}

// The last of many values counts, also when nothing but cells is written.
func cellOverwrites(t *testing.T, h Harness) {
	for round := range 2 {
		for i := range 400 {
			setCell(t, h.Store(), fmt.Sprint(i%3), fmt.Sprintf("%d.%d %s", round, i, bytes.Repeat([]byte("x"), i)))
			if i%50 == 49 {
				h.Store().Cut()
				commit(t, h.Store())
			}
		}
		if round%2 == 0 {
			h.Reopen()
		} else {
			h.Crash()
		}
		for i := 397; i < 400; i++ {
			wantCell(t, h.Store(), fmt.Sprint(i%3), fmt.Sprintf("%d.%d %s", round, i, bytes.Repeat([]byte("x"), i)))
		}
	}
	wantUsage(t, h.Store(), 0, 0)
}
