package quorum

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is a family of quorum systems.
type Kind uint8

// The kinds of quorum systems. Their numbers are part of no encoding: the
// wire and the disk carry a system's text.
const (
	Majority Kind = iota
	Threshold
	Weighted
	Grid
)

// System describes a quorum system apart from the members it is laid over.
// The zero System is Majority. Its text form (String, ParseSystem) is the one
// that people write and that travels.
type System struct {
	Kind Kind
	// Get and Put are the sizes of the quorums of a Threshold system.
	Get, Put int
	// Rows and Columns are the shape of a Grid.
	Rows, Columns int
	// Weights are the weights of a Weighted system, sorted by node.
	Weights []Weight
}

// Weight is a member's weight. Zero is allowed: such a member stores values
// and decides nothing.
type Weight struct {
	Node  NodeID
	Value uint32
}

// ParseSystem reads the text form of a System: "majority", "get=2,put=4",
// "weights=a:3,b:1,c:1" or "grid=3x3". Weights may be in any order; String
// sorts them. Whether the system fits a set of members is for NewConfiguration
// to say.
func ParseSystem(s string) (System, error) {
	system, err := parseSystem(s)
	if err != nil {
		return System{}, fmt.Errorf("quorum: %.200q is not a quorum system: %w (examples: majority; get=2,put=4; weights=a:3,b:1,c:1; grid=3x3)", s, err)
	}
	return system, nil
}

func parseSystem(s string) (System, error) {
	name, value, valued := strings.Cut(s, "=")
	switch name {
	case "majority":
		if valued {
			return System{}, errors.New("majority takes no value")
		}
		return System{}, nil
	case "get":
		get, put, ok := parsePair(value, ",put=")
		if !ok {
			return System{}, fmt.Errorf("both sizes must be given, as numbers from 1 to %d", MaxMembers)
		}
		return System{Kind: Threshold, Get: get, Put: put}, nil
	case "grid":
		rows, columns, ok := parsePair(value, "x")
		if !ok {
			return System{}, fmt.Errorf("rows and columns must be given, as numbers from 1 to %d", MaxMembers)
		}
		return System{Kind: Grid, Rows: rows, Columns: columns}, nil
	case "weights":
		weights, err := parseWeights(value)
		return System{Kind: Weighted, Weights: weights}, err
	}
	return System{}, errors.New("unknown kind")
}

func parseWeights(s string) ([]Weight, error) {
	if n := strings.Count(s, ",") + 1; n > MaxMembers {
		return nil, fmt.Errorf("%d weights, but a configuration has at most %d members", n, MaxMembers)
	}
	var ws []Weight
	for part := range strings.SplitSeq(s, ",") {
		id, weight, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("%.80q is not a node and its weight, node:number", part)
		}
		node, err := ParseNodeID(id)
		if err != nil {
			return nil, err
		}
		w, err := strconv.ParseUint(weight, 10, 32)
		if err != nil || strconv.FormatUint(w, 10) != weight {
			return nil, fmt.Errorf("the weight of %q must be a number from 0 to %d", id, uint32(math.MaxUint32))
		}
		ws = append(ws, Weight{Node: node, Value: uint32(w)})
	}
	slices.SortFunc(ws, compareWeights)
	for i := 1; i < len(ws); i++ {
		if ws[i].Node == ws[i-1].Node {
			return nil, fmt.Errorf("%q has two weights", ws[i].Node)
		}
	}
	return ws, nil
}

func compareWeights(a, b Weight) int { return strings.Compare(string(a.Node), string(b.Node)) }

// parsePair reads two sizes with sep between them.
func parsePair(s, sep string) (first, second int, ok bool) {
	a, b, ok := strings.Cut(s, sep)
	first, aerr := parseSize(a)
	second, berr := parseSize(b)
	return first, second, ok && aerr == nil && berr == nil
}

func parseSize(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 1 || n > MaxMembers || strconv.Itoa(n) != s) {
		err = strconv.ErrRange
	}
	return n, err
}

// String returns the text form of s.
func (s System) String() string { return s.Text(func(id NodeID) string { return string(id) }) }

// Text is String with what name calls the nodes.
func (s System) Text(name func(NodeID) string) string {
	switch s.Kind {
	case Threshold:
		return fmt.Sprintf("get=%d,put=%d", s.Get, s.Put)
	case Grid:
		return fmt.Sprintf("grid=%dx%d", s.Rows, s.Columns)
	case Weighted:
		var b strings.Builder
		for i, w := range s.Weights {
			sep := ","
			if i == 0 {
				sep = "weights="
			}
			fmt.Fprintf(&b, "%s%s:%d", sep, name(w.Node), w.Value)
		}
		return b.String()
	case Majority:
		return "majority"
	default:
		return fmt.Sprintf("unknown kind %d", s.Kind)
	}
}
