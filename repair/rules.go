package repair

// Rules breaks rules of healing, one a field; see abd.Rules.
type Rules struct {
	// HealInSameLife (H2): a node heals without beginning another life.
	HealInSameLife bool
	// RenewOnce (H2): a node begins another life for the first damage only.
	RenewOnce bool
	// AttestUnsaved (H4): a node that attests doesn't note the other's life.
	AttestUnsaved bool
	// HealFromAny (H4): a node heals from the first other one that answers.
	HealFromAny bool
	// HealFromSelf (H4): a node counts itself to the quorum that it heals from.
	HealFromSelf bool
	// TrustTags (H1): a node goes on by the tags of records whose values are
	// known to be damaged.
	TrustTags bool
	// HealOneKey: a node heals the damaged record alone, and not the gap.
	HealOneKey bool
	// MergeAnything: a node takes smaller tags over larger ones.
	MergeAnything bool
	// SkipTheDamaged: an answer that is to leave no record out leaves out those
	// that are damaged.
	SkipTheDamaged bool
	// TrustSketch: who is asked by a sketch takes all that it has for known.
	TrustSketch bool
}
