package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/tags"
)

// filledKeys are how many keys fillMember writes into the database, and as
// many into the journal.
const filledKeys = 60

func filledKey(n int) string   { return fmt.Sprintf("filled-%03d", n) }
func filledValue(n int) string { return fmt.Sprintf("the value of key number %03d", n) }

// smallStore makes everything happen soon, and files small.
func smallStore(member string) store.Config {
	return store.Config{Dir: member, SegmentBytes: 64 << 10, TableBytes: 1 << 10}
}

// fillMember replaces the store of a member that doesn't run by one with
// records: those below filledKeys are in its database when it returns.
func fillMember(t *testing.T, member string) {
	t.Helper()
	for _, name := range []string{"store.json", "state.db", "journal", identity.FileInstance} {
		if err := os.RemoveAll(filepath.Join(member, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Create(smallStore(member)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(smallStore(member))
	if err != nil {
		t.Fatal(err)
	}
	// A Commit behind more than two full tables waits until the first of them
	// is in the database.
	for n := range 2 * filledKeys {
		if _, err := s.Store(abd.Key(filledKey(n)), abd.Record{Tag: tagOf(n), Value: []byte(filledValue(n))}); err != nil {
			t.Fatal(err)
		}
		if (n+1)%filledKeys == 0 {
			s.Cut()
			if _, err := s.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.Applied() < filledKeys {
		t.Fatalf("%d records are in the database, want %d", s.Applied(), filledKeys)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func tagOf(n int) tags.Tag { return tags.Tag{Seq: tags.Seq(n + 1), PID: tags.NewPID(1, 2, 3)} }

// edit changes a file.
func edit(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip flips a bit of the byte that stands a distance before a text.
func flip(t *testing.T, path, text string, before int) {
	t.Helper()
	edit(t, path, func(b []byte) []byte {
		at := bytes.Index(b, []byte(text))
		if at < before {
			t.Fatalf("%q isn't in %s", text, path)
		}
		b[at-before] ^= 1
		return b
	})
}

// Where things stand before a value in a database: a head of 46 bytes with a
// tag in it, and before that the key.
const (
	toTag = 46 - 9
	toKey = 46 + 1
)

func TestDataOfAGoodNode(t *testing.T) {
	dir, member := initOne(t, "127.0.0.1:1")
	fillMember(t, member)
	s, err := store.Open(smallStore(member))
	if err != nil {
		t.Fatal(err)
	}
	for key, r := range map[abd.Key]abd.Record{
		"filled-\xff": {Tag: tagOf(500), Value: []byte("v")},
		"filled-del":  {Tag: tagOf(501), Deleted: true},
		"other":       {Tag: tagOf(502), Value: []byte("<&>")},
	} {
		if _, err := s.Store(key, r); err != nil {
			t.Fatal(err)
		}
	}
	s.Cut()
	if _, err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "data", "check", "--data-dir", member)
	if code != cli.ExitPrecondition || stdout != "" || !strings.Contains(stderr, fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("check of a node that runs: exit %d, %s%s", code, stdout, stderr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	before := contents(t, dir)
	code, stdout, stderr = run(t, "data", "check", "-o", "json", "--data-dir", member)
	var checked checkObject
	if err := json.Unmarshal([]byte(stdout), &checked); code != 0 || err != nil {
		t.Fatalf("check: exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	if !checked.OK || checked.Keys != 2*filledKeys+2 || checked.Tombstones != 1 || len(checked.Damage) != 0 || len(checked.Files) < 8 {
		t.Errorf("check: %+v", checked)
	}
	code, stdout, _ = run(t, "data", "check", "--data-dir", member)
	if code != 0 || !strings.Contains(stdout, "122 keys, 1 deleted; damage: 0\n") {
		t.Errorf("check: exit %d, %s", code, stdout)
	}
	code, stdout, stderr = run(t, "data", "dump", "--data-dir", member)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 2*filledKeys+3 || stderr != "" {
		t.Fatalf("dump: exit %d, %d lines, %s", code, len(lines), stderr)
	}
	for at, want := range map[int]string{
		0:   `{"key":"filled-000","tag":"1.00000000000000010002000000000003.0","deleted":false,"value":"the value of key number 000"}`,
		120: `{"key":"filled-del","tag":"502.00000000000000010002000000000003.0","deleted":true,"value":""}`,
		121: `{"key":"ZmlsbGVkLf8=","tag":"501.00000000000000010002000000000003.0","deleted":false,"value":"dg==","encoding":"base64"}`,
		122: `{"key":"other","tag":"503.00000000000000010002000000000003.0","deleted":false,"value":"<&>"}`,
	} {
		if lines[at] != want {
			t.Errorf("line %d is\n%s, want\n%s", at, lines[at], want)
		}
	}
	if _, stdout, _ := run(t, "data", "dump", "--data-dir", member, "--prefix", "o"); stdout != lines[122]+"\n" {
		t.Errorf("dump of a prefix: %s", stdout)
	}
	for path, b := range contents(t, dir) {
		if before[path] != b {
			t.Errorf("%s was changed", path)
		}
	}

	code, stdout, stderr = run(t, "data", "compact", "-o", "json", "--data-dir", member)
	var compacted compactObject
	if err := json.Unmarshal([]byte(stdout), &compacted); code != 0 || err != nil {
		t.Fatalf("compact: exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	if compacted.After >= compacted.Before || compacted.Records < filledKeys || filepath.Base(compacted.File) != "state.db" {
		t.Errorf("compact: %+v", compacted)
	}
	if _, after, _ := run(t, "data", "dump", "--data-dir", member); after != strings.Join(lines, "\n")+"\n" {
		t.Error("compact has changed what dump prints")
	}
}

func TestDataOfADamagedNode(t *testing.T) {
	_, member := initOne(t, "127.0.0.1:1")
	fillMember(t, member)
	db := filepath.Join(member, "state.db")
	flip(t, db, filledValue(7), 0)
	flip(t, db, filledValue(11), toTag)
	truncate(t, filepath.Join(member, "node.key"))
	remove(t, filepath.Join(member, "store.json"))

	code, stdout, stderr := run(t, "data", "check", "-o", "json", "--data-dir", member)
	var checked checkObject
	if err := json.Unmarshal([]byte(stdout), &checked); code != cli.ExitDamaged || err != nil || stderr != "" {
		t.Fatalf("check: exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	var told []string
	for _, d := range checked.Damage {
		told = append(told, filepath.Base(d.File)+" "+d.Key)
		if d.Reason == "" || d.WayOut == "" {
			t.Errorf("no reason or way out: %+v", d)
		}
	}
	if got, want := strings.Join(told, ","), "node.key ,store.json ,state.db "+filledKey(7)+",state.db "+filledKey(11); got != want || checked.OK {
		t.Errorf("damaged is %q, want %q", got, want)
	}
	code, stdout, _ = run(t, "data", "check", "--data-dir", member)
	if code != cli.ExitDamaged || strings.Count(stdout, "DAMAGED") != 3 || !strings.Contains(stdout, filledKey(11)) {
		t.Errorf("check: exit %d, %s", code, stdout)
	}
	for _, way := range []string{"nothing needs to be done at once", "leave this member off"} {
		if n := strings.Count(stdout, way); n != 1 {
			t.Errorf("check prints %d times that %s: %s", n, way, stdout)
		}
	}
	// Of another key's value nothing is told; the damaged tag may be anybody's.
	_, stdout, stderr = run(t, "data", "dump", "--data-dir", member, "--prefix", "z")
	if stdout != "" || strings.Contains(stderr, filledKey(7)) || !strings.Contains(lastOf(stderr), "2 times") {
		t.Errorf("dump of a prefix: %s, %s", stdout, stderr)
	}

	// The journal still has both records, and dump finds them there.
	code, stdout, stderr = run(t, "data", "dump", "--data-dir", member)
	if code != cli.ExitDamaged || strings.Count(stdout, "\n") != 2*filledKeys || !strings.Contains(stderr, filledKey(7)) ||
		!strings.Contains(lastOf(stderr), "3 times") {
		t.Errorf("dump: exit %d, %d lines, %s", code, strings.Count(stdout, "\n"), stderr)
	}
	before := contents(t, member)
	code, stdout, stderr = run(t, "data", "compact", "--data-dir", member)
	if code != cli.ExitDamaged {
		t.Errorf("compact: exit %d", code)
	}
	oneLineOf(t, code, stdout, stderr)
	for path, b := range contents(t, member) {
		if before[path] != b {
			t.Errorf("compact has changed %s", path)
		}
	}
}

// A member whose store is gone, or is another one, is named by whatever is called on
// its folder, with the way out, and isn't touched.
func TestANodeWithoutItsStore(t *testing.T) {
	storeFiles := []string{"store.json", "state.db", "journal"}
	for _, c := range []struct {
		name   string
		break_ func(t *testing.T, member string)
		want   string
	}{
		{"gone", func(*testing.T, string) {}, "holds no store any more"},
		{"gone, of an earlier version", func(t *testing.T, member string) {
			remove(t, filepath.Join(member, identity.FileInstance))
		}, "holds no store any more"},
		{"of another cluster", func(t *testing.T, member string) {
			_, other := initOne(t, "127.0.0.1:1")
			for _, name := range storeFiles {
				if err := os.Rename(filepath.Join(other, name), filepath.Join(member, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, "holds another store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, member := initOne(t, "127.0.0.1:1")
			for _, name := range storeFiles {
				if err := os.RemoveAll(filepath.Join(member, name)); err != nil {
					t.Fatal(err)
				}
			}
			c.break_(t, member)
			before := contents(t, member)
			for _, command := range []string{"run --listen 127.0.0.1:0 --log-level error", "data dump", "data compact", "data check"} {
				code, stdout, stderr := run(t, append(strings.Fields(command), "--data-dir", member)...)
				text := stdout + stderr
				if code != cli.ExitDamaged || !strings.Contains(text, member+" "+c.want) || !strings.Contains(text, "client member ticket") ||
					!strings.Contains(text, "replica join") || !strings.Contains(text, "goes on with the others") {
					t.Errorf("%s: exit %d, %s", command, code, text)
				}
			}
			if code, stdout, _ := run(t, "data", "check", "-o", "json", "--data-dir", member); code != cli.ExitDamaged || !strings.Contains(stdout, `"ok":false`) && !strings.Contains(stdout, `"ok": false`) {
				t.Errorf("check as JSON: exit %d, %s", code, stdout)
			}
			after := contents(t, member)
			for path, was := range before {
				if after[path] != was {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
	// Where no node is, none has lost anything.
	if code, _, stderr := run(t, "data", "dump", "--data-dir", t.TempDir()); code != cli.ExitPrecondition || !strings.Contains(stderr, "no store here") {
		t.Errorf("dump of an empty folder: exit %d, %s", code, stderr)
	}
}

// lastOf returns the last line of a text.
func lastOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
