package abd

// Rules breaks rules of the protocol, one a field; the zero value breaks
// none. Only tests set them: each is a mutant that some test must kill, or
// the rule isn't tested.
type Rules struct {
	// NoWriteBack: a read ends after its get phase whatever it found.
	NoWriteBack bool
	// FastOnReadQuorum: the one-round read is judged on a read quorum of
	// holders instead of a write quorum.
	FastOnReadQuorum bool
	// FastOnAsked: it is judged on those that were asked first.
	FastOnAsked bool
	// FastOnNewest: it is judged on the newest configuration alone.
	FastOnNewest bool
	// IgnoreNews: a phase needs the quorums that it knew of when it began.
	IgnoreNews bool
	// FollowOthers: a phase goes by what other operations have learned of
	// configurations, too.
	FollowOthers bool
	// WakeByMap: a phase that is woken goes by what its process has learned of
	// configurations, and doesn't ask those who say it with all that goes with it.
	WakeByMap bool
	// SleepOn: a phase that is woken goes on waiting.
	SleepOn bool
	// MovedTellsNothing: what a node that is out says of lives isn't heard.
	MovedTellsNothing bool
	// DropInTheMiddle: a get phase goes on without a configuration that is out
	// meanwhile.
	DropInTheMiddle bool
	// CountEarly: a get phase that begins anew where it stands counts answers of
	// whoever gives them.
	CountEarly bool
	// ForgetWhoAnswered: when it does, it forgets who has answered before, and doesn't
	// ask them again when they are back.
	ForgetWhoAnswered bool
	// ServeTheOutdated: a replica answers who can't hear of configurations.
	ServeTheOutdated bool
	// KeepSpares: a refusal, or an answer to something else, brings in nobody.
	KeepSpares bool
	// ValueFromAnyone: a value that was left out is taken from whoever sends
	// one.
	ValueFromAnyone bool
	// TrustSecondAnswer: when the value that was left out comes under a larger
	// tag, that is taken to be as settled as the one before.
	TrustSecondAnswer bool
	// WaitForHolder: a value that was left out is waited for, whoever else
	// answers.
	WaitForHolder bool
	// NewTagOnRetry: an operation that is tried again chooses another tag.
	NewTagOnRetry bool
	// ConfirmEarly: a tag is called confirmed before its put phase ended.
	ConfirmEarly bool
	// ConfirmAnyTag: a replica takes a confirmation for whatever it holds.
	ConfirmAnyTag bool
	// PutOneShort: a put phase ends with one member less than a quorum.
	PutOneShort bool
	// StoreAnything: a replica stores smaller tags over larger ones.
	StoreAnything bool
	// AckDuplicateAtOnce: the ack of a put that wrote nothing doesn't wait for
	// the record that made it a duplicate.
	AckDuplicateAtOnce bool
	// RevealUnsynced: an answer to a get doesn't wait for the record it shows.
	RevealUnsynced bool
	// TrustPages: a list takes each page's largest tags as they are.
	TrustPages bool
	// MergeWholePages: a list goes on behind the largest end of its pages
	// instead of the smallest.
	MergeWholePages bool
	// WaitForAll: a phase ends when every member has answered.
	WaitForAll bool
	// TagFromClock: a write takes its tag from its caller's clock instead of
	// from a get phase.
	TagFromClock bool
	// TimeoutIsFailure: what ran out of time is reported as not applied.
	TimeoutIsFailure bool
	// TrustRefusals: what every member refused is reported as not applied,
	// whatever copies are still under way.
	TrustRefusals bool
	// TrustWhenWoken: it is, though a phase that was woken has asked others, too.
	TrustWhenWoken bool
	// EraseTombstones: a replica forgets deleted keys.
	EraseTombstones bool
	// CountForgotten: an acknowledgement counts though its node has taken it
	// back since.
	CountForgotten bool
	// DamagedIsAbsent: a replica takes a damaged record for one that was never
	// written.
	DamagedIsAbsent bool
}
