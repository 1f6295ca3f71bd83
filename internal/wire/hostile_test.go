package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/replica"
	"atoll/synod"
)

// pack builds the body of a frame by hand, with fields of any type.
func pack(t testing.TB, kind wire.Kind, conversation any, message any, more ...any) []byte {
	t.Helper()
	return element(t, append([]any{uint64(kind), conversation, message}, more...))
}

func element(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// raw is an element that pack takes over as it is.
func raw(b ...byte) msgpack.RawMessage { return b }

func wantFormatError(t *testing.T, body []byte) *wire.FormatError {
	t.Helper()
	_, m, err := wire.DecodeFrame(body)
	var bad *wire.FormatError
	if !errors.As(err, &bad) {
		t.Errorf("%.60x: got %+v, %v, want a *FormatError", body, m, err)
		return &wire.FormatError{}
	}
	if m != nil {
		t.Errorf("%.60x: an error and a message, %+v", body, m)
	}
	return bad
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestTruncatedAnywhere(t *testing.T) {
	for name, frame := range readGoldens(t) {
		whole := body(t, frame)
		for n := range whole {
			if bad := wantFormatError(t, whole[:n]); bad.Offset > n {
				t.Errorf("%s cut at %d: the error points to %d", name, n, bad.Offset)
			}
		}
		wantFormatError(t, append(bytes.Clone(whole), 0xc0))
	}
}

// Whatever bit flips, nothing panics, and what is still accepted is something
// that could have been sent.
func TestFlippedAnywhere(t *testing.T) {
	var d wire.Decoder
	for name, frame := range readGoldens(t) {
		b := body(t, frame)
		for i := range b {
			for bit := range 8 {
				b[i] ^= 1 << bit
				if conversation, m, err := d.DecodeFrame(bytes.Clone(b)); err == nil {
					wantSame(t, conversation, m)
				}
				b[i] ^= 1 << bit
			}
		}
		if _, _, err := d.DecodeFrame(b); err != nil {
			t.Errorf("%s: a decoder that met bad frames no longer reads good ones: %v", name, err)
		}
	}
}

// wantSame checks that encoding and decoding m gives m.
func wantSame(t testing.TB, conversation uint64, m env.Message) {
	t.Helper()
	var e wire.Encoder
	frame, err := e.AppendFrame(nil, conversation, m)
	if err != nil {
		t.Fatalf("decoded, and can't be encoded: %+v: %v", m, err)
	}
	c, n, err := wire.DecodeFrame(body(t, frame))
	if err != nil || c != conversation || !reflect.DeepEqual(n, m) {
		t.Fatalf("encoded and decoded:\n%d %+v, %v, want\n%d %+v", c, n, err, conversation, m)
	}
}

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		size uint32
		ok   bool
	}{{0, false}, {1, true}, {wire.MaxFrame, true}, {wire.MaxFrame + 1, false}, {1<<32 - 1, false}} {
		n, err := wire.BodySize([wire.HeaderSize]byte(binary.BigEndian.AppendUint32(nil, c.size)))
		if (err == nil) != c.ok || c.ok && n != int(c.size) {
			t.Errorf("%d: got %d, %v", c.size, n, err)
		}
	}
	wantFormatError(t, pack(t, wire.KindPutAck, 1, []any{}, make([]byte, wire.MaxFrame)))
}

// Each is a well-formed frame in which one thing is wrong. The error names it.
func TestBadFields(t *testing.T) {
	pid := bytes.Repeat([]byte{7}, 16)
	tag := []any{1, pid, 0}
	record := []any{tag, false, []byte("v")}
	members := []any{"n1", "n2", "n3"}
	description := func(configurations, members, maxValue any) []byte {
		return pack(t, wire.KindDescription, 1, []any{"c", "n1", configurations, members, maxValue})
	}
	nodes := func(n int) []any {
		ids := make([]any, n)
		for i := range ids {
			ids[i] = "n" + strings.Repeat("x", i%50) + string(rune('a'+i/50))
		}
		return ids
	}
	for _, c := range []struct {
		name, field string
		body        []byte
	}{
		{"empty", "frame", nil},
		{"not an array", "frame", element(t, map[string]any{"a": 1})},
		{"nil for the frame", "frame", []byte{0xc0}},
		{"two elements", "frame", element(t, []any{16, 1})},
		{"kind is a string", "kind", element(t, []any{"get", 1, []any{[]byte("k")}})},
		{"kind is negative", "kind", element(t, []any{-1, 1, []any{}})},
		{"conversation is nil", "conversation", pack(t, wire.KindGet, nil, []any{[]byte("k")})},
		{"conversation is negative", "conversation", pack(t, wire.KindGet, int64(-1), []any{[]byte("k")})},
		{"conversation is a float", "conversation", pack(t, wire.KindGet, 1.0, []any{[]byte("k")})},
		{"message is nil", "get", pack(t, wire.KindGet, 1, nil)},
		{"message is a map", "get", pack(t, wire.KindGet, 1, map[string]any{"key": []byte("k")})},
		{"no key", "get", pack(t, wire.KindGet, 1, []any{})},
		{"key is a str", "key", pack(t, wire.KindGet, 1, []any{"k"})},
		{"key is nil", "key", pack(t, wire.KindGet, 1, []any{nil})},
		{"key is too long", "key", pack(t, wire.KindGet, 1, []any{make([]byte, abd.MaxKey+1)})},
		{"bool is nil", "tagOnly", pack(t, wire.KindGet, 1, []any{[]byte("k"), nil})},
		{"bool is a number", "tagOnly", pack(t, wire.KindGet, 1, []any{[]byte("k"), 1})},
		{"no record", "put", pack(t, wire.KindPut, 1, []any{[]byte("k")})},
		{"record of two fields", "record", pack(t, wire.KindPut, 1, []any{[]byte("k"), []any{tag, false}})},
		{"value is nil", "value", pack(t, wire.KindPut, 1, []any{[]byte("k"), []any{tag, false, nil}})},
		{"value is a str", "value", pack(t, wire.KindPut, 1, []any{[]byte("k"), []any{tag, false, "v"}})},
		{"value is too large", "value", pack(t, wire.KindPut, 1, []any{[]byte("k"), []any{tag, false, make([]byte, abd.LargestMaxValue+1)}})},
		{"short pid", "pid", pack(t, wire.KindConfirm, 1, []any{[]byte("k"), []any{1, pid[1:], 0}})},
		{"long pid", "pid", pack(t, wire.KindConfirm, 1, []any{[]byte("k"), []any{1, append(pid, 0), 0}})},
		{"tag without rmw", "tag", pack(t, wire.KindConfirm, 1, []any{[]byte("k"), []any{1, pid}})},
		{"seq is negative", "seq", pack(t, wire.KindConfirm, 1, []any{[]byte("k"), []any{-5, pid, 0}})},
		{"limit beyond its type", "limit", pack(t, wire.KindList, 1, []any{[]byte{}, []byte{}, uint64(1) << 31})},
		{"page without more", "page", pack(t, wire.KindPage, 1, []any{[]any{}})},
		{"page of too many items", "items", pack(t, wire.KindPage, 1, []any{repeat([]any{[]byte("k"), tag, false}, abd.MaxPage+1), false, 0, []any{}})},
		{"page of numbers", "item", pack(t, wire.KindPage, 1, []any{[]any{5}, false, 0, bytes.Repeat([]byte{1}, 30)})},
		{"instance is too long", "instance", pack(t, wire.KindPrepare, 1, []any{make([]byte, synod.MaxInstance+1), []any{0, 1, pid}, []any{0, 1}})},
		{"ballot without an id", "ballot", pack(t, wire.KindPrepare, 1, []any{[]byte("i"), []any{0, 1}, []any{0, 1}})},
		{"vote without a value", "vote", pack(t, wire.KindPromise, 1, []any{[]any{0, 1, pid}, []any{[]any{0, 1, pid}}, []any{0, 1}, []any{}})},
		{"value is too large to be decided", "value", pack(t, wire.KindAccept, 1, []any{[]byte("i"), []any{0, 1, pid}, make([]byte, synod.MaxValue+1), []any{0, 1}})},
		{"ready for no configuration", "configuration", pack(t, wire.KindReady, 1, []any{"c", []any{}, []any{0, 1}, []any{}})},
		{"pending with two votes", "configurations", pack(t, wire.KindPending, 1, []any{1, []any{}, []any{0, 1, pid},
			repeat([]any{0, "majority", []any{"n1"}}, 2), []any{0, 1, pid}, []any{0, 1}, []any{}})},
		{"ready for too many", "configurations", pack(t, wire.KindPending, 1, []any{1,
			repeat([]any{0, "majority", []any{"n1"}}, reconfig.MaxNotes+1), []any{0, 1, pid}, []any{}, []any{0, 1, pid}, []any{0, 1}, []any{}})},
		{"version beyond its type", "version", pack(t, wire.KindHello, 0, []any{1 << 16, "c", "n1"})},
		{"hello of no node id", "node", pack(t, wire.KindHello, 0, []any{1, "c", "N1"})},
		{"long cluster id", "cluster", pack(t, wire.KindHello, 0, []any{1, strings.Repeat("c", wire.MaxCluster+1), "n1"})},
		{"cluster id is bin", "cluster", pack(t, wire.KindHello, 0, []any{1, []byte("c"), "n1"})},
		{"cluster id is nil", "cluster", pack(t, wire.KindHello, 0, []any{1, nil, "n1"})},
		{"long text", "text", pack(t, wire.KindRefused, 1, []any{1, strings.Repeat("t", wire.MaxText+1)})},
		{"reason is a str", "reason", pack(t, wire.KindRefused, 1, []any{"full", ""})},
		{"configuration of no members", "configuration", description([]any{[]any{0, "majority", []any{}}}, []any{}, 1)},
		{"configuration with a member twice", "configuration", description([]any{[]any{0, "majority", []any{"n1", "n1"}}}, []any{}, 1)},
		{"configuration with a bad id", "member of a configuration", description([]any{[]any{0, "majority", []any{"n 1"}}}, []any{}, 1)},
		{"configuration of too many", "members of a configuration", description([]any{[]any{0, "majority", nodes(quorum.MaxMembers + 1)}}, []any{}, 1)},
		{"quorums that don't meet", "configuration", description([]any{[]any{0, "get=1,put=2", members}}, []any{}, 1)},
		{"quorum system of no kind", "quorum system", description([]any{[]any{0, "ring", members}}, []any{}, 1)},
		{"grid that doesn't fit", "configuration", description([]any{[]any{0, "grid=2x2", members}}, []any{}, 1)},
		{"configurations out of order", "configurations", description([]any{[]any{1, "majority", members}, []any{1, "majority", members}}, []any{}, 1)},
		{"too many configurations", "configurations", description(repeat([]any{1, "majority", members}, wire.MaxConfigurations+1), []any{}, 1)},
		{"member without an id", "node", description([]any{}, []any{[]any{"", "name", []any{}}}, 1)},
		{"long name", "name", description([]any{}, []any{[]any{"n1", strings.Repeat("n", wire.MaxName+1), []any{}}}, 1)},
		{"long address", "address", description([]any{}, []any{[]any{"n1", "", []any{strings.Repeat("a", wire.MaxAddress+1)}}}, 1)},
		{"too many addresses", "addresses", description([]any{}, []any{[]any{"n1", "", repeat("a:1", wire.MaxAddresses+1)}}, 1)},
		{"values beyond what any cluster takes", "maxValue", description([]any{}, []any{}, abd.LargestMaxValue+1)},
		{"trailing element in a frame is cut", "skipped field", pack(t, wire.KindGet, 1, []any{[]byte("k"), false}, raw(0xda, 0xff, 0xff))},
		{"a code that isn't", "skipped field", pack(t, wire.KindGet, 1, []any{[]byte("k"), false, 0, []any{0, 0}, raw(0xc1)})},
		{"value limit is a bool", "valueLimit", pack(t, wire.KindGet, 1, []any{[]byte("k"), false, true})},
		{"value limit beyond its type", "valueLimit", pack(t, wire.KindGet, 1, []any{[]byte("k"), false, uint64(1) << 31})},
		{"omitted beyond what any cluster takes", "omitted", pack(t, wire.KindGetAck, 1, []any{record, false, 0, []any{}, abd.LargestMaxValue + 1})},
		{"bytes behind the frame", "frame", append(pack(t, wire.KindPut, 1, []any{[]byte("k"), record}), 0)},
	} {
		bad := wantFormatError(t, c.body)
		if bad.Field != c.field || bad.Error() == "" {
			t.Errorf("%s: the error is about %q (%v), want %q", c.name, bad.Field, bad, c.field)
		}
	}
}

// An error names the message, the field, the place and the problem.
func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		body []byte
		want string
		is   error
	}{
		{[]byte{0x93, 16, 1, 0x91, 0xc4, 9, 'k'}, "wire: bad get: key at byte 6: unexpected EOF", io.ErrUnexpectedEOF},
		{[]byte{0x93, 16, 1, 0x91, 0xcd, 1, 0x2c}, "wire: bad get: key at byte 4: code 0xcd is not bin", nil},
		{[]byte{0x93, 16}, "wire: bad frame: frame at byte 1: 3 elements in 1 bytes", nil},
		{[]byte{0x93, 0xcd, 1, 0x2c, 1, 0x90}, "wire: unknown message, kind 300", nil},
	} {
		_, _, err := wire.DecodeFrame(c.body)
		if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%x: got %v, want %s", c.body, err, c.want)
		}
	}
}

func repeat(v any, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// long is the header of an array, map, bin or str with a 32-bit length.
func long(code byte, n uint32) msgpack.RawMessage {
	return binary.BigEndian.AppendUint32([]byte{code}, n)
}

// Lengths that lie must not make room for what isn't there.
func TestLyingLengths(t *testing.T) {
	const many = 16 << 20
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"the frame", long(0xdd, many)},
		{"a message", pack(t, wire.KindGet, 1, long(0xdd, many))},
		{"a message of an unknown kind", pack(t, 300, 1, long(0xdd, many))},
		{"a map in it", pack(t, 300, 1, long(0xdf, 1<<32-1))},
		{"a key", pack(t, wire.KindGet, 1, []any{long(0xc6, 1<<32-1)})},
		{"a value", pack(t, wire.KindPut, 1, []any{[]byte("k"), []any{[]any{1, make([]byte, 16), 0}, false, long(0xc6, abd.LargestMaxValue)}})},
		{"the items of a page", pack(t, wire.KindPage, 1, []any{long(0xdd, many), false})},
		{"few items of a page", pack(t, wire.KindPage, 1, []any{long(0xdd, abd.MaxPage), false})},
		{"configurations", pack(t, wire.KindDescription, 1, []any{"c", "n1", long(0xdd, many), []any{}, 1})},
		{"members", pack(t, wire.KindDescription, 1, []any{"c", "n1", []any{}, long(0xdd, 4096), 1})},
		{"an extra field", pack(t, wire.KindPutAck, 1, []any{0, []any{}, []any{0, 0}, []any{}, long(0xdd, 1<<32-1)})},
		{"an extra field's bytes", pack(t, wire.KindPutAck, 1, []any{0, []any{}, []any{0, 0}, []any{}, long(0xc6, 1<<32-1)})},
		{"an extra field's ext", pack(t, wire.KindPutAck, 1, []any{0, []any{}, []any{0, 0}, []any{}, long(0xc9, 1<<32-1)})},
	} {
		if n := allocated(func() { wantFormatError(t, c.body) }); n > 16<<10 {
			t.Errorf("%s: %d bytes allocated for a frame of %d", c.name, n, len(c.body))
		}
	}
}

// A few megabytes of 0x91, an array of one in an array of one in …, must cost
// neither stack nor heap.
func TestDeepNesting(t *testing.T) {
	const deep = wire.MaxFrame - 64
	maps := pack(t, wire.KindPutAck, 1, []any{0, []any{}, []any{0, 0}, []any{}, raw(bytes.Repeat([]byte{0x81}, 1<<20)...)}) // the keys are nested
	if n := allocated(func() { wantFormatError(t, maps) }); n > 16<<10 {
		t.Errorf("%d bytes allocated", n)
	}
	closed := append(bytes.Repeat([]byte{0x91}, deep), 0x90)
	conversation, m, err := wire.DecodeFrame(pack(t, wire.KindPutAck, 1, []any{0, []any{}, []any{0, 0}, []any{}, msgpack.RawMessage(closed)}))
	if _, ok := m.(*abd.PutAck); err != nil || conversation != 1 || !ok {
		t.Errorf("a deep extra field that is well formed: %d, %v, %v", conversation, m, err)
	}
	wantFormatError(t, bytes.Repeat([]byte{0x91}, 20<<20)) // above MaxFrame: not even looked at
}

// What the encoder refuses leaves no trace in the buffer.
func TestEncoderLimits(t *testing.T) {
	var e wire.Encoder
	prefix := []byte("kept")
	wantLimit := func(field string, m env.Message) {
		t.Helper()
		b, err := e.AppendFrame(prefix, 1, m)
		var limit *wire.LimitError
		if !errors.As(err, &limit) || limit.Field != field || string(b) != "kept" {
			t.Errorf("%s: got %q, %v", field, b, err)
		}
	}
	wantLimit("key", &abd.Get{Key: abd.Key(strings.Repeat("k", abd.MaxKey+1))})
	wantLimit("value", &abd.Put{Key: "k", Record: abd.Record{Value: make([]byte, abd.LargestMaxValue+1)}})
	wantLimit("items", &abd.Page{Items: make([]abd.Item, abd.MaxPage+1)})
	wantLimit("limit", &abd.List{Limit: -1})
	wantLimit("limit", &abd.List{Limit: 1 << 31})
	wantLimit("cluster", &wire.Hello{Cluster: quorum.ClusterID(strings.Repeat("c", wire.MaxCluster+1))})

	known := &replica.Description{Cluster: "c", Node: "n1", Members: make([]quorum.Member, 2000)}
	for i := range known.Members {
		known.Members[i] = quorum.Member{ID: "n1", Addresses: slices.Repeat([]string{strings.Repeat("a", wire.MaxAddress)}, wire.MaxAddresses)}
	}
	wantLimit("frame", known)

	for _, m := range []env.Message{
		&replica.Status{Node: "Not An Id"},
		&replica.Description{Cluster: "c", Node: "n1", Configurations: quorum.Configurations{
			configuration(1, "majority", "n1"), configuration(0, "majority", "n1"),
		}},
	} {
		if b, err := e.AppendFrame(prefix, 1, m); err == nil || string(b) != "kept" {
			t.Errorf("%+v: got %q, %v, want an error", m, b, err)
		}
	}
}

// The largest messages that the protocols send fit into a frame.
func TestLargestMessages(t *testing.T) {
	largest := &abd.Put{Key: abd.Key(strings.Repeat("k", abd.MaxKey)), Record: abd.Record{Value: make([]byte, abd.LargestMaxValue)}}
	wantSame(t, 1<<64-1, largest)
	page := &abd.Page{Items: make([]abd.Item, abd.MaxPage)}
	for i := range page.Items {
		page.Items[i].Key = largest.Key
	}
	wantSame(t, 1<<64-1, page)
}

// A refusal that says too much arrives, shortened.
func TestLongRefusal(t *testing.T) {
	var e wire.Encoder
	for _, text := range []string{strings.Repeat("x", 2*wire.MaxText), "x" + strings.Repeat("é", wire.MaxText), strings.Repeat("\x80", 2*wire.MaxText)} {
		frame, err := e.AppendFrame(nil, 1, &env.Refused{Reason: env.ReasonFull, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := wire.DecodeFrame(body(t, frame))
		if err != nil {
			t.Fatal(err)
		}
		got := m.(*env.Refused)
		if got.Reason != env.ReasonFull || len(got.Text) < wire.MaxText-4 || !strings.HasPrefix(text, got.Text) {
			t.Errorf("got %v", got)
		}
		if strings.Contains(text, "é") && strings.ToValidUTF8(got.Text, "?") != got.Text {
			t.Errorf("cut within a character: %q", got.Text[len(got.Text)-4:])
		}
	}
}
