package store_test

import (
	"testing"

	"atoll/internal/store"
	"atoll/internal/store/storetest"
	"atoll/replica"
)

// harness runs the suite on a folder. Close writes nothing, so it is what a
// crash of the process leaves: what a crash of the machine may do to the last
// frame is done to it in the package's own tests.
type harness struct {
	t     *testing.T
	cfg   store.Config
	store *store.Store
}

func (h *harness) Store() replica.Store { return h.store }
func (h *harness) Crash()               { h.Reopen() }

func (h *harness) Reopen() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatalf("Close: %v", err)
	}
	h.open()
}

func (h *harness) open() {
	h.t.Helper()
	s, err := store.Open(h.cfg)
	if err != nil {
		h.t.Fatalf("Open: %v", err)
	}
	h.store = s
}

func newHarness(t *testing.T, cfg store.Config) *harness {
	t.Helper()
	cfg.Dir = t.TempDir()
	if err := store.Create(cfg); err != nil {
		t.Fatalf("Create: %v", err)
	}
	h := &harness{t: t, cfg: cfg}
	h.open()
	t.Cleanup(func() { h.store.Close() })
	return h
}

func TestSuite(t *testing.T) {
	for name, cfg := range map[string]store.Config{
		// All in the memory table and one segment.
		"memory": {SegmentBytes: 128 << 10},
		// Everything is applied all the time, and segments are used again.
		"applying": {SegmentBytes: 16 << 10, TableBytes: 2 << 10, JournalBytes: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, cfg) })
		})
	}
}
