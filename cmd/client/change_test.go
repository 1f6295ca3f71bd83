package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/quorum"
)

// standby starts a new node of a cluster, by the path of its admin's context.
func standby(t *testing.T, admin, name string) *server.Server {
	t.Helper()
	ticketText, stderr, code := run(t, "", "member", "ticket", "--context", admin, "--name", name, "-o", "raw")
	if code != 0 {
		t.Fatal(stderr)
	}
	ticket, err := identity.ParseTicket(ticketText)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), name)
	err = identity.CreateMember(dir, identity.JoinSpec{Ticket: ticket, Listen: []string{"127.0.0.1:0"},
		Prepare: func(dir string) error { return store.Create(store.Config{Dir: dir}) }})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := identity.OpenFolder(dir)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Join(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMemberChanges runs the commands that change the members, one after the other.
func TestMemberChanges(t *testing.T) {
	file := startCluster(t)
	admin := filepath.Join(filepath.Dir(file), "admin.json")
	standby(t, admin, "b")
	standby(t, admin, "c")
	for _, c := range []struct {
		args           string
		stdout, stderr string // what they contain
		code           int
	}{
		{"progress", "no change of the members is pending", "", 0},
		{"abort", "no change of the members is pending", "", 0},
		{"add nobody", "", `no node is known by the id or name "nobody"`, cli.ExitNotFound},
		{"add", "", "NODE is missing", cli.ExitUsage},
		{"set a,b, c", "", `"a,b," isn't a node: write spaces between nodes, and no commas`, cli.ExitUsage},
		{"set a b c c", "", "c is named twice", cli.ExitUsage},
		{"add b b", "", "b is named twice", cli.ExitUsage},
		{"remove a a", "", "a is named twice", cli.ExitUsage},
		{"replace a a", "", "a is named twice", cli.ExitUsage},
		{"replace a", "", "NEW is missing", cli.ExitUsage},
		{"replace a,b", "", `"a,b" isn't a node: write spaces between nodes, and no commas`, cli.ExitUsage},
		{"replace c b", "", "c isn't a member", cli.ExitUsage},
		{"add b", "", "any 0 of 2; writes: any 0 of 2 (now: reads: any 0 of 1; writes: any 0 of 1); if that is what you want, force it (--force)", cli.ExitPrecondition},
		{"set a --quorum get=2,put=2", "", "sizes must be", cli.ExitUsage},
		{"add b c --quorum all", "", "is not a quorum system", cli.ExitUsage},
		{"add b c", "configuration 1: majority of a b c: installed\n", "would tolerate these deaths: reads: any 1 of 3", 0},
		{"add b c", "configuration 1: majority of a b c: is so already\n", "", 0},
		{"set a b c --quorum weights=a:2,b:2,c:1", "configuration 2: weights=", "decided: configuration 2", 0},
		{"set a b c --quorum majority --wait=false", "configuration 3: majority of a b c: decided\n", "", 0},
		{"set a b c", "configuration 3: majority of a b c: is so already\n", "", 0},
		{"set a b c --quorum get=1,put=3 --force", ": installed\n", "reads of confirmed values: any 2 of 3", 0},
		{"remove c", "", "that is the quorum system of now: give another one, too (--quorum)", cli.ExitUsage},
		{"set a b c --quorum majority -o jsonl", `"name":"a"}`, "", 0},
		{"remove b c --force -o jsonl", `"changed":true,"installed":true}`, "any 0 of 1", 0},
		{"replace a b -o jsonl", `{"config":{"index":7,`, "configuration 7: majority of b", 0},
		{"progress -o jsonl", `"merging":[],"pending":[]}`, "", 0},
		{"progress -o jsonl", `{"active":[{"index":7,"quorum":"majority","members":[{"id":"n`, "", 0},
		{"abort -o jsonl", `{"aborted":false}`, "", 0},
	} {
		stdout, stderr, code := run(t, "", append(strings.Fields("member "+c.args), "--context", admin, "--timeout", "1m")...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || c.stdout == "" && stdout != "" {
			t.Errorf("member %s: exit %d, stdout %q, stderr %q\nwant %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
	if _, stderr, code := run(t, "", "member", "ticket", "--context", admin, "--name", "c"); code != cli.ExitUsage || !strings.Contains(stderr, `there is a node of the name "c" already`) {
		t.Errorf("a ticket for the name of a node on standby: exit %d, %s", code, stderr)
	}
	if _, stderr, code := run(t, "", "member", "add", "", "--context", admin); code != cli.ExitUsage || !strings.Contains(stderr, "a node is empty: give its id or its name") {
		t.Errorf("an empty node: exit %d, %s", code, stderr)
	}
	for _, args := range []string{"add c a", "add nobody", "remove b --force", "abort"} {
		_, stderr, code := run(t, "", append(strings.Fields("member "+args), "--context", file)...)
		if code != cli.ExitDenied || !strings.Contains(stderr, "a client may not change the members; an admin may, with admin.json") || strings.Contains(stderr, "tolerate") {
			t.Errorf("member %s without an admin's context: exit %d, %s", args, code, stderr)
		}
	}
	if _, stderr, code := run(t, "", "member", "progress", "--context", file); code != 0 {
		t.Errorf("progress with a client's context: exit %d, %s", code, stderr)
	}
	stdout, _, _ := run(t, "", "member", "list", "--context", admin, "-o", "json")
	var list struct{ Members, Standby []struct{ Name string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Members) != 1 || list.Members[0].Name != "b" || len(list.Standby) != 2 {
		t.Errorf("in the end: %s, %v", stdout, err)
	}
}

// TestTheSilentMembersOfATarget: what people are told of them.
func TestTheSilentMembersOfATarget(t *testing.T) {
	c, err := quorum.NewConfiguration(1, []quorum.NodeID{"a", "b", "c", "d", "e"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	none := func(quorum.NodeID) string { return "" }
	for _, test := range []struct {
		silent []quorum.NodeID
		want   string
	}{
		{nil, ""},
		{[]quorum.NodeID{"b"}, "but now these don't answer: b; as long as that is so, any one death more would be tolerated\n"},
		{[]quorum.NodeID{"d", "b"}, "but now these don't answer: b d; as long as that is so, one death more could stop it\n"},
		{[]quorum.NodeID{"a", "b", "c"}, "but now these don't answer: a b c; as long as that is so, it would have no quorum\n"},
	} {
		if got := silentText(none, c, test.silent); got != test.want {
			t.Errorf("%v: %q, want %q", test.silent, got, test.want)
		}
	}
}

// TestChangeStates: installed is said of what is installed.
func TestChangeStates(t *testing.T) {
	for _, test := range []struct {
		changed, installed bool
		want               string
	}{
		{true, true, "installed"},
		{true, false, "decided"},
		{false, true, "is so already"},
		{false, false, "decided already, not installed yet"},
	} {
		if got := stateText(test.changed, test.installed); got != test.want {
			t.Errorf("changed %v, installed %v: %q, want %q", test.changed, test.installed, got, test.want)
		}
	}
}

// TestProgressWithoutAQuorum: what can be known without one is printed, and that the
// rest isn't.
func TestProgressWithoutAQuorum(t *testing.T) {
	file := startCluster(t)
	admin := filepath.Join(filepath.Dir(file), "admin.json")
	b := standby(t, admin, "b")
	if _, stderr, code := run(t, "", "member", "add", "b", "--force", "--context", admin, "--timeout", "1m"); code != 0 {
		t.Fatalf("add: exit %d, %s", code, stderr)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, "", "member", "progress", "--context", file)
	want := "installed: configuration 1: majority of a b\nwaiting: configuration 1 has no quorum for reads and writes; silent: b\n"
	if code != cli.ExitNoQuorum || stdout != want || !strings.HasPrefix(stderr, "client: member: progress: no quorum: ") {
		t.Errorf("exit %d, stdout %q, stderr %q\nwant %d and %q", code, stdout, stderr, cli.ExitNoQuorum, want)
	}
	stdout, _, code = run(t, "", "member", "progress", "-o", "jsonl", "--context", file)
	if code != cli.ExitNoQuorum || !strings.Contains(stdout, `"lacks":["reads","writes"]`) || strings.Contains(stdout, "pending") {
		t.Errorf("exit %d, %s; want %d, what is lacking, and nothing of what is pending", code, stdout, cli.ExitNoQuorum)
	}
}

// TestInterruptedAfterTheDecision: who interrupts the command hears that the change
// isn't interrupted.
func TestInterruptedAfterTheDecision(t *testing.T) {
	cfg, err := client.LoadContext(startCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var w strings.Builder
	if err := await(ctx, &w, conn, 1); cli.ExitCode(err) != cli.ExitInterrupted || !strings.HasPrefix(w.String(), "configuration 1 is decided, and the nodes install it without this command, too; client member progress ") {
		t.Errorf("%v, %q", err, w.String())
	}
}
