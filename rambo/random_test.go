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
// configuration takes over from another, four in all: members in any number,
// any quorum system, the next one decided before the last is installed; while
// messages are lost, doubled and overtaken, and nodes and clients die and come
// back. What clients saw must be linearizable, and everything ends.
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
	if installed < int(*seeds)*2 {
		t.Errorf("only %d configurations were installed in %d runs", installed, *seeds)
	}
}

// TestRandomRunsNotice shows that the runs above would notice.
func TestRandomRunsNotice(t *testing.T) {
	for _, m := range []struct {
		name  string
		rules replica.Rules
	}{
		{"abd.IgnoreNews", replica.Rules{ABD: abd.Rules{IgnoreNews: true}}},
		{"rambo.FenceReadQuorum", replica.Rules{Rambo: rambo.Rules{FenceReadQuorum: true}}},
		{"rambo.FenceWriteQuorum", replica.Rules{Rambo: rambo.Rules{FenceWriteQuorum: true}}},
		{"rambo.MergeFromOne", replica.Rules{Rambo: rambo.Rules{MergeFromOne: true}}},
		{"rambo.InstallTooFew", replica.Rules{Rambo: rambo.Rules{InstallTooFew: true}}},
		{"rambo.StayersHaveAll", replica.Rules{Rambo: rambo.Rules{StayersHaveAll: true}}},
	} {
		t.Run(m.name, func(t *testing.T) {
			for n := range uint64(4 * *seeds) {
				r := newRun(t, n, m.rules)
				r.play()
				if r.verdict() != "" {
					t.Logf("killed by seed %d", n)
					return
				}
			}
			t.Errorf("%s survives %d seeds", m.name, 4**seeds)
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
		Reconfiguration: rambo.Pace{Gossip: 100 * time.Millisecond, Turn: 20 * time.Millisecond, Patience: time.Second, Again: 10 * time.Millisecond, Rate: -1}}
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
	begin(r.world.AddClient("operator"), r.operate)
	for range r.draw(5) {
		r.death()
	}
	r.world.RunFor(time.Second)
	if err := r.world.Wait(10*time.Minute, scopes...); err != nil {
		r.failure = fmt.Sprintf("seed %d: it doesn't end: %v", r.seed, err)
		for i, s := range scopes {
			r.failure += fmt.Sprintf("; scope %d done: %v", i, s.Done())
		}
		return
	}
	for _, s := range scopes {
		if s.Err() != nil {
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

// operate decides on three configurations. It is the only one who does, so that
// there is one for each index whatever becomes of consensus.
func (r *run) operate(e env.Env) error {
	for k := quorum.ConfigIndex(1); k <= 3; k++ {
		if err := e.Sleep(time.Duration(e.Rand() % uint64(300*time.Millisecond))); err != nil {
			return err
		}
		next := r.drawConfiguration(k)
		old := r.configs[len(r.configs)-1]
		r.configs = append(r.configs, next)
		m, err := quorum.NewMap(r.configs...)
		if err != nil {
			return err
		}
		// New members know of it first: nobody decides for who isn't ready.
		if err := tell(e, next.Members(), len(next.Members()), m); err != nil {
			return err
		}
		if err := tell(e, old.Members(), 1, m); err != nil {
			return err
		}
	}
	return nil
}

// tell tells nodes of a map, until so many have answered.
func tell(e env.Env, nodes []quorum.NodeID, enough int, m *quorum.Map) error {
	var told []quorum.NodeID
	return e.Ask(nodes, &rambo.Gossip{Knowledge: rambo.Knowledge{News: &quorum.News{Map: m}}},
		func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
			if !slices.Contains(told, from) {
				told = append(told, from)
			}
			return len(told) >= enough
		})
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
			write := abd.Operation{Key: key, Value: []byte(op.Value)}
			err = again(e, func() error {
				var err error
				write, err = registers.Write(e, write)
				return err
			})
		} else {
			op.Kind = history.Read
			r.history = append(r.history, op)
			var record abd.Record
			err = again(e, func() error {
				var err error
				record, err = registers.Read(e, key)
				return err
			})
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

// again tries an operation again that a new member has refused which hasn't
// heard of its configuration yet: the operator of these runs asks nobody
// whether he is ready.
func again(e env.Env, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, abd.ErrRefused) {
			return err
		}
		if err := e.Sleep(10 * time.Millisecond); err != nil {
			return err
		}
	}
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
