package synod

import "atoll/quorum"

// Told is a part of every answer: what the node durably knows of the
// configurations, so that a proposer learns of a decision that it was looking
// for elsewhere.
type Told struct {
	Horizon quorum.Horizon
	// News says it in full to who knows less, and is nil for who doesn't.
	News *quorum.News
}

// Prepare asks an acceptor to promise to take nothing below a ballot.
type Prepare struct {
	Instance Instance
	Ballot   Ballot
	Horizon  quorum.Horizon // of the asker
}

// Promise answers Prepare: the promise, and what was accepted before it.
type Promise struct {
	Ballot   Ballot // of the Prepare
	Accepted Vote
	Told
}

// Accept asks an acceptor to accept a value.
type Accept struct {
	Instance Instance
	Ballot   Ballot
	Value    []byte
	Horizon  quorum.Horizon // of the asker
}

// Accepted answers Accept: the acceptor has accepted the value.
type Accepted struct {
	Ballot Ballot // of the Accept
	Told
}

// Rejected answers Prepare and Accept: a larger ballot was promised. Nothing was
// done.
type Rejected struct {
	Ballot   Ballot // of the request
	Promised Ballot
	Told
}

// Closed answers Prepare and Accept where the node doesn't vote on that instance
// under ballots of that configuration: the next one is known, or that one isn't
// installed here, or the node is no member of it. What it was told says which.
type Closed struct{ Told }

// Wakes implements env.Wakeable.
func (*Prepare) Wakes() {}

// Wakes implements env.Wakeable.
func (*Accept) Wakes() {}

// Message marks the type as a message.
func (*Prepare) Message() {}

// Message marks the type as a message.
func (*Promise) Message() {}

// Message marks the type as a message.
func (*Accept) Message() {}

// Message marks the type as a message.
func (*Accepted) Message() {}

// Message marks the type as a message.
func (*Rejected) Message() {}

// Message marks the type as a message.
func (*Closed) Message() {}
