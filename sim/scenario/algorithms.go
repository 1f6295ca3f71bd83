package scenario

import (
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
)

// ABD is the algorithm of package abd, as production runs it: "abd".
type ABD struct{}

// Name implements Algorithm.
func (ABD) Name() string { return "abd" }

// About implements Algorithm.
func (ABD) About() string {
	return "multi-writer atomic registers; a read writes back only what may not be settled"
}

// Traits implements Algorithm.
func (ABD) Traits() Traits {
	return Traits{Tags: true, Settles: true, ReadRounds: 2, WriteRounds: 2, ListRounds: func(n int) int { return 1 + 2*n }, FetchRounds: 1, Membership: true, Needs: sim.Needs,
		Rules: slices.DeleteFunc(RuleNames(), func(name string) bool { return !strings.HasPrefix(name, abdRules) })}
}

// Node implements Algorithm.
func (ABD) Node(c Cluster, self quorum.NodeID, store replica.Store) (sim.Stepper, error) {
	cfg := replica.Config{
		Cluster:        c.ID,
		Self:           self,
		Configurations: c.Configurations,
		MaxValue:       c.MaxValue,
		Pace:           repair.Pace{Pass: pass, Page: page, Look: look},
		Rules:          c.Mutants.Replica,
	}
	changing := c.Map != nil
	if changing {
		cfg.Members, cfg.Reconfiguration = c.addresses(), reconfigurationPace()
		cfg.Join = join.Config{Instance: instanceOf(self), Run: c.Run, Pace: greetings, Rules: c.Mutants.Join}
		if _, member := c.Configurations[0].Place(self); !member {
			cfg.Configurations = nil
		}
	}
	n, err := replica.New(cfg, store)
	if err != nil {
		return nil, err
	}
	var does tasked = n
	switch {
	case c.Repair:
	case changing:
		does = reconfiguring{n, c.Configurations[0].Members()}
	default:
		return untasked{n}, nil
	}
	if changing && c.Greets {
		does = &gate{tasked: does, self: self, limit: c.Greeting}
	}
	return does, nil
}

// instanceOf is that of a node's store: each has one for good.
func instanceOf(node quorum.NodeID) (i join.Instance) {
	copy(i[:], node)
	return i
}

// The pace of repair and of greetings in worlds that live for seconds.
const (
	greetings = 100 * time.Millisecond
	greeting  = time.Second // how long a node waits, before it serves, for an answer

	pass = 400 * time.Millisecond
	page = 2 * time.Millisecond
	look = 40 * time.Millisecond
)

// Client implements Algorithm.
func (ABD) Client(c Cluster) Client {
	known := abd.Fixed(c.Configurations...)
	if c.Map != nil {
		known = rambo.NewCMap(c.Map)
	}
	return &abd.Registers{Known: known, MaxValue: c.MaxValue, Rules: c.Mutants.Replica.ABD}
}

// WriteBack is ABD with reads that always write back what they found:
// "abd-writeback". It is what the shorter reads are compared with.
type WriteBack struct{ ABD }

// Name implements Algorithm.
func (WriteBack) Name() string { return "abd-writeback" }

// About implements Algorithm.
func (WriteBack) About() string { return "as abd, with reads that always write back" }

// Traits implements Algorithm. They are abd's, without the rules of its reads.
func (WriteBack) Traits() Traits {
	t := ABD{}.Traits()
	t.Membership = false
	t.Rules = slices.DeleteFunc(t.Rules, func(name string) bool {
		switch name {
		case "abd.NoWriteBack", "abd.FastOnReadQuorum", "abd.FastOnAsked", "abd.ValueFromAnyone", "abd.TrustSecondAnswer", "abd.WaitForHolder":
			return true
		}
		return false
	})
	return t
}

// Node implements Algorithm. The nodes don't heal: the phases of this client
// know nothing of lives.
func (WriteBack) Node(c Cluster, self quorum.NodeID, store replica.Store) (sim.Stepper, error) {
	n, err := ABD{}.Node(c, self, store)
	return untasked{n}, err
}

// Client implements Algorithm.
func (WriteBack) Client(c Cluster) Client {
	return &writeBackClient{Registers: ABD{}.Client(c).(*abd.Registers), phases: phases{c.Configurations}}
}

// writeBackClient has the writes and lists of abd, and reads of its own.
type writeBackClient struct {
	*abd.Registers
	phases phases
}

// Read implements Client.
func (c *writeBackClient) Read(e env.Env, key abd.Key) (abd.Record, error) {
	return c.phases.read(e, key)
}

// SingleWriterABD is the algorithm of Attiya, Bar-Noy and Dolev (JACM 42,
// 1995) for one writer a key, who needn't ask for the last tag: "swabd". A
// write takes one round, a read two.
type SingleWriterABD struct{ ABD }

// Name implements Algorithm.
func (SingleWriterABD) Name() string { return "swabd" }

// About implements Algorithm.
func (SingleWriterABD) About() string {
	return "single-writer atomic registers: writes take one round, reads always write back"
}

// Traits implements Algorithm. Of the rules it has those of abd's replicas that
// are about gets and puts; its clients are its own.
func (SingleWriterABD) Traits() Traits {
	return Traits{Tags: true, Settles: true, SingleWriter: true, ReadRounds: 2, WriteRounds: 2, Needs: sim.Needs,
		Rules: []string{"abd.StoreAnything", "abd.AckDuplicateAtOnce", "abd.RevealUnsynced", "abd.EraseTombstones", "abd.DamagedIsAbsent"}}
}

// Node implements Algorithm. The nodes don't heal, as those of WriteBack.
func (SingleWriterABD) Node(c Cluster, self quorum.NodeID, store replica.Store) (sim.Stepper, error) {
	return WriteBack{}.Node(c, self, store)
}

// Client implements Algorithm.
func (SingleWriterABD) Client(c Cluster) Client {
	return &singleWriter{phases: phases{c.Configurations}, last: make(map[abd.Key]abd.Record)}
}

// singleWriter is a client in one of its lives.
type singleWriter struct {
	phases phases
	// last is the newest record of each key that this life wrote, or found
	// before its first write: an earlier life may have written it.
	last map[abd.Key]abd.Record
}

// Read implements Client.
func (c *singleWriter) Read(e env.Env, key abd.Key) (abd.Record, error) {
	return c.phases.read(e, key)
}

// Write implements Client. The tag's pid is the operation's, so that a write
// of an earlier life that reached a few nodes and isn't seen here is another
// write than this one, whichever of the two is larger.
func (c *singleWriter) Write(e env.Env, op abd.Operation) (abd.Operation, error) {
	if op.ID.IsZero() {
		op.ID = e.ID()
	}
	if op.Tag.IsZero() {
		last, known := c.last[op.Key]
		if !known {
			var err error
			if last, err = c.phases.get(e, op.Key); err != nil {
				return op, err
			}
		}
		var err error
		if op.Tag, err = last.Tag.Next(op.ID); err != nil {
			return op, err
		}
		c.last[op.Key] = abd.Record{Tag: op.Tag}
	}
	record := abd.Record{Tag: op.Tag, Deleted: op.Delete}
	if !op.Delete {
		record.Value = op.Value
	}
	op.Sent = true
	return op, c.phases.put(e, op.Key, record)
}
