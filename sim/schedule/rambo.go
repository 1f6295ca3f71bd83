package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
	"atoll/synod"
)

// Rambo are the parts of a step from one configuration to the next, each once
// and on the node that is named first; and what stands in for the consensus on
// the next one.
//
//	decide p c1 a b  p tells a and b that configuration c1 was decided, which
//	                 follows what they know; each answers when it has that on disk
//	recon p c1       p has c1 decided, and tells its members
//	fence a          a fences the configuration that is installed for the next
//	merge d [N]      d merges what that configuration holds, by N records a page
//	accept p k v a b
//	                 p asks a and b to accept v as an update of k in the first
//	                 configuration
//	voted d k v      d must have that vote on its disk
//	carry a          a waits until enough members have merged, and asks them to
//	retire a         a marks the next one as installed, with the lives that its
//	                 last fence has brought
//	upgrade a        fence, carry and retire, each when the one before is done
//	gossip a b       a and b exchange what they know
//	learn p c1       p learns that c1 is installed, from somebody who says no more
//	map a            prints a's config map as it is on its disk
func Rambo(r *Run) Table {
	s := &reconfigurations{Run: r, lives: make(map[quorum.NodeID][]abd.LifeOf)}
	return Table{
		Operations: map[string]sim.Operation{
			"decide":  s.decide,
			"recon":   s.recon,
			"fence":   s.fence,
			"merge":   s.merge,
			"carry":   s.carry,
			"retire":  s.retire,
			"upgrade": s.upgrade,
			"gossip":  s.gossip,
			"accept":  s.accept,
		},
		Commands: map[string]func([]string) (string, error){"map": s.print, "learn": s.learn, "voted": s.voted},
		Describe: s.describe,
	}
}

type reconfigurations struct {
	*Run
	lives map[quorum.NodeID][]abd.LifeOf // that fences have brought
}

// tasks has no pauses: a schedule says when what happens. Those that stay are
// asked to merge after ten seconds.
func (s *reconfigurations) tasks() rambo.Tasks {
	return rambo.Tasks{Pace: rambo.Pace{Rate: -1, Patience: 10 * time.Second}, Rules: s.Rules.Rambo}
}

// decide is "decide p c1 a b".
func (s *reconfigurations) decide(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("want a configuration and nodes")
	}
	last := s.Configuration(args[0])
	if last == nil {
		return "", fmt.Errorf("no configuration %q", args[0])
	}
	var row []*quorum.Configuration
	for _, c := range s.configurations {
		if c.Index() <= last.Index() {
			row = append(row, c.Configuration)
		}
	}
	m, err := quorum.NewMap(row...)
	if err != nil {
		return "", err
	}
	var to []quorum.NodeID
	for _, node := range args[1:] {
		to = append(to, quorum.NodeID(node))
	}
	var told []quorum.NodeID
	tell := &rambo.Gossip{Knowledge: rambo.Knowledge{News: &quorum.News{Map: m}}}
	return "", e.Ask(to, tell, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
		if !slices.Contains(told, from) {
			told = append(told, from)
		}
		return len(told) == len(to)
	})
}

// recon is "recon p c1".
func (s *reconfigurations) recon(process quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) != 1 || s.Configuration(args[0]) == nil {
		return "", errors.New("want a configuration")
	}
	c := s.Configuration(args[0])
	p := &reconfig.Proposer{Cluster: clusterID, Known: s.Known(process), Rules: s.Rules.Reconfig, Synod: s.Rules.Synod}
	d, err := rambo.Recon(e, p, reconfig.Proposal{Members: c.Members(), System: c.System(), Force: true})
	if err != nil {
		return "", err
	}
	return d.Configuration.String(), nil
}

// fence is "fence a".
func (s *reconfigurations) fence(node quorum.NodeID, e env.Env, _ []string) (string, error) {
	lives, err := s.tasks().Fence(e)
	s.lives[node] = lives
	return "", err
}

// merge is "merge d" or "merge d 1".
func (s *reconfigurations) merge(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	tasks := s.tasks()
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 || len(args) > 1 {
			return "", errors.New("want a number of records")
		}
		tasks.Pace.Page = n
	}
	return "", tasks.Merge(e)
}

// accept is "accept p k v a b".
func (s *reconfigurations) accept(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) < 3 {
		return "", errors.New("want a key, a value and nodes")
	}
	req := &synod.Accept{Instance: synod.TravellingPrefix + synod.Instance(args[0]), Ballot: synod.Ballot{Round: 1, ID: e.ID()}, Value: []byte(args[1])}
	var to []quorum.NodeID
	for _, node := range args[2:] {
		to = append(to, quorum.NodeID(node))
	}
	said := make(map[quorum.NodeID]string)
	err := e.Ask(to, req, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		said[from] = "refused"
		if _, ok := answer.(*synod.Accepted); ok {
			said[from] = "accepted"
		}
		return len(said) == len(to)
	})
	var all []string
	for _, node := range to {
		all = append(all, fmt.Sprintf("%s %s", node, said[node]))
	}
	return strings.Join(all, ", "), err
}

// voted is "voted d k v".
func (s *reconfigurations) voted(args []string) (string, error) {
	if len(args) != 3 {
		return "", errors.New("want a node, a key and a value")
	}
	vote, err := replica.VoteOf(s.Script.World.Process(quorum.NodeID(args[0])).Disk(), synod.TravellingPrefix+synod.Instance(args[1]))
	if err != nil {
		return "", err
	}
	if string(vote.Value) != args[2] {
		s.Fail("%s has voted %q for %s, not %q", args[0], vote.Value, args[1], args[2])
	}
	return string(vote.Value), nil
}

// carry is "carry a".
func (s *reconfigurations) carry(_ quorum.NodeID, e env.Env, _ []string) (string, error) {
	return "", s.tasks().Carry(e)
}

// retire is "retire a".
func (s *reconfigurations) retire(node quorum.NodeID, e env.Env, _ []string) (string, error) {
	return "", s.tasks().Retire(e, s.lives[node])
}

// upgrade is "upgrade a".
func (s *reconfigurations) upgrade(_ quorum.NodeID, e env.Env, _ []string) (string, error) {
	lives, err := s.tasks().Fence(e)
	if err != nil {
		return "", err
	}
	if err := s.tasks().Carry(e); err != nil {
		return "", err
	}
	return "", s.tasks().Retire(e, lives)
}

// gossip is "gossip a b".
func (s *reconfigurations) gossip(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want another node")
	}
	return "", s.tasks().Exchange(e, quorum.NodeID(args[0]))
}

// learn is "learn p c1": what a client takes from a description of the cluster,
// which tells nothing of lives.
func (s *reconfigurations) learn(args []string) (string, error) {
	if len(args) != 2 || s.Configuration(args[1]) == nil {
		return "", errors.New("want a process and a configuration")
	}
	m, err := quorum.NewMap(s.Configuration(args[1]))
	if err != nil {
		return "", err
	}
	s.Known(quorum.NodeID(args[0])).Learn(&quorum.News{Map: m})
	return "", nil
}

// print is "map a".
func (s *reconfigurations) print(args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want a node")
	}
	m, err := s.mapOn(quorum.NodeID(args[0]))
	if err != nil {
		return "", err
	}
	return m.String(), nil
}

// describe puts messages into words. To those of registers it adds what they
// reveal of configurations.
func (s *reconfigurations) describe(m env.Message) string {
	standing := func(a *abd.Standing) string {
		if a.News == nil {
			return ""
		}
		h := a.News.Map.Horizon()
		return fmt.Sprintf("%s knows %d-%d", s.Script.World.Describe(m), h.Installed, h.Next-1)
	}
	knows := func(k *rambo.Knowledge) string {
		text := " knows nothing"
		if k.News != nil {
			h := k.News.Map.Horizon()
			text = fmt.Sprintf(" knows %d-%d", h.Installed, h.Next-1)
		}
		for _, l := range k.Lives {
			text += fmt.Sprintf(" %s:%d", l.Node, l.Life)
		}
		return text
	}
	switch m := m.(type) {
	case *abd.GetAck:
		return standing(&m.Standing)
	case *abd.PutAck:
		return standing(&m.Standing)
	case *abd.Page:
		return standing(&m.Standing)
	case *abd.Moved:
		return standing(&m.Standing)
	case *rambo.Gossip:
		return "gossip" + knows(&m.Knowledge)
	case *rambo.Gossiped:
		return "gossiped" + knows(&m.Knowledge)
	case *rambo.Announce:
		return fmt.Sprintf("announce %v", m.News.Map)
	case *rambo.Announced:
		return fmt.Sprintf("announced %d-%d", m.Horizon.Installed, m.Horizon.Next-1)
	case *rambo.Fence:
		return fmt.Sprintf("fence %d", m.Index) + knows(&m.Knowledge)
	case *rambo.Fenced:
		return fmt.Sprintf("fenced %d", m.Index) + knows(&m.Knowledge)
	case *rambo.Install:
		return fmt.Sprintf("install %d", m.Index)
	case *rambo.Installed:
		return fmt.Sprintf("installed %d", m.Index)
	case *repair.Offer:
		if m.Knows > 0 {
			return fmt.Sprintf("offer %q-%q of %d keys, for %d", m.After, m.To, len(m.Digests), m.Knows)
		}
	case *repair.Summarize:
		if m.Knows > 0 {
			most := ""
			if m.Cut {
				most = "the first "
			}
			return fmt.Sprintf("summarize %q-%q of %s%d keys, for %d", m.After, m.To, most, m.Keys, m.Knows)
		}
	}
	return ""
}
