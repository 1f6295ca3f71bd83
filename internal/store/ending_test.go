package store

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"atoll/env"
	"atoll/internal/logtest"
)

// What follows the last frame is told apart as far as it can be, and a start and
// Check say so, with the place.
func TestEndings(t *testing.T) {
	w := writeJournal(t, 3)
	path := w.segment(1)
	good := readFile(t, path)
	last, end := w.frames[2], w.frames[3]
	for _, c := range []struct {
		name   string
		change func(b []byte)
		at     int64
		want   ending
	}{
		{"nothing", func([]byte) {}, end, endsClean},
		{"a flipped bit in a record", func(b []byte) { b[last+frameHead+3] ^= 1 }, last, endsTorn},
		{"a frame that isn't finished", func(b []byte) { clear(b[end-20:]) }, last, endsTorn},
		{"zeros for all of the last frame", func(b []byte) { clear(b[last:]) }, last, endsClean},
		{"what settle has written, and an earlier use", func(b []byte) { fillOld(b[end+frameHead:]) }, end, endsClean},
		{"an earlier use", func(b []byte) { fillOld(b[end:]) }, end, endsClean},
		{"a sector of zeros before what an earlier use has left", func(b []byte) {
			clear(b[last:])
			fillOld(b[last+diskSector:])
		}, last, endsInZeros},
	} {
		b := slices.Clone(good)
		c.change(b)
		wantEnding(t, c.name, w, b, c.at, c.want)
	}
	for at := last; at < last+frameHead; at++ {
		b := slices.Clone(good)
		b[at] ^= 1 << (at % 8)
		wantEnding(t, fmt.Sprintf("a flipped bit at byte %d of the last head", at-last), w, b, last, endsGarbled)
	}
	// The frames of an earlier use are no loss.
	p := pieces{file: memoryFile(good), size: int64(len(good)), id: w.id, generation: 2}
	if e, _, err := p.ending(last, 4); e != endsClean || err != nil {
		t.Errorf("a frame of an earlier use is taken for ending %d, %v", e, err)
	}
}

func fillOld(b []byte) {
	for i := range b {
		b[i] = 0xA5
	}
}

func wantEnding(t *testing.T, name string, w *written, b []byte, at int64, want ending) {
	t.Helper()
	position, path := int64(6), w.segment(1)
	if at == w.frames[2] {
		position = 4
	}
	p := pieces{file: memoryFile(b), size: int64(len(b)), id: w.id, generation: 1}
	if e, _, err := p.ending(at, env.Position(position)); e != want || err != nil {
		t.Errorf("%s: ending %d, %v, want %d", name, e, err, want)
	}
	writeFile(t, path, b)
	var log logtest.Book
	quiet := w.cfg.Log
	w.cfg.Log = log.Log(slog.LevelWarn)
	n, err := w.recover(t)
	w.cfg.Log = quiet
	if err != nil || int64(n) != position {
		t.Errorf("%s: %d records, %v, want %d", name, n, err, position)
	}
	told := log.Contains(fmt.Sprintf("file=%s offset=%d", path, at)) && log.Contains("cut off")
	if told != (want != endsClean) {
		t.Errorf("%s: the log says %q", name, log.String())
	}
	i := newInspection(w.cfg.Dir)
	i.id, i.known = w.id, true
	writeFile(t, path, b)
	if err := i.readJournal(); err != nil {
		t.Fatal(err)
	}
	if got := i.file(filepath.Join(w.cfg.Dir, journalName, segmentName(1))).Note; got != want.note() {
		t.Errorf("%s: Check notes %q, want %q", name, got, want.note())
	}
}
