package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/abd"
	"atoll/env"
)

// ErrDiskLost is why a node whose disk was lost doesn't boot: it may have
// promised anything, and is another node from now on. The real store says the
// same of a folder in which something is missing.
var ErrDiskLost = errors.New("sim: the disk was lost, and with it what the node has promised")

// ErrCell is why a node doesn't boot of which a cell is damaged. The real store
// says the same of a file that has one.
var ErrCell = errors.New("sim: a damaged cell, and what the node has promised was in it")

// ErrSync is why a node stops whose fsync has failed.
var ErrSync = errors.New("sim: fsync failed")

// SlowDisk makes every commit of a node take so much longer, until it is
// called with the zero Delay.
func (p *Process) SlowDisk(more Delay) { p.slowSync = more }

// commitTime draws how long the commit takes that was counted last.
func (p *Process) commitTime() time.Duration {
	base := fold(mix(p.w.cfg.Seed), p.hash)
	return p.sync.at(draw(base, p.commits, forSync)) + p.slowSync.at(draw(base, p.commits, forSlowDisk))
}

// FailSync makes the fsync of the next commit of a node that ends fail. The
// node stops; how much of what it wrote is on the disk nobody knows, and is
// drawn.
func (p *Process) FailSync() { p.failSync = true }

// syncFailed is the end of a commit whose fsync failed.
func (p *Process) syncFailed() {
	p.failSync = false
	keep := draw(fold(mix(p.w.cfg.Seed), p.hash), p.commits, forFailedSync) % uint64(len(p.disk.groups)+1)
	p.kill()
	p.disk.LoseUnsynced(int(keep))
	p.stopped(ErrSync)
}

// TornPowerLoss is a PowerLoss that catches the disk while it writes the group
// behind the keep that survive. A group is written under one checksum, so that
// its torn remains count as nothing.
func (p *Process) TornPowerLoss(keep int) {
	p.kill()
	if p.disk != nil {
		p.disk.LoseTorn(keep)
	}
}

// LoseDisk kills a node and destroys its disk. It can't be booted any more
// unless the disk is restored: a node that comes back without a memory must
// not vote.
func (p *Process) LoseDisk() {
	p.kill()
	p.disk.wipe()
	p.disk.missing = !p.w.cfg.Rules.BootEmpty
}

// RestoreDisk kills a node and gives it the disk that Image was taken of, as an
// operator does who restores a folder from a backup. What the node has promised
// since is forgotten, and it doesn't know. Others that knew it further notice if
// nodes greet each other (package join); unnoticed, it is as bad as one that votes
// without a memory.
func (p *Process) RestoreDisk(image *Disk) {
	p.kill()
	limit, rules := p.disk.Limit, p.disk.rules
	*p.disk = *image.Image()
	p.disk.Limit, p.disk.rules = limit, rules
}

// wipe empties the disk.
func (d *Disk) wipe() {
	limit, rules := d.Limit, d.rules
	*d = *NewDisk()
	d.Limit, d.rules = limit, rules
}

// Lost reports whether the disk was destroyed.
func (d *Disk) Lost() bool { return d.missing }

// Fill makes the disk full: nothing more fits until Free.
func (d *Disk) Fill() { d.Limit = max(d.usage.Bytes, 1) }

// Free makes room again, without a limit.
func (d *Disk) Free() { d.Limit = 0 }

// Damage flips a bit in the record of a key. Its checksum tells, and it is
// unreadable until it is stored anew.
func (d *Disk) Damage(key abd.Key) { d.damaged[key] = true }

// Rot flips a bit in the value of a record, if it has one. Its tag can be read,
// and the damage isn't met by who asks for that only.
func (d *Disk) Rot(key abd.Key) {
	if len(d.records[key].Value) > 0 {
		d.rotten[key] = true
	}
}

// DamageCell flips a bit in a cell. The node, which has read it, doesn't notice
// before it boots.
func (d *Disk) DamageCell(name string) {
	if _, is := d.cells[name]; is {
		d.spoiled = name
	}
}

// bootable returns why a node doesn't boot over the disk, if it doesn't.
func (d *Disk) bootable() error {
	switch {
	case d.missing:
		return ErrDiskLost
	case d.spoiled == "":
		return nil
	case d.rules.TrustDamaged:
		delete(d.cells, d.spoiled)
		d.spoiled = ""
		return nil
	}
	return fmt.Errorf("%w: %s", ErrCell, d.spoiled)
}

// Damaged reports whether the record of a key, or its value, is unreadable.
func (d *Disk) Damaged(key abd.Key) bool { return d.damaged[key] || d.rotten[key] }

// Misdirect makes the next record that is stored land in the place of the
// record of another key. The checksums cover where a record belongs, and so
// both are unreadable: the one that isn't there, and the one that is
// overwritten.
func (d *Disk) Misdirect(victim abd.Key) { d.victim = victim }

// misdirected returns where a record lands that is stored under key.
func (d *Disk) misdirected(key abd.Key) abd.Key {
	victim := d.victim
	if victim == "" || victim == key {
		return key
	}
	d.victim = ""
	if d.rules.TrustMisplaced {
		return victim // and nobody notices
	}
	d.strike = []abd.Key{key, victim}
	return key
}

// flipped returns a value with one bit flipped.
func flipped(value []byte) []byte {
	value = slices.Clone(value)
	if len(value) > 0 {
		value[len(value)/2] ^= 1
	}
	return value
}

// LoseTorn is LoseUnsynced, when the group behind the first keep was written
// in part.
func (d *Disk) LoseTorn(keep int) {
	var torn []torn
	if d.rules.TrustTorn && keep < len(d.groups) {
		torn = d.remains(keep)
	}
	d.LoseUnsynced(keep)
	for i, t := range torn {
		if i == len(torn)-1 {
			t.record.Value = t.record.Value[:len(t.record.Value)/2]
		}
		if _, err := d.Store(t.key, t.record); err == nil {
			d.Cut()
			d.begin()
			d.end()
		}
	}
}

// torn is a record of a group that wasn't written to its end.
type torn struct {
	key    abd.Key
	record abd.Record
}

// remains returns the records of a group that isn't durable.
func (d *Disk) remains(group int) []torn {
	from, to := d.durable, d.groups[group]
	if group > 0 {
		from = d.groups[group-1]
	}
	var all []torn
	for _, u := range d.undo {
		if u.at > from && u.at <= to {
			all = append(all, torn{u.key, d.asOf(u.key, u.at)})
		}
	}
	return all
}

// asOf returns the record of a key that was stored at a position that isn't
// durable.
func (d *Disk) asOf(key abd.Key, at env.Position) abd.Record {
	for _, u := range d.undo {
		if u.key == key && u.old.at == at {
			return u.old.Record
		}
	}
	return d.records[key].Record
}
