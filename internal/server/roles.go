package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/transport"
	"atoll/internal/wire"
	"atoll/join"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/synod"
)

// roles is a set of roles that a certificate can give its holder.
type roles uint8

// The sets that senders uses.
const (
	nobody roles = 0
	nodes  roles = 1 << iota
	clients
	admins

	anyone = nodes | clients | admins
)

// has reports whether a role is one of r. One that isn't known is not.
func (r roles) has(role identity.Role) bool {
	switch role {
	case identity.RoleNode:
		return r&nodes != 0
	case identity.RoleClient:
		return r&clients != 0
	case identity.RoleAdmin:
		return r&admins != 0
	}
	return false
}

// senders is the one table from a message to the roles that may send it to a
// node. What isn't in it nobody may send: a message that is new can do nothing
// before somebody has decided who it is for, and a test tells him to.
//
//	registers, and what the cluster is   anyone
//	answers, and what nodes do among     nodes: nobody else is ever asked
//	  themselves                         anything by a node
//	changes of the members               admins
func senders(m env.Message) roles {
	switch m.(type) {
	case *abd.Get, *abd.Put, *abd.Confirm, *abd.List:
		return anyone
	case *replica.Describe, *replica.StatusQuery, *reconfig.Inquire:
		return anyone
	case *env.Refused, *abd.GetAck, *abd.PutAck, *abd.Page, *abd.Moved, *replica.Description, *replica.Status,
		*repair.Summarize, *repair.Summary, *repair.Offer, *repair.Missing, *repair.Attest, *repair.Attested,
		*rambo.Gossip, *rambo.Gossiped, *rambo.Announced, *rambo.Fence, *rambo.Fenced, *rambo.Install, *rambo.Installed, *rambo.HowFar, *rambo.SoFar,
		*join.Join, *join.Joined, *join.Greet, *join.Greeted:
		return nodes
	case *synod.Promise, *synod.Accepted, *synod.Rejected, *synod.Closed,
		*reconfig.Readied, *reconfig.Unready, *reconfig.Pending:
		return nodes
	case *synod.Prepare, *synod.Accept, *reconfig.Ready, *rambo.Announce:
		return nodes | admins
	case *wire.Hello:
		return nobody // the transport takes the only one
	}
	return nobody
}

// deny refuses a message that its sender's role doesn't allow. It did nothing:
// it hasn't come as far as the inbox. To an answer, and to what nobody waits
// for, nothing is said.
func (s *Server) deny(session *transport.Session, m transport.Incoming) {
	s.metrics.denied.Inc()
	name, role := strings.TrimPrefix(fmt.Sprintf("%T", m.Message), "*"), session.Peer().Role
	if unlogged, ok := s.denials.allow(time.Now()); ok {
		s.log.Warn("a message was refused, its sender's role doesn't allow it", "message", name,
			"peer", session.Peer().String(), "remote", session.Remote(), "unlogged", unlogged)
	}
	if m.Conversation == 0 || replica.IsAnswer(m.Message) {
		return
	}
	hint := ""
	if senders(m.Message).has(identity.RoleAdmin) {
		hint = "; an admin may, with admin.json"
	}
	err := session.Queue(m.Conversation, &env.Refused{
		Reason: env.ReasonDenied,
		Text:   fmt.Sprintf("%v: a %s may not send %s%s", env.ReasonDenied, role, name, hint),
	})
	if err != nil {
		s.metrics.dropped.Inc() // who asked asks again
		return
	}
	session.Flush()
}

// denials keeps lines in the log about what was refused apart: who floods a
// node with what is refused must not fill its disk with a log.
type denials struct {
	last     atomic.Int64 // when there was a line, nanoseconds of the Unix epoch
	unlogged atomic.Int64 // since
}

// allow reports whether it is time for another line, and how many there might
// have been since the last.
func (d *denials) allow(now time.Time) (unlogged int64, ok bool) {
	last := d.last.Load()
	if now.UnixNano()-last < int64(denialLogEvery) || !d.last.CompareAndSwap(last, now.UnixNano()) {
		d.unlogged.Add(1)
		return 0, false
	}
	return d.unlogged.Swap(0), true
}
