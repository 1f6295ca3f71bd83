package client

import (
	"fmt"
	"strings"

	"atoll/quorum"
)

// Want is a configuration whose quorums operations need, and that has none of some
// kind now. While there is one, operations wait.
type Want struct {
	Configuration *quorum.Configuration
	// Reads and Writes: it has no read quorum, and no write quorum.
	Reads, Writes bool
	// Silent are its members that don't answer, and Troubled those that take no
	// writes, in the order of the members that it was made of.
	Silent, Troubled []MemberStatus
}

// Wants are the configurations that lack a quorum, the oldest first; none if
// operations can go on.
func (s Status) Wants() []Want { return wants(s.Active, s.Members) }

// Wants are the configurations that lack a quorum, the oldest first; none if
// operations, and the step to the next configuration, can go on.
func (p Progress) Wants() []Want { return wants(p.Active, p.Members) }

func wants(active quorum.Configurations, members []MemberStatus) (all []Want) {
	for _, c := range active {
		var up, ready quorum.Set
		w := Want{Configuration: c}
		for _, m := range members {
			i, named := c.Place(m.ID)
			switch {
			case !named:
			case m.Status == nil:
				w.Silent = append(w.Silent, m)
			case m.Status.Trouble != "":
				w.Troubled = append(w.Troubled, m)
				up = up.Add(i)
			default:
				up, ready = up.Add(i), ready.Add(i)
			}
		}
		w.Reads, w.Writes = !c.IsRead(up), !c.IsWrite(ready)
		if w.Reads || w.Writes {
			all = append(all, w)
		}
	}
	return all
}

// String says what is waited for: "configuration 1 has no quorum for reads and
// writes; silent: a, b; no writes: c".
func (w Want) String() string {
	kind := "reads and writes"
	switch {
	case !w.Writes:
		kind = "reads"
	case !w.Reads:
		kind = "writes"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration %d has no quorum for %s", w.Configuration.Index(), kind)
	for _, of := range []struct {
		what    string
		members []MemberStatus
	}{{"silent", w.Silent}, {"no writes", w.Troubled}} {
		for i, m := range of.members {
			if i == 0 {
				b.WriteString("; " + of.what + ": " + m.Label())
			} else {
				b.WriteString(", " + m.Label())
			}
		}
	}
	return b.String()
}
