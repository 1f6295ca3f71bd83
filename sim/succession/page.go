package succession

import (
	"atoll/env"
	"atoll/repair"
)

// Asked names a conversation of a process.
type Asked struct {
	By           int
	Conversation uint64
}

// Asks is told of a request.
func (w *Watch) Asks(in Asked, m env.Message) {
	var terms repair.Terms
	switch m := m.(type) {
	case *repair.Offer:
		terms = m.Terms
	case *repair.Summarize:
		terms = m.Terms
	}
	if terms.Knows > 0 {
		w.knows[in] = terms.Knows
	} else {
		delete(w.knows, in)
	}
}

// Answers is told of a node's answer. A page for a configuration comes from who
// durably knows of it (R4.3): whoever puts to it later is told of that.
func (w *Watch) Answers(in Asked, node int, m env.Message) {
	switch m.(type) {
	case *repair.Missing, *repair.Summary:
	default:
		return
	}
	known := w.durably[node]
	if k, ok := w.knows[in]; ok && known.Horizon().Next <= k {
		w.broken("fence-before-merge", None, "%s gives a page for configuration %d, and durably knows %v", w.cfg.Nodes[node], k, known)
	}
}
