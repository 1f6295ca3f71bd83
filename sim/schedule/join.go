package schedule

import (
	"errors"
	"fmt"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// Joining is how nodes become known, and are told from copies of them. Each node's
// folder has an instance of its own.
//
//	join d           d asks the members to let it in. That it was let in with two
//	                 folders breaks a promise
//	folder d         d is given another folder, as by a second use of its ticket
//	greet b          b greets those that it knows, as before it serves: the first to
//	                 answer decides
//	outcast b        b must have ended because of what others know of it
//	runs b           b must not
func Joining(r *Run) Table {
	s := &joining{Run: r, folders: make(map[quorum.NodeID]byte), in: make(map[quorum.NodeID]byte)}
	return Table{
		Operations: map[string]sim.Operation{"join": s.join, "greet": s.greet},
		Commands:   map[string]func([]string) (string, error){"folder": s.folder, "outcast": s.outcast, "runs": s.runs},
		Boot:       s.boot,
		Describe:   s.describe,
		Rules:      []any{&s.rules},
	}
}

type joining struct {
	*Run
	rules   join.Rules
	folders map[quorum.NodeID]byte // how many a node has had before this one
	in      map[quorum.NodeID]byte // with which one it was let in, from 1
}

func (s *joining) boot(p *sim.Process) (sim.Stepper, error) {
	active := s.Active(p.ID())
	if !slices.Contains(active.Members(), p.ID()) {
		active = nil
	}
	cfg := replica.Config{Cluster: clusterID, Self: p.ID(), Configurations: active, MaxValue: abd.DefaultMaxValue, Rules: s.Rules, Own: quorum.Member{ID: p.ID()}}
	cfg.Join = join.Config{Instance: s.instance(p.ID()), Run: uint64(p.Life()), Rules: s.rules}
	return replica.New(cfg, p.Disk())
}

// instance is that of a node's folder.
func (s *joining) instance(node quorum.NodeID) (i join.Instance) {
	i[0] = s.folders[node] + 1
	copy(i[1:], node)
	return i
}

// join is "join d".
func (s *joining) join(node quorum.NodeID, e env.Env, _ []string) (string, error) {
	err := join.Tasks{Rules: s.rules}.Join(e, s.active.Members())
	if refused, ok := errors.AsType[*join.RefusedError](err); ok {
		return "refused by " + fmt.Sprint(len(refused.Texts)), nil
	}
	if err != nil {
		return "", err
	}
	folder := s.folders[node] + 1
	if before := s.in[node]; before != 0 && before != folder {
		s.Fail("%s was let in with two folders", node)
	}
	s.in[node] = folder
	return "in", nil
}

// greet is "greet b".
func (s *joining) greet(_ quorum.NodeID, e env.Env, _ []string) (string, error) {
	return "", join.Tasks{Rules: s.rules}.Hello(e)
}

// folder is "folder d".
func (s *joining) folder(args []string) (string, error) {
	p, err := s.node(args)
	if err != nil {
		return "", err
	}
	s.folders[p.ID()]++
	p.RestoreDisk(sim.NewDisk())
	return "", p.Restart()
}

// outcast is "outcast b".
func (s *joining) outcast(args []string) (string, error) {
	p, err := s.node(args)
	if err != nil {
		return "", err
	}
	out, ok := errors.AsType[*join.OutcastError](p.Failure())
	if !ok || p.Up() {
		s.Fail("%s goes on with what it has forgotten", p.ID())
		return "", nil
	}
	return out.Reason(), nil
}

// runs is "runs b".
func (s *joining) runs(args []string) (string, error) {
	p, err := s.node(args)
	if err == nil && !p.Up() {
		s.Fail("%s has ended: %v", p.ID(), p.Failure())
	}
	return "", err
}

func (s *joining) node(args []string) (*sim.Process, error) {
	if len(args) != 1 {
		return nil, errors.New("want a node")
	}
	p := s.Script.World.Process(quorum.NodeID(args[0]))
	if p == nil || p.Disk() == nil {
		return nil, fmt.Errorf("%s is no node", args[0])
	}
	return p, nil
}

// describe puts messages into words.
func (s *joining) describe(m env.Message) string {
	switch m := m.(type) {
	case *join.Join:
		return fmt.Sprintf("join with folder %d", m.Instance[0])
	case *join.Greet:
		return fmt.Sprintf("greet from start %d at %d", m.Life.Starts, m.Life.Position)
	case *join.Greeted:
		return "greeted: " + map[join.Verdict]string{join.Welcome: "welcome", join.OtherStore: "another store", join.OlderCopy: "older copy", join.SecondCopy: "second copy"}[m.Verdict]
	}
	return ""
}
