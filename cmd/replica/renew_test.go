package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

func TestRenew(t *testing.T) {
	dir, member := initOne(t, "127.0.0.1:1")
	ca := filepath.Join(dir, "ca")
	context := filepath.Join(dir, identity.FileContext)
	code, stdout, stderr := run(t, "renew", "--ca-dir", ca, member, context, "-o", "json", "--valid-for", "24h")
	var got struct{ Renewed []renewedLine }
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || stderr != "" {
		t.Fatalf("exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	want := []string{filepath.Join(member, identity.FileCertificate), filepath.Join(member, identity.FileContext), context}
	if len(got.Renewed) != len(want) {
		t.Fatalf("got %+v, want %q", got.Renewed, want)
	}
	for i, r := range got.Renewed {
		if r.File != want[i] || r.End == "" || r.Holder == "" {
			t.Errorf("got %+v, want %s", r, want[i])
		}
	}

	// What was done before an error is printed, and the error is one line.
	_, other := initOne(t, "127.0.0.1:1")
	code, stdout, stderr = run(t, "renew", "--ca-dir", ca, context, other)
	if code != cli.ExitDamaged || !strings.Contains(stdout, context) || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, other) {
		t.Errorf("another cluster's member: exit %d, %q, %q", code, stdout, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"renew", member}, cli.ExitUsage, "--ca-dir is missing"},
		{[]string{"renew", "--ca-dir", ca}, cli.ExitUsage, "PATH is missing"},
		{[]string{"renew", "--ca-dir", ca, "--valid-for", "0s", member}, cli.ExitUsage, "--valid-for"},
		{[]string{"renew", "--ca-dir", ca, "--valid-for", "59m59s", member}, cli.ExitUsage, "--valid-for must be from 1h to 87600h, as in 720h, not 59m59s"},
		{[]string{"renew", "--ca-dir", ca, "--valid-for", "87601h", member}, cli.ExitUsage, "not 87601h0m0s"},
		{[]string{"renew", "--ca-dir", ca, "--valid-for", "1h", member}, cli.ExitDone, ""},
		{[]string{"renew", "--ca-dir", ca + "-not", member}, cli.ExitPrecondition, ca + "-not doesn't exist"},
		{[]string{"renew", "--ca-dir", member, member}, cli.ExitDamaged, "ca.key"},
		{[]string{"renew", "--ca-dir", ca, dir}, cli.ExitPrecondition, member},
	} {
		if code, _, stderr := run(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit %d, %q; want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
