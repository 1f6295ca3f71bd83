package reconfig

import (
	"fmt"

	"atoll/quorum"
)

// Proposal is what the members and their quorums are to be.
type Proposal struct {
	Members []quorum.NodeID
	System  quorum.System
	// Force has a target proposed that tolerates no death.
	Force bool
}

// Target returns the configuration that follows present if p is decided. It
// refuses what quorum.NewConfiguration refuses, and with a *FragileError, unless
// it is forced, a target some of whose members may not die, unless there are no
// more of those than now. So the one member of a cluster can be replaced by
// another; to grow from one member to two must be forced, because then either's
// death stops the cluster; and to three it needn't.
func (p Proposal) Target(present *quorum.Configuration) (*quorum.Configuration, error) {
	return p.target(present, Rules{})
}

func (p Proposal) target(present *quorum.Configuration, rules Rules) (*quorum.Configuration, error) {
	target, err := quorum.NewConfiguration(present.Index()+1, p.Members, p.System)
	if err != nil {
		return nil, err
	}
	t := target.Tolerance()
	fragile := t.Reads.Any == 0 || t.Writes.Any == 0
	if fragile && !p.Force && vital(target) > vital(present) && !rules.TolerateNothing {
		return nil, &FragileError{Target: target, Tolerance: t, Present: present.Tolerance()}
	}
	return target, nil
}

// vital counts the members whose death alone leaves no read or no write quorum.
func vital(c *quorum.Configuration) int {
	n := 0
	for _, m := range c.Members() {
		var dead quorum.Tally
		dead.Begin(quorum.Configurations{c})
		dead.Add(m)
		if !dead.LeavesRead() || !dead.LeavesWrite() {
			n++
		}
	}
	return n
}

// again returns the configuration that has the members and the quorums of c,
// under the next index.
func again(c *quorum.Configuration) *quorum.Configuration {
	next, err := quorum.NewConfiguration(c.Index()+1, c.Members(), c.System())
	if err != nil {
		panic(fmt.Sprintf("reconfig: %v, and %v is one", err, c)) // its index changes nothing
	}
	return next
}
