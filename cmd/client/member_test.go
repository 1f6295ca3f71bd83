package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

// TestMember: who is in the cluster is listed, and a ticket holds all that a new node
// needs.
func TestMember(t *testing.T) {
	context := startCluster(t)
	dir := filepath.Dir(context)
	stdout, stderr, code := run(t, "", "member", "list", "--context", context, "-o", "json")
	var list struct {
		Config  struct{ Index *int }
		Members []struct {
			ID        string
			Addresses []string
		}
		Standby []any
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != 0 || list.Config.Index == nil || len(list.Members) != 1 || len(list.Standby) != 0 {
		t.Fatalf("exit %d, %s%s, %v", code, stdout, stderr, err)
	}
	stdout, stderr, code = run(t, "", "member", "ticket", "--context", context, "--name", "d", "--ttl", "10m", "-o", "raw")
	ticket, err := identity.ParseTicket(stdout)
	if err != nil || code != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit %d, %s%s, %v", code, stdout, stderr, err)
	}
	if left := time.Until(ticket.Grant.Expires); ticket.Grant.Name != "d" || left > 10*time.Minute || left < 5*time.Minute || ticket.MaxValue == 0 ||
		len(ticket.Contacts) != 1 || string(ticket.Contacts[0].ID) != list.Members[0].ID || len(ticket.Endpoints) != 1 {
		t.Errorf("the ticket is %+v", ticket)
	}
	stdout, _, code = run(t, "", "member", "ticket", "--context", context, "-o", "jsonl")
	var object struct{ Ticket, ID, Name, Expires string }
	if err := json.Unmarshal([]byte(stdout), &object); err != nil || code != 0 || !identity.IsTicket(object.Ticket) || !strings.HasPrefix(object.ID, object.Name) {
		t.Errorf("exit %d, %s, %v", code, stdout, err)
	}

	elsewhere := filepath.Join(t.TempDir(), "client.json")
	b, err := os.ReadFile(context)
	if err == nil {
		err = os.WriteFile(elsewhere, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cli.Environment("ttl"), "7h") // which isn't the default
	if help, _, _ := run(t, "", "member", "ticket", "--help"); !strings.Contains(help, "(default 1h;") {
		t.Errorf("the help says of --ttl:\n%s", help)
	}
	other := filepath.Dir(startCluster(t))
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--context", elsewhere}, "there is no CA in " + filepath.Join(filepath.Dir(elsewhere), "ca"), cli.ExitPrecondition},
		{[]string{"--context", elsewhere, "--ca-dir", filepath.Join(dir, "ca"), "--name", "d"}, "", cli.ExitDone},
		{[]string{"--context", context, "--ca-dir", filepath.Join(other, "ca")}, "is of cluster", cli.ExitPrecondition},
		{[]string{"--context", context, "--name", "a"}, `there is a node of the name "a" already`, cli.ExitUsage},
		{[]string{"--context", context, "--name", "A"}, "--name", cli.ExitUsage},
		{[]string{"--context", context, "--ttl", "1s"}, "--ttl must be from 1m to 168h, not 1s", cli.ExitUsage},
	} {
		_, stderr, code := run(t, "", append([]string{"member", "ticket"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit %d, %s\nwant %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
