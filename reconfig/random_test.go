package reconfig_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/sim"
)

var seed = flag.Int64("seed", -1, "run TestRandomRuns with this seed only")

const randomSeeds = 150

// TestRandomRuns lets a few proposers race for one index, and abort, and nodes
// finish what they hold, while messages are lost, doubled and overtaken, and nodes and
// proposers die and come back. One configuration is decided, which was ready, and
// everybody is told that one.
func TestRandomRuns(t *testing.T) {
	decided := 0
	for n := range int64(randomSeeds) {
		if *seed >= 0 {
			n = *seed
		}
		r := newRandomRun(t, uint64(n), reconfig.Rules{})
		r.run()
		if bad := r.twin.judge(r.told); bad != "" {
			t.Fatalf("seed %d: %s; replay it with: go test ./reconfig -run TestRandomRuns -seed=%d", n, bad, n)
		}
		if *seed >= 0 {
			t.Logf("decided %v, %d were told", r.twin.decided, len(r.told))
			return
		}
		decided += len(r.twin.decided)
	}
	if decided < randomSeeds/2 {
		t.Errorf("in %d runs only %d came to a decision", randomSeeds, decided)
	}
}

// randomMutants are those that some of these runs must kill.
var randomMutants = []string{"ProposeUnready", "NewUnready", "QuorumUnready", "AbortBlindly"}

func TestRandomRunsNotice(t *testing.T) {
	for _, name := range randomMutants {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(randomSeeds) {
				r := newRandomRun(t, n, breakRule(t, name))
				r.run()
				if bad := r.twin.judge(r.told); bad != "" {
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
	*fixture
	seed, draws uint64
	told        []*quorum.Configuration
	scopes      []*sim.Scope
}

func newRandomRun(t *testing.T, seed uint64, rules reconfig.Rules) *randomRun {
	r := &randomRun{seed: seed}
	systems := []string{"majority", "get=1,put=3", "get=3,put=1", "weights=a:2,b:1,c:1"}
	r.fixture = newFixture(t, sim.Config{
		Seed: seed,
		Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Link{
				Delay:     sim.Table(time.Millisecond, 2*time.Millisecond, 5*time.Millisecond, 100*time.Millisecond),
				Loss:      uint32(r.draw(3)) * 100_000,
				Duplicate: uint32(r.draw(3)) * 100_000,
			}
		},
	}, rules, configuration(t, 0, systems[seed%uint64(len(systems))], "a", "b", "c"))
	return r
}

// draw returns a number below n. The driver's draws have a stream of their own.
func (r *randomRun) draw(n uint64) uint64 {
	r.draws++
	x := (r.seed*1_000_003 + r.draws) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) % n
}

func (r *randomRun) run() {
	begin := func(p *sim.Process, op func(env.Env) error) {
		s := p.Scope(10 * time.Second)
		s.Start(op)
		r.scopes = append(r.scopes, s)
	}
	for i := range 3 {
		p := r.AddClient(quorum.NodeID(fmt.Sprintf("p%d", i)))
		op := r.recon
		if r.draw(4) == 0 {
			op = r.abort
		}
		r.At(time.Duration(r.draw(15))*time.Millisecond, func() { begin(p, op) })
		r.death(p, begin)
	}
	for range 3 {
		r.death(r.Process(nodes[r.draw(5)]), nil)
	}
	r.RunFor(time.Second)
	for _, id := range r.present.Members() {
		begin(r.Process(id), r.finish)
	}
	_ = r.Wait(time.Minute, r.scopes...)
}

// death kills a process now and then, and brings it back. A proposer that is back
// proposes something else.
func (r *randomRun) death(p *sim.Process, begin func(*sim.Process, func(env.Env) error)) {
	if r.draw(2) == 0 {
		return
	}
	at := time.Duration(r.draw(100)) * time.Millisecond
	keep := int(r.draw(3))
	r.At(at, func() { p.PowerLoss(keep) })
	r.At(at+time.Duration(r.draw(300))*time.Millisecond, func() {
		if p.Up() {
			return // another death's restart
		}
		if err := p.Restart(); err != nil {
			r.t.Error(err)
		}
		if begin != nil {
			begin(p, r.recon)
		}
	})
}

// recon proposes three or more of the nodes.
func (r *randomRun) recon(e env.Env) error {
	var proposal reconfig.Proposal
	for _, id := range nodes {
		if r.draw(3) > 0 {
			proposal.Members = append(proposal.Members, id)
		}
	}
	proposal.Force = true
	d, err := r.proposer().Recon(e, proposal)
	if err == nil {
		r.told = append(r.told, d.Configuration)
	}
	return err
}

func (r *randomRun) abort(e env.Env) error {
	p := r.proposer()
	c, err := p.Abort(e)
	late, ok := errors.AsType[*reconfig.TooLateError](err)
	switch {
	case err == nil:
		r.told = append(r.told, c)
		if again := fmt.Sprint(c.Members()) == fmt.Sprint(r.present.Members()); !again {
			r.twin.wrong = fmt.Sprintf("aborted, and decided is %v", c)
		}
	case ok:
		r.told = append(r.told, late.Decided)
	}
	return err
}

func (r *randomRun) finish(e env.Env) error {
	c, err := r.proposer().Finish(e, time.Second)
	if err == nil {
		r.told = append(r.told, c)
	}
	return err
}

// TestTheProposerDiesAtEachStep: it sends one message, and dies; two, and dies;
// and so on. Then a node finishes what it holds, and somebody proposes
// something else. What was decided before stays, and in the end one configuration
// is.
func TestTheProposerDiesAtEachStep(t *testing.T) {
	finished, other := 0, 0
	for n := 1; ; n++ {
		sent := 0
		var f *fixture
		f = threeNodes(t, sim.Config{Observe: func(o sim.Observation) {
			if o.What == sim.Sent && o.From.ID() == "p" {
				if sent++; sent == n {
					f.At(0, f.Process("p").Crash)
				}
			}
		}})
		_, died := f.recon(f.proposer(), "p", "b", "c", "d")
		want := configuration(t, 1, "majority", "b", "c", "d")
		var told []*quorum.Configuration
		if died == nil {
			told = append(told, want)
		}
		for _, id := range f.present.Members() {
			c, err := f.finish(id, time.Second, 5*time.Second)
			if err == nil {
				told = append(told, c)
				finished++
			}
		}
		d, err := f.recon(f.proposer(), "q", "a", "b", "e")
		if err != nil {
			t.Fatalf("dead after %d messages: %v", n, err)
		}
		if d.Proposed {
			other++
		}
		if bad := f.twin.judge(append(told, d.Configuration)); bad != "" {
			t.Errorf("dead after %d messages: %s", n, bad)
		}
		if sent < n {
			break // it lived to the end
		}
	}
	if finished == 0 || other == 0 {
		t.Errorf("what a proposer left was finished %d times, and given up %d times: want both", finished, other)
	}
}

// TestForkedRecon is schedule 9: a member of the quorum that has decided comes
// back without what it voted. It must not: then another configuration is decided under the
// same index, by it and one that knows nothing. Without it nothing is, until
// somebody is asked who remembers.
func TestForkedRecon(t *testing.T) {
	for _, wiped := range []bool{false, true} {
		f := threeNodes(t, sim.Config{Rules: sim.Rules{BootEmpty: wiped}})
		f.Cut(f.Process("p"), f.Process("c"))
		d, err := f.recon(f.proposer(), "p", "a", "b", "d")
		if err != nil || !d.Proposed {
			t.Fatal(d, err)
		}
		told := []*quorum.Configuration{d.Configuration}
		f.Process("b").LoseDisk()
		if err := f.Process("b").Restart(); (err == nil) != wiped {
			t.Fatalf("restarted without a disk: %v", err)
		}
		f.Cut(f.Process("q"), f.Process("a"))
		d, err = f.recon(f.proposer(), "q", "b", "c", "e")
		switch bad := f.twin.judge(told); {
		case wiped && bad == "":
			t.Error("acceptors that forget survive")
		case wiped:
		case bad != "" || err == nil:
			t.Errorf("%s; q was told %v, %v", bad, d.Configuration, err)
		default:
			f.Mend(f.Process("q"), f.Process("a"))
			d, err = f.recon(f.proposer(), "q", "a", "c", "e")
			if bad := f.twin.judge(append(told, d.Configuration)); err != nil || d.Proposed || bad != "" {
				t.Errorf("%v, %v; %s", d.Configuration, err, bad)
			}
		}
	}
}

// TestADamagedAcceptorDecidesNothing: with a flipped bit in one acceptor and
// another member down nothing is decided, and the error names what is damaged.
func TestADamagedAcceptorDecidesNothing(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	f.acceptAt("b", configuration(t, 1, "majority", "a", "b", "c", "d", "e"))
	record, _ := f.Process("b").Disk().Cell("recon.vote.1")
	record = append([]byte{}, record...)
	record[len(record)-9] ^= 4
	if _, err := f.Process("b").Disk().SetCell("recon.vote.1", record); err != nil {
		t.Fatal(err)
	}
	f.Process("a").Crash()
	_, err := f.recon(f.proposer(), "p", "b", "c", "d")
	q, ok := errors.AsType[*abd.QuorumError](err)
	if !ok || len(q.Nodes) != 2 || q.Nodes[1].Node != "b" || q.Nodes[1].Refused == nil || q.Nodes[1].Refused.Reason != env.ReasonDamaged {
		t.Errorf("got %v", err)
	}
	if err := f.Process("a").Restart(); err != nil {
		t.Fatal(err)
	}
	if d, err := f.recon(f.proposer(), "p", "b", "c", "d"); err != nil || !d.Proposed {
		t.Errorf("with a and c: %v, %v", d.Configuration, err)
	}
}
