package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// busy is a node that does more than answer.
type busy struct {
	sim.Stepper
	tasks []replica.Task
}

func (b busy) Tasks() []replica.Task { return b.tasks }

// addBusy adds replica nodes n0, n1, ... with tasks.
func addBusy(t *testing.T, w *sim.World, nodes int, rules replica.Rules, tasks func(p *sim.Process) []replica.Task) []*sim.Process {
	in := quorum.Configurations{configuration(t, "majority", nodes)}
	var added []*sim.Process
	for _, id := range in.Members() {
		added = append(added, addNode(t, w, id, func(p *sim.Process) (sim.Stepper, error) {
			n, err := replica.New(replica.Config{Cluster: "test", Self: p.ID(), Configurations: in, MaxValue: 100, Rules: rules}, p.Disk())
			return busy{n, tasks(p)}, err
		}))
	}
	return added
}

// putTo asks all of to until each has acked a put of the key.
func putTo(e env.Env, to []quorum.NodeID, key abd.Key, seq int) error {
	acked := make(map[quorum.NodeID]bool)
	put := &abd.Put{Key: key, Record: abd.Record{Tag: tags.Tag{Seq: tags.Seq(seq), PID: e.ID()}, Value: []byte("v")}}
	return e.Ask(to, put, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
		if _, ok := m.(*abd.PutAck); ok {
			acked[from] = true
		}
		return len(acked) == len(to)
	})
}

// TestTasksAskTheirOwnNodeAndOthers: a task gets an answer of its own node, and
// not before that is durable; one that waits for a node which is down goes on
// when it comes back; and each life of a node has its tasks.
func TestTasksAskTheirOwnNodeAndOthers(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		t.Run(fmt.Sprint("mutant ", mutant), func(t *testing.T) {
			all := []quorum.NodeID{"n0", "n1", "n2"}
			w := newWorld(t, sim.Config{})
			early := 0
			rounds := make(map[quorum.NodeID]int)
			lives := make(map[quorum.NodeID]int)
			nodes := addBusy(t, w, 3, replica.Rules{AckBeforeSync: mutant}, func(p *sim.Process) []replica.Task {
				return []replica.Task{{Name: "probe", Run: func(e env.Env) error {
					if e.Self() != p.ID() {
						t.Errorf("the task of %s runs on %s", p.ID(), e.Self())
					}
					lives[p.ID()]++
					for {
						seq := rounds[p.ID()] + 1
						if err := putTo(e, []quorum.NodeID{p.ID()}, abd.Key(p.ID()), seq); err != nil {
							return err
						}
						if p.Disk().Durable(abd.Key(p.ID())).Tag.Seq != tags.Seq(seq) {
							early++
						}
						if err := putTo(e, all, "shared", seq); err != nil {
							return err
						}
						rounds[p.ID()]++
						if err := e.Sleep(100 * time.Millisecond); err != nil {
							return err
						}
					}
				}}}
			})
			w.RunFor(time.Second)
			if mutant {
				if early == 0 {
					t.Error("a node that acks before the sync wasn't noticed")
				}
				return
			}
			if early > 0 {
				t.Errorf("a node answered its own task %d times before that was durable", early)
			}
			nodes[2].Crash()
			w.RunFor(time.Second)
			stuck := rounds["n0"]
			w.RunFor(time.Minute)
			if rounds["n0"] != stuck {
				t.Error("a task that asks all goes on without one of them")
			}
			if err := nodes[2].Restart(); err != nil {
				t.Fatal(err)
			}
			w.RunFor(time.Second)
			for _, id := range all {
				if rounds[id] < stuck+5 {
					t.Errorf("the task of %s has done %d rounds, want %d and some", id, rounds[id], stuck)
				}
			}
			if lives["n0"] != 1 || lives["n2"] != 2 {
				t.Errorf("the tasks were started %v times, want once in each life", lives)
			}
		})
	}
}

// A task that returns, for whatever reason, is started again after the pause,
// and no other time; it isn't any more when its process has died.
func TestTaskIsStartedAgain(t *testing.T) {
	for _, result := range []error{nil, errors.New("it didn't work")} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			var starts []time.Duration
			var told []error
			w := newWorld(t, sim.Config{Observe: func(o sim.Observation) {
				if o.What == sim.TaskAgain {
					told = append(told, o.Err)
					if o.Task != "failing" || o.Process.ID() != "n0" {
						t.Errorf("told of task %q on %s", o.Task, o.Process.ID())
					}
				}
			}})
			nodes := addBusy(t, w, 1, replica.Rules{}, func(*sim.Process) []replica.Task {
				return []replica.Task{{Name: "failing", Run: func(e env.Env) error {
					starts = append(starts, e.Now())
					return result
				}}}
			})
			w.RunFor(2*replica.TaskPause + replica.TaskPause/2)
			if want := []time.Duration{0, replica.TaskPause, 2 * replica.TaskPause}; !slices.Equal(starts, want) {
				t.Errorf("it was started at %v, want %v", starts, want)
			}
			if !slices.Equal(told, []error{result, result}) {
				t.Errorf("the observer was told %v, want %v twice", told, result)
			}
			nodes[0].Crash()
			w.RunFor(time.Minute)
			if len(starts) != 3 {
				t.Errorf("it was started %d times, also after its node's death", len(starts))
			}
		})
	}
}

// mailing is a node that hands every list to its task.
type mailing struct {
	*replica.Node
	tasks []replica.Task
}

func (n mailing) Tasks() []replica.Task { return n.tasks }

func (n mailing) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if _, ok := m.(*abd.List); ok {
		return append(out, env.Out{To: from, Mailbox: "lists", Message: m}), nil
	}
	return n.Node.Step(from, m, out)
}

// A run of a task gives up its mailbox when it ends, and the next gets it, with
// what came meanwhile.
func TestTaskReceivesAgain(t *testing.T) {
	w := newWorld(t, sim.Config{})
	runs := 0
	task := replica.Task{Name: "lister", Run: func(e env.Env) error {
		runs++
		got, err := e.Receive("lists")
		for _, envelope := range got {
			e.Send(envelope.From, &abd.Page{})
		}
		return err // after one batch
	}}
	in := quorum.Configurations{configuration(t, "majority", 1)}
	addNode(t, w, "n0", func(p *sim.Process) (sim.Stepper, error) {
		n, err := replica.New(replica.Config{Cluster: "test", Self: p.ID(), Configurations: in, MaxValue: 100}, p.Disk())
		return mailing{n, []replica.Task{task}}, err
	})
	for range 3 {
		s := start(w.AddClient(quorum.NodeID(fmt.Sprint("p", runs))), func(e env.Env) error {
			return e.Ask([]quorum.NodeID{"n0"}, &abd.List{Limit: 1}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
				_, ok := m.(*abd.Page)
				return ok
			})
		})
		if err := errors.Join(w.Wait(time.Minute, s), s.Err()); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 3 {
		t.Errorf("%d runs, want one for each list", runs)
	}
}

// A panic of a task is one of the simulation, as that of a step is.
func TestTaskPanics(t *testing.T) {
	w := newWorld(t, sim.Config{})
	addBusy(t, w, 1, replica.Rules{}, func(*sim.Process) []replica.Task {
		return []replica.Task{{Name: "bad", Run: func(env.Env) error { panic("so it goes") }}}
	})
	defer func() {
		if recover() == nil {
			t.Error("nothing was heard of it")
		}
	}()
	w.RunFor(time.Second)
}

// TestTasksAreDeterministic: tasks that draw, ask, fail and die make the same
// run again; and a node that has none makes the same as one that can't have any.
func TestTasksAreDeterministic(t *testing.T) {
	in := quorum.Configurations{configuration(t, "majority", 3)}
	run := func(seed uint64, kind func(*replica.Node) sim.Stepper) uint64 {
		w := sim.New(sim.Config{Seed: seed, Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Link{Delay: sim.Uniform(0, 10*time.Millisecond), Loss: 50_000}
		}})
		defer w.Close()
		for _, id := range in.Members() {
			addNode(t, w, id, func(p *sim.Process) (sim.Stepper, error) {
				n, err := replica.New(replica.Config{Cluster: "test", Self: p.ID(), Configurations: in, MaxValue: 100}, p.Disk())
				return kind(n), err
			})
		}
		nodes := w.Processes()
		w.At(time.Second, nodes[1].Crash)
		w.At(3*time.Second, func() {
			if err := nodes[1].Restart(); err != nil {
				t.Error(err)
			}
		})
		s := start(w.AddClient("p"), func(e env.Env) error { return putTo(e, []quorum.NodeID{"n0", "n1", "n2"}, "k", 1) })
		if err := w.Wait(time.Minute, s); err != nil { // and the tasks keep nobody waiting
			t.Error(err)
		}
		w.RunFor(10 * time.Second)
		return w.Hash()
	}
	task := replica.Task{Name: "drawing", Run: func(e env.Env) error {
		for range 1 + e.Rand()%5 {
			if err := errors.Join(e.Sleep(time.Duration(e.Rand()%uint64(time.Second))), putTo(e, []quorum.NodeID{"n0", "n1"}, "k", 1)); err != nil {
				return err
			}
		}
		return errors.New("enough")
	}}
	many := func(n *replica.Node) sim.Stepper { return busy{n, []replica.Task{task, task}} }
	if a, b, c := run(1, many), run(1, many), run(2, many); a != b || a == c {
		t.Errorf("hashes %x and %x of one seed, %x of another", a, b, c)
	}
	none := func(n *replica.Node) sim.Stepper { return busy{n, nil} }
	plain := func(n *replica.Node) sim.Stepper { return struct{ sim.Stepper }{n} }
	if a, b, c := run(1, none), run(1, plain), run(1, many); a != b || a == c {
		t.Errorf("hashes %x without tasks, %x of nodes that can't have any, %x with tasks", a, b, c)
	}
}
