package replica

import (
	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
)

// The mailboxes of the tasks that go by the config map.
const (
	mailHeal    env.Mailbox = "repair.heal"
	mailExamine env.Mailbox = "repair.examine"
	mailPull    env.Mailbox = "repair.pull"
	mailFinish  env.Mailbox = "reconfig.finish"
)

func watchers() []env.Mailbox { return []env.Mailbox{mailHeal, mailExamine, mailPull, mailFinish} }

// nudge is left in a mailbox, by the task that names it.
type nudge struct{ box env.Mailbox }

// Message marks the type as a message.
func (*nudge) Message() {}

// Tasks returns what the node does besides answering, the same in every call.
func (n *Node) Tasks() []Task {
	several := func(m *quorum.Map) bool { return len(m.Active().Members()) > 1 }
	present := func(m *quorum.Map) bool {
		_, member := m.Installed().Place(n.cfg.Self)
		return member && len(m.Installed().Members()) > 1
	}
	any := func(*quorum.Map) bool { return true }
	proposer := reconfig.Proposer{Cluster: n.cfg.Cluster, Rules: n.cfg.Rules.Reconfig, Synod: n.cfg.Rules.Synod}
	r := rambo.Tasks{Pace: n.cfg.Reconfiguration, Rules: n.cfg.Rules.Rambo}
	tasks := []Task{
		{"rambo.gossip", r.Gossip},
		{"rambo.tell", r.Tell},
		{"rambo.drive", r.Drive},
		{"rambo.install", r.Install},
		{"repair.heal", n.follow(mailHeal, several, func(e env.Env, m *quorum.Map) error { return n.repairs(m).Heal(e) })},
		{"repair.examine", n.follow(mailExamine, several, func(e env.Env, m *quorum.Map) error { return n.repairs(m).Examine(e) })},
		{"repair.pull", n.follow(mailPull, present, n.pull)},
		{"reconfig.finish", n.follow(mailFinish, any, func(e env.Env, m *quorum.Map) error { return r.Finish(e, proposer, m) })},
	}
	if n.cfg.Join.Instance != (join.Instance{}) {
		tasks = append(tasks, Task{"join.greet", join.Tasks{Pace: n.cfg.Join.Pace, Rules: n.cfg.Join.Rules}.Greet})
	}
	return tasks
}

func (n *Node) repairs(m *quorum.Map) repair.Tasks {
	return repair.Tasks{Configurations: m.Active(), Horizon: m.Horizon(), Pace: n.cfg.Pace, Rules: n.cfg.Rules.Repair}
}

// follow returns a task that runs f with the config map while that lists the
// node, and when allows it, and anew when the map has changed. It returns when f
// does.
func (n *Node) follow(box env.Mailbox, when func(*quorum.Map) bool, f func(env.Env, *quorum.Map) error) func(env.Env) error {
	return func(e env.Env) error {
		for {
			m, err := rambo.Known(e)
			if err != nil {
				return err
			}
			var running env.Task
			ended := false
			if m.Has(e.Self()) && when(m) {
				running = e.Go(string(box), func(e env.Env) error {
					err := f(e, m)
					if ended = e.Sleep(0) == nil; ended { // by itself
						e.Tell([]quorum.NodeID{e.Self()}, &nudge{box})
					}
					return err
				})
			}
			_, err = e.Receive(box)
			if running != nil {
				running.Cancel()
				if why := running.Join(); err == nil && ended {
					err = why
				}
			}
			if err != nil {
				return err
			}
		}
	}
}

// pull takes from all other members what the node has missed. Who is new merges
// (package rambo) until its configuration is installed, and has nothing that others
// lack.
func (n *Node) pull(e env.Env, m *quorum.Map) error {
	var tasks []env.Task
	for _, peer := range m.Installed().Members() {
		if peer == e.Self() {
			continue
		}
		t := Task{"repair.pull", func(e env.Env) error { return n.repairs(m).Pull(e, peer) }}
		tasks = append(tasks, e.Go(t.Name, func(e env.Env) error {
			return t.Keep(e, func(ended error) { e.Trace(env.Event{Name: "repair.pull-ended"}) })
		}))
	}
	var first error
	for _, t := range tasks {
		if err := t.Join(); first == nil {
			first = err
		}
	}
	return first
}
