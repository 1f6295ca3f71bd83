package quorum

import (
	"errors"
	"fmt"

	"atoll/internal/cells"
)

// Configurations and maps as bytes, for what a node keeps on its disk and what
// is agreed on as a value. First a format byte, then unsigned varints, and
// strings with their lengths before them:
//
//	configuration   format index system n member…
//	map             format n configuration…
//
// The wire has an encoding of its own (internal/wire).
const encodingFormat = 1

var errEncoding = errors.New("quorum: the encoding makes no sense")

// Append appends the encoding of c to b.
func (c *Configuration) Append(b []byte) []byte {
	b = append(b, encodingFormat)
	b = cells.AppendNumber(b, uint64(c.index))
	b = cells.AppendBytes(b, c.system.String())
	b = cells.AppendNumber(b, uint64(len(c.members)))
	for _, id := range c.members {
		b = cells.AppendBytes(b, id)
	}
	return b
}

// ParseConfiguration reads what Append wrote, and checks it as NewConfiguration
// does.
func ParseConfiguration(b []byte) (*Configuration, error) {
	p := parser{Reader: cells.Read(b)}
	c := p.configuration()
	return c, p.end()
}

// Append appends the encoding of m to b.
func (m *Map) Append(b []byte) []byte {
	b = append(b, encodingFormat)
	b = cells.AppendNumber(b, uint64(len(m.Active())))
	for _, c := range m.Active() {
		b = c.Append(b)
	}
	return b
}

// ParseMap reads what Append wrote, and checks it as NewMap does. The map of
// nothing is nil.
func ParseMap(b []byte) (*Map, error) {
	p := parser{Reader: cells.Read(b)}
	p.Format(encodingFormat)
	n := p.Number(MaxActive)
	active := make([]*Configuration, 0, n)
	for range n {
		active = append(active, p.configuration())
	}
	if err := p.end(); err != nil || n == 0 {
		return nil, err
	}
	return NewMap(active...)
}

// parser reads an encoding. Its first error stays.
type parser struct {
	cells.Reader
	err error
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.Fail()
}

// end returns what went wrong, bytes that are left included.
func (p *parser) end() error {
	switch {
	case p.err != nil:
		return p.err
	case !p.OK():
		return errEncoding
	case p.Left() > 0:
		return fmt.Errorf("%w: %d bytes are left", errEncoding, p.Left())
	}
	return nil
}

func (p *parser) configuration() *Configuration {
	p.Format(encodingFormat)
	index := ConfigIndex(p.Any())
	text := p.String()
	members := make([]NodeID, p.Number(MaxMembers))
	for i := range members {
		members[i] = NodeID(p.String())
	}
	if !p.OK() {
		return nil
	}
	system, err := ParseSystem(text)
	if err != nil {
		p.fail(err)
		return nil
	}
	c, err := NewConfiguration(index, members, system)
	if err != nil {
		p.fail(err)
	}
	return c
}
