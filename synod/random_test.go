package synod_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/synod"
)

var seed = flag.Int64("seed", -1, "run TestRandomRuns with this seed only")

const randomSeeds = 200

// systems are those of the random runs, and their members.
var systems = []struct {
	system  string
	members []quorum.NodeID
}{
	{"majority", []quorum.NodeID{"a", "b", "c"}},
	{"get=1,put=3", []quorum.NodeID{"a", "b", "c"}},
	{"get=3,put=1", []quorum.NodeID{"a", "b", "c"}},
	{"grid=2x2", []quorum.NodeID{"a", "b", "c", "d"}},
	{"weights=a:2,b:1,c:1,d:1", []quorum.NodeID{"a", "b", "c", "d"}},
}

// TestRandomRuns lets a few proposers propose values of their own while messages
// are lost, doubled and overtaken, or reach a minimal quorum at first, and nodes
// and proposers die and come back. One value is decided, and everybody is told
// that one, again and again.
func TestRandomRuns(t *testing.T) {
	for n := range int64(randomSeeds) {
		if *seed >= 0 {
			n = *seed
		}
		r := newRandomRun(t, uint64(n), "")
		r.run()
		if len(r.results) < 3 && !r.damaged {
			t.Errorf("seed %d: only %d proposers came to an end", n, len(r.results))
		}
		if bad := r.judge(); bad != "" {
			t.Fatalf("seed %d: %s; replay it with: go test ./synod -run TestRandomRuns -seed=%d", n, bad, n)
		}
		if *seed >= 0 {
			t.Logf("chosen %q, results %q", r.twin.values, r.results)
			return
		}
	}
}

// randomMutants are those that some of these runs must kill.
var randomMutants = []string{
	"RevealUnsynced", "PromiseUnsaved", "AcceptBelowPromise", "IgnoreAccepted",
	"PrepareOnWrite", "AcceptOnRead", "ReuseBallots", "DamagedIsAbsent", "ReuseIDs",
}

// TestRandomRunsNotice shows that the runs above would notice.
func TestRandomRunsNotice(t *testing.T) {
	for _, name := range randomMutants {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(randomSeeds) {
				r := newRandomRun(t, n, name)
				r.run()
				if bad := r.judge(); bad != "" {
					t.Logf("killed by seed %d: %s", n, bad)
					return
				}
			}
			t.Errorf("%s survives %d seeds", name, randomSeeds)
		})
	}
}

// randomRun is one run. What happens in it is decided by its seed alone.
type randomRun struct {
	t        *testing.T
	world    *sim.World
	rules    synod.Rules
	proposer *synod.Proposer
	nodes    []*sim.Process
	twin     *chosen
	proposed []string
	results  []string
	damaged  bool // so that where all are needed nobody comes to an end
	seed     uint64
	draws    uint64
}

func newRandomRun(t *testing.T, seed uint64, mutant string) *randomRun {
	s := systems[seed%uint64(len(systems))]
	c := configuration(t, 0, s.system, s.members...)
	r := &randomRun{t: t, seed: seed, twin: newChosen(c)}
	var kernel sim.Rules
	r.rules, kernel = breakRule(t, mutant)
	r.proposer = &synod.Proposer{Configuration: c, Rules: r.rules}
	r.world = sim.New(sim.Config{
		Seed: seed,
		Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Link{
				Delay:     sim.Table(time.Millisecond, 2*time.Millisecond, 5*time.Millisecond, 100*time.Millisecond),
				Loss:      uint32(r.draw(3)) * 100_000,
				Duplicate: uint32(r.draw(3)) * 100_000,
			}
		},
		Sync: func(quorum.NodeID) sim.Delay {
			return sim.Uniform(time.Millisecond, time.Duration(1+r.draw(100))*time.Millisecond)
		},
		Observe: r.twin.observe,
		Rules:   kernel,
	})
	t.Cleanup(r.world.Close)
	if seed/5%4 != 0 {
		r.world.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
			need := sim.NeedNothing
			switch req.(type) {
			case *synod.Prepare:
				need = sim.NeedRead
			case *synod.Accept:
				need = sim.NeedWrite
			}
			return quorum.Configurations{c}, need
		})
	}
	for _, id := range c.Members() {
		p, err := r.world.AddNode(id, r.boot)
		if err != nil {
			t.Fatal(err)
		}
		r.nodes = append(r.nodes, p)
	}
	return r
}

func (r *randomRun) boot(p *sim.Process) (sim.Stepper, error) {
	return synod.NewAcceptor(cells{p.Disk()}, &guard{}, r.rules), nil
}

// draw returns a number below n. The driver's draws have a stream of their own.
func (r *randomRun) draw(n uint64) uint64 {
	r.draws++
	x := (r.seed*1_000_003 + r.draws) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) % n
}

func (r *randomRun) run() {
	var scopes []*sim.Scope
	begin := func(p *sim.Process) {
		s := p.Scope(20 * time.Second)
		s.Start(r.propose)
		scopes = append(scopes, s)
	}
	var clients []*sim.Process
	for i := range 3 {
		clients = append(clients, r.world.AddClient(quorum.NodeID(fmt.Sprintf("p%d", i))))
		r.world.At(time.Duration(r.draw(40))*time.Millisecond, func() { begin(clients[i]) })
	}
	for range 4 {
		r.death(begin)
	}
	if r.draw(2) == 0 {
		damaged := r.nodes[r.draw(uint64(len(r.nodes)))]
		r.world.At(time.Duration(r.draw(200))*time.Millisecond, func() { r.damage(damaged) })
	}
	r.world.RunFor(time.Second)
	_ = r.world.Wait(time.Minute, scopes...)
	// Whoever asks later is told the same.
	for _, p := range clients {
		if p.Up() {
			begin(p)
		}
	}
	_ = r.world.Wait(time.Minute, scopes...)
}

// damage flips a bit in a node's record, on the disk.
func (r *randomRun) damage(p *sim.Process) {
	name := "synod." + string(instance)
	record, _ := p.Disk().Cell(name)
	if len(record) == 0 {
		return
	}
	r.damaged = true
	record = append([]byte{}, record...)
	record[r.draw(uint64(len(record)))] ^= 1 << r.draw(8)
	if _, err := p.Disk().SetCell(name, record); err != nil {
		r.t.Error(err)
	}
}

// death kills some process at some time, or cuts the power of all nodes, and
// brings it back.
func (r *randomRun) death(begin func(*sim.Process)) {
	all := r.world.Processes()
	victims := []*sim.Process{all[r.draw(uint64(len(all)))]}
	if r.draw(4) == 0 {
		victims = r.nodes
	}
	at := time.Duration(r.draw(300)) * time.Millisecond
	pause := time.Duration(r.draw(100)) * time.Millisecond
	for _, p := range victims {
		keep := int(r.draw(3))
		r.world.At(at, func() {
			if p.Disk() != nil {
				p.PowerLoss(keep)
			} else {
				p.Crash()
			}
		})
		r.world.At(at+pause, func() {
			if p.Up() {
				return // another death's restart
			}
			if err := p.Restart(); err != nil {
				r.t.Error(err)
			}
			if p.Disk() == nil {
				begin(p)
			}
		})
	}
}

func (r *randomRun) propose(e env.Env) error {
	value := fmt.Sprint("v", len(r.proposed))
	r.proposed = append(r.proposed, value)
	got, err := r.proposer.Propose(e, instance, []byte(value))
	if err == nil {
		r.results = append(r.results, string(got))
	}
	return err
}

func (r *randomRun) judge() string { return r.twin.judge(r.proposed, r.results) }
