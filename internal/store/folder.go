package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"atoll/abd"
)

// StateFile is the name of the bbolt file in a store's folder.
const StateFile = stateName

// The names in a store's folder.
const (
	identityName = "store.json"
	lockName     = "lock"
	stateName    = "state.db"
	journalName  = "journal"
)

// folderFormat is the format of the folder as a whole.
const folderFormat = 1

// identity is store.json.
type identity struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

// Create makes an empty store in cfg.Dir, and the folder if need be. It
// returns ErrExists (wrapped) when the folder holds a store or a part of one.
// On failure it removes what it made.
func Create(cfg Config) (err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return err
	}
	// Before the lock, which makes a file, and once more under it.
	if err := refuseExisting(cfg.Dir); err != nil {
		return err
	}
	_, statErr := os.Stat(cfg.Dir)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return err
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := refuseExisting(cfg.Dir); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		for _, name := range []string{identityName, stateName, journalName, lockName} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(cfg.Dir, name)))
		}
		if errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(cfg.Dir))
		}
	}()
	return withoutSpace(cfg.Dir, fill(cfg))
}

// refuseExisting returns an error when any part of a store is in dir.
func refuseExisting(dir string) error {
	for _, name := range []string{identityName, stateName, journalName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: %w", dir, ErrExists)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fill makes the parts of a store, store.json last.
func fill(cfg Config) error {
	var id storeID
	rand.Read(id[:]) // never fails
	if err := os.Mkdir(filepath.Join(cfg.Dir, journalName), 0o700); err != nil {
		return err
	}
	if err := newJournal(cfg, id).create(); err != nil {
		return err
	}
	if err := createState(filepath.Join(cfg.Dir, stateName), id); err != nil {
		return err
	}
	if err := syncDir(cfg.Dir); err != nil {
		return err
	}
	text, err := json.MarshalIndent(identity{Format: folderFormat, ID: id.String(), Created: time.Now().UTC()}, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(cfg.Dir, identityName), append(text, '\n')); err != nil {
		return err
	}
	if err := syncDir(cfg.Dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(cfg.Dir)))
}

// writeSynced makes a file appear with all of its bytes or not at all.
func writeSynced(path string, b []byte) error {
	part := path + ".new"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// refuseFolder returns a *DamageError when a folder, or anything else that
// isn't a file, stands where a file of the store belongs. Reading it would end
// in an error of the operating system, which doesn't say that the store can't
// be trusted. What is missing is the caller's business.
func refuseFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return damagedFile(path, -1, "it is a folder, and should be a file")
	case !info.Mode().IsRegular():
		return damagedFile(path, -1, "it isn't an ordinary file")
	}
	return nil
}

// readIdentity reads store.json.
func readIdentity(dir string) (storeID, error) {
	path := filepath.Join(dir, identityName)
	if err := refuseFolder(path); err != nil {
		return storeID{}, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range []string{stateName, journalName} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return storeID{}, damagedFile(path, -1, "it is missing, and %s is there: the store was never finished, or has lost it", name)
			}
		}
		return storeID{}, fmt.Errorf("%s: %w", dir, ErrNoStore)
	} else if err != nil {
		return storeID{}, err
	}
	var i identity
	if err := json.Unmarshal(text, &i); err != nil {
		return storeID{}, damagedFile(path, -1, "%v", err)
	}
	if i.Format > folderFormat {
		return storeID{}, &FormatError{File: path, Found: i.Format, Supported: folderFormat}
	}
	b, err := hex.DecodeString(i.ID)
	if err != nil || len(b) != len(storeID{}) || i.Format < 1 {
		return storeID{}, damagedFile(path, -1, "its format or its id makes no sense")
	}
	return storeID(b), nil
}

// ID returns the id of the store in a folder: 128 random bits, drawn when it was
// made. The errors are ErrNoStore (wrapped), *FormatError and *DamageError.
func ID(dir string) ([16]byte, error) {
	id, err := readIdentity(dir)
	return id, err
}

// InUse returns an *InUseError if another process has the store in dir open.
// It changes nothing, and promises nothing about the next moment.
func InUse(dir string) error { return probeLock(dir) }

// Open opens the store in cfg.Dir, after it has read and checked all of it.
// What the journal holds of an earlier life is durable when Open returns.
//
// Errors: ErrNoStore (wrapped), *InUseError, *FormatError, *DamageError,
// *SpaceError, or one of the operating system. Nothing is created in place of
// what is missing.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	// Before the lock, which makes a file.
	if _, err := readIdentity(cfg.Dir); err != nil {
		return nil, err
	}
	begin := time.Now()
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s, err := open(cfg, lock)
	if noSpace(err) && newBallast(cfg).release() {
		s, err = open(cfg, lock)
	}
	if err != nil {
		lock.Close()
		return nil, withoutSpace(cfg.Dir, err)
	}
	s.log.Info("the store is open", "dir", cfg.Dir, "format", folderFormat, "keys", s.keys.Load(), "deleted", s.tombstones.Load(),
		"replayed_records", s.replayed, "took", time.Since(begin).Round(time.Millisecond))
	return s, nil
}

// open opens a folder that is locked.
func open(cfg Config, lock *os.File) (*Store, error) {
	id, err := readIdentity(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := removeLeftover(cfg.Dir); err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, log: cfg.Log, lock: lock,
		journal: newJournal(cfg, id),
		active:  newTable(maphash.MakeSeed()),
		cells:   make(map[string]cell),
		group:   make([]byte, frameHead),
		failing: make(chan struct{}),
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
	s.cut.bytes = make([]byte, frameHead)
	if err := s.recover(id); err != nil {
		s.letGo()
		s.journal.close()
		if s.state != nil {
			s.state.close()
		}
		return nil, err
	}
	s.tasks.Go(s.journal.prepare)
	s.tasks.Go(s.applyTables)
	s.freeze()
	return s, nil
}

// recover makes a store of what the folder holds. Everything is read before
// anything is written: a folder that is damaged stays as it is.
func (s *Store) recover(id storeID) error {
	var replayed *replay
	state, m, found, err := openState(filepath.Join(s.cfg.Dir, stateName), id,
		func(m summary, cells map[string][]byte) (err error) {
			for name, blob := range cells {
				s.cells[name] = cellOf(blob, 0)
			}
			replayed, err = s.load(m)
			return err
		})
	if err != nil {
		return err
	}
	s.state, s.summary = state, m
	s.state.log = s.log
	if found.spoiled != nil {
		s.log.Warn("a meta page of the database was damaged; it was written anew from the other one", "err", found.spoiled)
	}
	counts, err := s.countLoaded(replayed, counts{keys: m.keys, tombstones: m.tombstones}, found.damaged)
	if err != nil {
		return err
	}
	s.setCounts(counts)
	s.applied.Store(uint64(m.applied))
	s.suspect(found.damaged)
	size, err := state.size()
	if err != nil {
		return err
	}
	s.stateBytes.Store(size)
	if err := s.journal.resume(replayed); err != nil {
		return err
	}
	return s.journal.recycle(m.applied)
}

// suspect takes in which records of bbolt are damaged. What was healed since is
// in the journal, and goes into bbolt at once.
func (s *Store) suspect(damaged []error) {
	tables := s.tables()
	defer func() {
		if more := len(s.suspects) - loudDamage; more > 0 {
			s.log.Warn("more records are damaged; replica data check names all", "file", s.state.path, "records", more)
		}
	}()
	for _, err := range damaged {
		d, ok := errors.AsType[*abd.DamagedRecord](err)
		switch {
		case !ok:
		case tables.have(keyBytes(d.Key)):
			s.healed = true
		default:
			s.suspects = append(s.suspects, d.Key)
			if len(s.suspects) <= loudDamage {
				s.log.Warn("a record is damaged: this node abstains on its key until it is healed", "err", err)
			}
		}
	}
}

// Suspects returns the keys of the records that were found damaged when the
// store was opened.
func (s *Store) Suspects() []abd.Key { return s.suspects }
