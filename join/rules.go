package join

// Rules breaks rules; the zero value keeps them. Only tests set it.
type Rules struct {
	// AnyInstance: a member notes whatever instance comes (J1).
	AnyInstance bool
	// AnswerUnsaved: it answers before that is durable (J1).
	AnswerUnsaved bool
	// OneIsEnough: a node is in when one member has noted it (J2).
	OneIsEnough bool
	// AnyPosition: what a node has forgotten isn't noticed (J3).
	AnyPosition bool
}
