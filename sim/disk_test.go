package sim_test

import (
	"errors"
	"sync"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/store/storetest"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// lockedDisk is a Disk whose Commit may run beside the steps. In a World
// everything is on one goroutine.
type lockedDisk struct {
	*sim.Disk
	mu sync.Mutex
}

func (d *lockedDisk) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.Load(key, withValue)
}

func (d *lockedDisk) Store(key abd.Key, r abd.Record) (env.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.Store(key, r)
}

func (d *lockedDisk) Heal(key abd.Key, r abd.Record) (env.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.Heal(key, r)
}

func (d *lockedDisk) SetCell(name string, value []byte) (env.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.SetCell(name, value)
}

func (d *lockedDisk) Cut() env.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.Cut()
}

func (d *lockedDisk) Commit() (env.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Disk.Commit()
}

type diskHarness struct {
	disk    *lockedDisk
	crash   func(d *sim.Disk, crashes int)
	crashes int
}

func (h *diskHarness) Store() replica.Store { return h.disk }
func (h *diskHarness) Damage(key abd.Key)   { h.disk.Damage(key) }
func (h *diskHarness) Reopen()              { h.disk.Close(); h.Crash() }

func (h *diskHarness) Crash() {
	h.crashes++
	h.crash(h.disk.Disk, h.crashes)
}

// The simulated disk is a store like the real one, whichever way its node
// dies.
func TestDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash func(d *sim.Disk, crashes int)
	}{
		{"kill", func(d *sim.Disk, _ int) { d.LoseUnwritten() }},
		{"power loss", func(d *sim.Disk, crashes int) { d.LoseUnsynced(crashes % 3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				return &diskHarness{disk: &lockedDisk{Disk: sim.NewDisk()}, crash: c.crash}
			})
		})
	}
}

func diskRecord(seq tags.Seq, value string) abd.Record {
	return abd.Record{Tag: tags.Tag{Seq: seq, PID: tags.NewPID(1, 1, 1)}, Value: []byte(value)}
}

// A damaged record is an error and never a missing one, until it is stored
// anew.
func TestDiskDamage(t *testing.T) {
	d := sim.NewDisk()
	for _, key := range []abd.Key{"a", "b", "c"} {
		if _, err := d.Store(key, diskRecord(1, "v")); err != nil {
			t.Fatal(err)
		}
	}
	d.Damage("b")
	if r, _, err := d.Load("b", true); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Load of a damaged record = %v, %v", r, err)
	}
	var seen []abd.Key
	collect := func(key abd.Key, _ tags.Tag, _ bool) bool { seen = append(seen, key); return true }
	if _, err := d.Scan("", "", collect); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Scan over a damaged record = %v after %q", err, seen)
	}
	if _, err := d.Scan("", "b", collect); err != nil {
		t.Errorf("Scan behind it = %v", err)
	}
	if _, err := d.Store("b", diskRecord(2, "again")); err != nil {
		t.Fatal(err)
	}
	if r, _, err := d.Load("b", true); err != nil || string(r.Value) != "again" {
		t.Errorf("Load after it was stored anew = %q, %v", r.Value, err)
	}
}

// A full disk refuses what doesn't fit, and has changed nothing.
func TestDiskFull(t *testing.T) {
	d := sim.NewDisk()
	d.Limit = 200
	var err error
	stored := 0
	for ; err == nil; stored++ {
		_, err = d.Store(abd.Key(rune('a'+stored)), diskRecord(1, "0123456789"))
	}
	if !errors.Is(err, abd.ErrFull) || stored != 4 {
		t.Fatalf("record %d: %v", stored, err)
	}
	if got := d.Usage().Keys; got != 3 {
		t.Errorf("%d keys, want 3", got)
	}
	if r, _, err := d.Load("d", true); err != nil || !r.Tag.IsZero() {
		t.Errorf("the refused record = %v, %v", r, err)
	}
}
