package client

import (
	"fmt"
	"slices"
	"strings"

	"atoll/quorum"
)

// Change says how the members of the cluster, or their quorums, are to be. It
// says what is to hold afterwards: a change that is made already changes nothing.
//
// Nodes are given by their id, or by their name if only one has it. Where a member
// and another node have the same name, it means the member in Remove and
// Replacement.Old.
type Change struct {
	// Set are all members, whoever they are now. With it, Add, Remove and Replace
	// must be empty.
	Set []string
	// Add are to be members, and Remove not.
	Add, Remove []string
	// Replace takes places over.
	Replace []Replacement
	// Quorum is the quorum system, as quorum.ParseSystem reads it; its weights name
	// members as above. "" means that of now: with weights, a node that replaces
	// another has that one's, and a node that is added can have none.
	Quorum string
	// Force has a target proposed that tolerates no death.
	Force bool
}

// Replacement says that a node is to be a member in another's place.
type Replacement struct{ Old, New string }

// target returns the members and the quorum system that are to follow base.
func (ch Change) target(base *quorum.Configuration, nodes []quorum.Member) ([]quorum.NodeID, quorum.System, error) {
	t := changing{base: base, nodes: nodes, members: slices.Clone(base.Members()), system: base.System()}
	t.system.Weights = slices.Clone(t.system.Weights)
	if err := t.apply(ch); err != nil {
		return nil, quorum.System{}, err
	}
	slices.Sort(t.members)
	return t.members, t.system, nil
}

// changing is a configuration that is being changed.
type changing struct {
	base    *quorum.Configuration
	nodes   []quorum.Member // all that are known
	members []quorum.NodeID
	system  quorum.System
}

func (t *changing) apply(ch Change) error {
	switch others := len(ch.Add) + len(ch.Remove) + len(ch.Replace); {
	case len(ch.Set) > 0 && others > 0:
		return &ChangeError{"all members are given, and some to add, remove or replace, too"}
	case len(ch.Set) == 0 && others == 0 && ch.Quorum == "":
		return &ChangeError{"it changes nothing"}
	}
	if len(ch.Set) > 0 {
		t.members = nil
	}
	for _, name := range slices.Concat(ch.Set, ch.Add) {
		if err := t.add(name); err != nil {
			return err
		}
	}
	for _, r := range ch.Replace {
		if err := t.replace(r); err != nil {
			return err
		}
	}
	for _, name := range ch.Remove {
		if err := t.remove(name); err != nil {
			return err
		}
	}
	if len(t.members) == 0 {
		return &ChangeError{"no member would be left"}
	}
	return t.weigh(ch.Quorum)
}

func (t *changing) add(name string) error {
	id, err := t.node(name, false)
	if err == nil && !slices.Contains(t.members, id) {
		t.members = append(t.members, id)
	}
	return err
}

func (t *changing) remove(name string) error {
	id, err := t.node(name, true)
	if err == nil {
		t.members = slices.DeleteFunc(t.members, func(m quorum.NodeID) bool { return m == id })
	}
	return err
}

func (t *changing) replace(r Replacement) error {
	before, err := t.node(r.Old, true)
	if err != nil {
		return err
	}
	after, err := t.node(r.New, false)
	if err != nil {
		return err
	}
	i, there := slices.Index(t.members, before), slices.Contains(t.members, after)
	switch {
	case before == after:
		return &ChangeError{fmt.Sprintf("%s and %s are the same node", r.Old, r.New)}
	case i < 0 && !there:
		return &ChangeError{fmt.Sprintf("%s isn't a member, so %s can't take its place", r.Old, r.New)}
	case i < 0:
		return nil
	case there:
		return &ChangeError{fmt.Sprintf("%s is a member already, beside %s: remove %[2]s instead", r.New, r.Old)}
	}
	t.members[i] = after
	for j, w := range t.system.Weights {
		if w.Node == before {
			t.system.Weights[j].Node = after
		}
	}
	return nil
}

// weigh sets the quorum system, whose weights are of the members.
func (t *changing) weigh(text string) error {
	if text == "" {
		t.system.Weights = slices.DeleteFunc(t.system.Weights, func(w quorum.Weight) bool { return !slices.Contains(t.members, w.Node) })
		if t.system.Kind == quorum.Weighted && len(t.system.Weights) < len(t.members) {
			return &ChangeError{"what do the new members weigh? give all weights as the quorum system: weights=NODE:NUMBER,..."}
		}
		return nil
	}
	system, err := quorum.ParseSystem(text)
	if err != nil {
		return &ChangeError{err.Error()}
	}
	for i, w := range system.Weights {
		if system.Weights[i].Node, err = t.node(string(w.Node), true); err != nil {
			return err
		}
	}
	slices.SortFunc(system.Weights, func(a, b quorum.Weight) int { return strings.Compare(string(a.Node), string(b.Node)) })
	t.system = system
	return nil
}

// node returns the id of the node that a person has given by its id or name.
func (t *changing) node(given string, memberFirst bool) (quorum.NodeID, error) {
	var members, all []quorum.NodeID
	for _, m := range t.nodes {
		_, before := t.base.Place(m.ID)
		member := before || slices.Contains(t.members, m.ID)
		switch {
		case string(m.ID) == given:
			return m.ID, nil
		case m.Name != given:
			continue
		case member:
			members = append(members, m.ID)
		}
		all = append(all, m.ID)
	}
	if memberFirst && len(members) == 1 {
		return members[0], nil
	}
	if len(all) == 1 {
		return all[0], nil
	}
	slices.Sort(all)
	return "", &NodeError{Given: given, Candidates: all}
}

// ChangeError says what is wrong with a Change, found before anything was asked.
type ChangeError struct{ Text string }

// Error returns the text.
func (e *ChangeError) Error() string { return e.Text }

// NodeError says that it isn't known which node somebody means.
type NodeError struct {
	Given string
	// Candidates are all nodes of that name, sorted: none, or more than one.
	Candidates []quorum.NodeID
}

// Error names the candidates.
func (e *NodeError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no node is known by the id or name %.80q", e.Given)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes are called %q; give the id of one:", len(e.Candidates), e.Given)
	for _, id := range e.Candidates {
		b.WriteString(" " + string(id))
	}
	return b.String()
}
