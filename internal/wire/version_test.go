package wire_test

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/synod"
	"atoll/tags"
)

// laterFields are fields as a later version might add them.
func laterFields(t *testing.T) [][]byte {
	wide := make(map[string]int)
	for i := range 20 {
		wide[strings.Repeat("k", i)] = i
	}
	return [][]byte{
		element(t, 5), element(t, nil), element(t, -1), element(t, 1.5), element(t, float32(1.5)), element(t, true),
		element(t, "text"), element(t, make([]byte, 300)), element(t, make([]byte, 70000)),
		element(t, []any{1, []any{}, map[string]any{"k": []any{2}}}),
		element(t, repeat("x", 20)), element(t, repeat(1, 70000)),
		element(t, wide), {0xdf, 0, 0, 0, 1, 1, 2}, // maps with lengths of 2 and 4 bytes
		{0xd4, 9, 0}, append([]byte{0xd8, 9}, make([]byte, 16)...), // ext of 1 and 16 bytes
		{0xc7, 1, 9, 0}, {0xc8, 0, 1, 9, 0}, {0xc9, 0, 0, 0, 1, 9, 0}, // ext with lengths of 1, 2 and 4 bytes
	}
}

// lengthen adds an element to the array of up to 15 that begins at b[at] and ends
// with b.
func lengthen(b []byte, at int, field []byte) []byte {
	longer := append(bytes.Clone(b), field...)
	if b[at] == 0x9f { // the head of a longer one takes three bytes
		return slices.Replace(longer, at, at+1, 0xdc, 0, 16)
	}
	longer[at]++
	return longer
}

// messageAt returns where in a body the message begins.
func messageAt(t *testing.T, body []byte) int {
	at := 1
	for range 2 { // kind and conversation
		n, err := wire.Skip(body[at:])
		if err != nil {
			t.Fatal(err)
		}
		at += n
	}
	return at
}

func TestFieldsOfALaterVersion(t *testing.T) {
	later, goldens := laterFields(t), readGoldens(t)
	for _, s := range samples() {
		frame := body(t, goldens[s.name])
		for _, field := range later {
			for _, at := range []int{0, messageAt(t, frame)} {
				longer := lengthen(frame, at, field)
				conversation, m, err := wire.DecodeFrame(longer)
				if err != nil || conversation != s.conversation || !reflect.DeepEqual(m, s.message) {
					t.Errorf("%s with %.20x added at %d: %d, %+v, %v", s.name, field, at, conversation, m, err)
				}
			}
		}
	}
	tag := tags.Tag{Seq: 3, PID: tags.NewPID(4, 5, 6), RMW: 7}
	testLater(t, wire.TagPart(), tag)
	testLater(t, wire.RecordPart(), abd.Record{Tag: tag, Value: []byte("v")})
	testLater(t, wire.ItemPart(), abd.Item{Key: "k", Tag: tag, Deleted: true, Confirmed: true})
	testLater(t, wire.MemberPart(), quorum.Member{ID: "n1", Name: "one", Addresses: []string{"a:1", "b:2"}})
	testLater(t, wire.UsagePart(), replica.Usage{Keys: 1, Tombstones: 2, Bytes: 3})
	testLater(t, wire.BallotPart(), synod.Ballot{Index: 1, Round: 2, ID: tag.PID})
	testLater(t, wire.VotePart(), synod.Vote{Ballot: synod.Ballot{Round: 2, ID: tag.PID}, Value: []byte("v")})
	testLater(t, wire.ConfigurationPart(), configuration(7, "get=2,put=1", "n1", "n2"))
}

func testLater[T any](t *testing.T, part wire.Part[T], want T) {
	t.Helper()
	b, err := part.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range laterFields(t) {
		longer := lengthen(b, 0, field)
		got, n, err := part.Decode(longer)
		if err != nil || n != len(longer) || !reflect.DeepEqual(got, want) {
			t.Errorf("%T with %.20x added: %+v, %d of %d bytes, %v", want, field, got, n, len(longer), err)
		}
	}
}

// An earlier version didn't send the starred fields of the package doc, and
// sent all others.
func TestFieldsThatMayBeMissing(t *testing.T) {
	tag := tags.Tag{Seq: 3, PID: tags.NewPID(4, 5, 6), RMW: 7}
	record := abd.Record{Tag: tag, Value: []byte("v")}
	one := quorum.Configurations{configuration(0, "majority", "n1")}
	horizon := quorum.Horizon{Installed: 1, Next: 2}
	known := abd.Standing{Horizon: horizon, News: &quorum.News{Map: configMap(1)}}
	some := abd.Standing{Horizon: horizon}
	lives := abd.Standing{Life: 2, Others: []abd.LifeOf{{Node: "n1", Life: 1}}}
	votes := []synod.Carried{{Instance: "key/k", Vote: synod.Vote{Ballot: synod.Ballot{Round: 1, ID: tags.NewPID(1, 1, 1)}, Value: []byte("v")}}}
	for _, c := range []struct {
		full   env.Message
		fields int
		least  int
		short  []env.Message // with least fields, one more, and so on: the others are zero
	}{
		{&wire.Hello{Version: 1, Cluster: "c", Node: "n1", Bulk: true}, 4, 3, []env.Message{
			&wire.Hello{Version: 1, Cluster: "c", Node: "n1"}}},
		{&env.Refused{Reason: env.ReasonFull, Text: "t"}, 2, 1, []env.Message{&env.Refused{Reason: env.ReasonFull}}},
		{&abd.Get{Key: "k", TagOnly: true, ValueLimit: 9, Horizon: horizon}, 4, 1, []env.Message{
			&abd.Get{Key: "k"}, &abd.Get{Key: "k", TagOnly: true}, &abd.Get{Key: "k", TagOnly: true, ValueLimit: 9}}},
		{&abd.GetAck{Record: record, Confirmed: true, Omitted: 9, Standing: known}, 7, 4, []env.Message{
			&abd.GetAck{Record: record, Confirmed: true}, &abd.GetAck{Record: record, Confirmed: true, Omitted: 9},
			&abd.GetAck{Record: record, Confirmed: true, Omitted: 9, Standing: some}}},
		{&abd.Put{Key: "k", Record: record, Horizon: horizon}, 3, 2, []env.Message{&abd.Put{Key: "k", Record: record}}},
		{&abd.PutAck{Standing: known}, 4, 2, []env.Message{&abd.PutAck{}, &abd.PutAck{Standing: some}}},
		{&abd.Moved{Standing: known}, 4, 4, nil},
		{&abd.Confirm{Key: "k", Tag: tag}, 2, 2, nil},
		{&abd.List{Prefix: "p", After: "q", Limit: 1, Horizon: horizon}, 4, 3, []env.Message{&abd.List{Prefix: "p", After: "q", Limit: 1}}},
		{&abd.Page{Items: []abd.Item{{Key: "k", Tag: tag}}, More: true, Standing: known}, 6, 4, []env.Message{
			&abd.Page{Items: []abd.Item{{Key: "k", Tag: tag}}, More: true}, &abd.Page{Items: []abd.Item{{Key: "k", Tag: tag}}, More: true, Standing: some}}},
		{&replica.Describe{}, 0, 0, nil},
		{&replica.Description{Cluster: "c", Node: "n1", Configurations: one, MaxValue: 1}, 5, 5, nil},
		{&replica.StatusQuery{}, 0, 0, nil},
		{&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t", Repair: repair.Progress{Healed: 1},
			Horizon: horizon, Role: replica.RoleMember, Merge: rambo.Progress{Keys: 1}, Unreached: "u"}, 15, 8, []env.Message{
			&replica.Status{Node: "n1", Durable: 9}, &replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7},
			&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t"},
			&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t", Repair: repair.Progress{Healed: 1}},
			&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t", Repair: repair.Progress{Healed: 1}, Horizon: horizon},
			&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t", Repair: repair.Progress{Healed: 1}, Horizon: horizon, Role: replica.RoleMember},
			&replica.Status{Node: "n1", Durable: 9, CertificateEnd: 7, Trouble: "t", Repair: repair.Progress{Healed: 1}, Horizon: horizon, Role: replica.RoleMember,
				Merge: rambo.Progress{Keys: 1}}}},
		{&repair.Summarize{Keys: 1, Terms: repair.Terms{Knows: 2}, Cut: true}, 5, 3, []env.Message{
			&repair.Summarize{Keys: 1}, &repair.Summarize{Keys: 1, Terms: repair.Terms{Knows: 2}}}},
		{&repair.Summary{Keys: 1, Standing: lives, Last: "k"}, 5, 2, []env.Message{
			&repair.Summary{Keys: 1}, &repair.Summary{Keys: 1, Standing: abd.Standing{Life: 2}}, &repair.Summary{Keys: 1, Standing: lives}}},
		{&repair.Offer{Terms: repair.Terms{Knows: 2}, Limit: 7, Sketch: repair.Sketch{Salt: 3, Digests: []uint64{4}}}, 7, 3, []env.Message{
			&repair.Offer{}, &repair.Offer{Terms: repair.Terms{Knows: 2}}, &repair.Offer{Terms: repair.Terms{Knows: 2}, Limit: 7},
			&repair.Offer{Terms: repair.Terms{Knows: 2}, Limit: 7, Sketch: repair.Sketch{Salt: 3}}}},
		{&repair.Missing{Records: repair.Records{More: true, Last: "k"}, Standing: lives, Votes: votes}, 6, 3, []env.Message{
			&repair.Missing{Records: repair.Records{More: true, Last: "k"}},
			&repair.Missing{Records: repair.Records{More: true, Last: "k"}, Standing: abd.Standing{Life: 2}},
			&repair.Missing{Records: repair.Records{More: true, Last: "k"}, Standing: lives}}},
		{&repair.Attest{Life: 1, Horizon: horizon}, 4, 3, []env.Message{&repair.Attest{Life: 1}}},
		{&rambo.Gossip{}, 2, 2, nil},
		{&rambo.Gossiped{}, 2, 2, nil},
		{&rambo.Announce{}, 1, 1, nil},
		{&rambo.Announced{Horizon: horizon}, 1, 1, nil},
		{&rambo.Fence{Index: 1}, 3, 3, nil},
		{&rambo.Fenced{Index: 1}, 3, 3, nil},
		{&rambo.Install{Index: 1}, 3, 3, nil},
		{&rambo.Installed{Index: 1}, 1, 1, nil},
		{&rambo.HowFar{}, 0, 0, nil},
		{&rambo.SoFar{}, 1, 1, nil},
		{&join.Join{Member: quorum.Member{ID: "n1"}}, 6, 6, nil},
		{&join.Joined{}, 2, 2, nil},
		{&join.Greet{Member: quorum.Member{ID: "n1"}}, 2, 2, nil},
		{&join.Greeted{Unreached: "u"}, 4, 3, []env.Message{&join.Greeted{}}},
		{&synod.Prepare{Instance: "recon/1", Horizon: quorum.Horizon{Next: 1}}, 3, 3, nil},
		{&synod.Promise{Accepted: synod.Vote{Value: []byte("v")}}, 4, 4, nil},
		{&synod.Accept{Instance: "recon/1", Value: []byte("v")}, 4, 4, nil},
		{&synod.Accepted{}, 3, 3, nil},
		{&synod.Rejected{}, 4, 4, nil},
		{&synod.Closed{}, 2, 2, nil},
		{&reconfig.Ready{Cluster: "c", Configuration: one[0]}, 4, 4, nil},
		{&reconfig.Readied{Facts: reconfig.Facts{Node: "n1", Keys: 1}}, 6, 6, nil},
		{&reconfig.Unready{Text: "t"}, 3, 3, nil},
		{&reconfig.Inquire{}, 1, 1, nil},
		{&reconfig.Pending{Ready: one, Accepted: one[0]}, 7, 7, nil},
		{&repair.Attested{Records: repair.Records{More: true, Last: "k"}}, 3, 3, nil},
	} {
		var e wire.Encoder
		frame, err := e.AppendFrame(nil, 1, c.full)
		if err != nil {
			t.Fatal(err)
		}
		b := body(t, frame)
		starts := []int{messageAt(t, b)}
		if got := int(b[starts[0]] & 0x0f); got != c.fields {
			t.Errorf("%T has %d fields, not %d: say here how many an earlier version sends", c.full, got, c.fields)
			continue
		}
		for at := starts[0] + 1; at < len(b); {
			n, err := wire.Skip(b[at:])
			if err != nil {
				t.Fatal(err)
			}
			starts = append(starts, at)
			at += n
		}
		for n := range c.fields {
			shorter := bytes.Clone(b[:starts[n+1]])
			shorter[starts[0]] = 0x90 | byte(n)
			if n < c.least {
				wantFormatError(t, shorter)
				continue
			}
			want := c.short[n-c.least]
			if _, m, err := wire.DecodeFrame(shorter); err != nil || !reflect.DeepEqual(m, want) {
				t.Errorf("%T with %d fields: %+v, %v, want %+v", c.full, n, m, err, want)
			}
		}
	}
}

func TestUnknownReason(t *testing.T) {
	for _, reason := range []any{uint64(env.ReasonDenied) + 1, uint64(255), uint64(300), uint64(1<<64 - 1)} {
		_, m, err := wire.DecodeFrame(pack(t, wire.KindRefused, 1, []any{reason, "because"}))
		want := &env.Refused{Reason: env.ReasonUnknown, Text: "because"}
		if err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("reason %d: %+v, %v, want %+v", reason, m, err, want)
		}
	}
}

// nil and empty are one value, and not an absent one.
func TestEmptyValue(t *testing.T) {
	tag := tags.Tag{Seq: 1, PID: tags.NewPID(1, 2, 3)}
	for _, value := range [][]byte{nil, {}} {
		var e wire.Encoder
		frame, err := e.AppendFrame(nil, 1, &abd.GetAck{Record: abd.Record{Tag: tag, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := wire.DecodeFrame(body(t, frame))
		if err != nil {
			t.Fatal(err)
		}
		if r := m.(*abd.GetAck).Record; r.Absent() || len(r.Value) != 0 {
			t.Errorf("%#v: got %+v", value, r)
		}
	}
}

// Values are parts of the body, keys aren't, and appending to a value doesn't
// write into what stands behind it.
func TestAliasing(t *testing.T) {
	var e wire.Encoder
	m := &abd.Put{Key: "color", Record: abd.Record{Value: []byte("blue")}}
	frame, err := e.AppendFrame(nil, 1, m)
	if err != nil {
		t.Fatal(err)
	}
	b := lengthen(body(t, frame), 0, element(t, "behind"))
	_, decoded, err := wire.DecodeFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	got := decoded.(*abd.Put)
	at := bytes.Index(b, []byte("blue"))
	if &got.Record.Value[0] != &b[at] || cap(got.Record.Value) != 4 {
		t.Errorf("the value is a copy, or has a capacity of %d", cap(got.Record.Value))
	}
	clear(b)
	if got.Key != "color" {
		t.Errorf("the key changed with the body: %q", got.Key)
	}
}

// A connection's decoder that waits for the next frame doesn't hold the last.
func TestDecoderLetsGoOfTheBody(t *testing.T) {
	var d wire.Decoder
	decode := func() weak.Pointer[byte] {
		b := pack(t, wire.KindGet, 1, []any{[]byte("k"), false}, make([]byte, 1000))
		if _, _, err := d.DecodeFrame(b); err != nil {
			t.Fatal(err)
		}
		return weak.Make(&b[0])
	}
	body := decode()
	runtime.GC()
	if body.Value() != nil {
		t.Error("the body is still reachable")
	}
	runtime.KeepAlive(&d)
}
