package scenario

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Plan is one run, in every detail: the settings, the seed of whatever isn't
// decided here (delays, which operation comes next), and the decisions, one
// fault each. The same plan gives the same run.
//
// Taking a decision out leaves all else as it was, but for what follows from
// the fault: no draw hangs on another. That makes plans shrink well.
type Plan struct {
	Seed uint64 `json:"seed"`
	// Scenario are the settings. Its Faults aren't looked at: Draw has made
	// Decisions of them.
	Scenario  Scenario   `json:"scenario"`
	Decisions []Decision `json:"decisions,omitempty"`
	// Healing says what is healed when Scenario.Duration is over, for each
	// cluster. One that is missing is healed altogether.
	Healing []Healing `json:"healing,omitempty"`

	// What a shrunken plan leaves out. Clients that are Idle do nothing;
	// operations on other keys than Keys, if there are any, aren't done, nor
	// those in Skip, "p1/3" being the third of client p1.
	Idle []string `json:"idle,omitempty"`
	Keys []string `json:"keys,omitempty"`
	Skip []string `json:"skip,omitempty"`
}

// Decision is one fault: what happens, when, to whom, and for how long.
type Decision struct {
	// At is the time since the beginning of the run.
	At Duration `json:"at"`
	// Do is what happens; see FaultKinds.
	Do string `json:"do"`
	// On are the processes that it happens to: nodes n1, n2, … and clients
	// p1, p2, …; with several clusters c1-n1 and so on. "n*" stands for all
	// whose names begin so.
	On []string `json:"on"`
	// To are the other ends, where the fault has two.
	To []string `json:"to,omitempty"`
	// For is how long it lasts. 0: until the healing, and for good on a node
	// that isn't healed.
	For Duration `json:"for,omitempty"`
	// N is a number whose meaning hangs on Do; see FaultAbout.
	N int `json:"n,omitempty"`
	// Key is the register, where it is about one.
	Key string `json:"key,omitempty"`
	// Quorum is the quorum system that is proposed, as quorum.ParseSystem reads
	// it. Default "majority".
	Quorum string `json:"quorum,omitempty"`
}

// String returns the decision in a line.
func (d Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s %s", d.At, d.Do, strings.Join(d.On, ","))
	if len(d.To) > 0 {
		fmt.Fprintf(&b, " to %s", strings.Join(d.To, ","))
	}
	if d.Key != "" {
		fmt.Fprintf(&b, " key %s", d.Key)
	}
	if d.Quorum != "" {
		fmt.Fprintf(&b, " under %s", d.Quorum)
	}
	if d.N != 0 {
		fmt.Fprintf(&b, " n=%d", d.N)
	}
	if d.For != 0 {
		fmt.Fprintf(&b, " for %v", d.For)
	}
	return b.String()
}

// Healing says what becomes of the nodes of one cluster when the faults are
// over. The core contains a read and a write quorum; every other node is in
// one of the other lists, or is healed too.
type Healing struct {
	Cluster int `json:"cluster"` // from 1
	// Dead nodes are down.
	Dead []string `json:"dead,omitempty"`
	// Deaf nodes are up, and nothing that others send reaches them.
	Deaf []string `json:"deaf,omitempty"`
	// Mute nodes are up, and nothing that they send reaches others.
	Mute []string `json:"mute,omitempty"`
}

// rest returns all nodes that aren't healed.
func (h Healing) rest() []string { return slices.Concat(h.Dead, h.Deaf, h.Mute) }

// ParsePlan reads a plan file.
func ParsePlan(r io.Reader) (Plan, error) {
	var p Plan
	if err := decode(r, &p); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	return p, p.Check()
}

// JSON returns p as a file that ParsePlan reads.
func (p Plan) JSON() []byte { return encode(p) }

// Check returns an error that names each thing in p that makes no sense.
func (p Plan) Check() error {
	if err := p.Scenario.Check(); err != nil {
		return err
	}
	s := p.Scenario.WithDefaults()
	if s.Quorum == anyQuorum {
		return errors.New("the plan leaves the quorum system open")
	}
	c := s.census()
	var errs []error
	for i, d := range p.Decisions {
		if err := d.check(s, c); err != nil {
			errs = append(errs, fmt.Errorf("decision %d (%v): %w", i+1, d, err))
		}
	}
	for _, h := range p.Healing {
		err := h.check(s)
		for i, d := range p.Decisions {
			if c, bad := d.target(); d.Do == "propose" && bad == nil && err == nil {
				if err = h.leaves(c); err != nil {
					err = fmt.Errorf("if decision %d (%v) goes through: %w", i+1, d, err)
				}
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("healing of cluster %d: %w", h.Cluster, err))
		}
	}
	for _, name := range p.Idle {
		if _, ok := c.at[name]; !ok || !isClient(name) {
			errs = append(errs, fmt.Errorf("idle: no client %q", name))
		}
	}
	if len(errs) == 0 {
		return p.spoiled(s, c)
	}
	return errors.Join(errs...)
}
