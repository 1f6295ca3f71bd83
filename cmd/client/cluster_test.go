package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
)

// startCluster starts a cluster of one in this process, and returns the path
// of its context file.
func startCluster(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	_, err := identity.CreateCluster(dir, identity.Spec{
		Members: []identity.MemberSpec{{Name: "a", Address: porttest.Address(t)}},
		Prepare: func(dir string) error { return store.Create(store.Config{Dir: dir}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := identity.OpenFolder(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(server.Config{Folder: folder, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "client.json")
}

// TestCommands runs every command against a cluster.
func TestCommands(t *testing.T) {
	context := startCluster(t)
	binary := "a\x00\xffb"
	for _, c := range []struct {
		stdin  string
		args   []string
		stdout string // with TAG for any tag
		code   int
	}{
		{"", []string{"put", "greeting", "hello"}, "OK\n", 0},
		{"", []string{"get", "greeting"}, "hello\n", 0},
		{"", []string{"get", "greeting", "-o", "raw"}, "hello", 0},
		{"", []string{"get", "greeting", "-o", "jsonl"}, `{"key":"greeting","value":"hello","tag":"TAG"}` + "\n", 0},
		{binary, []string{"put", "-o", "raw", "bin", "-"}, "TAG\n", 0},
		{"", []string{"get", "bin", "-o", "raw"}, binary, 0},
		{"", []string{"get", "bin", "-o", "jsonl"}, `{"key":"Ymlu","value":"YQD/Yg==","tag":"TAG","encoding":"base64"}` + "\n", 0},
		{"", []string{"put", "empty", ""}, "OK\n", 0},
		{"", []string{"get", "empty", "-o", "raw"}, "", 0},
		{"", []string{"get", "missing"}, "", cli.ExitNotFound},
		{"", []string{"put", "nul\x00", "--", "-5"}, "OK\n", 0},
		{"", []string{"get", "nul\x00"}, "-5\n", 0},
		{"", []string{"list"}, "KEY        TAG\nbin        TAG\nempty      TAG\ngreeting   TAG\n\"nul\\x00\"  TAG\n", 0},
		{"", []string{"list", "gre", "-o", "jsonl"}, `{"key":"greeting","tag":"TAG"}` + "\n", 0},
		{"", []string{"delete", "greeting"}, "OK\n", 0},
		{"", []string{"get", "greeting"}, "", cli.ExitNotFound},
		{"", []string{"delete", "never", "-o", "jsonl"}, `{"key":"never","tag":"TAG"}` + "\n", 0},
		{"", []string{"list", "-o", "raw"}, "bin\nempty\nnul\x00\n", 0},
		{strings.Repeat("v", 1<<20+1), []string{"put", "large", "-"}, "", cli.ExitUsage},
	} {
		stdout, stderr, code := run(t, c.stdin, append([]string{"--context", context}, c.args...)...)
		if got := anyTag(stdout); got != c.stdout || code != c.code || (code == 0) != (stderr == "") && code != cli.ExitNotFound {
			t.Errorf("client %q: exit %d, stdout %q, stderr %q\nwant exit %d, %q", c.args, code, got, stderr, c.code, c.stdout)
		}
	}
}

// TestRefresh: the addresses of a context file become those of the members, also when
// nobody is at the old ones; what can't be asked leaves the file as it is.
func TestRefresh(t *testing.T) {
	path := startCluster(t)
	file, err := identity.LoadContext(path)
	if err != nil {
		t.Fatal(err)
	}
	alive := file.Endpoints[0]
	file.Endpoints = []string{"127.0.0.1:1", alive}
	if err := identity.SaveContext(path, file); err != nil {
		t.Fatal(err)
	}
	endpoints := func() string {
		c, err := identity.LoadContext(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(c.Endpoints, " ")
	}
	if stdout, stderr, code := run(t, "", "refresh", "--context", path); code != 0 || stdout != path+": "+alive+"\n" || endpoints() != alive {
		t.Errorf("exit %d, %s%s, and the file has %s", code, stdout, stderr, endpoints())
	}
	file.Endpoints = []string{"127.0.0.1:1"}
	if err := identity.SaveContext(path, file); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "", "refresh", "--context", path, "--timeout", "1s"); code != cli.ExitNoQuorum || endpoints() != "127.0.0.1:1" {
		t.Errorf("nobody there: exit %d, %s, and the file has %s", code, stderr, endpoints())
	}
	if _, stderr, code := run(t, "", "refresh", "--context", path, "--endpoints", alive); code != 0 || endpoints() != alive {
		t.Errorf("told where: exit %d, %s, and the file has %s", code, stderr, endpoints())
	}
	if _, stderr, code := run(t, "", "refresh"); code != cli.ExitUsage || !strings.Contains(stderr, "--context") {
		t.Errorf("no file: exit %d, %s", code, stderr)
	}
}

// anyTag puts TAG in place of each tag.
func anyTag(s string) string {
	tag := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '.' }
	for word := range strings.FieldsFuncSeq(s, tag) {
		if strings.Count(word, ".") == 2 && len(word) > 34 {
			s = strings.Replace(s, word, "TAG", 1)
		}
	}
	return s
}

// afterWriting calls then when something is written to it for the first time.
type afterWriting struct {
	bytes.Buffer
	then func()
}

func (w *afterWriting) Write(b []byte) (int, error) {
	defer w.then()
	return w.Buffer.Write(b)
}

// TestBenchInterruptedWhileItWritesKeys says that and no more.
func TestBenchInterruptedWhileItWritesKeys(t *testing.T) {
	file := startCluster(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	errs := &afterWriting{then: interrupt}
	var out bytes.Buffer
	a := app()
	a.Writer, a.ErrWriter = &out, errs
	code := cli.RunContext(ctx, a, []string{"client", "bench", "get", "--keys", "1000000", "--context", file})
	const want = "writing 1000000 keys first\n" +
		"the keys that it wrote, of k0 to k999999, stay in the cluster\n" +
		"client: bench: get: interrupted\n"
	if code != cli.ExitInterrupted || out.Len() > 0 || errs.String() != want {
		t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, &out, errs, want)
	}
}

func TestStatusAndBench(t *testing.T) {
	context := startCluster(t)
	for _, args := range []string{"bench put", "bench get", "bench mixed"} {
		stdout, stderr, code := run(t, "", strings.Fields(args+" -d 100ms --keys 100 --clients 8 -o jsonl --context "+context)...)
		op := strings.TrimPrefix(args, "bench ")
		if code != 0 || !strings.HasPrefix(stdout, fmt.Sprintf(`{"op":%q,"clients":8,"value_size":100,"seconds":`, op)) ||
			!strings.Contains(stdout, `"errors":0,"unknown":0,`) || strings.Contains(stdout, `"operations":0,`) {
			t.Errorf("%s: exit %d, stdout %s, stderr %s", args, code, stdout, stderr)
		}
		want := "the keys that it wrote, of k0 to k99, stay in the cluster\n"
		if op != "put" {
			want = "writing 100 keys first\n" + want
		}
		if stderr != want {
			t.Errorf("%s: stderr %q, want %q", args, stderr, want)
		}
	}
	stdout, stderr, code := run(t, "", "bench", "put", "--value-size", "2000000", "--context", context)
	if want := "client: bench: put: --value-size 2000000: this cluster takes values of up to 1048576 bytes\nusage: "; stdout != "" ||
		code != cli.ExitUsage || !strings.HasPrefix(stderr, want) {
		t.Errorf("values that the cluster doesn't take: exit %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	stdout, stderr, code = run(t, "", "status", "--context", context, "-o", "jsonl")
	if code != 0 || !strings.Contains(stdout, `"live":{"members":1,"reads":true,"writes":true}`) || !strings.Contains(stdout, `"keys":100,`) {
		t.Errorf("status: exit %d, stdout %s, stderr %s", code, stdout, stderr)
	}
}
