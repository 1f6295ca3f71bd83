package rambo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/abd"
	"atoll/env"
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
	p := reader{b: b}
	p.format()
	var members []quorum.Member
	for n := p.number(); n > 0 && p.err == nil; n-- {
		m := quorum.Member{ID: quorum.NodeID(p.string()), Name: p.string()}
		for a := p.number(); a > 0 && p.err == nil; a-- {
			m.Addresses = append(m.Addresses, p.string())
		}
		m.Version = p.number()
		if proof := p.string(); proof != "" {
			m.Proof = []byte(proof)
		}
		members = append(members, m)
	}
	if r.news == nil {
		r.news = &quorum.News{}
	}
	r.news.Members = members
	return p.end()
}

func appendMembers(b []byte, members []quorum.Member) []byte {
	b = binary.AppendUvarint(append(b, cellFormat), uint64(len(members)))
	for _, m := range members {
		b = appendString(b, string(m.ID))
		b = appendString(b, m.Name)
		b = binary.AppendUvarint(b, uint64(len(m.Addresses)))
		for _, a := range m.Addresses {
			b = appendString(b, a)
		}
		b = binary.AppendUvarint(b, m.Version)
		b = appendString(b, string(m.Proof))
	}
	return b
}

func (r *Replica) loadMerged(b []byte) error {
	p := reader{b: b}
	p.format()
	r.merged = merged{Index: quorum.ConfigIndex(p.number()), After: abd.Key(p.string()), Done: p.number() == 1,
		Keys: int64(p.number()), Bytes: int64(p.number())}
	return p.end()
}

// noteMerged makes it durable how far the node has come.
func (r *Replica) noteMerged(m merged) error {
	b := binary.AppendUvarint([]byte{cellFormat}, uint64(m.Index))
	b = appendString(b, string(m.After))
	done := uint64(0)
	if m.Done {
		done = 1
	}
	b = binary.AppendUvarint(b, done)
	b = binary.AppendUvarint(b, uint64(m.Keys))
	b = binary.AppendUvarint(b, uint64(m.Bytes))
	at, err := r.view.SetCell(cellMerged, b)
	if err != nil {
		return err
	}
	r.merged, r.mergedAt = m, at
	return nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errCell = errors.New("it makes no sense")

// reader reads a cell. Its first error stays.
type reader struct {
	b   []byte
	err error
}

func (p *reader) fail() { p.b, p.err = nil, errCell }

func (p *reader) format() {
	if len(p.b) == 0 || p.b[0] != cellFormat {
		p.fail()
		return
	}
	p.b = p.b[1:]
}

func (p *reader) number() uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *reader) string() string {
	n := p.number()
	if n > uint64(len(p.b)) {
		p.fail()
		return ""
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

func (p *reader) end() error {
	if len(p.b) > 0 {
		p.fail()
	}
	return p.err
}
