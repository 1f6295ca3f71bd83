package wire

import (
	"fmt"
	"math"

	"atoll/quorum"
)

// encodeNews writes what there is to say of the configurations; nothing at all
// as an empty array.
func encodeNews(e *Encoder, n *quorum.News) {
	if n == nil {
		e.array(0)
		return
	}
	e.array(2)
	encodeConfigurations(e, n.Map.Active())
	encodeMembers(e, n.Members)
}

func decodeNews(d *Decoder) *quorum.News {
	n := d.begin("news", 0)
	if n == 0 {
		return nil
	}
	news := &quorum.News{Map: decodeMap(d)}
	if n > 1 {
		news.Members = decodeMembers(d)
	}
	d.end(n - 2)
	return news
}

// decodeMap reads a config map, nil if it is that of somebody who knows nothing.
func decodeMap(d *Decoder) *quorum.Map {
	cs := decodeConfigurations(d)
	if d.err != nil || len(cs) == 0 {
		return nil
	}
	m, err := quorum.NewMap(cs...)
	d.wrap("config map", err)
	return m
}

// encodeConfigurations writes active configurations, which stand in the order
// of their indices, none twice.
func encodeConfigurations(e *Encoder, cs quorum.Configurations) {
	e.list("configurations", len(cs), maxConfigurations)
	for i, c := range cs {
		if i > 0 && c.Index() <= cs[i-1].Index() {
			e.fail(fmt.Errorf("wire: configuration %d stands behind %d", c.Index(), cs[i-1].Index()))
		}
		encodeConfiguration(e, c)
	}
}

func decodeConfigurations(d *Decoder) quorum.Configurations {
	n := d.list("configurations", maxConfigurations, minConfiguration)
	if n == 0 {
		return nil
	}
	cs := make(quorum.Configurations, 0, n)
	for range n {
		c := decodeConfiguration(d)
		if d.err != nil {
			return nil
		}
		if len(cs) > 0 && c.Index() <= cs[len(cs)-1].Index() {
			d.fail("configurations", "configuration %d stands behind %d", c.Index(), cs[len(cs)-1].Index())
			return nil
		}
		cs = append(cs, c)
	}
	return cs
}

func encodeConfiguration(e *Encoder, c *quorum.Configuration) {
	e.array(3)
	e.uint(uint64(c.Index()))
	e.string("quorum system", c.System().String(), maxSystem)
	e.list("members of a configuration", len(c.Members()), quorum.MaxMembers)
	for _, id := range c.Members() {
		e.node("member of a configuration", id)
	}
}

func decodeConfiguration(d *Decoder) *quorum.Configuration {
	n := d.begin("configuration", 3)
	index := quorum.ConfigIndex(d.uint("index", math.MaxUint64))
	text := d.string("quorum system", maxSystem)
	members := make([]quorum.NodeID, d.list("members of a configuration", quorum.MaxMembers, minString))
	for i := range members {
		if d.err != nil {
			break
		}
		members[i] = d.node("member of a configuration")
	}
	d.end(n - 3)
	if d.err != nil {
		return nil
	}
	system, err := quorum.ParseSystem(text)
	d.wrap("quorum system", err)
	if err != nil {
		return nil
	}
	c, err := quorum.NewConfiguration(index, members, system)
	d.wrap("configuration", err)
	return c
}

func encodeMembers(e *Encoder, members []quorum.Member) {
	e.list("members", len(members), maxKnown)
	for i := range members {
		encodeMember(e, &members[i])
	}
}

func decodeMembers(d *Decoder) []quorum.Member {
	n := d.list("members", maxKnown, minMember)
	if n == 0 {
		return nil
	}
	ms := make([]quorum.Member, n)
	for i := range ms {
		if d.err != nil {
			return nil
		}
		ms[i] = decodeMember(d)
	}
	return ms
}

func encodeMember(e *Encoder, m *quorum.Member) {
	e.array(5)
	e.node("node", m.ID)
	e.string("name", m.Name, maxName)
	e.list("addresses", len(m.Addresses), maxAddresses)
	for _, a := range m.Addresses {
		e.string("address", a, maxAddress)
	}
	e.uint(m.Version)
	e.bin("proof", m.Proof, maxProof)
}

func decodeMember(d *Decoder) quorum.Member {
	n := d.begin("member", 3)
	m := quorum.Member{ID: d.node("node"), Name: d.string("name", maxName)}
	if addresses := d.list("addresses", maxAddresses, minString); addresses > 0 {
		m.Addresses = make([]string, addresses)
	}
	for i := range m.Addresses {
		m.Addresses[i] = d.string("address", maxAddress)
	}
	if n > 3 {
		m.Version = d.uint("version", math.MaxUint64)
	}
	if n > 4 {
		m.Proof = append([]byte(nil), d.bin("proof", maxProof)...)
	}
	d.end(n - 5)
	return m
}
