package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/quorum"
)

// Draw returns the plan of a seed: it draws which kinds of faults exist in it
// (swarm testing: a run that has a bit of everything never goes far in
// anything), and then each of them. The same scenario and seed give the same
// plan, whatever the algorithm.
func (s Scenario) Draw(seed uint64) Plan {
	s = s.WithDefaults()
	if s.Quorum == anyQuorum {
		s.Quorum = s.drawQuorum(seed)
	}
	if s.Repair == anyRepair {
		s.Repair = repairOff
		if newDice(seed, "repair").one(2) {
			s.Repair = repairOn
		}
	}
	if len(s.Faults.Kinds) > 0 && newDice(seed, "timeout").one(2) {
		s.Timeout = 0 // who gives up hides that it would have waited for ever
	}
	p := Plan{Seed: seed, Scenario: s}
	kinds := s.drawKinds(seed)
	p.Scenario.Faults = Faults{} // the decisions are what came of them
	if len(s.Faults.Kinds) == 0 && !s.changes() {
		return p
	}
	for number := range s.Clusters {
		d := &drawing{s: s, number: number, seed: seed}
		if len(s.Faults.Kinds) > 0 {
			d.heal(slices.Contains(kinds, "lose") || slices.Contains(kinds, "restore"))
		}
		if s.changes() {
			d.proposals()
		}
		for _, kind := range kinds {
			d.kind(kind)
		}
		p.Decisions = append(p.Decisions, d.decisions...)
		if len(d.healing.rest()) > 0 {
			p.Healing = append(p.Healing, d.healing)
		}
	}
	slices.SortStableFunc(p.Decisions, func(a, b Decision) int { return cmp.Compare(a.At, b.At) })
	return p
}

// The values of Scenario.Repair.
const (
	repairOn  = "on"
	repairOff = "off"
	anyRepair = "any"
)

// anyQuorum is the text that stands for a drawn quorum system.
const anyQuorum = "any"

// drawQuorum draws a quorum system, every other time a majority.
func (s Scenario) drawQuorum(seed uint64) string {
	d := newDice(seed, "quorum")
	switch {
	case d.one(2):
		return "majority"
	case d.one(3):
		weights := make([]string, s.Nodes)
		for i := range weights {
			weights[i] = fmt.Sprintf("n%d:%d", i+1, d.between(1, 3))
		}
		return "weights=" + strings.Join(weights, ",")
	case d.one(2):
		if columns := divisor(d, s.Nodes); columns > 1 {
			return fmt.Sprintf("grid=%dx%d", s.Nodes/columns, columns)
		}
	}
	get := d.between(1, s.Nodes)
	return fmt.Sprintf("get=%d,put=%d", get, d.between(s.Nodes-get+1, s.Nodes))
}

// divisor draws a divisor of n other than 1 and n, 1 if there is none.
func divisor(d *dice, n int) int {
	var all []int
	for i := 2; i < n; i++ {
		if n%i == 0 {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return 1
	}
	return all[d.below(len(all))]
}

// drawKinds draws which of the kinds of faults exist.
func (s Scenario) drawKinds(seed uint64) []string {
	if s.Faults.All {
		return s.Faults.Kinds
	}
	d := newDice(seed, "kinds of faults")
	var kinds []string
	for _, kind := range s.Faults.Kinds {
		if d.one(2) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// drawing draws the faults of one cluster.
type drawing struct {
	s         Scenario
	number    int // of the cluster, from 0
	seed      uint64
	healing   Healing
	decisions []Decision

	*dice // of the kind that is being drawn
	do    string
}

// heal draws which nodes are healed: a core with a quorum. What happens to the
// others may be for good.
func (d *drawing) heal(lose bool) {
	d.dice = newDice(d.seed, fmt.Sprintf("healing %d", d.number))
	d.healing.Cluster = d.number + 1
	c, err := d.s.configuration(d.number)
	if err != nil {
		return // Check says so
	}
	if d.one(4) && !lose {
		return // all of them
	}
	core := everybody(c)
	order := slices.Collect(core.All())
	shuffle(d.dice, order)
	for _, place := range order {
		var one quorum.Set
		rest := core.Minus(one.Add(place))
		if !c.IsRead(rest) || !c.IsWrite(rest) || d.one(4) {
			continue
		}
		core = rest
		name := string(c.Members()[place])
		switch d.below(3) {
		case 0:
			d.healing.Dead = append(d.healing.Dead, name)
		case 1:
			d.healing.Deaf = append(d.healing.Deaf, name)
		default:
			d.healing.Mute = append(d.healing.Mute, name)
		}
	}
	d.healBlank()
}

// kind draws all faults of one kind.
func (d *drawing) kind(kind string) {
	d.dice = newDice(d.seed, fmt.Sprintf("%s %d", kind, d.number))
	d.do = kind
	for at := d.around(d.s.Faults.Every); at < d.s.Duration; at += d.around(d.s.Faults.Every) {
		one := Decision{At: at.whole(), Do: kind, For: d.around(d.s.Faults.Lasts).whole()}
		if d.fill(&one) {
			d.decisions = append(d.decisions, one)
		}
	}
}

// whole cuts off what is below a microsecond, so that plans are readable.
func (d Duration) whole() Duration {
	return max(d/Duration(time.Microsecond), 1) * Duration(time.Microsecond)
}

// fill draws to whom a fault happens, and what else there is to it. It reports
// whether it can happen.
func (d *drawing) fill(f *Decision) bool {
	s := d.s
	switch d.do {
	case "crash", "pause", "disconnect", "jump", "drift":
		f.On = d.some()
		switch {
		case d.do == "jump":
			f.N, f.For = d.between(-2000, 2000), 0
		case d.do == "drift":
			f.N = d.between(-300_000, 300_000)
		default:
			d.maybeForGood(f)
		}
	case "powerloss", "torn":
		f.On, f.N = []string{d.node()}, d.below(3)
		if d.one(4) {
			f.On = []string{d.pattern("n*")}
		} else {
			d.maybeForGood(f)
		}
	case "lose", "restore":
		if len(d.healing.Dead) == 0 || d.do == "restore" && !s.changes() {
			return false
		}
		f.On = []string{d.healing.Dead[d.below(len(d.healing.Dead))]}
		if d.do == "restore" {
			f.For += 2 * Duration(greetings) // most of the others have heard of it by then
		}
	case "damage", "rot", "misdirect":
		rest := d.healing.rest()
		if f.For = 0; len(rest) == 0 {
			return false
		}
		f.On, f.Key = []string{rest[d.below(len(rest))]}, string(keyName(d.below(s.Keys)))
	case "failsync":
		f.On, f.For = []string{d.node()}, 0
	case "full":
		f.On = []string{d.node()}
		if rest := d.healing.rest(); len(rest) > 0 {
			f.On = []string{rest[d.below(len(rest))]}
		} else if s.Timeout == 0 || s.changes() {
			return false // see Plan.spoiled
		}
		d.maybeForGood(f)
	case "stall", "gray", "slowdisk":
		f.On = []string{d.node()}
		if d.do == "gray" || d.do == "slowdisk" {
			f.N = d.between(2, 30)
		}
		d.maybeForGood(f)
	case "minimal":
		if f.On = []string{d.client()}; d.one(2) {
			f.On = []string{d.pattern("p*")}
		}
	case "reach":
		f.On, f.N = []string{d.client()}, d.below(s.pool()/2+1)
	default:
		d.fillWays(f)
	}
	return true
}

// fillWays draws the two ends of a fault that is about ways.
func (d *drawing) fillWays(f *Decision) {
	switch d.do {
	case "isolate":
		f.On, f.To = d.sides()
		return
	case "lossy", "double":
		f.On, f.To, f.N = []string{d.pattern("n*")}, []string{d.pattern("p*")}, d.between(10_000, 500_000)
		return
	case "slow":
		f.N = d.between(2, 30)
	}
	f.On, f.To = []string{d.node()}, []string{d.client()}
	if d.one(2) {
		f.To = []string{d.pattern("p*")}
	}
	if d.do == "cut" && d.one(2) {
		f.On, f.To = f.To, f.On
	}
	if d.do != "break" {
		d.maybeForGood(f)
	}
}

// maybeForGood lets some of the faults last until the end, of nodes that needn't
// be healed: what heals by itself never finds out whether anybody hangs on it.
func (d *drawing) maybeForGood(f *Decision) {
	rest := d.healing.rest()
	if len(rest) == 0 || !d.one(4) {
		return
	}
	f.For = 0
	name := rest[d.below(len(rest))]
	if isClient(f.On[0]) || f.On[0] == d.pattern("p*") {
		if len(f.To) == 0 {
			return // a client that is gone for good
		}
		f.To = []string{name}
		return
	}
	f.On = []string{name}
}

func (d *drawing) pattern(p string) string { return d.s.prefix(d.number) + p }

func (d *drawing) node() string { return string(d.s.node(d.number, d.below(d.s.pool()))) }

func (d *drawing) client() string { return string(d.s.client(d.number, d.below(d.s.Clients))) }

// some draws a process, more often a node than a client.
func (d *drawing) some() []string {
	switch {
	case d.s.changes() && d.one(4):
		return []string{d.s.operator(d.below(d.s.Membership.Operators))}
	case d.one(3):
		return []string{d.client()}
	}
	return []string{d.node()}
}

// sides draws two parts of a cluster.
func (d *drawing) sides() (on, to []string) {
	for i := range d.s.Membership.Operators {
		side := &on
		if d.one(2) {
			side = &to
		}
		*side = append(*side, d.s.operator(i))
	}
	for i := range d.s.pool() {
		side := &on
		if d.one(2) {
			side = &to
		}
		*side = append(*side, string(d.s.node(d.number, i)))
	}
	for i := range d.s.Clients {
		side := &on
		if d.one(2) {
			side = &to
		}
		*side = append(*side, string(d.s.client(d.number, i)))
	}
	if len(on) == 0 {
		on, to = to[:1], to[1:]
	}
	if len(to) == 0 {
		on, to = on[1:], on[:1]
	}
	return on, to
}
