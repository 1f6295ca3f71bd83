package abd_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/history"
)

var seed = flag.Int64("seed", -1, "run TestRandomRuns with this seed only")

const randomSeeds = 150

// TestRandomRuns lets a few clients write, delete and read one register while
// messages are lost, doubled and overtaken, or reach a minimal quorum at first,
// and nodes and clients die and come back. What they saw must be linearizable.
func TestRandomRuns(t *testing.T) {
	for n := range int64(randomSeeds) {
		if *seed >= 0 {
			n = *seed
		}
		r := newRandomRun(t, uint64(n), replica.Rules{})
		r.run()
		if r.completed < 10 {
			t.Errorf("seed %d: only %d operations were completed", n, r.completed)
		}
		if v := r.violation(); v != nil {
			t.Fatalf("not linearizable; replay it with: go test ./abd -run TestRandomRuns -seed=%d\n%v", n, v)
		}
		if *seed >= 0 {
			t.Logf("hash %#x\n%s", r.world.Hash(), r.seen())
			return
		}
	}
}

// TestRandomRunsNotice shows that the runs above would notice: mutants that
// don't need a schedule of their own are killed by some seed.
func TestRandomRunsNotice(t *testing.T) {
	for _, m := range []struct {
		name  string
		rules replica.Rules
	}{
		{"AckBeforeSync", replica.Rules{AckBeforeSync: true}},
		{"PutOneShort", replica.Rules{ABD: abd.Rules{PutOneShort: true}}},
		{"StoreAnything", replica.Rules{ABD: abd.Rules{StoreAnything: true}}},
		{"NoWriteBack", replica.Rules{ABD: abd.Rules{NoWriteBack: true}}},
	} {
		t.Run(m.name, func(t *testing.T) {
			for n := range uint64(randomSeeds) {
				r := newRandomRun(t, n, m.rules)
				r.run()
				if r.violation() != nil {
					t.Logf("killed by seed %d", n)
					return
				}
			}
			t.Errorf("%s survives %d seeds", m.name, randomSeeds)
		})
	}
}

// randomRun is one run. What happens in it is decided by its seed alone.
type randomRun struct {
	t         *testing.T
	world     *sim.World
	rules     replica.Rules
	registers *abd.Registers
	history   history.Recorder
	completed int
	values    int
	draws     uint64
	seed      uint64
}

func newRandomRun(t *testing.T, seed uint64, rules replica.Rules) *randomRun {
	r := &randomRun{t: t, rules: rules, seed: seed}
	systems := []string{"majority", "get=2,put=2", "get=1,put=3", "get=3,put=1"}
	system, err := quorum.ParseSystem(systems[seed%uint64(len(systems))])
	if err != nil {
		t.Fatal(err)
	}
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c"}, system)
	if err != nil {
		t.Fatal(err)
	}
	r.registers = &abd.Registers{Known: abd.Fixed(c), MaxValue: 100, Rules: rules.ABD}
	if r.draw(3) == 0 {
		r.registers.Inline = 1 // of a value with more digits only the size is sent at first
	}
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
			return sim.Uniform(time.Millisecond, time.Duration(1+r.draw(300))*time.Millisecond)
		},
	})
	t.Cleanup(r.world.Close)
	if seed%8 >= 4 {
		r.world.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
			return r.registers.Known.Map().Active(), sim.Needs(req)
		})
	}
	for _, id := range c.Members() {
		if _, err := r.world.AddNode(id, r.boot); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *randomRun) boot(p *sim.Process) (sim.Stepper, error) {
	return replica.New(replica.Config{
		Cluster:        "random",
		Self:           p.ID(),
		Configurations: r.registers.Known.Map().Active(),
		MaxValue:       r.registers.MaxValue,
		Rules:          r.rules,
	}, p.Disk())
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
		s := p.Scope(0)
		s.Start(r.client)
		scopes = append(scopes, s)
	}
	for i := range 4 {
		begin(r.world.AddClient(quorum.NodeID(fmt.Sprintf("p%d", i))))
	}
	for range 4 {
		r.death(begin)
	}
	r.world.RunFor(time.Second)
	if err := r.world.Wait(time.Hour, scopes...); err != nil {
		r.t.Errorf("seed %d: %v\n%s", r.seed, err, r.seen())
	}
}

// death kills some process at some time, or cuts the power of all nodes, and
// brings it back.
func (r *randomRun) death(begin func(*sim.Process)) {
	all := r.world.Processes()
	victims := []*sim.Process{all[r.draw(uint64(len(all)))]}
	if r.draw(4) == 0 {
		victims = all[:3]
	}
	at := time.Duration(r.draw(600)) * time.Millisecond
	pause := time.Duration(r.draw(200)) * time.Millisecond
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

// client runs a few operations.
func (r *randomRun) client(e env.Env) error {
	for range 6 {
		var err error
		if e.Rand()%2 == 0 {
			err = r.write(e)
		} else {
			err = r.read(e)
		}
		if err != nil {
			return err
		}
		r.completed++
		if err := e.Sleep(time.Duration(e.Rand() % uint64(50*time.Millisecond))); err != nil {
			return err
		}
	}
	return nil
}

func (r *randomRun) write(e env.Env) error {
	r.values++
	op := abd.Operation{Key: "k", Value: []byte(fmt.Sprint(r.values))}
	if e.Rand()%4 == 0 {
		op = abd.Operation{Key: "k", Delete: true}
	}
	kind := history.Write
	if op.Delete {
		kind = history.Delete
	}
	at := r.history.Began(r.world.Now(), history.Operation{Key: "k", Kind: kind, Value: string(op.Value)})
	if _, err := r.registers.Write(e, op); err != nil {
		return err
	}
	r.history.Ended(r.world.Now(), at, history.OK)
	return nil
}

func (r *randomRun) read(e env.Env) error {
	at := r.history.Began(r.world.Now(), history.Operation{Key: "k", Kind: history.Read})
	record, err := r.registers.Read(e, "k")
	switch {
	case err != nil:
		return err
	case record.Absent():
		r.history.Ended(r.world.Now(), at, history.OK)
	default:
		r.history.Found(r.world.Now(), at, string(record.Value))
	}
	return nil
}

// violation returns why no atomic register could have given the results, nil if
// one could.
func (r *randomRun) violation() *history.Violation {
	v, err := history.Check(r.history.History())
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// seen returns what the clients saw, an operation a line.
func (r *randomRun) seen() string {
	var b strings.Builder
	for _, op := range r.history.History() {
		fmt.Fprintf(&b, "%v-%v %v\n", op.Call, op.Return, op)
	}
	return b.String()
}
