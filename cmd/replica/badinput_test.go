package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

// oneLineOf fails the test unless stderr is one line, or a usage error and its
// usage, and nothing went to stdout.
func oneLineOf(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	lines := strings.Count(stderr, "\n")
	if code == cli.ExitUsage {
		lines--
	}
	if stdout != "" || lines != 1 {
		t.Errorf("stdout %q, stderr %q: want nothing and one line", stdout, stderr)
	}
}

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"frobnicate", "frobnicate"},
		{"run --frobnicate", "frobnicate"},
		{"run", "--data-dir is missing"},
		{"run --data-dir " + dir + " extra", `"extra"`},
		{"init --data-dir " + dir + "/x", "--members is missing"},
		{"init --data-dir " + dir + "/x --members a", `"a"`},
		{"init --data-dir " + dir + "/x --members a=127.0.0.1:1,a=127.0.0.1:2", `"a"`},
		{"init --data-dir " + dir + "/x --members a=127.0.0.1", "127.0.0.1"},
		{"init --data-dir " + dir + "/x --members a=127.0.0.1:99999", "99999"},
		{"init --data-dir " + dir + "/x --members a=::1:7400", "[::1]:7400"},
		{"init --data-dir " + dir + "/x --members a=h:1,b=h:1", "same address"},
		{"init --data-dir " + dir + "/x --members ca=h:1", `"ca"`},
		{"init --data-dir " + dir + "/x --members a=h:1 b=h:2", `unexpected argument "b=h:2": write commas between members, and no spaces`},
		{"init --data-dir " + dir + "/x --members a=h:1,b=h:2 --quorum get=1,put=1", "need not intersect"},
		{"init --data-dir " + dir + "/x --members a=h:1,b=h:2 --quorum grid=2x2", "grid=2x2"},
		{"init --data-dir " + dir + "/x --members a=h:1 --quorum paxos", `"paxos"`},
		{"init --data-dir " + dir + "/x --members a=h:1 --max-value 8388609", "8388608"},
		{"init --data-dir " + dir + "/x --members a=h:1 --max-value many", `"many"`},
		{"run --data-dir " + dir + " --listen foo", "--listen: \"foo\""},
		{"run --data-dir " + dir + " --listen ::1:17410", "--listen: \"::1:17410\""},
		{"run --data-dir " + dir + " --listen=", "--listen: an address is empty"},
		{"run --data-dir " + dir + " --listen 127.0.0.1:1,foo", "--listen: \"foo\""},
		{"run --data-dir " + dir + " --metrics foo", "--metrics: \"foo\""},
		{"dev --port abc", "--port \"abc\": write PORT as a whole number"},
		{"dev --port 99999", "--port 99999: ports are 1 to 65535"},
		{"dev --port 0", "--port 0"},
		{"dev --port 65534", "3 replicas"},
		{"dev --replicas 0", "--replicas"},
		{"dev --replicas 27", "--replicas"},
		{"dev --once extra", `"extra"`},
		{"run --data-dir " + dir + " --metrics 0.0.0.0:0", "loopback address only"},
		{"config show", "--data-dir is missing"},
		{"config show --data-dir " + dir + " --metrics foo", "--metrics: \"foo\""},
		{"config show --data-dir " + dir + " --metrics 0.0.0.0:9400", "loopback address only"},
		{"config show --data-dir " + dir + " --metrics :9400", "loopback address only"},
		{"status", "--data-dir is missing"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := run(t, strings.Fields(test.args)...)
			if code != cli.ExitUsage || !strings.Contains(stderr, test.want) {
				t.Errorf("exit %d, %q: want exit %d and %q", code, stderr, cli.ExitUsage, test.want)
			}
			oneLineOf(t, code, stdout, stderr)
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a refused init left a folder behind")
	}
}

// initOne makes a cluster of one and returns its folder and its member's.
func initOne(t *testing.T, address string) (dir, member string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "cluster")
	if code, _, stderr := run(t, "init", "--data-dir", dir, "--members", "a="+address); code != 0 {
		t.Fatalf("init: exit %d, %s", code, stderr)
	}
	return dir, filepath.Join(dir, "a")
}

// contents returns the names, sizes and contents of small files under dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestANodeThatCannotRunSaysWhyAndLeavesItsFolderAlone(t *testing.T) {
	taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		name   string
		break_ func(t *testing.T, dir, member string) (args []string)
		code   int
		want   string
	}{
		{"port taken", func(*testing.T, string, string) []string {
			return []string{"--listen", taken.LocalAddr().String()}
		}, cli.ExitPrecondition, taken.LocalAddr().String()},
		{"metrics not on loopback", func(*testing.T, string, string) []string {
			return []string{"--metrics", "0.0.0.0:0"}
		}, cli.ExitUsage, "loopback"},
		{"no such folder", func(_ *testing.T, _, member string) []string {
			return []string{"--data-dir", member + "-not"}
		}, cli.ExitPrecondition, "doesn't exist"},
		{"no identity", func(t *testing.T, _, member string) []string {
			remove(t, filepath.Join(member, identity.FileIdentity))
			return nil
		}, cli.ExitDamaged, identity.FileIdentity},
		{"half an identity", func(t *testing.T, _, member string) []string {
			truncate(t, filepath.Join(member, identity.FileIdentity))
			return nil
		}, cli.ExitDamaged, identity.FileIdentity},
		{"identity of another node", func(t *testing.T, _, member string) []string {
			_, other := initOne(t, "127.0.0.1:1")
			copyFile(t, filepath.Join(other, identity.FileIdentity), filepath.Join(member, identity.FileIdentity))
			return nil
		}, cli.ExitDamaged, identity.FileIdentity},
		{"another cluster's CA", func(t *testing.T, _, member string) []string {
			_, other := initOne(t, "127.0.0.1:1")
			copyFile(t, filepath.Join(other, identity.FileCA), filepath.Join(member, identity.FileCA))
			return nil
		}, cli.ExitDamaged, identity.FileCA},
		{"empty database", func(t *testing.T, _, member string) []string {
			if err := os.Truncate(filepath.Join(member, "state.db"), 0); err != nil {
				t.Fatal(err)
			}
			return nil
		}, cli.ExitDamaged, "state.db"},
		{"database cut behind a page", func(t *testing.T, _, member string) []string {
			fillMember(t, member)
			edit(t, filepath.Join(member, "state.db"), func(b []byte) []byte { return b[:3<<12] })
			return nil
		}, cli.ExitDamaged, "state.db"},
		{"database cut within a page", func(t *testing.T, _, member string) []string {
			fillMember(t, member)
			edit(t, filepath.Join(member, "state.db"), func(b []byte) []byte { return b[:3<<12+100] })
			return nil
		}, cli.ExitDamaged, "state.db"},
		{"a page of zeros in the database", func(t *testing.T, _, member string) []string {
			fillMember(t, member)
			edit(t, filepath.Join(member, "state.db"), func(b []byte) []byte {
				// Of all copies of the page: the file doesn't say which counts.
				for at := 0; at < len(b); at += 1 << 12 {
					if page := b[at : at+1<<12]; bytes.Contains(page, []byte(filledValue(5))) {
						clear(page)
					}
				}
				return b
			})
			return nil
		}, cli.ExitDamaged, "state.db"},
		{"no store.json", func(t *testing.T, _, member string) []string {
			remove(t, filepath.Join(member, "store.json"))
			return nil
		}, cli.ExitDamaged, "store.json"},
		{"half a store.json", func(t *testing.T, _, member string) []string {
			truncate(t, filepath.Join(member, "store.json"))
			return nil
		}, cli.ExitDamaged, "store.json"},
		{"a newer program's folder", func(t *testing.T, _, member string) []string {
			edit(t, filepath.Join(member, "store.json"), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 9`), 1)
			})
			return nil
		}, cli.ExitDamaged, "format 9"},
		{"no database", func(t *testing.T, _, member string) []string {
			remove(t, filepath.Join(member, "state.db"))
			return nil
		}, cli.ExitDamaged, "state.db"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, member := initOne(t, "127.0.0.1:1")
			args := test.break_(t, dir, member)
			before := contents(t, dir)
			code, stdout, stderr := run(t, append([]string{"run", "--data-dir", member, "--log-level", "error", "--listen", "127.0.0.1:0"}, args...)...)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("exit %d, %q: want exit %d and %q", code, stderr, test.code, test.want)
			}
			oneLineOf(t, code, stdout, stderr)
			after := contents(t, dir)
			for path, was := range before {
				if is, ok := after[path]; !ok || is != was {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
}

// TestAJournalDamagedBeforeItsEndIsRefused, and nothing takes its place. The
// database is read, and noted to have been opened, before the journal is.
func TestAJournalDamagedBeforeItsEndIsRefused(t *testing.T) {
	_, member := initOne(t, "127.0.0.1:1")
	fillMember(t, member)
	segments, err := filepath.Glob(filepath.Join(member, "journal", "0*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	edit(t, segments[0], func(b []byte) []byte {
		b[4096+100]++ // in the first of two frames
		return b
	})
	for range 2 {
		code, stdout, stderr := run(t, "run", "--data-dir", member, "--log-level", "error", "--listen", "127.0.0.1:0")
		if code != cli.ExitDamaged || !strings.Contains(stderr, segments[0]) || !strings.Contains(stderr, "leave this member off") {
			t.Errorf("exit %d, %s: want %d, the file and a way out", code, stderr, cli.ExitDamaged)
		}
		oneLineOf(t, code, stdout, stderr)
	}
}

func TestConfigShowSaysWhereValuesComeFrom(t *testing.T) {
	_, member := initOne(t, "127.0.0.1:7777")
	t.Setenv("ATOLL_METRICS", "127.0.0.1:9999")
	t.Setenv("ATOLL_LISTEN", "")
	code, stdout, stderr := run(t, "config", "show", "-o", "json", "--data-dir", member)
	var got struct{ Settings []setting }
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
		t.Fatalf("exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	want := map[string]setting{
		"data-dir":  {"data-dir", member, "flag"},
		"metrics":   {"metrics", "127.0.0.1:9999", "environment ATOLL_METRICS"},
		"listen":    {"listen", "127.0.0.1:7777", "file " + filepath.Join(member, identity.FileCluster)},
		"max-value": {"max-value", "1048576", "file " + filepath.Join(member, identity.FileCluster)},
	}
	for _, s := range got.Settings {
		if w, ok := want[s.Name]; ok && s != w {
			t.Errorf("got %+v, want %+v", s, w)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestStatusOfAFolderThatHasNoContext(t *testing.T) {
	_, member := initOne(t, "127.0.0.1:1")
	remove(t, filepath.Join(member, identity.FileContext))
	for dir, want := range map[string]string{member + "-not": member + "-not doesn't exist", member: member + " has no client.json"} {
		code, stdout, stderr := run(t, "status", "--data-dir", dir)
		if code != cli.ExitPrecondition || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %q: want exit %d and %q", code, stderr, cli.ExitPrecondition, want)
		}
		oneLineOf(t, code, stdout, stderr)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
