package sim_test

import (
	"testing"
	"time"

	"atoll/env"
	"atoll/env/envtest"
	"atoll/quorum"
	"atoll/sim"
)

// cluster makes a world into a Cluster of the conformance cases.
type cluster struct {
	t      *testing.T
	w      *sim.World
	faults func(from, to quorum.NodeID, m env.Message) envtest.Fate

	steppers map[quorum.NodeID]envtest.Stepper // of nodes, in their present lives
}

func newCluster(t *testing.T, cfg sim.Config) *cluster {
	c := &cluster{t: t, steppers: make(map[quorum.NodeID]envtest.Stepper)}
	cfg.Intercept = c.intercept
	c.w = sim.New(cfg)
	t.Cleanup(c.w.Close)
	return c
}

func (c *cluster) intercept(m sim.Transit) sim.Fate {
	if c.faults == nil {
		return sim.Pass
	}
	switch c.faults(m.From.ID(), m.To.ID(), m.Message) {
	case envtest.Lose:
		return sim.Lose
	case envtest.Twice:
		c.releaseLate(m)
		return sim.Twice
	case envtest.Late:
		return sim.Hold
	}
	c.releaseLate(m)
	return sim.Pass
}

// releaseLate sends what was held on the link of m, ahead of m.
func (c *cluster) releaseLate(m sim.Transit) {
	for i := 0; i < len(c.w.Held()); {
		if h := c.w.Held()[i]; h.From == m.From && h.To == m.To {
			c.w.Release(i)
		} else {
			i++
		}
	}
}

func (c *cluster) Node(id quorum.NodeID, s envtest.Stepper) {
	c.steppers[id] = s
	if _, err := c.w.AddNode(id, func(*sim.Process) (sim.Stepper, error) { return c.steppers[id], nil }); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) Restart(id quorum.NodeID, s envtest.Stepper) {
	c.steppers[id] = s
	p := c.w.Process(id)
	p.Crash()
	if err := p.Restart(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) Scope(id quorum.NodeID, limit time.Duration) envtest.Scope {
	p := c.w.Process(id)
	if p == nil {
		p = c.w.AddClient(id)
	}
	if !p.Up() {
		if err := p.Restart(); err != nil {
			c.t.Fatal(err)
		}
	}
	return &scope{p.Scope(limit), c.w}
}

func (c *cluster) Stop(id quorum.NodeID) { c.w.Process(id).Stop() }
func (c *cluster) Cut(id quorum.NodeID)  { c.w.Process(id).Disconnect() }
func (c *cluster) Heal(id quorum.NodeID) { c.w.Process(id).Reconnect() }

func (c *cluster) Faults(f func(from, to quorum.NodeID, m env.Message) envtest.Fate) { c.faults = f }

type scope struct {
	*sim.Scope
	w *sim.World
}

func (s *scope) Wait() error {
	if err := s.w.Wait(time.Hour, s.Scope); err != nil {
		return err
	}
	return s.Err()
}

// The simulated Env does what every Env must do, whether messages overtake
// each other or not.
func TestEnv(t *testing.T) {
	links := []struct {
		name string
		link sim.Link
	}{
		{"constant", sim.Link{Delay: sim.Constant(time.Millisecond)}},
		{"overtaking", sim.Link{Delay: sim.Uniform(0, 10*time.Millisecond)}},
		{"ordered", sim.Link{Delay: sim.Uniform(0, 10*time.Millisecond), Ordered: true}},
	}
	for _, l := range links {
		for _, c := range envtest.Cases() {
			t.Run(l.name+"/"+c.Name, func(t *testing.T) {
				// Nobody is late who answers to two requests, one after the other.
				cfg := sim.Config{Link: func(_, _ quorum.NodeID) sim.Link { return l.link }, Hedge: 45 * time.Millisecond}
				if err := c.Run(newCluster(t, cfg)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The cases notice a kernel that breaks the rules that they are about.
func TestEnvMutants(t *testing.T) {
	mutants := []struct {
		name  string
		rules sim.Rules
		fails string
	}{
		{"MatchAnyConversation", sim.Rules{MatchAnyConversation: true}, "late answers are not passed on"},
		{"ReuseIDs", sim.Rules{ReuseIDs: true}, "ids and random numbers differ"},
		{"NeverHedge", sim.Rules{NeverHedge: true}, "spares are asked for who is silent"},
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			found := false
			for _, c := range envtest.Cases() {
				if c.Name == m.fails {
					found = true
					if err := c.Run(newCluster(t, sim.Config{Rules: m.rules})); err == nil {
						t.Errorf("%q passes", c.Name)
					} else {
						t.Log(err)
					}
				}
			}
			if !found {
				t.Errorf("there is no case %q", m.fails)
			}
		})
	}
}
