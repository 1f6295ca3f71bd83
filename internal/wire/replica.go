package wire

import (
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
	encodeMembers(e, m.Members)
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

func encodeStatusQuery(e *Encoder, _ *replica.StatusQuery) { e.array(0) }

func decodeStatusQuery(d *Decoder) *replica.StatusQuery {
	d.end(d.begin("status-query", 0))
	return &replica.StatusQuery{}
}

func encodeStatus(e *Encoder, m *replica.Status) {
	e.array(15)
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
	encodeHorizon(e, m.Horizon)
	e.uint(uint64(m.Role))
	encodeMerge(e, &m.Merge)
	e.text(m.Unreached, maxTrouble)
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
	m.Horizon = decodeHorizon(d, n-11)
	if n > 12 {
		if m.Role = replica.Role(d.uint("role", math.MaxUint8)); m.Role > replica.RoleRemoved {
			m.Role = replica.RoleUnknown
		}
	}
	if n > 13 {
		m.Merge = decodeMerge(d)
	}
	if n > 14 {
		m.Unreached = d.string("unreached", maxTrouble)
	}
	d.end(n - 15)
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
