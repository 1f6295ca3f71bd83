package replica

import (
	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/synod"
)

// IsAnswer reports whether m is an answer: what comes in a conversation that
// the receiver began. All other messages are requests, or told without being
// asked, and a node steps them.
//
// Two nodes that ask each other do so over one connection, on which both kinds
// come in either direction, each with a number that its asker chose. So whoever
// receives must know by the message whose conversation is meant: an answer goes
// to the caller that waits for it, and all else to Step. No message is both.
func IsAnswer(m env.Message) bool {
	switch m.(type) {
	case *env.Refused, *abd.GetAck, *abd.PutAck, *abd.Page, *abd.Moved,
		*repair.Summary, *repair.Missing, *repair.Attested,
		*synod.Promise, *synod.Accepted, *synod.Rejected, *synod.Closed,
		*reconfig.Readied, *reconfig.Unready, *reconfig.Pending,
		*rambo.Gossiped, *rambo.Announced, *rambo.Fenced, *rambo.Installed, *rambo.SoFar,
		*join.Joined, *join.Greeted, *Description, *Status:
		return true
	}
	return false
}
