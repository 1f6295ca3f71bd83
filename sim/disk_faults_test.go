package sim_test

import (
	"errors"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/sim"
)

func mustStore(t *testing.T, d *sim.Disk, key abd.Key, value string) {
	t.Helper()
	if _, err := d.Store(key, diskRecord(1, value)); err != nil {
		t.Fatal(err)
	}
}

// wantLoad checks what a disk says of a key: a value, "" for nothing, or
// "damaged".
func wantLoad(t *testing.T, d *sim.Disk, key abd.Key, want string) {
	t.Helper()
	r, _, err := d.Load(key, true)
	got := string(r.Value)
	switch {
	case errors.Is(err, abd.ErrDamaged):
		got = "damaged"
	case err != nil:
		t.Fatal(err)
	}
	if got != want || d.Damaged(key) != (want == "damaged") {
		t.Errorf("%s is %q, want %q", key, got, want)
	}
}

// A group that was caught in the middle is lost as a whole, those before it
// are kept, those behind it aren't.
func TestDiskTorn(t *testing.T) {
	d := sim.NewDisk()
	mustStore(t, d, "durable", "v")
	d.Cut()
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, group := range [][]abd.Key{{"kept"}, {"torn1", "torn2"}, {"behind"}} {
		for _, key := range group {
			mustStore(t, d, key, "v")
		}
		d.Cut()
	}
	d.LoseTorn(1)
	for key, want := range map[abd.Key]string{"durable": "v", "kept": "v", "torn1": "", "torn2": "", "behind": ""} {
		wantLoad(t, d, key, want)
	}
}

// A misdirected write leaves two records that nobody can read, and the next
// one goes where it should.
func TestDiskMisdirect(t *testing.T) {
	d := sim.NewDisk()
	for _, key := range []abd.Key{"a", "b", "c"} {
		mustStore(t, d, key, "old")
	}
	d.Misdirect("b")
	mustStore(t, d, "b", "old") // in its own place: nothing happens, and the fault waits
	wantLoad(t, d, "b", "old")
	mustStore(t, d, "a", "new")
	wantLoad(t, d, "a", "damaged")
	wantLoad(t, d, "b", "damaged")
	mustStore(t, d, "a", "newer")
	wantLoad(t, d, "a", "newer")
	wantLoad(t, d, "c", "old")
}

// Damage of a record that replaced another one, and that a power cut takes
// back, is gone with it; a damage from before is back.
func TestDiskDamageTakenBack(t *testing.T) {
	d := sim.NewDisk()
	mustStore(t, d, "a", "old")
	mustStore(t, d, "b", "old")
	d.Cut()
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	d.Damage("b")
	mustStore(t, d, "a", "new")
	mustStore(t, d, "b", "new")
	d.Damage("a")
	d.LoseUnsynced(0)
	wantLoad(t, d, "a", "old")
	wantLoad(t, d, "b", "damaged")
}

func TestDiskFillAndFree(t *testing.T) {
	for _, before := range []int{0, 1} {
		d := sim.NewDisk()
		for range before {
			mustStore(t, d, "a", "v")
		}
		d.Fill()
		if _, err := d.Store("b", diskRecord(1, "v")); !errors.Is(err, abd.ErrFull) {
			t.Errorf("Store on a full disk with %d records = %v", before, err)
		}
		d.Free()
		mustStore(t, d, "b", "v")
	}
}

// A node whose fsync fails stops, and acks nothing of what it wrote. How much
// of it is there after a restart differs.
func TestFailSync(t *testing.T) {
	kept, lost := 0, 0
	for seed := range uint64(20) {
		failures := 0
		w := newWorld(t, sim.Config{Seed: seed, Observe: func(o sim.Observation) {
			if o.What == sim.Failed {
				failures++
			}
		}})
		a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
		a.FailSync()
		s := start(p, func(e env.Env) error { return take(e, 1) })
		w.RunFor(10 * time.Millisecond)
		if a.Up() || s.Done() || failures != 1 || !errors.Is(a.Failure(), sim.ErrSync) {
			t.Fatalf("up: %t, acked: %t, %v", a.Up(), s.Done(), a.Failure())
		}
		if value(a.Disk()) == "1" {
			kept++
		} else {
			lost++
		}
		if err := a.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := w.Wait(time.Minute, s); err != nil || s.Err() != nil { // and the next fsync works
			t.Fatal(err, s.Err())
		}
	}
	if kept == 0 || lost == 0 {
		t.Errorf("what was written was kept %d times and lost %d times, want some of both", kept, lost)
	}
}

// A node that has lost its disk doesn't boot, and does when it has it back.
func TestLoseAndRestoreDisk(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	took(t, w, p)
	backup := a.Disk().Image()
	s := start(p, func(e env.Env) error { return take(e, 2) })
	if err := w.Wait(time.Minute, s); err != nil {
		t.Fatal(err)
	}
	a.LoseDisk()
	if err := a.Restart(); !errors.Is(err, sim.ErrDiskLost) || a.Up() || !a.Disk().Lost() {
		t.Fatalf("Restart without a disk = %v; up: %t, lost: %t", err, a.Up(), a.Disk().Lost())
	}
	a.RestoreDisk(backup)
	if err := a.Restart(); err != nil || a.Disk().Lost() {
		t.Fatalf("Restart with a restored disk = %v; lost: %t", err, a.Disk().Lost())
	}
	if value(a.Disk()) != "1" {
		t.Errorf("the restored disk has %q, want 1", value(a.Disk()))
	}
	s = start(p, func(e env.Env) error { return take(e, 3) })
	if err := w.Wait(time.Minute, s); err != nil || value(a.Disk()) != "3" {
		t.Errorf("value %q, want 3; %v", value(a.Disk()), err)
	}
	if value(backup) != "1" {
		t.Error("the backup has changed with the disk")
	}
}

// A commit that is overtaken by Stall and Unstall ends once, and takes nothing
// along that was written behind it.
func TestUnstallEndsOneCommit(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	start(p, func(e env.Env) error { return take(e, 1) })
	w.RunFor(1500 * time.Microsecond) // under way: a way and half a sync
	a.Stall()
	a.Unstall()
	w.Settle()
	if appended, durable := a.Disk().Positions(); appended != 1 || durable != 1 {
		t.Fatalf("appended %d, durable %d, want 1 and 1", appended, durable)
	}
	q := w.AddClient("q")
	w.SetLink(q, a, sim.Link{Delay: sim.Constant(100 * time.Microsecond)})
	start(q, func(e env.Env) error { return take(e, 2) })
	w.RunFor(600 * time.Microsecond) // past the end of the first commit as it was planned
	if _, durable := a.Disk().Positions(); durable != 1 {
		t.Errorf("durable up to %d, want 1: the second commit takes a millisecond", durable)
	}
}

// Cells go the way of the disk: they are in its image as far as they are
// durable, a torn group takes them along, and so does the loss of the disk.
func TestDiskCells(t *testing.T) {
	d := sim.NewDisk()
	set := func(value string) {
		t.Helper()
		if _, err := d.SetCell("c", []byte(value)); err != nil {
			t.Fatal(err)
		}
		mustStore(t, d, "k", value)
		d.Cut()
	}
	want := func(what string, d *sim.Disk, value string) {
		t.Helper()
		if got, _ := d.Cell("c"); string(got) != value {
			t.Errorf("%s: the cell is %q, want %q", what, got, value)
		}
		wantLoad(t, d, "k", value)
	}
	set("durable")
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	set("kept")
	set("torn")
	image := d.Image()
	want("the disk", d, "torn")
	want("its image", image, "durable")
	d.LoseTorn(1)
	want("after a torn write", d, "kept")
	if _, err := image.SetCell("c", nil); err != nil {
		t.Fatal(err)
	}
	want("after its image was written to", d, "kept")

	// A full disk takes no cell, and has not changed.
	d.Fill()
	if _, err := d.SetCell("c", []byte("longer than before")); !errors.Is(err, abd.ErrFull) {
		t.Errorf("SetCell on a full disk = %v", err)
	}
	want("a full disk", d, "kept")

	w := newWorld(t, sim.Config{})
	a, _ := addNode(t, w, "a", bootTaker), w.AddClient("p")
	if _, err := a.Disk().SetCell("c", []byte("v")); err != nil {
		t.Fatal(err)
	}
	a.LoseDisk()
	if got, at := a.Disk().Cell("c"); got != nil || at != 0 {
		t.Errorf("a lost disk has the cell %q at %d", got, at)
	}
}

// A gap where nothing was stored is one place: what is stored there later, and
// damaged again, isn't a bound of its own gap.
func TestGapOfWhatWasNeverStored(t *testing.T) {
	d := sim.NewDisk()
	mustStore(t, d, "a", "x")
	d.Damage("b")
	if _, _, damaged, err := d.Gap("b"); err != nil || len(damaged) != 1 {
		t.Fatal(damaged, err)
	}
	mustStore(t, d, "b", "y")
	d.Rot("b")
	after, to, damaged, err := d.Gap("b")
	if err != nil || after != "a" || to != "" || len(damaged) != 1 {
		t.Errorf("the gap is %q to %q, of %v, %v", after, to, damaged, err)
	}
}

// A node with a damaged cell doesn't boot, and does when it is set again.
func TestDamagedCell(t *testing.T) {
	w := sim.New(sim.Config{})
	defer w.Close()
	a, err := w.AddNode("a", func(p *sim.Process) (sim.Stepper, error) {
		_, err := p.Disk().SetCell("map", []byte("x"))
		return silent{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Settle()
	a.Disk().DamageCell("never set")
	a.Crash()
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	a.Disk().DamageCell("map")
	a.Crash()
	if err := a.Restart(); !errors.Is(err, sim.ErrCell) || a.Up() {
		t.Errorf("it boots over a damaged cell: %v", err)
	}
	if _, err := a.Disk().SetCell("map", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if err := a.Restart(); err != nil {
		t.Error(err)
	}
}

type silent struct{}

func (silent) Step(_ env.Address, _ env.Message, out []env.Out) ([]env.Out, error) { return out, nil }
