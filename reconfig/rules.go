package reconfig

// Rules breaks rules of reconfiguration, one a field; see abd.Rules.
type Rules struct {
	// TolerateNothing: a target that survives no death is proposed like any other.
	TolerateNothing bool
	// ProposeUnready: a target is proposed before its members are asked.
	ProposeUnready bool
	// NewUnready: it is proposed when a read and a write quorum of it are ready,
	// whoever they are.
	NewUnready bool
	// QuorumUnready: it is proposed when its new members are ready.
	QuorumUnready bool
	// ReadyUnsaved: a node says that it is ready without having noted it.
	ReadyUnsaved bool
	// ReadyUnsynced: it says so before the note is durable.
	ReadyUnsynced bool
	// ReadyForAny: a node says that it is ready for whatever index.
	ReadyForAny bool
	// VoteOnAny: an acceptor votes on an index under ballots of whatever
	// configuration.
	VoteOnAny bool
	// AcceptAnything: it accepts what is no configuration.
	AcceptAnything bool
	// AbortBlindly: what an abort has decided is taken to be what it proposed.
	AbortBlindly bool
	// FinishAtOnce: a node finishes what it has just accepted.
	FinishAtOnce bool
}
