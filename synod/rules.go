package synod

// Rules breaks rules of the protocol, one a field; see abd.Rules.
type Rules struct {
	// RevealUnsynced: answers don't wait until the record that they show is
	// durable.
	RevealUnsynced bool
	// PromiseUnsaved: a promise isn't stored.
	PromiseUnsaved bool
	// AcceptBelowPromise: a value is accepted under a smaller ballot than was
	// promised.
	AcceptBelowPromise bool
	// PromiseBackwards: a promise is given to a smaller ballot than was promised.
	PromiseBackwards bool
	// DamagedIsAbsent: a record that can't be read counts as one that was never
	// written.
	DamagedIsAbsent bool
	// VoteWhenClosed: an acceptor votes whatever its guard says.
	VoteWhenClosed bool
	// MergeOverwrites: a vote that comes from elsewhere replaces a larger one.
	MergeOverwrites bool
	// EmptyVotes: a node whose vote can't be read hands over the others.
	EmptyVotes bool

	// IgnoreAccepted: a proposer proposes its own value whatever was accepted.
	IgnoreAccepted bool
	// AnyAccepted: it proposes the first accepted value that it hears of, not
	// that of the highest ballot.
	AnyAccepted bool
	// CountAnyBallot: it counts answers to other ballots than its own.
	CountAnyBallot bool
	// PrepareOnWrite: it is content with the promises of a write quorum.
	PrepareOnWrite bool
	// AcceptOnRead: it calls chosen what a read quorum has accepted.
	AcceptOnRead bool
	// ReuseBallots: ballots are told apart by their rounds alone.
	ReuseBallots bool
	// RejectedIsFailure: what was overtaken after an accept has left is reported
	// as certainly not chosen.
	RejectedIsFailure bool
}
