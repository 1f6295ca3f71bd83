package sim_test

import (
	"fmt"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// workload is a cluster of replica nodes, and clients that write and read
// registers without a pause.
type workload struct {
	w         *sim.World
	registers *abd.Registers
	scopes    []*sim.Scope
	completed int
	failed    int
}

func newWorkload(tb testing.TB, cfg sim.Config, nodes int) *workload {
	tb.Helper()
	c := configuration(tb, "majority", nodes)
	l := &workload{
		w:         sim.New(cfg),
		registers: &abd.Registers{Known: abd.Fixed(c), MaxValue: abd.DefaultMaxValue},
	}
	tb.Cleanup(l.w.Close)
	addMembers(tb, l.w, l.registers)
	return l
}

// configuration returns one with the members n0, n1, ...
func configuration(tb testing.TB, system string, nodes int) *quorum.Configuration {
	tb.Helper()
	q, err := quorum.ParseSystem(system)
	if err != nil {
		tb.Fatal(err)
	}
	members := make([]quorum.NodeID, nodes)
	for i := range members {
		members[i] = quorum.NodeID(fmt.Sprintf("n%d", i))
	}
	c, err := quorum.NewConfiguration(0, members, q)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// addMembers adds the replica nodes that hold registers.
func addMembers(tb testing.TB, w *sim.World, registers *abd.Registers) {
	tb.Helper()
	for _, id := range registers.Known.Map().Active().Members() {
		_, err := w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			return replica.New(replica.Config{
				Cluster:        "test",
				Self:           p.ID(),
				Configurations: registers.Known.Map().Active(),
				MaxValue:       registers.MaxValue,
			}, p.Disk())
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// start lets a client of that name run ops operations, every third a write.
func (l *workload) start(name quorum.NodeID, ops int) {
	p := l.w.Process(name)
	if p == nil {
		p = l.w.AddClient(name)
	}
	s := p.Scope(0)
	s.Start(func(e env.Env) error {
		for i := range ops {
			key := abd.Key(fmt.Sprintf("k%d", e.Rand()%16))
			var err error
			if i%3 == 0 {
				_, err = l.registers.Write(e, abd.Operation{Key: key, Value: []byte("some value")})
			} else {
				_, err = l.registers.Read(e, key)
			}
			if err != nil {
				l.failed++
				return err
			}
			l.completed++
		}
		return nil
	})
	l.scopes = append(l.scopes, s)
}

// BenchmarkMessages runs a cluster of five nodes and 64 clients, and reports
// the messages that arrive a second of real time, trace hash included.
func BenchmarkMessages(b *testing.B) {
	l := newWorkload(b, sim.Config{Seed: 1, Link: func(_, _ quorum.NodeID) sim.Link {
		return sim.Link{Delay: sim.Uniform(200*time.Microsecond, 2*time.Millisecond)}
	}}, 5)
	for i := range 64 {
		l.start(quorum.NodeID(fmt.Sprintf("p%d", i)), 1<<40)
	}
	b.ReportAllocs()
	want := uint64(0)
	for b.Loop() {
		want++
		for _, arrived := l.w.Events(); arrived < want; _, arrived = l.w.Events() {
			l.w.Step()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
