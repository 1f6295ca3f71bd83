package abd

import (
	"slices"
	"strings"

	"atoll/env"
	"atoll/quorum"
)

// Life counts how often a node has taken back what it had acknowledged. A
// node's first life is 0. It begins another when it finds a record damaged:
// whatever tag it once acknowledged under that key, it doesn't know any more.
//
// An acknowledgement is given in a life, and stands as long as nobody who is
// asked knows of a later one (rule H3 in docs/PROTOCOLS.md).
type Life uint64

// LifeOf is the life that a node is in, as far as another one knows.
type LifeOf struct {
	Node quorum.NodeID
	Life Life
}

// MaxLives is how many other nodes' lives an answer names.
const MaxLives = 64

// Standing is a part of every answer that counts towards a quorum.
type Standing struct {
	// Life is the one in which the node answers.
	Life Life
	// Others are the nodes that the one who answers knows to be in a later
	// life than their first, sorted by node. The slice is immutable.
	Others []LifeOf
	// Horizon is what the node durably knows of the configurations. News says
	// it in full to who knows less, and is nil for who doesn't.
	Horizon quorum.Horizon
	News    *quorum.News
}

// Of returns what s knows of a node.
func (s *Standing) Of(node quorum.NodeID) Life { return lifeOf(s.Others, node) }

func lifeOf(lives []LifeOf, node quorum.NodeID) Life {
	for _, l := range lives {
		if l.Node == node {
			return l.Life
		}
	}
	return 0
}

// With returns s, in which a node is in the given life at least.
func (s Standing) With(node quorum.NodeID, life Life) Standing {
	s.Others = raised(slices.Clone(s.Others), node, life)
	return s
}

// raised returns lives in which a node is in the given life at least. It may
// write to the slice's array.
func raised(lives []LifeOf, node quorum.NodeID, life Life) []LifeOf {
	if life == 0 {
		return lives
	}
	i, found := slices.BinarySearchFunc(lives, node, func(l LifeOf, n quorum.NodeID) int {
		return strings.Compare(string(l.Node), string(n))
	})
	if !found {
		return slices.Insert(lives, i, LifeOf{node, life})
	}
	lives[i].Life = max(lives[i].Life, life)
	return lives
}

// standingOf returns the standing of whoever gave an answer, nil if it is none
// that counts towards a quorum or reveals configurations.
func standingOf(answer env.Message) *Standing {
	switch m := answer.(type) {
	case *GetAck:
		return &m.Standing
	case *PutAck:
		return &m.Standing
	case *Page:
		return &m.Standing
	case *Moved:
		return &m.Standing
	}
	return nil
}

// lives is what a phase has learned of its members' lives. Nearly always it is
// empty and costs two comparisons an answer.
type lives struct {
	// least is the life in which an answer counts, where that isn't the first:
	// no node whose answer counts has given it in an earlier one.
	least []LifeOf
}

// learn takes in what an answer says of lives. It returns the nodes whose
// answers, if they have given one earlier in the phase, count no more, and
// whether this one does.
//
// The node that is in a later life has forgotten some record that it had
// acknowledged. What it forgot it has taken again from a read quorum of
// others, each of which knew of that later life when it answered. A member of
// the write quorum that this phase is counting is among them. Either it stored
// the record before it answered, and then what was forgotten came back; or
// later, and then its own acknowledgement tells of the later life, here.
func (l *lives) learn(from quorum.NodeID, s *Standing) (void []quorum.NodeID, counts bool) {
	if s.Life == 0 && len(s.Others) == 0 && len(l.least) == 0 {
		return nil, true
	}
	for _, o := range s.Others {
		if o.Life > lifeOf(l.least, o.Node) {
			l.least = raised(l.least, o.Node, o.Life)
			void = append(void, o.Node)
		}
	}
	if s.Life < lifeOf(l.least, from) {
		return void, false
	}
	l.least = raised(l.least, from, s.Life)
	return void, true
}
