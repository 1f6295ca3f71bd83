package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"atoll/quorum"
)

// complaint is why another node can't dial this one.
type complaint struct {
	from quorum.NodeID
	text string
}

// complain takes in what a node has said last about dialing this one; "" if it
// has nothing to complain of. Those that nobody speaks of any more can't take back
// what they said.
func (r *Replica) complain(from quorum.NodeID, text string) {
	r.complaints = slices.DeleteFunc(r.complaints, func(c complaint) bool { return c.from == from || r.isForgotten(entry{node: c.from}) })
	if text != "" && len(r.complaints) < MaxNodes {
		r.complaints = append(r.complaints, complaint{from, text})
	}
	slices.SortFunc(r.complaints, func(a, b complaint) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.from, b.from)) })
	r.unreached = r.sum()
}

// Unreached says in one line which nodes can't dial this one where it says that it
// is, why, and what to do; "" if none has said so.
func (r *Replica) Unreached() string { return r.unreached }

// sum puts the complaints into one line, those that say the same together.
func (r *Replica) sum() string {
	if len(r.complaints) == 0 {
		return ""
	}
	var names, parts []string
	for i, c := range r.complaints {
		names = append(names, r.label(c.from))
		if i+1 < len(r.complaints) && r.complaints[i+1].text == c.text {
			continue
		}
		parts = append(parts, strings.Join(names, ", ")+": "+c.text)
		names = nil
	}
	return fmt.Sprintf("other nodes can't dial this one where it says that it is; start it with the right --advertise HOST:PORT, or let UDP through (%s)", strings.Join(parts, "; "))
}

// label is what people call a node.
func (r *Replica) label(id quorum.NodeID) string {
	if news, _ := r.directory.News(); news != nil {
		for _, m := range news.Members {
			if m.ID == id && m.Name != "" {
				return m.Name
			}
		}
	}
	return string(id)
}
