package wire

import (
	"encoding/binary"
	"math"
	"strings"

	"atoll/abd"
	"atoll/quorum"
	"atoll/repair"
	"atoll/synod"
)

func encodeRange(e *Encoder, r repair.Range) {
	e.key("after", r.After)
	e.key("to", r.To)
}

func decodeRange(d *Decoder) repair.Range {
	return repair.Range{After: d.key("after"), To: d.key("to")}
}

func encodeSummarize(e *Encoder, m *repair.Summarize) {
	e.array(5)
	encodeRange(e, m.Range)
	e.count("keys", int64(m.Keys), math.MaxInt32)
	e.uint(uint64(m.Knows))
	e.bool(m.Cut)
}

func decodeSummarize(d *Decoder) *repair.Summarize {
	n := d.begin("summarize", 3)
	m := &repair.Summarize{Range: decodeRange(d), Keys: int(d.count("keys", math.MaxInt32))}
	m.Terms = decodeTerms(d, n-3)
	if n > 4 {
		m.Cut = d.bool("cut")
	}
	d.end(n - 5)
	return m
}

// decodeTerms reads terms if a field is left.
func decodeTerms(d *Decoder, left int) (t repair.Terms) {
	if left > 0 {
		t.Knows = quorum.ConfigIndex(d.uint("knows", math.MaxUint64))
	}
	return t
}

func encodeSummary(e *Encoder, m *repair.Summary) {
	e.array(5)
	e.count("keys", int64(m.Keys), math.MaxInt32)
	e.uint(m.Hash)
	encodeLives(e, &m.Standing)
	e.key("last", m.Last)
}

func decodeSummary(d *Decoder) *repair.Summary {
	n := d.begin("summary", 2)
	m := &repair.Summary{Keys: int(d.count("keys", math.MaxInt32)), Hash: d.uint("hash", math.MaxUint64)}
	decodeLast(d, n-2, &m.Standing)
	if n > 4 {
		m.Last = d.key("last")
	}
	d.end(n - 5)
	return m
}

func encodeOffer(e *Encoder, m *repair.Offer) {
	e.array(7)
	encodeRange(e, m.Range)
	encodeItems(e, m.Items, repair.MaxItems)
	e.uint(uint64(m.Knows))
	e.count("limit", int64(m.Limit), math.MaxInt32)
	e.uint(m.Salt)
	encodeDigests(e, m.Digests)
}

func decodeOffer(d *Decoder) *repair.Offer {
	n := d.begin("offer", 3)
	m := &repair.Offer{Range: decodeRange(d), Items: decodeItems(d, repair.MaxItems)}
	m.Terms = decodeTerms(d, n-3)
	if n > 4 {
		m.Limit = int(d.count("limit", math.MaxInt32))
	}
	if n > 5 {
		m.Salt = d.uint("salt", math.MaxUint64)
	}
	if n > 6 {
		m.Digests = decodeDigests(d)
	}
	d.end(n - 7)
	return m
}

func encodeDigests(e *Encoder, digests []uint64) {
	e.check("digests", len(digests), repair.MaxDigests)
	_ = e.mp.EncodeBytesLen(len(digests) * digestSize)
	for _, digest := range digests {
		e.out.b = binary.BigEndian.AppendUint64(e.out.b, digest)
	}
}

func decodeDigests(d *Decoder) []uint64 {
	b := d.bin("digests", repair.MaxDigests*digestSize)
	if len(b) == 0 {
		return nil
	}
	if len(b)%digestSize != 0 {
		d.fail("digests", "%d bytes are no digests of %d", len(b), digestSize)
		return nil
	}
	digests := make([]uint64, len(b)/digestSize)
	for i := range digests {
		digests[i] = binary.BigEndian.Uint64(b[i*digestSize:])
	}
	return digests
}

func encodeMissing(e *Encoder, m *repair.Missing) {
	e.array(6)
	encodeRecords(e, &m.Records)
	encodeLives(e, &m.Standing)
	e.list("votes", len(m.Votes), repair.MaxVotes)
	for i := range m.Votes {
		e.array(2)
		encodeInstance(e, m.Votes[i].Instance)
		encodeVote(e, &m.Votes[i].Vote)
	}
}

func decodeMissing(d *Decoder) *repair.Missing {
	n := d.begin("missing", 3)
	m := &repair.Missing{Records: decodeRecords(d)}
	decodeLast(d, n-3, &m.Standing)
	if n > 5 {
		m.Votes = decodeVotes(d)
	}
	d.end(n - 6)
	return m
}

func decodeVotes(d *Decoder) []synod.Carried {
	n := d.list("votes", repair.MaxVotes, minVote)
	if n == 0 {
		return nil
	}
	votes := make([]synod.Carried, n)
	for i := range votes {
		if d.err != nil {
			break
		}
		fields := d.begin("carried", 2)
		votes[i] = synod.Carried{Instance: decodeInstance(d), Vote: decodeVote(d)}
		d.end(fields - 2)
		if d.err == nil && !votes[i].Instance.Travels() {
			d.fail("carried", "an instance that doesn't travel")
		}
	}
	return votes
}

// decodeLast reads what a standing says of lives, at the end of an answer to
// which it was added.
func decodeLast(d *Decoder, left int, s *abd.Standing) {
	if left > 0 {
		s.Life = abd.Life(d.uint("life", math.MaxUint64))
	}
	if left > 1 {
		s.Others = decodeOthers(d)
	}
}

func encodeAttest(e *Encoder, m *repair.Attest) {
	e.array(4)
	e.key("after", m.After)
	e.key("before", m.Before)
	e.uint(uint64(m.Life))
	encodeHorizon(e, m.Horizon)
}

func decodeAttest(d *Decoder) *repair.Attest {
	n := d.begin("attest", 3)
	m := &repair.Attest{After: d.key("after"), Before: d.key("before"), Life: abd.Life(d.uint("life", math.MaxUint64))}
	m.Horizon = decodeHorizon(d, n-3)
	d.end(n - 4)
	return m
}

func encodeAttested(e *Encoder, m *repair.Attested) {
	e.array(3)
	encodeRecords(e, &m.Records)
}

func decodeAttested(d *Decoder) *repair.Attested {
	n := d.begin("attested", 3)
	m := &repair.Attested{Records: decodeRecords(d)}
	d.end(n - 3)
	return m
}

// encodeRecords writes three fields.
func encodeRecords(e *Encoder, r *repair.Records) {
	encodeEntries(e, r.Entries)
	e.bool(r.More)
	e.key("last", r.Last)
}

func decodeRecords(d *Decoder) repair.Records {
	return repair.Records{Entries: decodeEntries(d), More: d.bool("more"), Last: d.key("last")}
}

func encodeEntries(e *Encoder, entries []repair.Entry) {
	e.list("entries", len(entries), repair.LargestPage)
	for i := range entries {
		e.array(2)
		e.key("entry key", entries[i].Key)
		encodeRecord(e, &entries[i].Record)
	}
}

func decodeEntries(d *Decoder) []repair.Entry {
	n := d.list("entries", repair.LargestPage, minEntry)
	if n == 0 {
		return nil
	}
	entries := make([]repair.Entry, n)
	var keys strings.Builder
	for i := range entries {
		if d.err != nil {
			break
		}
		fields := d.begin("entry", 2)
		entries[i] = repair.Entry{Key: d.sharedKey("entry key", &keys, n-i), Record: decodeRecord(d)}
		d.end(fields - 2)
	}
	return entries
}
