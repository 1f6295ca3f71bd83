package rambo_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/history"
)

var (
	seed  = flag.Int64("seed", -1, "run TestRandomRuns with this seed only")
	seeds = flag.Int64("seeds", 120, "run TestRandomRuns with that many seeds")
)

// TestRandomRuns lets clients read and write a few registers while one
// configuration takes over from another, four or more in all: members in any
// number, any quorum system, two that propose them; while messages are lost,
// doubled and overtaken, and nodes and proposers die and come back. What clients
// saw must be linearizable, none of them may fail, and everything ends.
func TestRandomRuns(t *testing.T) {
	installed := 0
	for n := range *seeds {
		if *seed >= 0 {
			n = *seed
		}
		r := newRun(t, uint64(n), replica.Rules{})
		r.play()
		if v := r.verdict(); v != "" {
			t.Fatalf("%s\nreplay it with: go test ./rambo -run TestRandomRuns -seed=%d", v, n)
		}
		installed += r.installed()
		if *seed >= 0 {
			t.Logf("hash %#x, %d operations", r.world.Hash(), len(r.history))
			return
		}
	}
	if installed < int(*seeds) {
		t.Errorf("only %d configurations were installed in %d runs", installed, *seeds)
	}
}

// TestRandomRunsNotice shows that the runs above would notice. The rules of this
// package have schedules of their own: chance hardly ever breaks them.
func TestRandomRunsNotice(t *testing.T) {
	for _, m := range []struct {
		name  string
		rules replica.Rules
	}{
		{"abd.IgnoreNews", replica.Rules{ABD: abd.Rules{IgnoreNews: true}}},
	} {
		t.Run(m.name, func(t *testing.T) {
			for n := range uint64(*seeds) {
				r := newRun(t, n, m.rules)
				r.play()
				if r.verdict() != "" {
					t.Logf("killed by seed %d", n)
					return
				}
			}
			t.Errorf("%s survives %d seeds", m.name, *seeds)
		})
	}
}

// run is one run. What happens in it is decided by its seed alone.
type run struct {
	t       *testing.T
	seed    uint64
	draws   uint64
	rules   replica.Rules
	world   *sim.World
	nodes   []*sim.Process
	configs []*quorum.Configuration // all that were decided
	history history.History
	values  int
	failure string
}

const nodeNames = "abcdefg"

func newRun(t *testing.T, seed uint64, rules replica.Rules) *run {
	r := &run{t: t, seed: seed, rules: rules}
	r.configs = []*quorum.Configuration{r.drawConfiguration(0)}
	r.world = sim.New(sim.Config{
		Seed:  seed,
		Hedge: time.Duration(1+r.draw(100)) * time.Millisecond,
		Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Link{
				Delay:     sim.Table(time.Millisecond, 2*time.Millisecond, 5*time.Millisecond, 100*time.Millisecond),
				Loss:      uint32(r.draw(3)) * 50_000,
				Duplicate: uint32(r.draw(3)) * 50_000,
			}
		},
		Sync: func(quorum.NodeID) sim.Delay {
			return sim.Uniform(time.Millisecond, time.Duration(1+r.draw(100))*time.Millisecond)
		},
	})
	t.Cleanup(r.world.Close)
	for _, c := range nodeNames {
		p, err := r.world.AddNode(quorum.NodeID(c), r.boot)
		if err != nil {
			t.Fatal(err)
		}
		r.nodes = append(r.nodes, p)
	}
	return r
}

func (r *run) boot(p *sim.Process) (sim.Stepper, error) {
	cfg := replica.Config{Cluster: "random", Self: p.ID(), MaxValue: 100, Rules: r.rules,
		Pace:            repair.Pace{Pass: 300 * time.Millisecond, Page: time.Millisecond, Look: 50 * time.Millisecond},
		Reconfiguration: rambo.Pace{Gossip: 100 * time.Millisecond, Turn: 20 * time.Millisecond, Patience: time.Second, Finish: 200 * time.Millisecond, Again: 10 * time.Millisecond, Rate: -1, Page: 1}}
	for _, c := range nodeNames {
		cfg.Members = append(cfg.Members, quorum.Member{ID: quorum.NodeID(c)})
	}
	if first := r.configs[0]; slices.Contains(first.Members(), p.ID()) {
		cfg.Configurations = quorum.Configurations{first}
	}
	return replica.New(cfg, p.Disk())
}

// drawConfiguration returns one of one to five nodes with any quorum system.
func (r *run) drawConfiguration(index quorum.ConfigIndex) *quorum.Configuration {
	n := 1 + int(r.draw(5))
	all := []byte(nodeNames)
	var members []quorum.NodeID
	for range n {
		i := r.draw(uint64(len(all)))
		members = append(members, quorum.NodeID(all[i]))
		all = slices.Delete(all, int(i), int(i)+1)
	}
	system := quorum.System{}
	if r.draw(3) > 0 {
		get := 1 + int(r.draw(uint64(n)))
		system = quorum.System{Kind: quorum.Threshold, Get: get, Put: n + 1 - get}
	}
	c, err := quorum.NewConfiguration(index, members, system)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// draw returns a number below n. The driver's draws have a stream of their own.
func (r *run) draw(n uint64) uint64 {
	r.draws++
	x := (r.seed*1_000_003 + r.draws) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) % n
}

func (r *run) play() {
	var scopes []*sim.Scope
	begin := func(p *sim.Process, f func(env.Env) error) {
		s := p.Scope(0)
		s.Start(f)
		scopes = append(scopes, s)
	}
	for i := range 3 {
		begin(r.world.AddClient(quorum.NodeID(fmt.Sprintf("p%d", i))), r.client)
	}
	for _, id := range []quorum.NodeID{"o1", "o2"} {
		p := r.world.AddClient(id)
		begin(p, r.operate)
		if r.draw(3) == 0 {
			r.world.At(time.Duration(r.draw(400))*time.Millisecond, func() {
				p.Crash()
				if err := p.Restart(); err != nil {
					r.t.Error(err)
				}
				begin(p, r.operate)
			})
		}
	}
	for range r.draw(5) {
		r.death()
	}
	r.world.RunFor(time.Second)
	if err := r.world.Wait(10*time.Minute, scopes...); err != nil && r.failure == "" {
		r.failure = fmt.Sprintf("seed %d: it doesn't end: %v", r.seed, err)
		for i, s := range scopes {
			r.failure += fmt.Sprintf("; scope %d done: %v", i, s.Done())
		}
		return
	}
	for _, s := range scopes {
		if s.Err() != nil && !errors.Is(s.Err(), sim.ErrCrashed) && r.failure == "" {
			r.failure = fmt.Sprintf("seed %d: %v", r.seed, s.Err())
		}
	}
}

// death cuts the power of some node for a while.
func (r *run) death() {
	p := r.nodes[r.draw(uint64(len(r.nodes)))]
	at := time.Duration(r.draw(900)) * time.Millisecond
	keep := int(r.draw(3))
	r.world.At(at, func() { p.PowerLoss(keep) })
	r.world.At(at+time.Duration(r.draw(300))*time.Millisecond, func() {
		if !p.Up() {
			if err := p.Restart(); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// operate proposes configurations until two of its own were decided. Another one
// does the same, and both may die at it.
func (r *run) operate(e env.Env) error {
	known, err := quorum.NewMap(r.configs[0])
	if err != nil {
		return err
	}
	p := &reconfig.Proposer{Cluster: "random", Known: rambo.NewCMap(known), Rules: r.rules.Reconfig, Synod: r.rules.Synod}
	for won := 0; won < 2; {
		if err := e.Sleep(time.Duration(e.Rand() % uint64(200*time.Millisecond))); err != nil {
			return err
		}
		target := r.drawConfiguration(0)
		d, err := rambo.Recon(e, p, reconfig.Proposal{Members: target.Members(), System: target.System(), Force: true})
		if _, ended := errors.AsType[*env.Unfinished](err); ended {
			return err
		}
		if err != nil {
			// The last change isn't through, or the map is old: answers tell.
			if err := r.lookAround(e, p.Known); err != nil {
				return err
			}
			continue
		}
		r.decided(d.Configuration)
		won++
	}
	return nil
}

// lookAround asks a node for its config map.
func (r *run) lookAround(e env.Env, known abd.Known) error {
	to := known.Map().Active().Members()
	return e.Ask(to, &abd.Get{Key: "k0", Horizon: known.Map().Horizon()}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
		switch m := answer.(type) {
		case *abd.GetAck:
			if m.News != nil {
				known.Learn(m.News)
			}
		case *abd.Moved:
			known.Learn(m.News)
		}
		return true
	})
}

// decided notes what was decided. There is one configuration for each index.
func (r *run) decided(c *quorum.Configuration) {
	for _, o := range r.configs {
		if o.Index() == c.Index() && !o.Equal(c) {
			r.failure = fmt.Sprintf("seed %d: decided were %v, and %v", r.seed, o, c)
		}
	}
	r.configs = append(r.configs, c)
}

// installed is the newest configuration that some node knows to be installed.
func (r *run) installed() int {
	newest := quorum.ConfigIndex(0)
	for _, p := range r.nodes {
		if m := mapOn(p); m != nil {
			newest = max(newest, m.Installed().Index())
		}
	}
	return int(newest)
}

func mapOn(p *sim.Process) *quorum.Map {
	m, err := rambo.MapOf(p.Disk())
	if err != nil {
		panic(err)
	}
	return m
}

// client runs a few operations on a few keys.
func (r *run) client(e env.Env) error {
	first, err := quorum.NewMap(r.configs[0])
	if err != nil {
		return err
	}
	registers := &abd.Registers{Known: rambo.NewCMap(first), MaxValue: 100, Rules: r.rules.ABD}
	for range 12 {
		key := abd.Key("k" + fmt.Sprint(e.Rand()%2))
		op := history.Operation{Client: fmt.Sprint(len(r.history)), Key: string(key), Call: r.world.Now(), Outcome: history.Unknown}
		at := len(r.history)
		if e.Rand()%2 == 0 {
			r.values++
			op.Kind, op.Value = history.Write, fmt.Sprint(r.values)
			r.history = append(r.history, op)
			_, err = registers.Write(e, abd.Operation{Key: key, Value: []byte(op.Value)})
		} else {
			op.Kind = history.Read
			r.history = append(r.history, op)
			var record abd.Record
			record, err = registers.Read(e, key)
			op.Value = string(record.Value)
			op.Found = !record.Absent()
		}
		if err != nil {
			return err
		}
		op.Return, op.Outcome = r.world.Now(), history.OK
		r.history[at] = op
		if err := e.Sleep(time.Duration(e.Rand() % uint64(60*time.Millisecond))); err != nil {
			return err
		}
	}
	return nil
}

// verdict says what is wrong with the run, nothing if all is well.
func (r *run) verdict() string {
	if r.failure != "" {
		return r.failure
	}
	v, err := history.Check(r.history)
	switch {
	case err != nil:
		return err.Error()
	case v != nil:
		return fmt.Sprintf("seed %d: %v", r.seed, v)
	}
	return ""
}
