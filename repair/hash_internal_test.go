package repair

import (
	"testing"

	"atoll/abd"
	"atoll/quorum"
	"atoll/synod"
	"atoll/tags"
)

// TestAHashSeesEachPart: lists that differ in one part of one record, in where a key ends, in
// their order or in a vote have other hashes.
func TestAHashSeesEachPart(t *testing.T) {
	type record struct {
		key abd.Key
		tag tags.Tag
	}
	pid := tags.NewPID(1, 2, 3)
	of := func(instance synod.Instance, index, round int, id tags.PID) synod.Carried {
		return synod.Carried{Instance: instance, Vote: synod.Vote{Ballot: synod.Ballot{Index: quorum.ConfigIndex(index), Round: synod.Round(round), ID: id}}}
	}
	seen := make(map[hash]string)
	for name, list := range map[string]struct {
		records []record
		votes   []synod.Carried
	}{
		"nothing":           {},
		"one":               {records: []record{{"key", tags.Tag{Seq: 1, PID: pid}}}},
		"another key":       {records: []record{{"kez", tags.Tag{Seq: 1, PID: pid}}}},
		"a longer key":      {records: []record{{"key\x00", tags.Tag{Seq: 1, PID: pid}}}},
		"a long key":        {records: []record{{"a key of more than a word", tags.Tag{Seq: 1, PID: pid}}}},
		"another long key":  {records: []record{{"b key of more than a word", tags.Tag{Seq: 1, PID: pid}}}},
		"later":             {records: []record{{"key", tags.Tag{Seq: 2, PID: pid}}}},
		"of another":        {records: []record{{"key", tags.Tag{Seq: 1, PID: tags.NewPID(9, 2, 3)}}}},
		"of another life":   {records: []record{{"key", tags.Tag{Seq: 1, PID: tags.NewPID(1, 9, 3)}}}},
		"its next":          {records: []record{{"key", tags.Tag{Seq: 1, PID: tags.NewPID(1, 2, 4)}}}},
		"updated":           {records: []record{{"key", tags.Tag{Seq: 1, PID: pid, RMW: 1}}}},
		"two":               {records: []record{{"a", tags.Tag{Seq: 1, PID: pid}}, {"b", tags.Tag{Seq: 2, PID: pid}}}},
		"two, tags changed": {records: []record{{"a", tags.Tag{Seq: 2, PID: pid}}, {"b", tags.Tag{Seq: 1, PID: pid}}}},
		"a vote":            {votes: []synod.Carried{of("key/a", 1, 1, pid)}},
		"on another":        {votes: []synod.Carried{of("key/b", 1, 1, pid)}},
		"of another index":  {votes: []synod.Carried{of("key/a", 2, 1, pid)}},
		"of another round":  {votes: []synod.Carried{of("key/a", 1, 2, pid)}},
		"by another":        {votes: []synod.Carried{of("key/a", 1, 1, tags.NewPID(1, 2, 4))}},
	} {
		h := newHash()
		for _, r := range list.records {
			h.add(r.key, r.tag)
		}
		for i := range list.votes {
			h.vote(&list.votes[i])
		}
		if other, twice := seen[h]; twice {
			t.Errorf("%q and %q have the same hash", name, other)
		}
		seen[h] = name
	}
}
