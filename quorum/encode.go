package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	b = binary.AppendUvarint(b, uint64(c.index))
	b = appendString(b, c.system.String())
	b = binary.AppendUvarint(b, uint64(len(c.members)))
	for _, id := range c.members {
		b = appendString(b, string(id))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseConfiguration reads what Append wrote, and checks it as NewConfiguration
// does.
func ParseConfiguration(b []byte) (*Configuration, error) {
	p := parser{b: b}
	c := p.configuration()
	return c, p.end()
}

// Append appends the encoding of m to b.
func (m *Map) Append(b []byte) []byte {
	b = append(b, encodingFormat)
	b = binary.AppendUvarint(b, uint64(len(m.Active())))
	for _, c := range m.Active() {
		b = c.Append(b)
	}
	return b
}

// ParseMap reads what Append wrote, and checks it as NewMap does. The map of
// nothing is nil.
func ParseMap(b []byte) (*Map, error) {
	p := parser{b: b}
	p.format()
	n := p.number(MaxActive)
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
	b   []byte
	err error
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
		p.b = nil
	}
}

// end returns what went wrong, bytes that are left included.
func (p *parser) end() error {
	if len(p.b) > 0 {
		p.fail(fmt.Errorf("%w: %d bytes are left", errEncoding, len(p.b)))
	}
	return p.err
}

func (p *parser) format() {
	if len(p.b) == 0 || p.b[0] != encodingFormat {
		p.fail(errEncoding)
		return
	}
	p.b = p.b[1:]
}

func (p *parser) number(most uint64) uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 || n > most {
		p.fail(errEncoding)
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *parser) string() string {
	n := p.number(uint64(len(p.b)))
	if n > uint64(len(p.b)) {
		p.fail(errEncoding)
		return ""
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

func (p *parser) configuration() *Configuration {
	p.format()
	index := ConfigIndex(p.number(1<<64 - 1))
	text := p.string()
	members := make([]NodeID, p.number(MaxMembers))
	for i := range members {
		members[i] = NodeID(p.string())
	}
	if p.err != nil {
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
