package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
)

// Report is what Check has found in a store's folder.
type Report struct {
	Files []*FileReport
	// Keys and Tombstones count the newest whole record of each key, wherever
	// it is.
	Keys, Tombstones int64
}

// FileReport is what Check has found in one file.
type FileReport struct {
	Path  string
	Bytes int64
	// Records are those that are whole. A spare segment has none.
	Records int64
	// Note is for people: what is remarkable and no damage.
	Note string
	// Damage is what is wrong, each a *DamageError or a *FormatError.
	Damage []error
}

// Damage returns everything that is wrong.
func (r *Report) Damage() []error {
	var all []error
	for _, f := range r.Files {
		all = append(all, f.Damage...)
	}
	return all
}

// Check reads everything that the store in dir holds, and changes nothing. It
// goes on behind what is damaged, so that all of it is named. Where it finds
// nothing, Open finds nothing either.
//
// Errors: ErrNoStore (wrapped), *InUseError, or one of the operating system.
func Check(dir string) (*Report, error) {
	i, err := inspect(dir)
	if err != nil {
		return nil, err
	}
	defer i.close()
	if err := i.strict(); err != nil {
		return nil, err
	}
	err = i.records(func(_ abd.Key, record []byte) error {
		presenceOf(record).count(&i.report.Keys, &i.report.Tombstones, +1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	i.spares()
	return &i.report, nil
}

// Dump calls each with the newest whole record of each key that begins with
// prefix, in order, tombstones included, until each returns an error: Dump
// returns it. What is damaged is left out, and told to damaged, each a
// *DamageError or a *FormatError; what the damage has swallowed, and that a
// record told of may have been replaced by an older one, nobody can say. Of
// damaged values it tells those under such keys alone; other damage may be that
// of any key. It changes nothing. Other errors are those of Check.
func Dump(dir string, prefix abd.Key, each func(abd.Key, abd.Record) error, damaged func(error)) error {
	i, err := inspect(dir)
	if err != nil {
		return err
	}
	defer i.close()
	err = i.records(func(key abd.Key, record []byte) error {
		if !strings.HasPrefix(string(key), string(prefix)) {
			return nil
		}
		return each(key, decodeRecord(record, true))
	})
	for _, d := range i.report.Damage() {
		if one, ok := errors.AsType[*DamageError](d); ok && one.ValueOnly && !strings.HasPrefix(string(one.Key), string(prefix)) {
			continue
		}
		damaged(d)
	}
	return err
}

// An inspection reads a folder whose store isn't open, and may be damaged.
type inspection struct {
	dir     string
	lock    *os.File // nil if the folder has no lock file
	report  Report
	id      storeID
	known   bool     // what id is
	summary *summary // of bbolt; nil if it can't be read
	// journal holds the newest record of each key that the journal has, nil
	// for one that was removed and that bbolt may still have.
	journal map[abd.Key][]byte
	// newer are those of them that bbolt hasn't taken over yet, removals too:
	// what bbolt has under these keys is out of date, damaged or not.
	newer map[abd.Key]bool
}

func newInspection(dir string) *inspection {
	return &inspection{dir: dir, journal: make(map[abd.Key][]byte), newer: make(map[abd.Key]bool)}
}

// inspect locks a folder, finds out whose it is, and reads its journal.
func inspect(dir string) (_ *inspection, err error) {
	i := newInspection(dir)
	if i.lock, err = lockToRead(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.close()
		}
	}()
	id := i.file(filepath.Join(dir, identityName))
	i.id, err = readIdentity(dir)
	i.known = err == nil
	if err = damageOnly(err, id.note); err != nil {
		return nil, err
	}
	if err := i.readSummary(); err != nil {
		return nil, err
	}
	i.file(i.statePath()) // so that it stands before the journal
	return i, i.readJournal()
}

func (i *inspection) close() {
	if i.lock != nil {
		i.lock.Close()
	}
}

func (i *inspection) statePath() string { return filepath.Join(i.dir, stateName) }

// file returns the report about a file, a new one at first.
func (i *inspection) file(path string) *FileReport {
	for _, f := range i.report.Files {
		if f.Path == path {
			return f
		}
	}
	f := &FileReport{Path: path}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		f.Bytes = info.Size()
	}
	i.report.Files = append(i.report.Files, f)
	return f
}

func (f *FileReport) note(err error) {
	for _, d := range f.Damage {
		if d.Error() == err.Error() {
			return
		}
	}
	f.Damage = append(f.Damage, err)
}

// noteAt notes damage at the file that it is about.
func (i *inspection) noteAt(err error) {
	var d *DamageError
	var f *FormatError
	switch {
	case errors.As(err, &d):
		i.file(d.File).note(err)
	case errors.As(err, &f):
		i.file(f.File).note(err)
	}
}

// readSummary reads what bbolt's file says of itself, if it can be found. It
// notes nothing: whoever reads all of the file will.
func (i *inspection) readSummary() error {
	s, f, err := newSalvage(i.statePath(), func(error) {})
	if err != nil || s == nil {
		return err
	}
	defer f.Close()
	root, ok := s.read(s.meta.root)
	if !ok {
		return nil
	}
	// Only as far as the bucket that holds it.
	s.page(s.meta.root, root, "", maxDepth)
	m, err := readSummary(i.statePath(), s.summary)
	if err != nil {
		return nil
	}
	i.summary = &m
	if !i.known {
		i.id, i.known = m.id, true
	}
	return nil
}

// strict reads bbolt's file as Open does, for what only that notices.
func (i *inspection) strict() error {
	path := i.statePath()
	c, err := checkState(path)
	if c != nil && c.spoiled != nil {
		i.noteAt(c.spoiled)
	}
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		i.noteAt(asDamage(path, err))
		return nil
	}
	m, err := readSummary(path, c.summary)
	if err == nil {
		err = m.fits(path, i.id, c.records)
	}
	if err != nil {
		i.noteAt(err)
	}
	return nil
}

// replaced reports whether damage is in a record of bbolt that is out of date, so
// that nothing is lost: the journal has another one, or has removed it.
func (i *inspection) replaced(damage error) bool {
	d, ok := errors.AsType[*DamageError](damage)
	return ok && d.OneRecord && i.newer[d.Key]
}

// records calls each with the newest whole record of each key, in order: that
// of bbolt or that of the journal. Of one key the larger tag is the newer
// record, since a replica stores nothing else.
func (i *inspection) records(each func(key abd.Key, record []byte) error) error {
	state := i.file(i.statePath())
	s, f, err := newSalvage(i.statePath(), func(err error) {
		if i.replaced(err) {
			state.Note = "damaged records were replaced; the new ones are in the journal until they are applied"
			return
		}
		state.note(err)
	})
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(i.journal)) // those that aren't passed on yet
	var failed error
	emit := func(key abd.Key, record []byte) {
		if failed == nil && record != nil {
			failed = each(key, record)
		}
		if s != nil {
			s.stopped = failed != nil
		}
	}
	// upTo passes on what the journal alone has before a key, or to the end.
	upTo := func(key abd.Key, end bool) {
		for len(keys) > 0 && (end || keys[0] < key) {
			emit(keys[0], i.journal[keys[0]])
			keys = keys[1:]
		}
	}
	if s != nil {
		defer f.Close()
		s.visit = func(k, record []byte) {
			state.Records++
			key := abd.Key(k)
			upTo(key, false)
			journaled, ok := i.journal[key]
			switch {
			case !ok:
				emit(key, record)
			case len(keys) > 0 && keys[0] == key:
				if journaled == nil || recordTag(record).Less(recordTag(journaled)) {
					record = journaled
				}
				emit(key, record)
				keys = keys[1:]
			}
			// Otherwise keys are out of order in a damaged file, and this one
			// was passed on before.
		}
		s.walk()
	}
	upTo("", true)
	return failed
}

// spares adds the files that hold nothing: Open looks only at what they are.
func (i *inspection) spares() {
	if path := filepath.Join(i.dir, ballastName); exists(path) {
		i.file(path).Note = "space to give back when the disk is full"
	}
	names, err := os.ReadDir(filepath.Join(i.dir, journalName))
	if err != nil {
		return // noted by readJournal
	}
	for _, n := range names {
		var number uint64
		if _, err := fmt.Sscanf(n.Name(), "spare-%d.log", &number); err != nil || n.Name() != spareName(number) {
			continue
		}
		f := i.file(filepath.Join(i.dir, journalName, n.Name()))
		f.Note = "waits for its next use"
		if err := refuseFolder(f.Path); err != nil {
			f.note(asDamage(f.Path, err))
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readJournal reads all segments.
func (i *inspection) readJournal() error {
	dir := filepath.Join(i.dir, journalName)
	names, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
		i.file(dir).note(damagedFile(dir, -1, "it is missing, or isn't a folder"))
		return nil
	}
	var numbers []uint64
	for _, n := range names {
		var number uint64
		if _, err := fmt.Sscanf(n.Name(), "%d.log", &number); err == nil && n.Name() == segmentName(number) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	if len(numbers) == 0 {
		path := filepath.Join(dir, segmentName(1))
		i.file(path).note(damagedFile(path, -1, "no segment of the journal is there"))
		return nil
	}
	r := journalReader{inspection: i, dir: dir}
	for n, number := range numbers {
		for missing := r.next; n > 0 && missing < number; missing++ {
			path := filepath.Join(dir, segmentName(missing))
			i.file(path).note(damagedFile(path, -1, "it is missing"))
			r.lost = true
		}
		r.next = number + 1
		if err := r.segment(number, n == 0, n == len(numbers)-1); err != nil {
			return err
		}
	}
	if i.summary != nil && r.end < i.summary.applied && !r.lost {
		path := filepath.Join(dir, segmentName(r.next-1))
		i.file(path).note(damagedFile(path, -1,
			"the journal ends with record %d, and %s has record %d already", r.end, stateName, i.summary.applied))
	}
	return nil
}

// journalReader reads one segment after the other.
type journalReader struct {
	*inspection
	dir  string
	next uint64       // the segment that should come
	end  env.Position // behind the last record
	// lost: frames are missing before what comes, and that was noted.
	lost bool
}

// segment reads one segment with all of its frames that are whole.
func (r *journalReader) segment(number uint64, first, last bool) error {
	path := filepath.Join(r.dir, segmentName(number))
	f := r.file(path)
	lose := func(err error) error {
		r.lost = true
		return damageOnly(asDamage(path, err), f.note)
	}
	if err := refuseFolder(path); err != nil {
		return lose(err)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err != nil {
		return lose(err)
	}
	if !r.known && len(b) >= segmentHead {
		// Nothing else says whose store this is. If this doesn't either, the
		// head's checksum will tell.
		r.id, r.known = storeID(b[16:32]), true
	}
	header, err := readSegmentHeader(path, b, int64(len(b)), r.id, number)
	if err != nil {
		return lose(err)
	}
	switch {
	case r.lost:
	case first && r.summary != nil && header.first > r.summary.applied:
		previous := filepath.Join(r.dir, segmentName(number-1))
		r.file(previous).note(damagedFile(previous, -1, "it is missing: the journal begins behind record %d, and %s ends with record %d",
			header.first, stateName, r.summary.applied))
	case !first && header.first != r.end:
		previous := filepath.Join(r.dir, segmentName(number-1))
		r.file(previous).note(damagedFile(previous, -1, "its frames end with record %d, the next segment begins behind record %d",
			r.end, header.first))
	}
	r.lost = false
	r.end = header.first
	return r.frames(f, b, number, last)
}

// frames takes the records of every whole frame of a segment.
func (r *journalReader) frames(f *FileReport, b []byte, number uint64, last bool) error {
	p := pieces{file: bytes.NewReader(b), size: int64(len(b)), id: r.id, generation: number}
	at := int64(segmentHead)
	for {
		fr, _, whole := readFrame(b[at:], r.id, number)
		if !whole || fr.first != r.end {
			later, ok, err := p.laterFrame(at, r.end)
			if err != nil {
				return err
			}
			if !ok {
				if last {
					e, _, err := p.ending(at, r.end)
					f.Note = e.note()
					return err
				}
				return nil
			}
			f.note(damagedFile(f.Path, at, "a bad frame, and a good one behind it at byte %d", later))
			at = later
			fr, _, _ = readFrame(b[at:], r.id, number)
		}
		err := fr.eachEntry(func(e logged) {
			if e.kind != kindCell && r.summary != nil && e.position > r.summary.applied {
				r.newer[abd.Key(e.name)] = true
			}
			switch e.kind {
			case kindRecord:
				f.Records++
				r.journal[abd.Key(e.name)] = slices.Clone(e.bytes)
			case kindRemoved:
				if r.summary != nil && e.position <= r.summary.applied {
					delete(r.journal, abd.Key(e.name)) // bbolt knows
				} else {
					r.journal[abd.Key(e.name)] = nil
				}
			}
		})
		if err != nil {
			f.note(damagedFile(f.Path, at, "frame with a good checksum and a bad content: %v", err))
		}
		at, r.end = at+fr.size, fr.first+env.Position(fr.records)
	}
}
