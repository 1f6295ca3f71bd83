package env

import (
	"fmt"
	"strings"

	"atoll/quorum"
)

// Unfinished is returned by Ask when the scope ended before the conversation
// did. It wraps ErrCanceled, ErrDeadline or ErrStopped.
type Unfinished struct {
	Cause   error
	Targets []Target
}

// Target is what became of a request to one node.
type Target struct {
	Node quorum.NodeID
	// Sent reports that the request was handed to the transport at least
	// once, so that the node may have acted on it.
	Sent bool
	// Answered reports that at least one answer came.
	Answered bool
	// Err is what the transport last said about the node, nil if nothing.
	Err error
}

// Error names each node that didn't answer and what is known about it.
func (u *Unfinished) Error() string {
	var b strings.Builder
	b.WriteString(u.Cause.Error())
	for _, t := range u.Targets {
		if !t.Answered {
			fmt.Fprintf(&b, "; %s: %s", t.Node, t.Silence())
		}
	}
	return b.String()
}

// Unwrap returns the cause.
func (u *Unfinished) Unwrap() error { return u.Cause }

// Silence says why a node hasn't answered, as far as is known.
func (t Target) Silence() string {
	switch {
	case t.Err != nil:
		return t.Err.Error()
	case t.Sent:
		return "no answer"
	default:
		return "not reached"
	}
}

// Reason says why a node refused a request.
type Reason uint8

// The reasons of a refusal. Their numbers are part of the wire protocol.
const (
	// ReasonUnknown is a reason that this build doesn't know.
	ReasonUnknown Reason = iota
	// ReasonBadRequest: the request breaks a limit or makes no sense.
	ReasonBadRequest
	// ReasonTooLarge: a key or value exceeds the node's limit.
	ReasonTooLarge
	// ReasonDamaged: the stored record is damaged; the node abstains.
	ReasonDamaged
	// ReasonFull: the node can't store more.
	ReasonFull
	// ReasonNotMember: the node is in none of the configurations meant.
	ReasonNotMember
	// ReasonDenied: the sender's role doesn't allow it.
	ReasonDenied
	// ReasonOutdated: the sender's version can't do what is needed by now.
	ReasonOutdated
	// ReasonBehind: the node doesn't know yet what it would have to.
	ReasonBehind
)

var reasonText = [...]string{
	ReasonUnknown:    "refused",
	ReasonBadRequest: "bad request",
	ReasonTooLarge:   "too large",
	ReasonDamaged:    "damaged record",
	ReasonFull:       "no space",
	ReasonNotMember:  "not a member",
	ReasonDenied:     "not authorized",
	ReasonOutdated:   "too old a version",
	ReasonBehind:     "not informed yet",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonText) {
		return reasonText[r]
	}
	return reasonText[ReasonUnknown]
}

// Refused is the answer of a node that won't do what was asked. It has done
// nothing, and counts in no quorum.
type Refused struct {
	Reason Reason
	// Text names what was refused and why, for a person.
	Text string
}

// Message marks Refused as a message.
func (*Refused) Message() {}

// Error makes a refusal usable as an error.
func (r *Refused) Error() string {
	switch {
	case r.Text == "":
		return r.Reason.String()
	case strings.Contains(r.Text, r.Reason.String()):
		return r.Text // it ends in the error that the reason stands for
	}
	return r.Reason.String() + ": " + r.Text
}
