package quorum

import (
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
// "weights=a:3,b:1,c:1" or "grid=3x3". Whether it fits a set of members is
// for NewConfiguration to say.
func ParseSystem(s string) (System, error) {
	bad := func(why string) (System, error) {
		return System{}, fmt.Errorf("quorum: %q is not a quorum system: %s (examples: majority; get=2,put=4; weights=a:3,b:1,c:1; grid=3x3)", s, why)
	}
	name, value, _ := strings.Cut(s, "=")
	switch name {
	case "majority":
		if s != "majority" {
			return bad("majority takes no value")
		}
		return System{}, nil
	case "get":
		get, put, ok := strings.Cut(value, ",put=")
		g, gerr := parseSize(get)
		p, perr := parseSize(put)
		if !ok || gerr != nil || perr != nil {
			return bad("both sizes must be numbers from 1")
		}
		return System{Kind: Threshold, Get: g, Put: p}, nil
	case "grid":
		rows, cols, ok := strings.Cut(value, "x")
		r, rerr := parseSize(rows)
		c, cerr := parseSize(cols)
		if !ok || rerr != nil || cerr != nil {
			return bad("rows and columns must be numbers from 1")
		}
		return System{Kind: Grid, Rows: r, Columns: c}, nil
	case "weights":
		var ws []Weight
		for part := range strings.SplitSeq(value, ",") {
			id, weight, _ := strings.Cut(part, ":")
			node, err := ParseNodeID(id)
			if err != nil {
				return bad(err.Error())
			}
			w, err := strconv.ParseUint(weight, 10, 32)
			if err != nil || strconv.FormatUint(w, 10) != weight {
				return bad(fmt.Sprintf("the weight of %q must be a number from 0 to %d", id, uint32(math.MaxUint32)))
			}
			ws = append(ws, Weight{Node: node, Value: uint32(w)})
		}
		slices.SortFunc(ws, func(a, b Weight) int { return strings.Compare(string(a.Node), string(b.Node)) })
		for i := 1; i < len(ws); i++ {
			if ws[i].Node == ws[i-1].Node {
				return bad(fmt.Sprintf("%q has two weights", ws[i].Node))
			}
		}
		return System{Kind: Weighted, Weights: ws}, nil
	}
	return bad("unknown kind")
}

func parseSize(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 1 || n > MaxMembers || strconv.Itoa(n) != s) {
		err = strconv.ErrRange
	}
	return n, err
}

// String returns the text form of s.
func (s System) String() string {
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
			fmt.Fprintf(&b, "%s%s:%d", sep, w.Node, w.Value)
		}
		return b.String()
	default:
		return "majority"
	}
}
