package rambo

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/cells"
	"atoll/quorum"
)

// The cells in which a node keeps what it knows. Each begins with a format
// byte; then come unsigned varints, and strings with their lengths before them.
//
//	rambo.map      the config map (quorum.Map.Append)
//	rambo.members  format n (id name n address… version proof)…
//	rambo.merged   format index after done keys bytes
const (
	cellMap     = "rambo.map"
	cellMembers = "rambo.members"
	cellMerged  = "rambo.merged"

	cellFormat = 1
)

// Limits of what a node knows of others.
const (
	// MaxKnown is how many nodes a node knows: members and those that have
	// joined.
	MaxKnown = 128
	// MaxMemberBytes is how many bytes the name, the addresses and the proof of
	// one have at most, together. What is said of one that has more is ignored.
	MaxMemberBytes = 440
)

// load reads what an earlier life has noted.
func (r *Replica) load() error {
	for _, cell := range []struct {
		name string
		read func([]byte) error
	}{
		{cellMap, r.loadMap}, {cellMembers, r.loadMembers}, {cellMerged, r.loadMerged},
	} {
		value, at := r.view.Cell(cell.name)
		if len(value) == 0 {
			continue
		}
		if err := cell.read(value); err != nil {
			return fmt.Errorf("rambo: the cell %q: %w", cell.name, err)
		}
		if cell.name == cellMerged {
			r.mergedAt = at
		} else {
			r.at = max(r.at, at)
		}
	}
	return nil
}

// MapOf returns the config map that a node has on its disk, nil if it knows
// none: for those who look at a cluster from outside.
func MapOf(view interface {
	Cell(name string) (value []byte, at env.Position)
}) (*quorum.Map, error) {
	value, _ := view.Cell(cellMap)
	if len(value) == 0 {
		return nil, nil
	}
	return quorum.ParseMap(value)
}

func (r *Replica) loadMap(b []byte) error {
	m, err := quorum.ParseMap(b)
	r.news = &quorum.News{Map: m}
	return err
}

func (r *Replica) loadMembers(b []byte) error {
	p := cells.Read(b)
	p.Format(cellFormat)
	var members []quorum.Member
	for n := p.Any(); n > 0 && p.OK(); n-- {
		m := quorum.Member{ID: quorum.NodeID(p.String()), Name: p.String()}
		for a := p.Any(); a > 0 && p.OK(); a-- {
			m.Addresses = append(m.Addresses, p.String())
		}
		m.Version = p.Any()
		m.Proof = slices.Clone(p.Bytes(math.MaxUint64))
		members = append(members, m)
	}
	if r.news == nil {
		r.news = &quorum.News{}
	}
	r.news.Members = members
	return end(&p)
}

func appendMembers(b []byte, members []quorum.Member) []byte {
	b = cells.AppendNumber(append(b, cellFormat), uint64(len(members)))
	for _, m := range members {
		b = cells.AppendBytes(b, m.ID)
		b = cells.AppendBytes(b, m.Name)
		b = cells.AppendNumber(b, uint64(len(m.Addresses)))
		for _, a := range m.Addresses {
			b = cells.AppendBytes(b, a)
		}
		b = cells.AppendNumber(b, m.Version)
		b = cells.AppendBytes(b, m.Proof)
	}
	return b
}

func (r *Replica) loadMerged(b []byte) error {
	p := cells.Read(b)
	p.Format(cellFormat)
	r.merged = merged{Index: quorum.ConfigIndex(p.Any()), After: abd.Key(p.String()), Done: p.Any() == 1,
		Keys: int64(p.Any()), Bytes: int64(p.Any())}
	return end(&p)
}

// noteMerged makes it durable how far the node has come.
func (r *Replica) noteMerged(m merged) error {
	b := cells.AppendNumber([]byte{cellFormat}, uint64(m.Index))
	b = cells.AppendBytes(b, m.After)
	b = cells.AppendBool(b, m.Done)
	b = cells.AppendNumber(b, uint64(m.Keys))
	b = cells.AppendNumber(b, uint64(m.Bytes))
	at, err := r.view.SetCell(cellMerged, b)
	if err != nil {
		return err
	}
	r.merged, r.mergedAt = m, at
	return nil
}

var errCell = errors.New("it makes no sense")

// end returns an error if the cell makes no sense, or more of it is left.
func end(r *cells.Reader) error {
	if !r.Done() {
		return errCell
	}
	return nil
}
