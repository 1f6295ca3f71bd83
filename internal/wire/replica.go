package wire

import (
	"fmt"
	"math"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
	"atoll/replica"
)

func encodeDescribe(e *Encoder, _ *replica.Describe) { e.array(0) }

func decodeDescribe(d *Decoder) *replica.Describe {
	d.end(d.begin("describe", 0))
	return &replica.Describe{}
}

func encodeDescription(e *Encoder, m *replica.Description) {
	e.array(5)
	e.string("cluster", string(m.Cluster), maxCluster)
	e.node("node", m.Node)
	encodeConfigurations(e, m.Configurations)
	e.list("members", len(m.Members), maxKnown)
	for i := range m.Members {
		encodeMember(e, &m.Members[i])
	}
	e.count("maxValue", int64(m.MaxValue), abd.LargestMaxValue)
}

func decodeDescription(d *Decoder) *replica.Description {
	n := d.begin("description", 5)
	m := &replica.Description{
		Cluster:        quorum.ClusterID(d.string("cluster", maxCluster)),
		Node:           d.node("node"),
		Configurations: decodeConfigurations(d),
		Members:        decodeMembers(d),
		MaxValue:       int(d.count("maxValue", abd.LargestMaxValue)),
	}
	d.end(n - 5)
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

func decodeMembers(d *Decoder) []replica.Member {
	n := d.list("members", maxKnown, minMember)
	if n == 0 {
		return nil
	}
	ms := make([]replica.Member, n)
	for i := range ms {
		if d.err != nil {
			return nil
		}
		ms[i] = decodeMember(d)
	}
	return ms
}

func encodeMember(e *Encoder, m *replica.Member) {
	e.array(3)
	e.node("node", m.ID)
	e.string("name", m.Name, maxName)
	e.list("addresses", len(m.Addresses), maxAddresses)
	for _, a := range m.Addresses {
		e.string("address", a, maxAddress)
	}
}

func decodeMember(d *Decoder) replica.Member {
	n := d.begin("member", 3)
	m := replica.Member{ID: d.node("node"), Name: d.string("name", maxName)}
	if addresses := d.list("addresses", maxAddresses, minString); addresses > 0 {
		m.Addresses = make([]string, addresses)
	}
	for i := range m.Addresses {
		m.Addresses[i] = d.string("address", maxAddress)
	}
	d.end(n - 3)
	return m
}

func encodeStatusQuery(e *Encoder, _ *replica.StatusQuery) { e.array(0) }

func decodeStatusQuery(d *Decoder) *replica.StatusQuery {
	d.end(d.begin("status-query", 0))
	return &replica.StatusQuery{}
}

func encodeStatus(e *Encoder, m *replica.Status) {
	e.array(11)
	e.node("node", m.Node)
	e.text(m.Version, maxVersion)
	e.count("process", int64(m.Process), math.MaxInt32)
	e.count("uptime", int64(m.Uptime), math.MaxInt64)
	e.uint(uint64(m.Configuration))
	encodeUsage(e, &m.Usage)
	e.uint(uint64(m.Appended))
	e.uint(uint64(m.Durable))
	e.count("certificateEnd", m.CertificateEnd, math.MaxInt64)
	e.text(m.Trouble, maxTrouble)
	encodeProgress(e, &m.Repair)
}

func decodeStatus(d *Decoder) *replica.Status {
	n := d.begin("status", 8)
	m := &replica.Status{
		Node:          d.node("node"),
		Version:       d.string("version", maxVersion),
		Process:       int(d.count("process", math.MaxInt32)),
		Uptime:        time.Duration(d.count("uptime", math.MaxInt64)),
		Configuration: quorum.ConfigIndex(d.uint("configuration", math.MaxUint64)),
		Usage:         decodeUsage(d),
		Appended:      env.Position(d.uint("appended", math.MaxUint64)),
		Durable:       env.Position(d.uint("durable", math.MaxUint64)),
	}
	if n > 8 {
		m.CertificateEnd = d.count("certificateEnd", math.MaxInt64)
	}
	if n > 9 {
		m.Trouble = d.string("trouble", maxTrouble)
	}
	if n > 10 {
		m.Repair = decodeProgress(d)
	}
	d.end(n - 11)
	return m
}

func encodeProgress(e *Encoder, p *repair.Progress) {
	e.array(7)
	for _, n := range []int64{p.Passes, p.Compared, p.Merged, p.Bytes, p.Examined, p.Healed, p.Damaged} {
		e.count("progress", n, math.MaxInt64)
	}
}

func decodeProgress(d *Decoder) (p repair.Progress) {
	n := d.begin("progress", 7)
	for _, field := range []*int64{&p.Passes, &p.Compared, &p.Merged, &p.Bytes, &p.Examined, &p.Healed, &p.Damaged} {
		*field = d.count("progress", math.MaxInt64)
	}
	d.end(n - 7)
	return p
}

func encodeUsage(e *Encoder, u *replica.Usage) {
	e.array(3)
	e.count("keys", u.Keys, math.MaxInt64)
	e.count("tombstones", u.Tombstones, math.MaxInt64)
	e.count("bytes", u.Bytes, math.MaxInt64)
}

func decodeUsage(d *Decoder) replica.Usage {
	n := d.begin("usage", 3)
	u := replica.Usage{
		Keys:       d.count("keys", math.MaxInt64),
		Tombstones: d.count("tombstones", math.MaxInt64),
		Bytes:      d.count("bytes", math.MaxInt64),
	}
	d.end(n - 3)
	return u
}
