package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/quorum"
	"atoll/sim"
)

// Limits of a scenario: what is beyond them is a slip of the pen.
const (
	MaxClusters = 10_000
	MaxClients  = 100_000 // of one cluster
	MaxKeys     = 1_000_000
	maxDuration = 24 * time.Hour
	maxFile     = 16 << 20 // bytes of a scenario or plan file
	// maxLoss is the most that a network may lose, per million: where nothing
	// arrives no algorithm ends.
	maxLoss = 900_000
)

// Scenario says what is run: the clusters, their clients and what these do,
// the network, and which faults may be drawn. It is a value. In a file it is a
// JSON object with the names given here; durations are texts such as "20ms",
// chances are counted per million, and a field that is left out has its
// default. A field that isn't known is an error.
type Scenario struct {
	// Name and About are for people. A name has no spaces.
	Name  string `json:"name"`
	About string `json:"about,omitempty"`

	// Algorithm names what keeps the registers (see Algorithms). Default
	// "abd".
	Algorithm string `json:"algorithm,omitempty"`
	// Clusters is the number of independent clusters in the one world.
	// Default 1.
	Clusters int `json:"clusters,omitempty"`
	// Nodes is the number of replicas of each cluster, 1 to
	// quorum.MaxMembers. Default 5.
	Nodes int `json:"nodes,omitempty"`
	// Quorum is the text of the quorum system, as quorum.ParseSystem reads
	// it; weights name the nodes n1, n2 and so on. "any" stands for one that
	// each seed draws. Default "majority".
	Quorum string `json:"quorum,omitempty"`
	// Repair says whether nodes pull from each other what they have missed,
	// and heal damaged records: "on", "off", or "any", which each seed draws,
	// since repair hides much that would go wrong without it. Default "off".
	Repair string `json:"repair,omitempty"`

	// Clients is the number of clients of each cluster, who do one operation
	// after another. Default 8.
	Clients int `json:"clients,omitempty"`
	// Keys is the number of registers of each cluster. Default 4.
	Keys int `json:"keys,omitempty"`
	// ValueSize is how many bytes values have, at least; they have as many
	// as it takes to make them unique. Default 0.
	ValueSize int `json:"value_size,omitempty"`
	// Operations is how many operations a client does at most. Default: as
	// many as Duration lets it.
	Operations int `json:"operations,omitempty"`
	// Duration is the simulated time in which clients begin operations and
	// faults happen. What is healed is healed at its end. Default 2s.
	Duration Duration `json:"duration,omitempty"`
	// Mix is how often each kind of operation is drawn.
	Mix Mix `json:"mix,omitzero"`
	// Think is the mean pause of a client between two operations; pauses are
	// drawn from 0 to twice that. Default 0.
	Think Duration `json:"think,omitempty"`
	// Timeout is how long a client waits for one operation before it gives
	// up on it. Draw leaves it out in every other plan that has faults: who
	// gives up hides that it would have waited for ever. Default 0: without
	// end.
	Timeout Duration `json:"timeout,omitempty"`
	// Retry is the chance, per million, that a client whose write ended as
	// unknown tries it again: the same operation. Default 0.
	Retry uint32 `json:"retry,omitempty"`
	// SingleWriter gives every key one client that writes it; what other
	// clients would write, they read. Algorithms for a single writer set it.
	SingleWriter bool `json:"single_writer,omitempty"`

	Membership Membership `json:"membership,omitzero"`
	Network    Network    `json:"network,omitzero"`
	Disk       Disk       `json:"disk,omitzero"`
	Faults     Faults     `json:"faults,omitzero"`
	Bounds     Bounds     `json:"bounds,omitzero"`

	// Rules are rules to break, by name (see RuleNames): mutants.
	Rules []string `json:"rules,omitempty"`
}

// Mix is how often each kind of operation is drawn, as weights: {50, 40, 5, 5}
// draws a read in 50 of 100. Default {60, 40, 0, 0}.
type Mix struct {
	Read   int `json:"read,omitempty"`
	Write  int `json:"write,omitempty"`
	Delete int `json:"delete,omitempty"`
	List   int `json:"list,omitempty"`
}

func (m Mix) total() int { return m.Read + m.Write + m.Delete + m.List }

// Network says what the ways between processes are like.
type Network struct {
	// Delay of a message. Default "uniform 500us 5ms".
	Delay Delay `json:"delay,omitempty"`
	// Loss and Duplicate are the chances, per million, that a message is
	// lost, or arrives twice. Default 0; Loss is 900,000 at most.
	Loss      uint32 `json:"loss,omitempty"`
	Duplicate uint32 `json:"duplicate,omitempty"`
	// Ordered: no message overtakes an earlier one on the same way.
	Ordered bool `json:"ordered,omitempty"`
	// ResendFirst is after how long an unanswered request is sent again; it
	// doubles up to ResendMost. Defaults 50ms and 1s.
	ResendFirst Duration `json:"resend_first,omitempty"`
	ResendMost  Duration `json:"resend_most,omitempty"`
}

// Disk says what the disks of nodes are like.
type Disk struct {
	// Sync is how long a commit takes. Default "uniform 200us 2ms".
	Sync Delay `json:"sync,omitempty"`
}

// Faults says what Draw may put into a plan.
type Faults struct {
	// Kinds are the kinds of faults (see FaultKinds). Each seed draws which
	// of them exist in its plan. Default: none.
	Kinds []string `json:"kinds,omitempty"`
	// Every is the mean time between two faults of one kind. Default 400ms.
	Every Duration `json:"every,omitempty"`
	// Lasts is the mean time that a fault lasts. Some last until the end.
	// Default 150ms.
	Lasts Duration `json:"lasts,omitempty"`
	// All makes every seed have all kinds, in place of a drawn choice.
	All bool `json:"all,omitempty"`
}

// Defaults of Faults.
const (
	defaultEvery = Duration(400 * time.Millisecond)
	defaultLasts = Duration(150 * time.Millisecond)
)

// Bounds are what a run is held to.
type Bounds struct {
	// Rounds are the most rounds of each kind of operation. A zero stands
	// for what the algorithm says of itself.
	ReadRounds  int `json:"read_rounds,omitempty"`
	WriteRounds int `json:"write_rounds,omitempty"`
	ListRounds  int `json:"list_rounds,omitempty"`
	// Messages is the most messages that one operation sends and receives.
	// Default 0: no bound. It counts repeats and duplicates too.
	Messages int `json:"messages,omitempty"`
	// Ends is the time after the healing within which every operation that
	// is under way must end. Default 10s.
	Ends Duration `json:"ends,omitempty"`
	// Stall is how long no operation of a cluster may end, while some are
	// under way, before that counts as a stall. Stalls are counted, and are
	// no violation. Default 20 delay bounds.
	Stall Duration `json:"stall,omitempty"`
}

// WithDefaults returns s with the default for each field that is zero.
func (s Scenario) WithDefaults() Scenario {
	setDefault(&s.Algorithm, "abd")
	setDefault(&s.Clusters, 1)
	setDefault(&s.Nodes, 5)
	setDefault(&s.Quorum, "majority")
	setDefault(&s.Repair, repairOff)
	setDefault(&s.Clients, 8)
	setDefault(&s.Keys, 4)
	setDefault(&s.Duration, Duration(2*time.Second))
	setDefault(&s.Mix, Mix{Read: 60, Write: 40})
	setDefault(&s.Network.Delay, "uniform 500us 5ms")
	setDefault(&s.Network.ResendFirst, Duration(sim.DefaultResendFirst))
	setDefault(&s.Network.ResendMost, max(Duration(sim.DefaultResendMost), s.Network.ResendFirst))
	setDefault(&s.Disk.Sync, "uniform 200us 2ms")
	setDefault(&s.Faults.Every, defaultEvery)
	setDefault(&s.Faults.Lasts, defaultLasts)
	if s.changes() {
		setDefault(&s.Membership.Every, defaultChange)
	}
	setDefault(&s.Bounds.Ends, Duration(10*time.Second))
	if s.Bounds.Stall == 0 {
		s.Bounds.Stall = Duration(20 * s.DelayBound())
	}
	return s
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// DelayBound returns d, the longest time that a message takes as long as no
// fault delays it: the unit in which latencies are compared.
func (s Scenario) DelayBound() time.Duration {
	setDefault(&s.Network.Delay, "uniform 500us 5ms")
	return s.Network.Delay.bound()
}

// Check returns an error that names each field that makes no sense.
func (s Scenario) Check() error {
	s = s.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" || strings.ContainsAny(s.Name, " \t\n/") {
		bad("name: %q isn't a name without spaces and slashes", s.Name)
	}
	a := algorithm(s.Algorithm)
	if a == nil {
		bad("algorithm: no algorithm %q", s.Algorithm)
	} else if err := a.Traits().check(); err != nil {
		bad("algorithm %q: %w", s.Algorithm, err)
	}
	if !slices.Contains([]string{repairOn, repairOff, anyRepair}, s.Repair) {
		bad("repair: %q is none of %s, %s, %s", s.Repair, repairOn, repairOff, anyRepair)
	}
	for _, f := range []struct {
		name            string
		value, low, top int
	}{
		{"clusters", s.Clusters, 1, MaxClusters},
		{"nodes", s.Nodes, 1, quorum.MaxMembers},
		{"clients", s.Clients, 1, MaxClients},
		{"keys", s.Keys, 1, MaxKeys},
		{"value_size", s.ValueSize, 0, abd.LargestMaxValue},
		{"mix", s.Mix.total(), 1, 1_000_000},
		{"retry", int(s.Retry), 0, million},
		{"loss", int(s.Network.Loss), 0, maxLoss},
		{"duplicate", int(s.Network.Duplicate), 0, million},
	} {
		if f.value < f.low || f.value > f.top {
			bad("%s: %d is not from %d to %d", f.name, f.value, f.low, f.top)
		}
	}
	for _, n := range []int{s.Operations, s.Mix.Read, s.Mix.Write, s.Mix.Delete, s.Mix.List,
		s.Bounds.ReadRounds, s.Bounds.WriteRounds, s.Bounds.ListRounds, s.Bounds.Messages} {
		if n < 0 {
			bad("a count or weight is negative: %d", n)
		}
	}
	errs = append(errs, s.checkTimes()...)
	if _, err := s.Network.Delay.parse(); err == nil && s.DelayBound() == 0 && s.Think == 0 && s.Operations == 0 {
		bad("time would stand still: messages take none, clients don't think and have no end of operations")
	}
	errs = append(errs, s.Faults.check()...)
	errs = append(errs, s.checkMembership(a)...)
	if _, err := s.rules(); err != nil {
		errs = append(errs, err)
	} else if a != nil {
		if err := s.checkRules(a); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && s.Quorum != anyQuorum {
		if _, err := s.configuration(0); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("scenario %q: %w", s.Name, errors.Join(errs...))
}

// check is given faults with their defaults.
func (f Faults) check() []error {
	var errs []error
	for i, kind := range f.Kinds {
		if !slices.Contains(FaultKinds(), kind) {
			errs = append(errs, fmt.Errorf("faults: no kind %q; there are %s", kind, strings.Join(FaultKinds(), ", ")))
		}
		if slices.Contains(f.Kinds[:i], kind) {
			errs = append(errs, fmt.Errorf("faults: kind %q is there twice", kind))
		}
	}
	if len(f.Kinds) == 0 && (f.All || f.Every != defaultEvery || f.Lasts != defaultLasts) {
		errs = append(errs, errors.New("faults: without kinds there are none, and nothing comes of all, every and lasts"))
	}
	return errs
}

func (s Scenario) checkTimes() []error {
	var errs []error
	if first, most := s.Network.ResendFirst, s.Network.ResendMost; first > most {
		errs = append(errs, fmt.Errorf("resend_first: %v is more than resend_most, %v", first, most))
	}
	for _, f := range []struct {
		name  string
		value Duration
	}{
		{"duration", s.Duration}, {"think", s.Think}, {"timeout", s.Timeout},
		{"resend_first", s.Network.ResendFirst}, {"resend_most", s.Network.ResendMost},
		{"membership.every", s.Membership.Every}, {"every", s.Faults.Every}, {"lasts", s.Faults.Lasts}, {"ends", s.Bounds.Ends}, {"stall", s.Bounds.Stall},
	} {
		if f.value < 0 || f.value > Duration(maxDuration) {
			errs = append(errs, fmt.Errorf("%s: %v is not from 0 to %v", f.name, f.value, maxDuration))
		}
	}
	for _, d := range []Delay{s.Network.Delay, s.Disk.Sync} {
		if _, err := d.parse(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// configuration returns the configuration of one of the clusters.
func (s Scenario) configuration(cluster int) (*quorum.Configuration, error) {
	text := s.Quorum
	members := make([]quorum.NodeID, s.Nodes)
	for i := range members {
		members[i] = s.node(cluster, i)
	}
	if prefix := s.prefix(cluster); prefix != "" {
		text = strings.NewReplacer("=n", "="+prefix+"n", ",n", ","+prefix+"n").Replace(text)
	}
	system, err := quorum.ParseSystem(text)
	if err != nil {
		return nil, err
	}
	return quorum.NewConfiguration(0, members, system)
}

// prefix is what the names of a cluster's processes begin with.
func (s Scenario) prefix(cluster int) string {
	if s.Clusters == 1 {
		return ""
	}
	return fmt.Sprintf("c%d-", cluster+1)
}

func (s Scenario) node(cluster, i int) quorum.NodeID {
	return quorum.NodeID(fmt.Sprintf("%sn%d", s.prefix(cluster), i+1))
}

func (s Scenario) client(cluster, i int) quorum.NodeID {
	return quorum.NodeID(fmt.Sprintf("%sp%d", s.prefix(cluster), i+1))
}

// Parse reads a scenario file.
func Parse(r io.Reader) (Scenario, error) {
	var s Scenario
	if err := decode(r, &s); err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	return s, s.Check()
}

// JSON returns s as a file that Parse reads.
func (s Scenario) JSON() []byte { return encode(s) }

func encode(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return append(b, '\n')
}
