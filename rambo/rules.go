package rambo

// Rules breaks rules of the protocol, one a field; see abd.Rules.
type Rules struct {
	// FenceUnsaved: a member says that it is fenced before that is durable.
	FenceUnsaved bool
	// ForgetPosition: a node whose disk takes no more forgets that what it knows isn't
	// durable yet.
	ForgetPosition bool
	// FenceTooEarly: a configuration is fenced, and the next one installed,
	// before it is installed itself.
	FenceTooEarly bool
	// FenceReadQuorum: a read quorum is fenced, and no write quorum.
	FenceReadQuorum bool
	// ServeUnfenced: a page is given by who doesn't know for whom.
	ServeUnfenced bool
	// PageUnsaved: a page is given by who could forget for whom.
	PageUnsaved bool
	// LeaveBehind: who refuses a page for want of knowledge isn't told and asked
	// again.
	LeaveBehind bool
	// MergeFromOne: a member has merged when one other has given its pages.
	MergeFromOne bool
	// MergeWriteQuorum: it has when a write quorum has.
	MergeWriteQuorum bool
	// CountLocated: the member that has said where a page ends counts for it,
	// whatever it has.
	CountLocated bool
	// CountByKeys: it counts if it has as many keys.
	CountByKeys bool
	// LeaveGaps: a page that was fetched early is taken, though the one before it
	// has become shorter.
	LeaveGaps bool
	// StoreUnfetched: a page of which too many refuse their part is stored as it is.
	StoreUnfetched bool
	// SkipUnstored: a page that couldn't be stored counts as merged.
	SkipUnstored bool
	// StoreBehind: what was fetched behind such a page, or behind one that too many
	// refuse, is stored all the same.
	StoreBehind bool
	// DropVotes: a page's votes are left out.
	DropVotes bool
	// MergedUnsaved: a member says that it has merged before that is durable.
	MergedUnsaved bool
	// InstallTooFew: a configuration is installed when one member has merged.
	InstallTooFew bool
	// StayersHaveAll: members that stay are taken for such that have merged.
	StayersHaveAll bool
	// DropLives: lives of nodes that no active configuration names are forgotten.
	DropLives bool
	// ForgetLives: who retires a configuration says nothing of lives.
	ForgetLives bool
	// AttestForTheOutdated: a node attests a life to who counts fewer
	// configurations.
	AttestForTheOutdated bool
}
