package synod_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

// at returns a ballot of configuration k.
func at(k quorum.ConfigIndex, round synod.Round) synod.Ballot {
	b := ballot(round, 1)
	b.Index = k
	return b
}

func vote(i synod.Instance, b synod.Ballot, value string) *synod.Accept {
	return &synod.Accept{Instance: i, Ballot: b, Value: []byte(value)}
}

// Votes on keys are handed over page by page, with what they wait for; promises
// and votes on anything else are not.
func TestVotesTravel(t *testing.T) {
	a := synod.NewAcceptor(newMemory(), &guard{}, synod.Rules{})
	for _, m := range []env.Message{
		vote("key/a", at(0, 1), "1"),
		vote("recon/1", at(0, 1), "no"),
		&synod.Prepare{Instance: "key/b", Ballot: at(0, 4)},
		vote("key/c", at(0, 2), "2"),
		vote("key/d", at(0, 3), "3"),
	} {
		step(t, a, m)
	}
	var pages []string
	after := synod.Instance("")
	for more := true; more; {
		var votes []synod.Carried
		var pos env.Position
		var err error
		if votes, more, pos, err = a.Votes(after, 2); err != nil {
			t.Fatal(err)
		}
		page := ""
		for _, v := range votes {
			page += fmt.Sprintf("%s:%s@%d ", v.Instance, v.Vote.Value, v.Vote.Ballot.Round)
			after = v.Instance
		}
		pages = append(pages, fmt.Sprintf("%safter %d", page, pos))
	}
	if got, want := strings.Join(pages, "; "), "key/a:1@1 key/c:2@2 after 50; key/d:3@3 after 50"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A vote that comes from elsewhere is taken if its ballot is higher; the promise
// stays.
func TestMerge(t *testing.T) {
	m := newMemory()
	a := synod.NewAcceptor(m, &guard{index: 1}, synod.Rules{})
	for _, c := range []struct {
		carried synod.Carried
		want    string // what is there then
		pos     env.Position
	}{
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 3), Value: []byte("three")}}, "three", 10},
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 2), Value: []byte("two")}}, "three", 10},
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 3), Value: []byte("three")}}, "three", 10},
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 4), Value: []byte("four")}}, "four", 20},
	} {
		pos, err := a.Merge(c.carried)
		r, _, _ := a.Record("key/a")
		if err != nil || pos != c.pos || string(r.Accepted.Value) != c.want || !r.Promised.IsZero() {
			t.Errorf("%v: %+v at %d, %v, want %s at %d", c.carried.Vote.Ballot, r, pos, err, c.want, c.pos)
		}
	}
	// What was installed is what the first proposer finds, and what an attempt of
	// the configuration before can't undo.
	if got := text(step(t, a, &synod.Prepare{Instance: "key/a", Ballot: at(1, 1)}).Message); got != "promise 1, four@4" {
		t.Errorf("prepare: %s", got)
	}
	unguarded := synod.NewAcceptor(m, &guard{index: 0}, synod.Rules{})
	if got := text(step(t, unguarded, vote("key/b", at(0, 1), "b")).Message); got != "accepted 1" {
		t.Fatal(got)
	}
	if _, err := a.Merge(synod.Carried{Instance: "key/b", Vote: synod.Vote{Ballot: at(0, 5), Value: []byte("five")}}); err != nil {
		t.Fatal(err)
	}
	if got := text(step(t, unguarded, vote("key/b", at(0, 4), "late")).Message); got != "rejected 4, promised 5" {
		t.Errorf("a smaller ballot than that of an installed vote: %s", got)
	}

	for _, c := range []struct {
		carried synod.Carried
		reason  env.Reason
	}{
		{synod.Carried{Instance: "recon/1", Vote: synod.Vote{Ballot: at(0, 1), Value: []byte("v")}}, env.ReasonBadRequest},
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Value: []byte("v")}}, env.ReasonBadRequest},
		{synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 1)}}, env.ReasonBadRequest},
		{synod.Carried{Instance: synod.Instance("key/" + strings.Repeat("k", synod.MaxInstance)), Vote: synod.Vote{Ballot: at(0, 1), Value: []byte("v")}}, env.ReasonTooLarge},
	} {
		_, err := a.Merge(c.carried)
		if refused, ok := abd.Refusal(err).(*env.Refused); !ok || refused.Reason != c.reason {
			t.Errorf("%.20q: %v, want %v", c.carried.Instance, err, c.reason)
		}
	}
	m.records["key/a"] = []byte("damaged")
	if _, err := a.Merge(synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 9), Value: []byte("v")}}); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("merged over a damaged record: %v", err)
	}
}
