package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"atoll/join"
	"atoll/quorum"
)

// probes finds out whether other nodes can be dialed where they say that they are.
// A node that has dialed all others, and is served over those connections, notices
// nothing of it when nobody can dial it.
type probes struct {
	mu struct {
		sync.Mutex
		of      map[quorum.NodeID]*probe
		running int
	}
}

// probe is what is known of one node.
type probe struct {
	addresses []string
	running   bool
	ended     time.Time
	failure   string
}

// stale reports whether it is time to try.
func (p *probe) stale(addresses []string) bool {
	switch since := time.Since(p.ended); {
	case p.running:
		return false
	case !slices.Equal(p.addresses, addresses):
		return true
	case p.failure != "":
		return since >= probeAgain
	default:
		return since >= probeFresh
	}
}

// probe returns why a node that has greeted can't be dialed where it says that it is,
// "" if it can or if that isn't known. Now and then it has that found out anew.
func (s *Server) probe(m quorum.Member) string {
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	p := s.probes.mu.of[m.ID]
	switch {
	case p != nil:
	case len(s.probes.mu.of) >= join.MaxNodes:
		return ""
	default:
		p = &probe{}
		s.probes.mu.of[m.ID] = p
	}
	if p.stale(m.Addresses) && s.probes.mu.running < maxProbes {
		s.probes.mu.running++
		p.running = true
		s.workers.Go(func() { s.try(m, p) })
	}
	if !slices.Equal(p.addresses, m.Addresses) {
		return ""
	}
	return p.failure
}

// try dials a node.
func (s *Server) try(m quorum.Member, p *probe) {
	ctx, cancel := context.WithTimeout(s.tasks, probeTimeout)
	defer cancel()
	err := s.transport.Probe(ctx, m.ID, m.Addresses)
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	s.probes.mu.running--
	p.running, p.ended, p.addresses, p.failure = false, time.Now(), m.Addresses, ""
	if err != nil && s.tasks.Err() == nil {
		p.failure = err.Error()
	}
}

// forgetProbes forgets what is known of nodes.
func (s *Server) forgetProbes(nodes []quorum.NodeID) {
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	for _, n := range nodes {
		delete(s.probes.mu.of, n)
	}
}

// tellUnreached logs when others can't dial the node, and when they can again. The
// loop calls it after each turn.
func (s *Server) tellUnreached() {
	now, before := s.node.Unreached(), s.unreached
	switch s.unreached = now; {
	case now == before:
	case now != "":
		s.log.Warn(now)
	default:
		s.log.Info("other nodes can dial this one again where it says that it is")
	}
}
