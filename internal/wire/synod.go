package wire

import (
	"math"

	"atoll/quorum"
	"atoll/synod"
)

func encodePrepare(e *Encoder, m *synod.Prepare) {
	e.array(3)
	encodeInstance(e, m.Instance)
	encodeBallot(e, m.Ballot)
	encodeHorizon(e, m.Horizon)
}

func decodePrepare(d *Decoder) *synod.Prepare {
	n := d.begin("prepare", 3)
	m := &synod.Prepare{Instance: decodeInstance(d), Ballot: decodeBallot(d), Horizon: decodeHorizon(d, 1)}
	d.end(n - 3)
	return m
}

func encodePromise(e *Encoder, m *synod.Promise) {
	e.array(4)
	encodeBallot(e, m.Ballot)
	encodeVote(e, &m.Accepted)
	encodeTold(e, &m.Told)
}

func decodePromise(d *Decoder) *synod.Promise {
	n := d.begin("promise", 4)
	m := &synod.Promise{Ballot: decodeBallot(d), Accepted: decodeVote(d), Told: decodeTold(d)}
	d.end(n - 4)
	return m
}

func encodeAccept(e *Encoder, m *synod.Accept) {
	e.array(4)
	encodeInstance(e, m.Instance)
	encodeBallot(e, m.Ballot)
	e.bin("value", m.Value, synod.MaxValue)
	encodeHorizon(e, m.Horizon)
}

func decodeAccept(d *Decoder) *synod.Accept {
	n := d.begin("accept", 4)
	m := &synod.Accept{Instance: decodeInstance(d), Ballot: decodeBallot(d), Value: decodeDecided(d), Horizon: decodeHorizon(d, 1)}
	d.end(n - 4)
	return m
}

func encodeAccepted(e *Encoder, m *synod.Accepted) {
	e.array(3)
	encodeBallot(e, m.Ballot)
	encodeTold(e, &m.Told)
}

func decodeAccepted(d *Decoder) *synod.Accepted {
	n := d.begin("accepted", 3)
	m := &synod.Accepted{Ballot: decodeBallot(d), Told: decodeTold(d)}
	d.end(n - 3)
	return m
}

func encodeRejected(e *Encoder, m *synod.Rejected) {
	e.array(4)
	encodeBallot(e, m.Ballot)
	encodeBallot(e, m.Promised)
	encodeTold(e, &m.Told)
}

func decodeRejected(d *Decoder) *synod.Rejected {
	n := d.begin("rejected", 4)
	m := &synod.Rejected{Ballot: decodeBallot(d), Promised: decodeBallot(d), Told: decodeTold(d)}
	d.end(n - 4)
	return m
}

func encodeClosed(e *Encoder, m *synod.Closed) {
	e.array(2)
	encodeTold(e, &m.Told)
}

func decodeClosed(d *Decoder) *synod.Closed {
	n := d.begin("closed", 2)
	m := &synod.Closed{Told: decodeTold(d)}
	d.end(n - 2)
	return m
}

// encodeTold writes two fields.
func encodeTold(e *Encoder, t *synod.Told) {
	encodeHorizon(e, t.Horizon)
	encodeNews(e, t.News)
}

func decodeTold(d *Decoder) synod.Told {
	return synod.Told{Horizon: decodeHorizon(d, 1), News: decodeNews(d)}
}

// encodeInstance writes a name as bin: that of a key can be any bytes.
func encodeInstance(e *Encoder, i synod.Instance) {
	e.bin("instance", []byte(i), synod.MaxInstance)
}

func decodeInstance(d *Decoder) synod.Instance {
	return synod.Instance(d.bin("instance", synod.MaxInstance))
}

func encodeBallot(e *Encoder, b synod.Ballot) {
	e.array(3)
	e.uint(uint64(b.Index))
	e.uint(uint64(b.Round))
	encodePID(e, b.ID)
}

func decodeBallot(d *Decoder) synod.Ballot {
	n := d.begin("ballot", 3)
	b := synod.Ballot{
		Index: quorum.ConfigIndex(d.uint("index", math.MaxUint64)),
		Round: synod.Round(d.uint("round", math.MaxUint64)),
		ID:    decodePID(d),
	}
	d.end(n - 3)
	return b
}

// encodeVote writes a vote; none as one of no bytes under the zero ballot.
func encodeVote(e *Encoder, v *synod.Vote) {
	e.array(2)
	encodeBallot(e, v.Ballot)
	e.bin("value", v.Value, synod.MaxValue)
}

func decodeVote(d *Decoder) synod.Vote {
	n := d.begin("vote", 2)
	v := synod.Vote{Ballot: decodeBallot(d), Value: decodeDecided(d)}
	d.end(n - 2)
	return v
}

// decodeDecided reads a value that is decided, as a part of the body.
func decodeDecided(d *Decoder) []byte {
	v := d.bin("value", synod.MaxValue)
	if len(v) == 0 {
		return nil
	}
	return v
}
