package sim

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
	"atoll/tags"
)

// Disk is a node's durable state in memory: a replica.Store whose journal can
// lose what wasn't synced. It outlives the node's process.
//
// A record goes through four states: appended by Store, cut into a group by
// Cut, written when a commit begins, and durable when that commit ends. The
// death of the process loses what isn't written; a power cut loses what isn't
// durable, or all but some first groups of it, since nobody knows in which
// order a disk writes what it wasn't told to sync.
type Disk struct {
	records map[abd.Key]diskRecord
	keys    []abd.Key // every key that was ever stored
	sorted  bool
	damaged map[abd.Key]bool
	ghosts  map[abd.Key]bool // of damaged: those whose own key is the damaged part
	rotten  map[abd.Key]bool // whose value alone is damaged
	cells   map[string]diskCell

	appended, cut, written, durable env.Position

	// undo and undoCells hold what each record and each cell that isn't
	// durable has replaced, and groups the positions behind each group that
	// isn't durable.
	undo      []replaced
	undoCells []replacedCell
	groups    []env.Position

	usage replica.Usage
	// Limit, when above zero, is how many bytes fit: Store returns
	// abd.ErrFull beyond.
	Limit int64

	// solid is what is on the medium for certain. It lags behind durable when
	// a mutant has reported a sync that failed as done.
	solid env.Position
	lying bool

	missing bool      // it was lost
	spoiled string    // a cell that is damaged
	victim  abd.Key   // of the next write
	strike  []abd.Key // what that write damages
	rules   Rules
}

type diskRecord struct {
	abd.Record
	at env.Position
}

type replaced struct {
	key     abd.Key
	at      env.Position // of the record that replaced it
	old     diskRecord
	damaged bool // it was
	rotten  bool
}

var _ replica.Store = (*Disk)(nil)

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{
		records: make(map[abd.Key]diskRecord),
		damaged: make(map[abd.Key]bool),
		rotten:  make(map[abd.Key]bool),
		cells:   make(map[string]diskCell),
		sorted:  true,
	}
}

// Load implements abd.View.
func (d *Disk) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	r := d.records[key]
	if len(d.damaged) > 0 && d.damaged[key] {
		if !d.rules.TrustDamaged {
			return abd.Record{}, 0, damagedRecord(key)
		}
		r.Value = flipped(r.Value)
	}
	if withValue && d.rotten[key] {
		if !d.rules.TrustDamaged {
			return abd.Record{}, 0, damagedRecord(key)
		}
		r.Value = flipped(r.Value)
	}
	if r.Tag.IsZero() {
		if ghost, is := d.haunted(key); is {
			return abd.Record{}, 0, damagedRecord(ghost)
		}
	}
	if !withValue {
		r.Value = nil
	}
	return r.Record, r.at, nil
}

// recordOverhead is what a record takes on disk beside its key and value.
const recordOverhead = 48

func (r *diskRecord) size(key abd.Key) int64 {
	if r.Tag.IsZero() {
		return 0
	}
	return int64(len(key)+len(r.Value)) + recordOverhead
}

// Store implements abd.View.
func (d *Disk) Store(key abd.Key, r abd.Record) (env.Position, error) {
	key = d.misdirected(key)
	old, known := d.records[key]
	now := diskRecord{r, d.appended + 1}
	if err := d.room(now.size(key)); err != nil {
		return 0, err
	}
	if !known {
		d.keys = append(d.keys, key)
		d.sorted = d.sorted && (len(d.keys) < 2 || d.keys[len(d.keys)-2] < key)
	}
	now.Value = slices.Clone(r.Value) // it may be part of what a frame was decoded from
	d.appended++
	d.undo = append(d.undo, replaced{key, d.appended, old, d.damaged[key], d.rotten[key]})
	d.set(key, old, now)
	delete(d.damaged, key)
	delete(d.rotten, key)
	for _, struck := range d.strike {
		d.damaged[struck] = true
	}
	d.strike = nil
	return d.appended, nil
}

// room returns abd.ErrFull when so many more bytes don't fit.
func (d *Disk) room(size int64) error {
	if d.Limit > 0 && d.usage.Bytes+size > d.Limit {
		return fmt.Errorf("%w: a simulated disk of %d bytes", abd.ErrFull, d.Limit)
	}
	return nil
}

// Heal implements replica.Store. Store never looks at what it replaces, so it
// is all there is to do; a record that is zero takes no room and isn't counted.
func (d *Disk) Heal(key abd.Key, r abd.Record) (env.Position, error) { return d.Store(key, r) }

// set puts a record in the place of another, and counts both.
func (d *Disk) set(key abd.Key, old, now diskRecord) {
	d.count(key, &old, -1)
	d.count(key, &now, +1)
	d.records[key] = now
}

func (d *Disk) count(key abd.Key, r *diskRecord, by int64) {
	switch {
	case r.Tag.IsZero():
		return
	case r.Deleted:
		d.usage.Tombstones += by
	default:
		d.usage.Keys += by
	}
	d.usage.Bytes += by * r.size(key)
}

// Scan implements abd.View.
func (d *Disk) Scan(prefix, after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool) bool) (env.Position, error) {
	d.sort()
	from := max(prefix, after)
	if from != "" && d.records[from].Tag.IsZero() {
		if ghost, is := d.haunted(from); is {
			return 0, damagedRecord(ghost)
		}
	}
	i, _ := slices.BinarySearch(d.keys, from)
	var highest env.Position
	for _, key := range d.keys[i:] {
		if !strings.HasPrefix(string(key), string(prefix)) {
			break // beyond: keys that begin with prefix stand together
		}
		r := d.records[key]
		damaged := d.damaged[key] && !d.rules.TrustDamaged
		if key == after && after != "" {
			continue
		}
		if r.Tag.IsZero() && !damaged {
			highest = max(highest, r.at) // that it was removed shows as well
			continue
		}
		if damaged {
			return 0, damagedRecord(key)
		}
		highest = max(highest, r.at)
		if !each(key, r.Tag, r.Deleted) {
			break
		}
	}
	return highest, nil
}

// Walk implements replica.Store.
func (d *Disk) Walk(after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool) (env.Position, error) {
	return d.Scan("", after, func(key abd.Key, tag tags.Tag, deleted bool) bool {
		return each(key, tag, deleted, func() ([]byte, error) {
			r, _, err := d.Load(key, true)
			return r.Value, err
		})
	})
}

// Expect implements replica.Store. A map has no use for it.
func (d *Disk) Expect(iter.Seq[abd.Key]) {}

// Cut implements replica.Store.
func (d *Disk) Cut() env.Position {
	if d.appended > d.cut {
		d.cut = d.appended
		d.groups = append(d.groups, d.cut)
	}
	return d.cut
}

// Commit implements replica.Store: it begins a commit and ends it. A World
// lets time pass between the two.
func (d *Disk) Commit() (env.Position, error) {
	d.begin()
	return d.end(), nil
}

// begin hands every group that was cut to the disk, and reports whether there
// was any.
func (d *Disk) begin() bool {
	more := d.cut > d.written
	d.written = d.cut
	return more
}

// end makes what was handed over durable.
func (d *Disk) end() env.Position {
	d.durable = d.written
	if !d.lying {
		d.solid = d.durable
	}
	d.forget()
	return d.durable
}

// forget drops what only a loss of records that are on the medium could need.
func (d *Disk) forget() {
	n := 0
	for n < len(d.undo) && d.undo[n].at <= d.solid {
		n++
	}
	d.undo = append(d.undo[:0], d.undo[n:]...)
	n = 0
	for n < len(d.undoCells) && d.undoCells[n].at <= d.solid {
		n++
	}
	d.undoCells = append(d.undoCells[:0], d.undoCells[n:]...)
	n = 0
	for n < len(d.groups) && d.groups[n] <= d.durable {
		n++
	}
	d.groups = append(d.groups[:0], d.groups[n:]...)
}

// lose takes the disk back to a position that is durable or the end of a
// group. From then on everything up to there is durable.
func (d *Disk) lose(to env.Position) {
	for i := len(d.undo) - 1; i >= 0 && d.undo[i].at > to; i-- {
		u := d.undo[i]
		d.set(u.key, d.records[u.key], u.old)
		if u.damaged {
			d.damaged[u.key] = true
		} else {
			delete(d.damaged, u.key)
		}
		if u.rotten {
			d.rotten[u.key] = true
		} else {
			delete(d.rotten, u.key)
		}
		d.undo = d.undo[:i]
	}
	d.loseCells(to)
	d.appended, d.cut, d.written, d.durable = to, to, to, to
	if !d.lying {
		d.solid = to
	}
	d.forget()
	d.groups = d.groups[:0]
}

// LoseUnwritten is what the death of the process does: records that no commit
// has begun to write are gone.
func (d *Disk) LoseUnwritten() { d.lose(d.written) }

// LoseUnsynced is what a power cut does: of the groups that are not durable
// the first keep survive, and the others are gone.
func (d *Disk) LoseUnsynced(keep int) {
	to := d.solid
	if d.lying {
		keep, d.lying = 0, false // behind a hole nothing counts
	}
	if keep = min(keep, len(d.groups)); keep > 0 {
		to = d.groups[keep-1]
	}
	d.lose(to)
}

// Durable returns the record of a key as it would be after a power cut.
func (d *Disk) Durable(key abd.Key) abd.Record {
	r := d.records[key]
	for i := len(d.undo) - 1; i >= 0; i-- {
		if d.undo[i].key == key && r.at > d.solid {
			r = d.undo[i].old
		}
	}
	return r.Record
}

// Positions returns how far the journal was appended, and how much of it is
// durable.
func (d *Disk) Positions() (appended, durable env.Position) { return d.appended, d.durable }

// Usage implements replica.Store.
func (d *Disk) Usage() replica.Usage { return d.usage }

// Close implements replica.Store. A Disk needs no closing.
func (d *Disk) Close() error { return nil }
