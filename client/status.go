package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
)

// Status is what the members say of themselves and of the cluster.
type Status struct {
	Cluster       quorum.ClusterID
	Configuration *quorum.Configuration
	// Members are all members, sorted by name.
	Members []MemberStatus
}

// MemberStatus is one member.
type MemberStatus struct {
	quorum.Member
	// Status is what the member says of itself; nil if it is silent.
	Status *replica.Status
	// Silence says why there is no Status.
	Silence string
}

// statusPatience is how long Status waits for members that don't answer.
const statusPatience = 1500 * time.Millisecond

// Status asks every member how it is. It waits for all of them until ctx ends
// and at most 1.5 s: a member that hasn't answered by then is reported as
// silent, and is no error.
func (c *Client) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	e, err := c.scope(ctx)
	if err != nil {
		return Status{}, err
	}
	defer e.end()
	d := c.cluster.Load()
	said := make(map[quorum.NodeID]*replica.Status)
	silence := make(map[quorum.NodeID]string)
	known := c.known.Load()
	ids := known.Active().Members()
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
	s := Status{Cluster: d.Cluster, Configuration: known.Newest()}
	for _, id := range ids {
		m := c.member(id)
		s.Members = append(s.Members, MemberStatus{Member: m, Status: said[m.ID], Silence: silence[m.ID]})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return strings.Compare(a.Name+string(a.ID), b.Name+string(b.ID)) })
	return s, nil
}
