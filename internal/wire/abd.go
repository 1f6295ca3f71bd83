package wire

import (
	"math"

	"atoll/abd"
	"atoll/quorum"
	"atoll/tags"
)

func encodeGet(e *Encoder, m *abd.Get) {
	e.array(4)
	e.key("key", m.Key)
	e.bool(m.TagOnly)
	e.count("valueLimit", int64(m.ValueLimit), math.MaxInt32)
	encodeHorizon(e, m.Horizon)
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
	m.Horizon = decodeHorizon(d, n-3)
	d.end(n - 4)
	return m
}

func encodeGetAck(e *Encoder, m *abd.GetAck) {
	e.array(7)
	encodeRecord(e, &m.Record)
	e.bool(m.Confirmed)
	encodeLives(e, &m.Standing)
	e.count("omitted", int64(m.Omitted), abd.LargestMaxValue)
	encodeKnown(e, &m.Standing)
}

func decodeGetAck(d *Decoder) *abd.GetAck {
	n := d.begin("get-ack", 4)
	m := &abd.GetAck{Record: decodeRecord(d), Confirmed: d.bool("confirmed"), Standing: decodeLives(d)}
	if n > 4 {
		m.Omitted = int(d.count("omitted", abd.LargestMaxValue))
	}
	decodeKnown(d, n-5, &m.Standing)
	d.end(n - 7)
	return m
}

func encodePut(e *Encoder, m *abd.Put) {
	e.array(3)
	e.key("key", m.Key)
	encodeRecord(e, &m.Record)
	encodeHorizon(e, m.Horizon)
}

func decodePut(d *Decoder) *abd.Put {
	n := d.begin("put", 2)
	m := &abd.Put{Key: d.key("key"), Record: decodeRecord(d), Horizon: decodeHorizon(d, n-2)}
	d.end(n - 3)
	return m
}

func encodePutAck(e *Encoder, m *abd.PutAck) {
	e.array(4)
	encodeLives(e, &m.Standing)
	encodeKnown(e, &m.Standing)
}

func decodePutAck(d *Decoder) *abd.PutAck {
	n := d.begin("put-ack", 2)
	s := decodeLives(d)
	decodeKnown(d, n-2, &s)
	d.end(n - 4)
	if s.Life != 0 || len(s.Others) > 0 || s.News != nil {
		return &abd.PutAck{Standing: s}
	}
	if d.ack == nil || d.ack.Horizon != s.Horizon {
		d.ack = &abd.PutAck{Standing: s} // nearly all of them, and nobody changes a message
	}
	return d.ack
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
	e.array(4)
	e.key("prefix", m.Prefix)
	e.key("after", m.After)
	e.count("limit", int64(m.Limit), math.MaxInt32)
	encodeHorizon(e, m.Horizon)
}

func decodeList(d *Decoder) *abd.List {
	n := d.begin("list", 3)
	m := &abd.List{Prefix: d.key("prefix"), After: d.key("after"), Limit: int(d.count("limit", math.MaxInt32)), Horizon: decodeHorizon(d, n-3)}
	d.end(n - 4)
	return m
}

func encodePage(e *Encoder, m *abd.Page) {
	e.array(6)
	encodeItems(e, m.Items, abd.MaxPage)
	e.bool(m.More)
	encodeLives(e, &m.Standing)
	encodeKnown(e, &m.Standing)
}

func decodePage(d *Decoder) *abd.Page {
	n := d.begin("page", 4)
	m := &abd.Page{Items: decodeItems(d, abd.MaxPage), More: d.bool("more"), Standing: decodeLives(d)}
	decodeKnown(d, n-4, &m.Standing)
	d.end(n - 6)
	return m
}

func encodeMoved(e *Encoder, m *abd.Moved) {
	e.array(4)
	encodeLives(e, &m.Standing)
	encodeKnown(e, &m.Standing)
}

func decodeMoved(d *Decoder) *abd.Moved {
	n := d.begin("moved", 4)
	m := &abd.Moved{Standing: decodeLives(d)}
	decodeKnown(d, n-2, &m.Standing)
	d.end(n - 4)
	return m
}

// encodeLives writes the first two fields of a standing.
func encodeLives(e *Encoder, s *abd.Standing) {
	e.uint(uint64(s.Life))
	encodeOthers(e, s.Others)
}

func decodeLives(d *Decoder) (s abd.Standing) {
	s.Life = abd.Life(d.uint("life", math.MaxUint64))
	s.Others = decodeOthers(d)
	return s
}

func encodeOthers(e *Encoder, others []abd.LifeOf) {
	e.list("lives", len(others), abd.MaxLives)
	for i := range others {
		e.array(2)
		e.node("life of", others[i].Node)
		e.uint(uint64(others[i].Life))
	}
}

func decodeOthers(d *Decoder) []abd.LifeOf {
	var s abd.Standing
	for n := d.list("lives", abd.MaxLives, minLife); n > 0 && d.err == nil; n-- {
		fields := d.begin("life", 2)
		s = s.With(d.node("life of"), abd.Life(d.uint("life", math.MaxUint64)))
		d.end(fields - 2)
	}
	return s.Others
}

// encodeKnown writes what a standing says of configurations: its last two
// fields.
func encodeKnown(e *Encoder, s *abd.Standing) {
	encodeHorizon(e, s.Horizon)
	encodeNews(e, s.News)
}

// decodeKnown reads those of them that are left.
func decodeKnown(d *Decoder, left int, s *abd.Standing) {
	s.Horizon = decodeHorizon(d, left)
	if left > 1 {
		s.News = decodeNews(d)
	}
}

func encodeHorizon(e *Encoder, h quorum.Horizon) {
	e.array(2)
	e.uint(uint64(h.Installed))
	e.uint(uint64(h.Next))
}

// decodeHorizon reads a horizon if a field is left. Who says nothing knows
// nothing: the zero Horizon.
func decodeHorizon(d *Decoder, left int) (h quorum.Horizon) {
	if left < 1 {
		return h
	}
	n := d.begin("horizon", 2)
	h.Installed = quorum.ConfigIndex(d.uint("installed", math.MaxUint64))
	h.Next = quorum.ConfigIndex(d.uint("next", math.MaxUint64))
	d.end(n - 2)
	return h
}

func encodeItems(e *Encoder, items []abd.Item, most int) {
	e.list("items", len(items), most)
	for i := range items {
		encodeItem(e, &items[i])
	}
}

func decodeItems(d *Decoder, most int) []abd.Item {
	n := d.list("items", most, minItem)
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
	encodePID(e, t.PID)
	e.uint(uint64(t.RMW))
}

func decodeTag(d *Decoder) tags.Tag {
	n := d.begin("tag", 3)
	t := tags.Tag{Seq: tags.Seq(d.uint("seq", math.MaxUint64))}
	t.PID = decodePID(d)
	t.RMW = tags.RMW(d.uint("rmw", math.MaxUint64))
	d.end(n - 3)
	return t
}

func encodePID(e *Encoder, p tags.PID) {
	b := p.Bytes()
	_ = e.mp.EncodeBytesLen(len(b))
	e.out.b = append(e.out.b, b[:]...)
}

func decodePID(d *Decoder) (p tags.PID) {
	b := d.bin("pid", tags.PIDSize)
	if d.err == nil && len(b) != tags.PIDSize {
		d.fail("pid", "%d bytes, %d are needed", len(b), tags.PIDSize)
	}
	if d.err == nil {
		p = tags.PIDFromBytes([tags.PIDSize]byte(b))
	}
	return p
}
