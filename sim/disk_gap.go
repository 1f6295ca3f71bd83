package sim

import (
	"fmt"
	"maps"
	"slices"

	"atoll/abd"
)

// DamageKey flips bits in the key of a record that is durable: it stands under
// another key from now on, where its checksum is wrong, and its own is missing.
// No key beside it can be proved absent.
func (d *Disk) DamageKey(key, as abd.Key) {
	r, there := d.records[key]
	if _, taken := d.records[as]; !there || taken || r.at > d.durable {
		panic(fmt.Sprintf("sim: DamageKey wants a durable record under %q and none under %q", key, as))
	}
	d.set(key, r, diskRecord{})
	d.set(as, diskRecord{}, r)
	d.keys = append(d.keys, as)
	d.sorted = false
	d.damaged[as] = true
	if d.ghosts == nil {
		d.ghosts = make(map[abd.Key]bool)
	}
	d.ghosts[as] = true
}

// haunted returns the damaged record because of which a key that isn't there
// can't be proved absent, if there is one.
func (d *Disk) haunted(key abd.Key) (ghost abd.Key, is bool) {
	if len(d.ghosts) == 0 || d.rules.TrustDamaged {
		return "", false
	}
	d.sort()
	at, _ := slices.BinarySearch(d.keys, key)
	for i := at; i < len(d.keys); i++ {
		if k := d.keys[i]; d.damaged[k] && d.ghosts[k] {
			return k, true
		} else if !d.records[k].Tag.IsZero() && k != key {
			break
		}
	}
	for i := at - 1; i >= 0; i-- {
		if k := d.keys[i]; d.damaged[k] && d.ghosts[k] {
			return k, true
		} else if !d.records[k].Tag.IsZero() {
			break
		}
	}
	return "", false
}

// Suspects implements replica.Store: a node that boots finds what a check of its
// whole disk finds.
func (d *Disk) Suspects() []abd.Key {
	if d.rules.TrustDamaged {
		return nil
	}
	all := append(slices.Sorted(maps.Keys(d.damaged)), slices.Sorted(maps.Keys(d.rotten))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Gap implements replica.Store.
func (d *Disk) Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error) {
	if !d.Damaged(key) {
		return "", "", nil, nil
	}
	d.sort()
	sound := func(k abd.Key) bool { return !d.damaged[k] && !d.records[k].Tag.IsZero() }
	at, stored := slices.BinarySearch(d.keys, key)
	if !stored { // where nothing was stored, something may be damaged, too
		d.keys = slices.Insert(d.keys, at, key)
	}
	first, last := at, at
	for first > 0 && !sound(d.keys[first-1]) {
		first--
	}
	for last < len(d.keys)-1 && !sound(d.keys[last+1]) {
		last++
	}
	if first > 0 {
		after = d.keys[first-1]
	}
	if last < len(d.keys)-1 {
		to = d.keys[last+1]
	}
	for _, k := range d.keys[first : last+1] {
		if d.damaged[k] || k == key {
			damaged = append(damaged, k)
		}
	}
	return after, to, damaged, nil
}

func (d *Disk) sort() {
	if !d.sorted {
		slices.Sort(d.keys)
		d.keys = slices.Compact(d.keys) // Gap may have been there before Store
		d.sorted = true
	}
}
