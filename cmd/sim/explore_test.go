package main

import (
	"encoding/json"
	"strings"
	"testing"

	"atoll/internal/cli"
)

func TestExplore(t *testing.T) {
	stdout, _, code := sim(t, "explore", "one", "--crashes", "0", "--lost", "0")
	if code != cli.ExitDone || !strings.HasPrefix(stdout, "one: complete") {
		t.Errorf("code %d:\n%s", code, stdout)
	}
	for _, limit := range []string{"--states 5", "--for 1ns"} {
		stdout, stderr, code := sim(t, append([]string{"explore", "two"}, strings.Fields(limit)...)...)
		if code != cli.ExitIncomplete || !strings.HasPrefix(stdout, "two: NOT complete: it was ended before, by "+limit+"\n") || !strings.Contains(stderr, limit) {
			t.Errorf("%s: code %d, %s:\n%s", limit, code, stderr, stdout)
		}
	}
}

// TestExploreHelp: what holds without a flag isn't the number 0.
func TestExploreHelp(t *testing.T) {
	stdout, _, _ := sim(t, "explore", "--help")
	if n := strings.Count(stdout, "(default the scope's number)"); n != 2 {
		t.Errorf("%d flags are the scope's by default:\n%s", n, stdout)
	}
	if n := strings.Count(stdout, "0: no limit (default no limit)"); n != 2 || strings.Contains(stdout, "(default 0") {
		t.Errorf("%d flags have no limit by default:\n%s", n, stdout)
	}
}

// TestExploreFindsAndReplays: the last line of what a broken promise prints makes
// the same moves again.
func TestExploreFindsAndReplays(t *testing.T) {
	args := []string{"explore", "leave", "--crashes", "0", "--lost", "0", "--mutant", "rambo.StayersHaveAll"}
	stdout, stderr, code := sim(t, args...)
	if code != cli.ExitOther || !strings.Contains(stdout, "lost-at-retirement: ") || !strings.Contains(stderr, "a promise can be broken") {
		t.Fatalf("code %d, %s:\n%s", code, stderr, stdout)
	}
	all := lines(stdout)
	again, _, code := sim(t, strings.Fields(all[len(all)-1])[1:]...)
	if code != cli.ExitOther || !strings.Contains(stdout, lines(again)[0]) || !strings.Contains(again, "lost-at-retirement: ") {
		t.Errorf("again: code %d:\n%s", code, again)
	}

	stdout, _, code = sim(t, append(args, "-o", "json")...)
	var r explored
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != cli.ExitOther {
		t.Fatalf("code %d, %v:\n%s", code, err, stdout)
	}
	if r.Violation == nil || r.Violation.Rule != "lost-at-retirement" || r.Violation.Replay != all[len(all)-1] || r.States == 0 || r.Complete {
		t.Errorf("JSON says %+v", r)
	}
}

func TestExploreRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"explore"},
		{"explore", "on"},
		{"explore", "one", "--crashes", "-1"},
		{"explore", "one", "--for", "-1s"},
		{"explore", "one", "--mutant", "rambo.Nothing"},
		{"explore", "one", "--path", "a0.x"},
	} {
		if _, stderr, code := sim(t, args...); code != cli.ExitUsage {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
}
