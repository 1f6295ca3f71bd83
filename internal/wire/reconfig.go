package wire

import (
	"math"

	"atoll/quorum"
	"atoll/reconfig"
)

func encodeReady(e *Encoder, m *reconfig.Ready) {
	e.array(4)
	e.string("cluster", string(m.Cluster), maxCluster)
	encodeConfiguration(e, m.Configuration)
	encodeHorizon(e, m.Horizon)
	encodeNews(e, m.News)
}

func decodeReady(d *Decoder) *reconfig.Ready {
	n := d.begin("ready", 4)
	m := &reconfig.Ready{
		Cluster:       quorum.ClusterID(d.string("cluster", maxCluster)),
		Configuration: decodeConfiguration(d),
		Horizon:       decodeHorizon(d, 1),
		News:          decodeNews(d),
	}
	d.end(n - 4)
	return m
}

func encodeReadied(e *Encoder, m *reconfig.Readied) {
	e.array(6)
	e.node("node", m.Node)
	e.text(m.Build, maxVersion)
	e.uint(uint64(m.Wire))
	e.count("keys", m.Keys, math.MaxInt64)
	encodeTold(e, &m.Told)
}

func decodeReadied(d *Decoder) *reconfig.Readied {
	n := d.begin("readied", 6)
	m := &reconfig.Readied{}
	m.Node = d.node("node")
	m.Build = d.string("build", maxVersion)
	m.Wire = uint16(d.uint("wire", math.MaxUint16))
	m.Keys = d.count("keys", math.MaxInt64)
	m.Told = decodeTold(d)
	d.end(n - 6)
	return m
}

func encodeUnready(e *Encoder, m *reconfig.Unready) {
	e.array(3)
	e.text(m.Text, maxText)
	encodeTold(e, &m.Told)
}

func decodeUnready(d *Decoder) *reconfig.Unready {
	n := d.begin("unready", 3)
	m := &reconfig.Unready{Text: d.string("text", maxText), Told: decodeTold(d)}
	d.end(n - 3)
	return m
}

func encodeInquire(e *Encoder, m *reconfig.Inquire) {
	e.array(1)
	encodeHorizon(e, m.Horizon)
}

func decodeInquire(d *Decoder) *reconfig.Inquire {
	n := d.begin("inquire", 1)
	m := &reconfig.Inquire{Horizon: decodeHorizon(d, 1)}
	d.end(n - 1)
	return m
}

func encodePending(e *Encoder, m *reconfig.Pending) {
	e.array(7)
	e.uint(uint64(m.Index))
	encodeProposals(e, m.Ready)
	encodeBallot(e, m.Promised)
	var accepted []*quorum.Configuration
	if m.Accepted != nil {
		accepted = append(accepted, m.Accepted)
	}
	encodeProposals(e, accepted)
	encodeBallot(e, m.Ballot)
	encodeTold(e, &m.Told)
}

func decodePending(d *Decoder) *reconfig.Pending {
	n := d.begin("pending", 7)
	m := &reconfig.Pending{
		Index:    quorum.ConfigIndex(d.uint("index", math.MaxUint64)),
		Ready:    decodeProposals(d, reconfig.MaxNotes),
		Promised: decodeBallot(d),
	}
	if accepted := decodeProposals(d, 1); len(accepted) > 0 {
		m.Accepted = accepted[0]
	}
	m.Ballot = decodeBallot(d)
	m.Told = decodeTold(d)
	d.end(n - 7)
	return m
}

// encodeProposals writes configurations that were proposed. They have the same
// index mostly, and no order.
func encodeProposals(e *Encoder, cs []*quorum.Configuration) {
	e.list("configurations", len(cs), reconfig.MaxNotes)
	for _, c := range cs {
		encodeConfiguration(e, c)
	}
}

func decodeProposals(d *Decoder, most int) []*quorum.Configuration {
	n := d.list("configurations", most, minConfiguration)
	if n == 0 {
		return nil
	}
	cs := make([]*quorum.Configuration, n)
	for i := range cs {
		if cs[i] = decodeConfiguration(d); d.err != nil {
			return nil
		}
	}
	return cs
}
