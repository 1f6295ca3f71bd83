package repair_test

import (
	"fmt"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/repair"
	"atoll/sim"
	"atoll/synod"
	"atoll/tags"
)

// votes are a node's, as many and as large as they may be, on the first of the keys.
type votes int

// Votes implements repair.Votes.
func (n votes) Votes(after synod.Instance, limit int) (all []synod.Carried, more bool, at env.Position, err error) {
	for i := range int(n) {
		c := synod.Carried{Instance: synod.TravellingPrefix + synod.Instance(key(i, keyWithVote))}
		c.Vote.Ballot.Round, c.Vote.Value = 1, make([]byte, synod.MaxValue)
		if c.Instance > after && len(all) < limit {
			all = append(all, c)
		}
	}
	return all, len(all) == limit, 0, nil
}

// Merge implements repair.Votes.
func (votes) Merge(synod.Carried) (env.Position, error) { return 0, nil }

// keyWithVote is how long keys are that votes can be on.
const keyWithVote = 100

func key(i, length int) abd.Key { return abd.Key(fmt.Sprintf("%0*d", length, i)) }

// TestAnswersFitIntoFrames: whatever the sizes of keys, values and votes, each answer can be
// sent, none is empty, and together they hold all records.
func TestAnswersFitIntoFrames(t *testing.T) {
	const largest = abd.LargestMaxValue
	tag := tags.Tag{Seq: 1, PID: tags.NewPID(1<<63, 2, 3)}
	for name, c := range map[string]struct {
		sizes []int
		votes votes
	}{
		"the largest behind small ones":           {append(make([]int, 1000), largest), 0},
		"the largest behind one that is no small": {[]int{repair.MaxEntryBytes - 2*abd.MaxKey - 1, largest, 0}, 0},
		"only large ones":                         {[]int{largest, largest, 1, largest, 1}, 0},
		"many that have no value":                 {make([]int, 3*repair.LargestPage/2), 0},
		"the largest, and votes":                  {[]int{1, 1, 1, largest - 8*abd.MaxKey, 1}, 3},
		"only votes of the largest":               {make([]int, 100), 100},
	} {
		disk, length := sim.NewDisk(), abd.MaxKey
		if c.votes > 0 {
			length = keyWithVote
		}
		for i, size := range c.sizes {
			if _, err := disk.Store(key(i, length), abd.Record{Tag: tag, Value: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := repair.NewReplica(repair.Config{Self: "a", MaxValue: largest, Votes: c.votes}, disk)
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range []func(after abd.Key) env.Message{
			func(after abd.Key) env.Message { return &repair.Offer{Range: repair.Range{After: after}} },
			func(after abd.Key) env.Message {
				return &repair.Offer{Range: repair.Range{After: after}, Terms: repair.Terms{Knows: 1}, Limit: repair.LargestPage}
			},
			func(after abd.Key) env.Message { return &repair.Attest{After: after, Life: 1} },
		} {
			got, after := 0, abd.Key("")
			for more := true; more; {
				out, err := r.Step(env.Address{Node: "b"}, ask(after), nil)
				if err != nil {
					t.Fatal(err)
				}
				var records repair.Records
				switch m := out[0].Message.(type) {
				case *repair.Missing:
					records = m.Records
				case *repair.Attested:
					records = m.Records
				}
				if _, err := new(wire.Encoder).AppendFrame(nil, 1, out[0].Message); err != nil {
					t.Fatalf("%s: %T of %d records behind %d: %v", name, out[0].Message, len(records.Entries), got, err)
				}
				got += len(records.Entries)
				if more = records.More; more && records.Last <= after {
					t.Fatalf("%s: %T behind %d records ends where it begins", name, out[0].Message, got)
				}
				after = records.Last
			}
			if got != len(c.sizes) {
				t.Errorf("%s: answers to %T have %d records, want %d", name, ask(""), got, len(c.sizes))
			}
		}
	}
}
