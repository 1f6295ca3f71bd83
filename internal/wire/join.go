package wire

import (
	"math"

	"atoll/env"
	"atoll/join"
)

func encodeStoreID(e *Encoder, i join.Instance) { e.bin("instance", i[:], instanceSize) }

func decodeStoreID(d *Decoder) (i join.Instance) {
	b := d.bin("instance", instanceSize)
	if d.err == nil && len(b) != instanceSize {
		d.fail("instance", "%d bytes, want %d", len(b), instanceSize)
	}
	copy(i[:], b)
	return i
}

func encodeJoin(e *Encoder, m *join.Join) {
	e.array(6)
	encodeStoreID(e, m.Instance)
	encodeMember(e, &m.Member)
	e.string("name", m.Grant.Name, maxName)
	e.count("expires", m.Grant.Expires, math.MaxInt64)
	e.bin("signature", m.Grant.Signature, maxSignature)
	encodeHorizon(e, m.Horizon)
}

func decodeJoin(d *Decoder) *join.Join {
	n := d.begin("join", 6)
	m := &join.Join{Instance: decodeStoreID(d), Member: decodeMember(d)}
	m.Grant = join.Grant{Name: d.string("name", maxName), Expires: d.count("expires", math.MaxInt64)}
	m.Grant.Signature = append([]byte(nil), d.bin("signature", maxSignature)...)
	m.Horizon = decodeHorizon(d, 1)
	d.end(n - 6)
	return m
}

func encodeJoined(e *Encoder, m *join.Joined) {
	e.array(2)
	encodeHorizon(e, m.Horizon)
	encodeSeen(e, m.Seen)
}

func decodeJoined(d *Decoder) *join.Joined {
	n := d.begin("joined", 2)
	m := &join.Joined{Horizon: decodeHorizon(d, 1), Seen: decodeSeen(d)}
	d.end(n - 2)
	return m
}

func encodeSeen(e *Encoder, seen []join.Seen) {
	e.list("seen", len(seen), join.MaxNodes)
	for _, s := range seen {
		e.array(2)
		e.node("node", s.Node)
		encodeStoreID(e, s.Instance)
	}
}

func decodeSeen(d *Decoder) []join.Seen {
	n := d.list("seen", join.MaxNodes, minSeen)
	if n == 0 {
		return nil
	}
	seen := make([]join.Seen, n)
	for i := range seen {
		if d.err != nil {
			return nil
		}
		fields := d.begin("seen", 2)
		seen[i] = join.Seen{Node: d.node("node"), Instance: decodeStoreID(d)}
		d.end(fields - 2)
	}
	return seen
}

func encodeLifeOf(e *Encoder, l join.Life) {
	e.array(4)
	encodeStoreID(e, l.Instance)
	e.uint(l.Starts)
	e.uint(l.Run)
	e.uint(uint64(l.Position))
}

func decodeLifeOf(d *Decoder) join.Life {
	n := d.begin("life", 4)
	l := join.Life{Instance: decodeStoreID(d), Starts: d.uint("starts", math.MaxUint64), Run: d.uint("run", math.MaxUint64),
		Position: env.Position(d.uint("position", math.MaxUint64))}
	d.end(n - 4)
	return l
}

func encodeGreet(e *Encoder, m *join.Greet) {
	e.array(2)
	encodeLifeOf(e, m.Life)
	encodeMember(e, &m.Member)
}

func decodeGreet(d *Decoder) *join.Greet {
	n := d.begin("greet", 2)
	m := &join.Greet{Life: decodeLifeOf(d), Member: decodeMember(d)}
	d.end(n - 2)
	return m
}

func encodeGreeted(e *Encoder, m *join.Greeted) {
	e.array(4)
	e.uint(uint64(m.Verdict))
	encodeLifeOf(e, m.Life)
	encodeSeen(e, m.Seen)
	e.text(m.Unreached, maxTrouble)
}

func decodeGreeted(d *Decoder) *join.Greeted {
	n := d.begin("greeted", 3)
	m := &join.Greeted{Verdict: join.Verdict(d.uint("verdict", math.MaxUint8)), Life: decodeLifeOf(d), Seen: decodeSeen(d)}
	if n > 3 {
		m.Unreached = d.string("unreached", maxTrouble)
	}
	d.end(n - 4)
	return m
}
