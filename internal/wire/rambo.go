package wire

import (
	"math"

	"atoll/quorum"
	"atoll/rambo"
)

// encodeKnowledge writes two fields.
func encodeKnowledge(e *Encoder, k *rambo.Knowledge) {
	encodeNews(e, k.News)
	encodeOthers(e, k.Lives)
}

func decodeKnowledge(d *Decoder) rambo.Knowledge {
	return rambo.Knowledge{News: decodeNews(d), Lives: decodeOthers(d)}
}

func encodeIndex(e *Encoder, k quorum.ConfigIndex) { e.uint(uint64(k)) }

func decodeIndex(d *Decoder) quorum.ConfigIndex {
	return quorum.ConfigIndex(d.uint("index", math.MaxUint64))
}

func encodeGossip(e *Encoder, m *rambo.Gossip) {
	e.array(2)
	encodeKnowledge(e, &m.Knowledge)
}

func decodeGossip(d *Decoder) *rambo.Gossip {
	n := d.begin("gossip", 2)
	m := &rambo.Gossip{Knowledge: decodeKnowledge(d)}
	d.end(n - 2)
	return m
}

func encodeGossiped(e *Encoder, m *rambo.Gossiped) {
	e.array(2)
	encodeKnowledge(e, &m.Knowledge)
}

func decodeGossiped(d *Decoder) *rambo.Gossiped {
	n := d.begin("gossiped", 2)
	m := &rambo.Gossiped{Knowledge: decodeKnowledge(d)}
	d.end(n - 2)
	return m
}

func encodeAnnounce(e *Encoder, m *rambo.Announce) {
	e.array(1)
	encodeNews(e, m.News)
}

func decodeAnnounce(d *Decoder) *rambo.Announce {
	n := d.begin("announce", 1)
	m := &rambo.Announce{News: decodeNews(d)}
	d.end(n - 1)
	return m
}

func encodeAnnounced(e *Encoder, m *rambo.Announced) {
	e.array(1)
	encodeHorizon(e, m.Horizon)
}

func decodeAnnounced(d *Decoder) *rambo.Announced {
	n := d.begin("announced", 1)
	m := &rambo.Announced{Horizon: decodeHorizon(d, n)}
	d.end(n - 1)
	return m
}

func encodeFence(e *Encoder, m *rambo.Fence) {
	e.array(3)
	encodeIndex(e, m.Index)
	encodeKnowledge(e, &m.Knowledge)
}

func decodeFence(d *Decoder) *rambo.Fence {
	n := d.begin("fence", 3)
	m := &rambo.Fence{Index: decodeIndex(d), Knowledge: decodeKnowledge(d)}
	d.end(n - 3)
	return m
}

func encodeFenced(e *Encoder, m *rambo.Fenced) {
	e.array(3)
	encodeIndex(e, m.Index)
	encodeKnowledge(e, &m.Knowledge)
}

func decodeFenced(d *Decoder) *rambo.Fenced {
	n := d.begin("fenced", 3)
	m := &rambo.Fenced{Index: decodeIndex(d), Knowledge: decodeKnowledge(d)}
	d.end(n - 3)
	return m
}

func encodeInstall(e *Encoder, m *rambo.Install) {
	e.array(3)
	encodeIndex(e, m.Index)
	encodeKnowledge(e, &m.Knowledge)
}

func decodeInstall(d *Decoder) *rambo.Install {
	n := d.begin("install", 3)
	m := &rambo.Install{Index: decodeIndex(d), Knowledge: decodeKnowledge(d)}
	d.end(n - 3)
	return m
}

func encodeInstalled(e *Encoder, m *rambo.Installed) {
	e.array(1)
	encodeIndex(e, m.Index)
}

func decodeInstalled(d *Decoder) *rambo.Installed {
	n := d.begin("installed", 1)
	m := &rambo.Installed{Index: decodeIndex(d)}
	d.end(n - 1)
	return m
}

func encodeHowFar(e *Encoder, _ *rambo.HowFar) { e.array(0) }

func decodeHowFar(d *Decoder) *rambo.HowFar {
	d.end(d.begin("how-far", 0))
	return &rambo.HowFar{}
}

func encodeSoFar(e *Encoder, m *rambo.SoFar) {
	e.array(1)
	encodeMerge(e, &m.Progress)
}

func decodeSoFar(d *Decoder) *rambo.SoFar {
	n := d.begin("so-far", 1)
	m := &rambo.SoFar{Progress: decodeMerge(d)}
	d.end(n - 1)
	return m
}

func encodeMerge(e *Encoder, p *rambo.Progress) {
	e.array(5)
	encodeIndex(e, p.Index)
	e.count("keys", p.Keys, math.MaxInt64)
	e.count("bytes", p.Bytes, math.MaxInt64)
	e.key("after", p.After)
	e.bool(p.Done)
}

func decodeMerge(d *Decoder) rambo.Progress {
	n := d.begin("merge", 5)
	p := rambo.Progress{Index: decodeIndex(d), Keys: d.count("keys", math.MaxInt64), Bytes: d.count("bytes", math.MaxInt64),
		After: d.key("after"), Done: d.bool("done")}
	d.end(n - 5)
	return p
}
