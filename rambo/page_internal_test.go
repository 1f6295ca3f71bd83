package rambo

import (
	"testing"

	"atoll/synod"
)

// TestVotesOfAPage: of each instance the vote of the highest ballot stays, whoever gave it
// first, and they are in order.
func TestVotesOfAPage(t *testing.T) {
	vote := func(instance synod.Instance, round synod.Round) (c synod.Carried) {
		c.Instance, c.Vote.Ballot.Round = instance, round
		return c
	}
	var votes []synod.Carried
	for _, c := range []synod.Carried{vote("b", 2), vote("c", 1), vote("a", 3), vote("b", 1), vote("c", 4), vote("a", 3)} {
		votes = withVote(votes, c)
	}
	want := []synod.Carried{vote("a", 3), vote("b", 2), vote("c", 4)}
	if len(votes) != len(want) {
		t.Fatalf("%d votes, want %d", len(votes), len(want))
	}
	for i := range want {
		if got := votes[i]; got.Instance != want[i].Instance || got.Vote.Ballot != want[i].Vote.Ballot {
			t.Errorf("vote %d is of %s in round %d, want %s in %d", i, got.Instance, got.Vote.Ballot.Round, want[i].Instance, want[i].Vote.Ballot.Round)
		}
	}
}
