package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
)

// Status is what the nodes say of themselves and of the cluster.
type Status struct {
	Cluster quorum.ClusterID
	// Configuration is the newest that any of them knows.
	Configuration *quorum.Configuration
	// Active are all configurations whose quorums operations need: more than one
	// while the step from one to the next is under way.
	Active quorum.Configurations
	// Members are the members of those, sorted by name, and Standby all other
	// nodes that answer, or of which the cluster speaks: those that have joined and
	// that no configuration names yet, and those that were removed.
	Members, Standby []MemberStatus
	// Disagreements say, a line each, where what a node says of the cluster isn't
	// what others know.
	Disagreements []string
}

// MemberStatus is one node.
type MemberStatus struct {
	quorum.Member
	// Status is what the node says of itself; nil if it is silent.
	Status *replica.Status
	// Silence says why there is no Status.
	Silence string
}

// Label is what people call the node.
func (m MemberStatus) Label() string {
	if m.Name == "" {
		return string(m.ID)
	}
	return m.Name
}

// Behind is by how many configurations the node lags behind the newest that is
// known; 0 for one that is silent.
func (m MemberStatus) Behind(newest quorum.ConfigIndex) uint64 {
	if m.Status == nil || m.Status.Horizon.Next == 0 || m.Status.Horizon.Next > newest {
		return 0
	}
	return uint64(newest + 1 - m.Status.Horizon.Next)
}

// statusPatience is how long Status waits for nodes that don't answer.
const statusPatience = 1500 * time.Millisecond

// Status asks every node that is known how it is, and what it knows. It waits for
// all of them until ctx ends and at most 1.5 s: a node that hasn't answered by then
// is reported as silent, and is no error.
func (c *Client) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	e, err := c.scope(ctx)
	if err != nil {
		return Status{}, err
	}
	defer e.end()
	surveying, enough := context.WithTimeout(ctx, statusPatience/3)
	c.survey(surveying) // who has joined, and who is elsewhere by now
	enough()
	said := make(map[quorum.NodeID]*replica.Status)
	silence := make(map[quorum.NodeID]string)
	ids := c.nodes()
	err = e.Ask(ids, &replica.StatusQuery{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *replica.Status:
			said[from] = answer
		case *env.Refused:
			silence[from] = answer.Error()
		}
		return len(said)+len(silence) == len(ids)
	})
	if unfinished, ok := errors.AsType[*env.Unfinished](err); ok {
		if !errors.Is(err, env.ErrDeadline) {
			return Status{}, cause(unfinished.Cause)
		}
		for _, t := range unfinished.Targets {
			if !t.Answered {
				silence[t.Node] = withoutNode(t.Silence(), t.Node)
			}
		}
	}
	s := Status{Cluster: c.cluster.Load().Cluster}
	known := c.known.Load()
	s.Active, s.Configuration = known.Active(), known.Newest()
	for _, id := range ids {
		m := MemberStatus{Member: c.member(id), Status: said[id], Silence: silence[id]}
		switch {
		case known.Has(id):
			s.Members = append(s.Members, m)
			continue
		case m.Status != nil || c.speaksOf(id):
			s.Standby = append(s.Standby, m)
		}
		if !c.runtime.Asks(id) {
			c.transport.Forget(id) // it was asked this once
		}
	}
	byLabel := func(a, b MemberStatus) int { return strings.Compare(a.Name+string(a.ID), b.Name+string(b.ID)) }
	slices.SortFunc(s.Members, byLabel)
	slices.SortFunc(s.Standby, byLabel)
	s.Disagreements = s.disagreements(known.Horizon())
	return s, nil
}

// disagreements compares what each node says with what is known of the cluster.
func (s *Status) disagreements(known quorum.Horizon) (all []string) {
	say := func(m MemberStatus, format string, args ...any) {
		all = append(all, m.Label()+" "+fmt.Sprintf(format, args...))
	}
	for _, m := range slices.Concat(s.Members, s.Standby) {
		if m.Status == nil || m.Status.Horizon.Next == 0 {
			continue // silent, or of a version that doesn't say
		}
		switch h := m.Status.Horizon; {
		case known.Behind(h):
			say(m, "knows a configuration that this client hasn't heard of yet, %d", h.Next-1)
		case h.Next < known.Next:
			say(m, "doesn't know configuration %d yet, only %d", known.Next-1, h.Next-1)
		case h.Installed < known.Installed:
			say(m, "doesn't know yet that configuration %d is installed", known.Installed)
		}
		named := s.named(m.ID)
		if role := m.Status.Role; role != replica.RoleUnknown && (role == replica.RoleMember) != named {
			say(m, "takes itself for %v, and the configurations say otherwise", role)
		}
	}
	return all
}

// named reports whether an active configuration names a node.
func (s *Status) named(id quorum.NodeID) bool {
	for _, c := range s.Active {
		if _, ok := c.Place(id); ok {
			return true
		}
	}
	return false
}
