package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"atoll/sim/history"
)

func TestFileHoldsAllHistories(t *testing.T) {
	for n := range uint64(200) {
		want, _ := random(n)
		want[0].Client, want[0].Key = "", "\"\\/\b\x00\x1f\x7f\u2028é😀"
		var file bytes.Buffer
		written, err := want.WriteTo(&file)
		if err != nil || written != int64(file.Len()) {
			t.Fatalf("wrote %d of %d bytes: %v", written, file.Len(), err)
		}
		text := file.String()
		got, err := history.Load(&file)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for i := range want {
			if want[i].Outcome == history.Unknown {
				want[i].Return = max(want[i].Call, want[i].Return)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s\nfile\n%s", show(got), show(want), text)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		line string
		want history.Operation
		fail string
	}{
		{line: `{"client":"c1","op":"write","key":"k","value":"a","call":-1,"return":2,"outcome":"ok"}`,
			want: history.Operation{Client: "c1", Kind: history.Write, Key: "k", Value: "a", Call: -1, Return: 2, Outcome: history.OK}},
		{line: ` { "call" : 1 ,	"return":9223372036854775807, "key":"", "op":"read" } `,
			want: history.Operation{Kind: history.Read, Call: 1, Return: 1<<63 - 1, Outcome: history.OK}},
		{line: `{"op":"read","key":"k","value":"","call":1,"return":1}`,
			want: history.Operation{Kind: history.Read, Key: "k", Found: true, Call: 1, Return: 1, Outcome: history.OK}},
		{line: `{"op":"read","key":"k","value":null,"call":1,"return":1}`,
			want: history.Operation{Kind: history.Read, Key: "k", Call: 1, Return: 1, Outcome: history.OK}},
		{line: `{"op":"delete","key":"k","call":5,"outcome":"unknown"}`,
			want: history.Operation{Kind: history.Delete, Key: "k", Call: 5, Return: 5, Outcome: history.Unknown}},
		{line: `{"op":"delete","key":"k","call":5,"return":null,"outcome":"unknown"}`,
			want: history.Operation{Kind: history.Delete, Key: "k", Call: 5, Return: 5, Outcome: history.Unknown}},
		{line: `{"op":"write","key":"\u00e9\ud83d\ude00\n\"\\\/\b\f\r\t","value":"é😀","call":0,"return":7,"outcome":"failed"}`,
			want: history.Operation{Kind: history.Write, Key: "é😀\n\"\\/\b\f\r\t", Value: "é😀", Return: 7, Outcome: history.Failed}},

		{line: `[]`, fail: "JSON object"},
		{line: `{}`, fail: "no op"},
		{line: `{"op":"read"}`, fail: "no key"},
		{line: `{"op":"read","key":"k"}`, fail: "no call"},
		{line: `{"op":"read","key":"k","call":1}`, fail: "no return"},
		{line: `{"op":"read","key":"k","call":1,"outcome":"failed"}`, fail: "no return"},
		{line: `{"op":"read","key":"k","call":2,"return":1}`, fail: "before it was called"},
		{line: `{"op":"read","key":"k","call":2,"return":1,"outcome":"unknown"}`, fail: "before it was called"},
		{line: `{"op":"write","key":"k","call":1,"return":1}`, fail: "a write has a value"},
		{line: `{"op":"write","key":"k","value":null,"call":1,"return":1}`, fail: "a write has a value"},
		{line: `{"op":"delete","key":"k","value":"","call":1,"return":1}`, fail: "a delete has no value"},
		{line: `{"op":"read","key":"k","value":"","call":1,"outcome":"unknown"}`, fail: "only if its outcome is ok"},
		{line: `{"op":"scan","key":"k","call":1,"return":1}`, fail: `op: it is read, write or delete, not "scan"`},
		{line: `{"op":"read","key":"k","call":1,"return":1,"outcome":"timeout"}`, fail: `outcome: it is ok, failed or unknown, not "timeout"`},
		{line: `{"Op":"read","key":"k","call":1,"return":1}`, fail: `no field "Op"`},
		{line: `{"op":"read","key":"k","call":1,"return":1,"tag":"x"}`, fail: `no field "tag"`},
		{line: `{"op":"read","key":"k","call":1,"call":1,"return":1}`, fail: `"call" twice`},
		{line: `{"op":"read","key":"k","value":null,"value":"a","call":1,"return":1}`, fail: `"value" twice`},
		{line: `{"op":"read","key":"k","call":1.0,"return":1}`, fail: "call: it must be written as a whole number"},
		{line: `{"op":"read","key":"k","call":1e3,"return":1}`, fail: "call: it must be written as a whole number"},
		{line: `{"op":"read","key":"k","call":01,"return":1}`, fail: "begin with 0"},
		{line: `{"op":"read","key":"k","call":-01,"return":1}`, fail: "begin with 0"},
		{line: `{"op":"read","key":"k","call":+1,"return":1}`, fail: "call: it must be a whole number"},
		{line: `{"op":"read","key":"k","call":"1","return":1}`, fail: "call: it must be a whole number"},
		{line: `{"op":"read","key":"k","call":1-1,"return":1}`, fail: "call: it must be a whole number"},
		{line: `{"op":"read","key":"k","call":9223372036854775808,"return":1}`, fail: "64 bits"},
		{line: `{"op":"read","key":7,"call":1,"return":1}`, fail: `key: it must be a text in "quotes"`},
		{line: `{"op":"read","key":"k\x","call":1,"return":1}`, fail: `no escape \x`},
		{line: `{"op":"read","key":"\ud83d","call":1,"return":1}`, fail: "half of a character"},
		{line: `{"op":"read","key":"\ude00\ud83d","call":1,"return":1}`, fail: "half of a character"},
		{line: `{"op":"read","key":"\ud83d\n","call":1,"return":1}`, fail: "half of a character"},
		{line: `{"op":"read","key":"\ud83d\u12","call":1,"return":1}`, fail: "four hexadecimal digits"},
		{line: `{"op":"read","key":"\u+123","call":1,"return":1}`, fail: "four hexadecimal digits"},
		{line: "{\"op\":\"read\",\"key\":\"\xff\",\"call\":1,\"return\":1}", fail: "isn't UTF-8"},
		{line: "{\"op\":\"read\",\"key\":\"\\n\xff\",\"call\":1,\"return\":1}", fail: "isn't UTF-8"},
		{line: "{\"op\":\"read\",\"key\":\"\x01\",\"call\":1,\"return\":1}", fail: "control character"},
		{line: "{\"op\":\"read\",\"key\":\"\\n\x01\",\"call\":1,\"return\":1}", fail: "control character"},
		{line: `{"op":"read","key":"k`, fail: "doesn't end"},
		{line: `{"op":"read","key":"k\`, fail: "doesn't end"},
		{line: `{"op":"read","key":"\n`, fail: "doesn't end"},
		{line: `{"op":"read" "key":"k","call":1,"return":1}`, fail: "must be , or }"},
		{line: `{,"op":"read","key":"k","call":1,"return":1}`, fail: "a field's name"},
		{line: `{"op":"read","key":"k","call":1,"return":1,}`, fail: "a field's name"},
		{line: `{"op","key":"k","call":1,"return":1}`, fail: "must be :"},
		{line: `{"op":"read","key":"k","call":1,"return":1}}`, fail: "after the object"},
	} {
		h, err := history.Load(strings.NewReader("\n" + c.line))
		if c.fail == "" {
			if err != nil || h[0] != c.want {
				t.Errorf("%s\ngot  %+v, %v\nwant %+v", c.line, h, err, c.want)
			}
			continue
		}
		var at *history.LineError
		if !errors.As(err, &at) || at.Line != 2 || !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s\ngot  %v\nwant line 2: … %s …", c.line, err, c.fail)
		}
	}
}

func TestScanEndsAtAnError(t *testing.T) {
	const line = `{"op":"read","key":"k","call":1,"return":1}` + "\n"
	broken := errors.New("broken disk")
	for _, c := range []struct {
		file io.Reader
		want string
		ops  int
	}{
		{strings.NewReader(""), "", 0},
		{strings.NewReader(line + "\r\n \n" + line), "", 2},
		{strings.NewReader(line + "{}\n" + line), "line 2: it has no op", 1},
		{strings.NewReader(line + strings.Repeat("x", history.MaxLine+1)), "line 2: it is longer than 4194304 bytes", 1},
		{io.MultiReader(strings.NewReader(line), iotest.ErrReader(broken)), "broken disk", 1},
	} {
		ops, failure := 0, ""
		for _, err := range history.Scan(c.file) {
			if err != nil {
				failure = err.Error()
				continue
			}
			ops++
		}
		if ops != c.ops || failure != c.want {
			t.Errorf("got %d operations and %q, want %d and %q", ops, failure, c.ops, c.want)
		}
	}
}

func TestWriteToRefusesWhatNoFileHolds(t *testing.T) {
	fine := history.Operation{Kind: history.Read, Outcome: history.OK, Key: "k"}
	for reason, change := range map[string]func(*history.Operation){
		"no such kind":    func(op *history.Operation) { op.Kind = 9 },
		"no such outcome": func(op *history.Operation) { op.Outcome = 0 },
		"isn't UTF-8":     func(op *history.Operation) { op.Client = "\xff" },
	} {
		h := history.History{fine, fine}
		change(&h[1])
		var file bytes.Buffer
		_, err := h.WriteTo(&file)
		var invalid *history.InvalidError
		if !errors.As(err, &invalid) || invalid.At != 1 || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want operation 1: … %s …", err, reason)
		}
	}
	if _, err := (history.History{fine}).WriteTo(iotest.TruncateWriter(nil, 0)); err != nil {
		t.Error(err)
	}
}

// FuzzDecode holds the decoder against the standard library's: what is no
// JSON is refused, and what is accepted means what it says.
func FuzzDecode(f *testing.F) {
	for n := range uint64(20) {
		h, _ := random(n)
		line, err := h[0].AppendJSON(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"op":"write","key":"\ud83d\ude00","value":"\u0000","call":-0,"return":null,"outcome":"unknown"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n\r") {
			return // several lines
		}
		h, err := history.Load(bytes.NewReader(line))
		if err != nil || len(h) == 0 {
			return
		}
		var twin struct {
			Client, Op, Key, Outcome string
			Value                    *string
			Call                     int64
			Return                   *int64
		}
		twin.Outcome = "ok"
		if err := json.Unmarshal(line, &twin); err != nil {
			t.Fatalf("accepted what isn't JSON: %v", err)
		}
		op := h[0]
		if op.Client != twin.Client || op.Kind.String() != twin.Op || op.Key != twin.Key || op.Outcome.String() != twin.Outcome ||
			op.Call != time.Duration(twin.Call) {
			t.Fatalf("got %+v, want %+v", op, twin)
		}
		if (op.Found || op.Kind == history.Write) != (twin.Value != nil) || twin.Value != nil && *twin.Value != op.Value {
			t.Fatalf("got the value %q (%v), want %+v", op.Value, op.Found, twin)
		}
		if twin.Return != nil && op.Return != time.Duration(*twin.Return) {
			t.Fatalf("got the return %d, want %d", op.Return, *twin.Return)
		}
		again, err := op.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := history.Load(bytes.NewReader(again))
		if err != nil || !slices.Equal(back, h) {
			t.Fatalf("%s became %s: %v", line, again, err)
		}
		if _, err := history.Check(h); err != nil {
			t.Fatalf("a decoded operation is none: %v", err)
		}
	})
}
