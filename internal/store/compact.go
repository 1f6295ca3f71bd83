package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
)

// compactName is the new file while Compact makes it. What a crash leaves of it
// is removed by the next Open or Compact.
const compactName = stateName + ".compact"

// compactSlack is what a compacted file may be larger than the pages that
// were in use before, in bytes: a small file gains some.
const compactSlack = 1 << 20

// Compaction says what Compact has done.
type Compaction struct {
	// Before and After are the sizes of state.db in bytes.
	Before, After int64
	// Records it holds.
	Records int64
}

// Compact rewrites the state.db of the store in cfg.Dir, which isn't open,
// without the space that bbolt keeps for later: pages that are free or half
// empty. The journal stays as it is.
//
// The new file is written beside the old one, synced, read back and compared
// before it takes its place, so a crash at any moment leaves one of the two,
// whole. It needs as much free space as the old file has in use.
//
// Errors: those of Open, and *SpaceError. A damaged file is left alone. A damaged
// record that the journal replaces isn't lost, and is copied as it is.
func Compact(cfg Config) (Compaction, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Compaction{}, err
	}
	if _, err := readIdentity(cfg.Dir); err != nil {
		return Compaction{}, err
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return Compaction{}, err
	}
	defer lock.Close()
	id, err := readIdentity(cfg.Dir)
	if err != nil {
		return Compaction{}, err
	}
	return compact(cfg, id)
}

// compact compacts in a folder that is locked.
func compact(cfg Config, id storeID) (_ Compaction, err error) {
	path, fresh := filepath.Join(cfg.Dir, stateName), filepath.Join(cfg.Dir, compactName)
	if err := removeLeftover(cfg.Dir); err != nil {
		return Compaction{}, err
	}
	old, m, err := checkCompactable(cfg.Dir, id)
	if err != nil {
		return Compaction{}, err
	}
	before, err := os.Stat(path)
	if err != nil {
		return Compaction{}, err
	}
	need := int64(old.meta.high)*boltPage + compactSlack
	free, err := cfg.freeSpace(cfg.Dir)
	if err != nil {
		return Compaction{}, err
	}
	if free < need {
		return Compaction{}, &SpaceError{Dir: cfg.Dir, Need: need, Free: free}
	}
	defer func() {
		if err != nil {
			err = withoutSpace(cfg.Dir, errors.Join(err, removeLeftover(cfg.Dir)))
		}
	}()
	if err := copyState(path, fresh); err != nil {
		return Compaction{}, err
	}
	cfg.reached("copied")
	after, err := finishCopy(fresh, id, m, old)
	if err != nil {
		return Compaction{}, err
	}
	cfg.reached("checked")
	if err := os.Rename(fresh, path); err != nil {
		return Compaction{}, err
	}
	cfg.reached("renamed")
	if err := syncDir(cfg.Dir); err != nil {
		return Compaction{}, err
	}
	return Compaction{Before: before.Size(), After: after, Records: old.records}, nil
}

// removeLeftover removes what a Compact has left that didn't end.
func removeLeftover(dir string) error {
	if err := os.Remove(filepath.Join(dir, compactName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkCompactable reads all of a bbolt file and of the journal beside it, in which
// nothing may be damaged that Check would name: a copy would give a damaged record a
// good page, and whoever has a damaged folder keeps it as it is.
func checkCompactable(dir string, id storeID) (*checker, summary, error) {
	path := filepath.Join(dir, stateName)
	c, err := checkState(path)
	if err != nil {
		return nil, summary{}, err
	}
	m, err := readSummary(path, c.summary)
	if err == nil {
		err = m.fits(path, id, c.records)
	}
	if err == nil {
		err = c.spoiled // a start mends it
	}
	if err != nil {
		return nil, summary{}, err
	}
	i := newInspection(dir)
	i.id, i.known, i.summary = id, true, &m
	if err := i.readJournal(); err != nil {
		return nil, summary{}, err
	}
	if lost := slices.DeleteFunc(slices.Clone(c.damaged), i.replaced); len(lost) > 0 {
		return nil, summary{}, fmt.Errorf("it was left as it is, with %d damaged records: %w", len(lost), lost[0])
	}
	if damage := i.report.Damage(); len(damage) > 0 {
		return nil, summary{}, damage[0]
	}
	return c, m, nil
}

// copyState writes what a bbolt file holds into a new one, in order.
func copyState(path, fresh string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damagedFile(path, -1, "copying it failed: %v", r)
		}
	}()
	from, err := openBolt(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openBolt(fresh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	to.NoSync = true // finishCopy syncs, once
	return bbolt.Compact(to, from, applyBytes)
}

// finishCopy cuts off what a new file has in reserve, makes it durable, and
// reads it back. It returns its size.
func finishCopy(fresh string, id storeID, want summary, old *checker) (int64, error) {
	c, err := checkState(fresh)
	if err != nil {
		return 0, err
	}
	size := int64(c.meta.high) * boltPage
	f, err := os.OpenFile(fresh, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if c, err = checkState(fresh); err != nil {
		return 0, err
	}
	got, err := readSummary(fresh, c.summary)
	switch {
	case err != nil:
		return 0, err
	case got != want || len(c.damaged) != len(old.damaged) || !maps.EqualFunc(c.cells, old.cells, bytes.Equal):
		return 0, fmt.Errorf("%s isn't a copy of %s: it says %+v and has %d damaged records and %d cells, and should say %+v and have %d and %d",
			fresh, stateName, got, len(c.damaged), len(c.cells), want, len(old.damaged), len(old.cells))
	}
	return size, got.fits(fresh, id, c.records)
}
