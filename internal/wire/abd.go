package wire

import (
	"math"

	"atoll/abd"
	"atoll/tags"
)

func encodeGet(e *Encoder, m *abd.Get) {
	e.array(3)
	e.key("key", m.Key)
	e.bool(m.TagOnly)
	e.count("valueLimit", int64(m.ValueLimit), math.MaxInt32)
}

func decodeGet(d *Decoder) *abd.Get {
	n := d.begin("get", 1)
	m := &abd.Get{Key: d.key("key")}
	if n > 1 {
		m.TagOnly = d.bool("tagOnly")
	}
	if n > 2 {
		m.ValueLimit = int(d.count("valueLimit", math.MaxInt32))
	}
	d.end(n - 3)
	return m
}

func encodeGetAck(e *Encoder, m *abd.GetAck) {
	e.array(5)
	encodeRecord(e, &m.Record)
	e.bool(m.Confirmed)
	encodeStanding(e, &m.Standing)
	e.count("omitted", int64(m.Omitted), abd.LargestMaxValue)
}

func decodeGetAck(d *Decoder) *abd.GetAck {
	n := d.begin("get-ack", 4)
	m := &abd.GetAck{Record: decodeRecord(d), Confirmed: d.bool("confirmed"), Standing: decodeStanding(d)}
	if n > 4 {
		m.Omitted = int(d.count("omitted", abd.LargestMaxValue))
	}
	d.end(n - 5)
	return m
}

func encodePut(e *Encoder, m *abd.Put) {
	e.array(2)
	e.key("key", m.Key)
	encodeRecord(e, &m.Record)
}

func decodePut(d *Decoder) *abd.Put {
	n := d.begin("put", 2)
	m := &abd.Put{Key: d.key("key"), Record: decodeRecord(d)}
	d.end(n - 2)
	return m
}

func encodePutAck(e *Encoder, m *abd.PutAck) {
	e.array(2)
	encodeStanding(e, &m.Standing)
}

func decodePutAck(d *Decoder) *abd.PutAck {
	n := d.begin("put-ack", 2)
	s := decodeStanding(d)
	d.end(n - 2)
	if s.Life == 0 && len(s.Others) == 0 {
		return &d.ack // nearly all of them, and nobody changes a message
	}
	return &abd.PutAck{Standing: s}
}

func encodeConfirm(e *Encoder, m *abd.Confirm) {
	e.array(2)
	e.key("key", m.Key)
	encodeTag(e, m.Tag)
}

func decodeConfirm(d *Decoder) *abd.Confirm {
	n := d.begin("confirm", 2)
	m := &abd.Confirm{Key: d.key("key"), Tag: decodeTag(d)}
	d.end(n - 2)
	return m
}

func encodeList(e *Encoder, m *abd.List) {
	e.array(3)
	e.key("prefix", m.Prefix)
	e.key("after", m.After)
	e.count("limit", int64(m.Limit), math.MaxInt32)
}

func decodeList(d *Decoder) *abd.List {
	n := d.begin("list", 3)
	m := &abd.List{Prefix: d.key("prefix"), After: d.key("after"), Limit: int(d.count("limit", math.MaxInt32))}
	d.end(n - 3)
	return m
}

func encodePage(e *Encoder, m *abd.Page) {
	e.array(4)
	encodeItems(e, m.Items)
	e.bool(m.More)
	encodeStanding(e, &m.Standing)
}

func decodePage(d *Decoder) *abd.Page {
	n := d.begin("page", 4)
	m := &abd.Page{Items: decodeItems(d), More: d.bool("more"), Standing: decodeStanding(d)}
	d.end(n - 4)
	return m
}

func encodeItems(e *Encoder, items []abd.Item) {
	e.list("items", len(items), abd.MaxPage)
	for i := range items {
		encodeItem(e, &items[i])
	}
}

func decodeItems(d *Decoder) []abd.Item {
	n := d.list("items", abd.MaxPage, minItem)
	if n == 0 {
		return nil
	}
	items := make([]abd.Item, n)
	for i := range items {
		if d.err != nil {
			break
		}
		items[i] = decodeItem(d)
	}
	return items
}

func encodeItem(e *Encoder, it *abd.Item) {
	e.array(4)
	e.key("item key", it.Key)
	encodeTag(e, it.Tag)
	e.bool(it.Deleted)
	e.bool(it.Confirmed)
}

func decodeItem(d *Decoder) abd.Item {
	n := d.begin("item", 3)
	it := abd.Item{Key: d.key("item key"), Tag: decodeTag(d), Deleted: d.bool("item deleted")}
	if n > 3 {
		it.Confirmed = d.bool("item confirmed")
	}
	d.end(n - 4)
	return it
}

func encodeRecord(e *Encoder, r *abd.Record) {
	e.array(3)
	encodeTag(e, r.Tag)
	e.bool(r.Deleted)
	e.value("value", r.Value)
}

func decodeRecord(d *Decoder) abd.Record {
	n := d.begin("record", 3)
	r := abd.Record{Tag: decodeTag(d), Deleted: d.bool("deleted"), Value: d.value("value")}
	d.end(n - 3)
	return r
}

func encodeTag(e *Encoder, t tags.Tag) {
	e.array(3)
	e.uint(uint64(t.Seq))
	pid := t.PID.Bytes()
	_ = e.mp.EncodeBytesLen(len(pid))
	e.out.b = append(e.out.b, pid[:]...)
	e.uint(uint64(t.RMW))
}

func decodeTag(d *Decoder) tags.Tag {
	n := d.begin("tag", 3)
	t := tags.Tag{Seq: tags.Seq(d.uint("seq", math.MaxUint64))}
	pid := d.bin("pid", tags.PIDSize)
	if d.err == nil && len(pid) != tags.PIDSize {
		d.fail("pid", "%d bytes, %d are needed", len(pid), tags.PIDSize)
	}
	if d.err == nil {
		t.PID = tags.PIDFromBytes([tags.PIDSize]byte(pid))
	}
	t.RMW = tags.RMW(d.uint("rmw", math.MaxUint64))
	d.end(n - 3)
	return t
}
