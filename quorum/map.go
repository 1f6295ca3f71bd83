package quorum

import (
	"errors"
	"fmt"
	"slices"
)

// MaxActive is how many configurations may be active at a time.
const MaxActive = 16

// ErrForked says that two maps have different configurations under one index.
// That can't come about while the rules hold: one of the two is a lie, or its
// acceptors have lost what they had promised.
var ErrForked = errors.New("two configurations have the same index")

// Map is a config map: what somebody knows of the cluster's configurations
// (RAMBO's cmap, Lynch and Shvartsman, DISC 2002, section 4). Under each index
// stands a configuration, nothing yet (⊥), or a mark that the configuration is
// out of all quorums for good (±).
//
// Whoever knows the configuration of some index knows all active ones before
// it: they travel together. So a map is a row of configurations without gaps.
// Before the first of them all is ±, behind the last all is ⊥. The first is
// *installed*: it holds all that those before it held. The others are decided,
// and every operation needs their quorums as well.
//
// A map only grows: Merge never loses an index nor takes a ± back. It is
// immutable. The nil Map is that of somebody who knows nothing.
type Map struct {
	active  Configurations
	horizon Horizon
}

// Horizon is what somebody knows of the configurations, as two numbers: those
// before Installed are out, and those from Next on aren't known. The zero
// Horizon knows nothing.
type Horizon struct{ Installed, Next ConfigIndex }

// Behind reports whether o knows of something that h doesn't.
func (h Horizon) Behind(o Horizon) bool { return h.Installed < o.Installed || h.Next < o.Next }

// NewMap returns a map of active configurations, of which the first is
// installed. It refuses none, too many, and any that don't follow each other.
func NewMap(active ...*Configuration) (*Map, error) {
	if len(active) == 0 || len(active) > MaxActive {
		return nil, fmt.Errorf("quorum: a config map has 1 to %d configurations, not %d", MaxActive, len(active))
	}
	for i, c := range active[1:] {
		if c.Index() != active[i].Index()+1 {
			return nil, fmt.Errorf("quorum: configuration %d doesn't follow %d", c.Index(), active[i].Index())
		}
	}
	return mapOf(slices.Clone(active)), nil
}

func mapOf(active Configurations) *Map {
	return &Map{active, Horizon{active[0].Index(), active[len(active)-1].Index() + 1}}
}

// Active returns the configurations whose quorums every phase needs. The caller
// must not change the result.
func (m *Map) Active() Configurations {
	if m == nil {
		return nil
	}
	return m.active
}

// Horizon returns what the map knows, as two numbers.
func (m *Map) Horizon() Horizon {
	if m == nil {
		return Horizon{}
	}
	return m.horizon
}

// Installed returns the newest configuration that is known to be installed,
// nil in the nil Map.
func (m *Map) Installed() *Configuration {
	if m == nil {
		return nil
	}
	return m.active[0]
}

// Newest returns the last configuration that is known, nil in the nil Map.
func (m *Map) Newest() *Configuration {
	if m == nil {
		return nil
	}
	return m.active[len(m.active)-1]
}

// Find returns the configuration of an index, if it is active.
func (m *Map) Find(k ConfigIndex) (*Configuration, bool) {
	h := m.Horizon()
	if m == nil || k < h.Installed || k >= h.Next {
		return nil, false
	}
	return m.active[k-h.Installed], true
}

// Has reports whether a node is a member of an active configuration.
func (m *Map) Has(id NodeID) bool {
	for _, c := range m.Active() {
		if _, ok := c.Place(id); ok {
			return true
		}
	}
	return false
}

// Decide returns the map with one more configuration, which must be the next.
func (m *Map) Decide(c *Configuration) (*Map, error) {
	if m == nil {
		return nil, fmt.Errorf("quorum: configuration %d: those before it aren't known", c.Index())
	}
	return NewMap(append(slices.Clone(m.active), c)...)
}

// Install returns the map in which the configuration of an index is installed,
// so that those before it are out. The configuration must be active.
func (m *Map) Install(k ConfigIndex) (*Map, error) {
	if _, ok := m.Find(k); !ok {
		return nil, fmt.Errorf("quorum: configuration %d isn't active, and can't be marked as installed", k)
	}
	return mapOf(m.active[k-m.horizon.Installed:]), nil
}

// Merge returns what somebody knows who knows m and o. It is m itself if o adds
// nothing. An error wraps ErrForked, or says that more than MaxActive
// configurations would be active.
func (m *Map) Merge(o *Map) (*Map, error) {
	for _, c := range o.Active() {
		if mine, ok := m.Find(c.Index()); ok && !mine.Equal(c) {
			return nil, fmt.Errorf("quorum: %w: %v, and %v", ErrForked, mine, c)
		}
	}
	a, b := m.Horizon(), o.Horizon()
	switch {
	case !a.Behind(b):
		return m, nil
	case !b.Behind(a):
		return o, nil
	case a.Next < b.Next: // then o begins earlier; what m has marked as out stays out
		return o.from(a.Installed), nil
	default:
		return m.from(b.Installed), nil
	}
}

// from returns the map without what is before an index.
func (m *Map) from(k ConfigIndex) *Map { return mapOf(m.active[k-m.horizon.Installed:]) }

// String returns "installed 3: majority of a b c, decided 4: majority of a b d".
func (m *Map) String() string {
	if m == nil {
		return "no configuration"
	}
	s := "installed " + m.active[0].String()
	for _, c := range m.active[1:] {
		s += ", decided " + c.String()
	}
	return s
}

// Member is a node, for those who must find it.
type Member struct {
	ID NodeID
	// Name is what its operator called it. It identifies nothing.
	Name string
	// Addresses are "host:port", tried in parallel.
	Addresses []string
	// Version grows with each change of the rest; the larger one counts.
	Version uint64
	// Proof shows that the node itself says so: its signature, in a form that
	// package identity knows. Empty where nobody asks for one.
	Proof []byte
}

// MovedSince returns the nodes of news of which old said something else, or
// nothing.
func MovedSince(old, news *News) []NodeID {
	said := make(map[NodeID]uint64)
	if old != nil {
		for _, m := range old.Members {
			said[m.ID] = m.Version
		}
	}
	var moved []NodeID
	for _, m := range news.Members {
		if v, ok := said[m.ID]; !ok || v != m.Version {
			moved = append(moved, m.ID)
		}
	}
	return moved
}

// GoneSince returns the nodes that old knew and news doesn't.
func GoneSince(old, news *News) []NodeID {
	if old == nil {
		return nil
	}
	there := make(map[NodeID]bool)
	for _, m := range news.Members {
		there[m.ID] = true
	}
	var gone []NodeID
	for _, m := range old.Members {
		if !there[m.ID] && !news.Map.Has(m.ID) {
			gone = append(gone, m.ID)
		}
	}
	return gone
}

// News is what somebody tells another who knows less: the config map, and where
// the members are. It is immutable.
type News struct {
	Map     *Map
	Members []Member
}
