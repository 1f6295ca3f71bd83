package wire

import (
	"math"

	"atoll/abd"
	"atoll/repair"
)

func encodeRange(e *Encoder, r repair.Range) {
	e.key("after", r.After)
	e.key("to", r.To)
}

func decodeRange(d *Decoder) repair.Range {
	return repair.Range{After: d.key("after"), To: d.key("to")}
}

func encodeSummarize(e *Encoder, m *repair.Summarize) {
	e.array(3)
	encodeRange(e, m.Range)
	e.count("keys", int64(m.Keys), math.MaxInt32)
}

func decodeSummarize(d *Decoder) *repair.Summarize {
	n := d.begin("summarize", 3)
	m := &repair.Summarize{Range: decodeRange(d), Keys: int(d.count("keys", math.MaxInt32))}
	d.end(n - 3)
	return m
}

func encodeSummary(e *Encoder, m *repair.Summary) {
	e.array(2)
	e.count("keys", int64(m.Keys), math.MaxInt32)
	e.uint(m.Hash)
}

func decodeSummary(d *Decoder) *repair.Summary {
	n := d.begin("summary", 2)
	m := &repair.Summary{Keys: int(d.count("keys", math.MaxInt32)), Hash: d.uint("hash", math.MaxUint64)}
	d.end(n - 2)
	return m
}

func encodeOffer(e *Encoder, m *repair.Offer) {
	e.array(3)
	encodeRange(e, m.Range)
	encodeItems(e, m.Items)
}

func decodeOffer(d *Decoder) *repair.Offer {
	n := d.begin("offer", 3)
	m := &repair.Offer{Range: decodeRange(d), Items: decodeItems(d)}
	d.end(n - 3)
	return m
}

func encodeMissing(e *Encoder, m *repair.Missing) { encodeRecords(e, &m.Records) }

func decodeMissing(d *Decoder) *repair.Missing {
	return &repair.Missing{Records: decodeRecords(d, "missing")}
}

func encodeAttest(e *Encoder, m *repair.Attest) {
	e.array(3)
	e.key("after", m.After)
	e.key("before", m.Before)
	e.uint(uint64(m.Life))
}

func decodeAttest(d *Decoder) *repair.Attest {
	n := d.begin("attest", 3)
	m := &repair.Attest{After: d.key("after"), Before: d.key("before"), Life: abd.Life(d.uint("life", math.MaxUint64))}
	d.end(n - 3)
	return m
}

func encodeAttested(e *Encoder, m *repair.Attested) { encodeRecords(e, &m.Records) }

func decodeAttested(d *Decoder) *repair.Attested {
	return &repair.Attested{Records: decodeRecords(d, "attested")}
}

func encodeRecords(e *Encoder, r *repair.Records) {
	e.array(3)
	encodeEntries(e, r.Entries)
	e.bool(r.More)
	e.key("last", r.Last)
}

func decodeRecords(d *Decoder, field string) repair.Records {
	n := d.begin(field, 3)
	r := repair.Records{Entries: decodeEntries(d), More: d.bool("more"), Last: d.key("last")}
	d.end(n - 3)
	return r
}

func encodeEntries(e *Encoder, entries []repair.Entry) {
	e.list("entries", len(entries), repair.MaxEntries)
	for i := range entries {
		e.array(2)
		e.key("entry key", entries[i].Key)
		encodeRecord(e, &entries[i].Record)
	}
}

func decodeEntries(d *Decoder) []repair.Entry {
	n := d.list("entries", repair.MaxEntries, minEntry)
	if n == 0 {
		return nil
	}
	entries := make([]repair.Entry, n)
	for i := range entries {
		if d.err != nil {
			break
		}
		fields := d.begin("entry", 2)
		entries[i] = repair.Entry{Key: d.key("entry key"), Record: decodeRecord(d)}
		d.end(fields - 2)
	}
	return entries
}
