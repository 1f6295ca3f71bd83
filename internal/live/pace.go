package live

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// pace is what is known of how fast a node answers. Nothing hangs on it but
// whom AskSome asks first, and for how long it waits: what is lost to a race
// between two updates costs some time at most.
type pace struct {
	// latency is the moving average of how long answers took, in nanoseconds;
	// 0: none has come. perKiB is how much longer those take that are Bulky,
	// for each KiB; 0: none has come.
	latency, perKiB atomic.Int64
	// measured is when latency was last brought up to date, tried when the
	// node was last asked for the sake of that, by Runtime.now.
	measured, tried atomic.Int64
	// late: a request was overdue, and nothing has come since. down: there is
	// no connection, as far as is known.
	late, down atomic.Bool
	// apart: others are so much faster that the node isn't asked first.
	apart atomic.Bool
	// watched is a request whose answer is measured even if it comes when its
	// conversation is over.
	watched atomic.Pointer[watched]
}

type watched struct {
	conversation uint64 // as the answer carries it
	at           time.Duration
}

// measure takes note of an answer that took so long. Of what was known it says
// whether that was wrong about whether the node answers at all.
func (p *pace) measure(took, now time.Duration, bulk int) (news bool) {
	took = max(took, 1)
	if bulk > 0 {
		rest := max(took-time.Duration(p.latency.Load()), 0)
		average(&p.perKiB, int64(rest)*1024/int64(bulk), p.perKiB.Load() == 0)
	} else {
		old := now - time.Duration(p.measured.Load())
		average(&p.latency, int64(took), p.latency.Load() == 0 || old > forgetAfter)
		p.measured.Store(int64(now))
	}
	return p.late.Load() && p.late.Swap(false) || p.down.Load() && p.down.Swap(false)
}

// average moves an average towards x, or to it.
func average(of *atomic.Int64, x int64, all bool) {
	if !all {
		last := of.Load()
		x = last + (x-last)/averageOver
	}
	of.Store(max(x, 1))
}

// usual is how long the node takes for an answer with so many bytes more than
// one takes that isn't Bulky.
func (p *pace) usual(bulk int) time.Duration {
	d := time.Duration(p.latency.Load())
	if d == 0 {
		d = UnknownLatency
	}
	if bulk > 0 {
		perKiB := time.Duration(p.perKiB.Load())
		if perKiB == 0 {
			perKiB = UnknownPerKiB
		}
		d += time.Duration(bulk) * perKiB / 1024
	}
	return d
}

// overdue takes note of a request that wasn't answered in time, which was sent
// then. It reports whether that is news.
func (p *pace) overdue(conversation uint64, at time.Duration) bool {
	p.watch(conversation, at)
	return !p.late.Load() && !p.late.Swap(true)
}

// watch sees to it that the answer to a request is measured, whenever it comes.
func (p *pace) watch(conversation uint64, at time.Duration) {
	p.watched.Store(&watched{conversation, at})
}

// paces are those of all nodes that AskSome was given, and what follows from
// them.
type paces struct {
	nodes atomic.Pointer[map[quorum.NodeID]*pace] // never changed, only replaced
	mu    sync.Mutex                              // held to replace it

	// version counts what changes the order of nodes; ranked is when it went
	// up last just because latencies were measured.
	version atomic.Uint64
	ranked  atomic.Int64
	ranking atomic.Pointer[ranking]
	turn    atomic.Uint32

	least  time.Duration // see Config.HedgeLeast
	probe  time.Duration // see Config.ProbeEvery
	hedged atomic.Uint64
}

// ranking is the order of some nodes at some time.
type ranking struct {
	version uint64
	nodes   []quorum.NodeID
	// orders are as many as there are nodes that take turns.
	orders [][]quorum.NodeID
}

func (ps *paces) init(c Config) {
	ps.nodes.Store(&map[quorum.NodeID]*pace{})
	ps.least, ps.probe = c.HedgeLeast, c.ProbeEvery
	if ps.least == 0 {
		ps.least = HedgeLeast
	}
	if ps.probe == 0 {
		ps.probe = ProbeEvery
	}
}

// find returns the pace of a node, nil if it has none.
func (ps *paces) find(node quorum.NodeID) *pace { return (*ps.nodes.Load())[node] }

// of returns the pace of a node, which it makes if there is room for it, and
// nil otherwise.
func (ps *paces) of(node quorum.NodeID, now time.Duration) *pace {
	if p := ps.find(node); p != nil {
		return p
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	old := *ps.nodes.Load()
	if p := old[node]; p != nil || len(old) >= MaxPaces {
		return p
	}
	all := make(map[quorum.NodeID]*pace, len(old)+1)
	for id, p := range old {
		all[id] = p
	}
	p := &pace{}
	p.measured.Store(int64(now))
	all[node] = p
	ps.nodes.Store(&all)
	return p
}

// took takes note of an answer.
func (ps *paces) took(p *pace, took, now time.Duration, bulk int) {
	if p.measure(took, now, bulk) {
		ps.version.Add(1)
	} else if last := ps.ranked.Load(); int64(now)-last > int64(rankEvery) && ps.ranked.CompareAndSwap(last, int64(now)) {
		ps.version.Add(1)
	}
}

// lateAnswer takes note of an answer to a conversation that is over.
func (ps *paces) lateAnswer(from quorum.NodeID, conversation uint64, now func() time.Duration) {
	p := ps.find(from)
	if p == nil {
		return
	}
	if w := p.watched.Load(); w != nil && w.conversation == conversation && p.watched.CompareAndSwap(w, nil) {
		at := now()
		ps.took(p, at-w.at, at, 0)
	}
}

// down takes note that a node is connected, or isn't.
func (ps *paces) down(p *pace, down bool) {
	if p == nil {
		return
	}
	changed := p.down.Swap(down) != down
	if !down {
		changed = p.late.Swap(false) || changed
		p.watched.Store(nil)
		p.tried.Store(0) // whatever it was before, it is worth a look
	}
	if changed {
		ps.version.Add(1)
	}
}

// wantsProbe reports whether a node that isn't asked first should be asked
// now, to see whether it should be. It says so once in a while.
func (ps *paces) wantsProbe(p *pace, now time.Duration) bool {
	if p == nil || !p.apart.Load() {
		return false
	}
	last := p.tried.Load()
	return now-time.Duration(max(last, p.measured.Load())) > ps.probe && p.tried.CompareAndSwap(last, int64(now))
}

// delay is how long after they were asked nodes are late, the slowest of which
// usually takes so long.
func (ps *paces) delay(usual time.Duration) time.Duration {
	return max(min(hedgeTimes*usual, HedgeMost), ps.least)
}

// nearest returns nodes in the order in which they should be asked.
func (ps *paces) nearest(nodes []quorum.NodeID) []quorum.NodeID {
	version := ps.version.Load()
	r := ps.ranking.Load()
	if r == nil || r.version != version || !slices.Equal(r.nodes, nodes) {
		r = &ranking{version: version, nodes: nodes, orders: ps.rank(nodes)}
		ps.ranking.Store(r)
	}
	switch len(r.orders) {
	case 0:
		return nodes
	case 1:
		return r.orders[0]
	}
	return r.orders[ps.turn.Add(1)%uint32(len(r.orders))]
}

// rank returns the orders of nodes: those that are about as fast as the fastest
// of them, each of which is first in one order, and then the others.
func (ps *paces) rank(nodes []quorum.NodeID) [][]quorum.NodeID {
	type ranked struct {
		node    quorum.NodeID
		p       *pace
		trouble int
		latency int64 // 0: not known, which is worth a try
	}
	all := make([]ranked, len(nodes))
	fastest := int64(0)
	for i, id := range nodes {
		one := ranked{node: id, p: ps.find(id)}
		if p := one.p; p != nil {
			one.latency = p.latency.Load()
			switch {
			case p.down.Load():
				one.trouble = 2
			case p.late.Load():
				one.trouble = 1
			case one.latency > 0 && (fastest == 0 || one.latency < fastest):
				fastest = one.latency
			}
		}
		all[i] = one
	}
	similar := func(r ranked) bool { return r.trouble == 0 && r.latency <= similarTimes*fastest }
	slices.SortStableFunc(all, func(a, b ranked) int {
		switch {
		case a.trouble != b.trouble:
			return a.trouble - b.trouble
		case similar(a) && similar(b) || a.latency == b.latency:
			return 0
		case a.latency < b.latency:
			return -1
		}
		return 1
	})
	group := 0
	for _, r := range all {
		if similar(r) {
			group++
		}
		if r.p != nil {
			r.p.apart.Store(!similar(r))
		}
	}
	orders := make([][]quorum.NodeID, max(group, 1))
	for turn := range orders {
		order := make([]quorum.NodeID, len(all))
		for i, r := range all {
			if i < group {
				r = all[(i+turn)%group]
			}
			order[i] = r.node
		}
		orders[turn] = order
	}
	return orders
}

// bulkOf is how many bytes the answer to a request is expected to have, 0 if
// it is an ordinary one.
func bulkOf(req env.Message) int {
	if b, ok := req.(env.Bulky); ok {
		return max(b.AnswerBytes(), 0)
	}
	return 0
}
