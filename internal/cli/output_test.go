package cli_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/internal/cli"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table := cli.NewTable(&out, "KEY", "TAG", "NOTE")
	for _, row := range [][]string{{"greeting", "1", "ü"}, {"k", "12", ""}} {
		if err := table.Row(row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "KEY       TAG  NOTE\ngreeting  1    ü\nk         12\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// One key of any length doesn't make the lines of all others that long.
func TestTableWithALongCell(t *testing.T) {
	var out bytes.Buffer
	table := cli.NewTable(&out, "KEY", "TAG")
	long := strings.Repeat("k", 4096)
	for _, key := range []string{"a", long} {
		if err := table.Row(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines[1]) > 110 || len(lines[1]) != len(lines[0])-2 || lines[2] != long+"  1" {
		t.Errorf("lines of %d, %d and %d characters", len(lines[0]), len(lines[1]), len(lines[2]))
	}
}

// countingWriter counts the writes.
type countingWriter struct {
	buf    bytes.Buffer
	writes int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.writes++
	return w.buf.Write(b)
}

func TestTableStreams(t *testing.T) {
	var out countingWriter
	table := cli.NewTable(&out, "N")
	for i := range 1000 {
		if err := table.Row(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if out.writes < 5 {
		t.Errorf("%d writes for 1,000 rows: a long table must not wait for its end", out.writes)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.buf.String(), "\n"); n != 1001 {
		t.Errorf("%d lines, want 1,001", n)
	}
}

func TestCell(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain key", "plain key"}, {"größe/1", "größe/1"}, {"", `""`}, {`"a\nb"`, `"\"a\\nb\""`}, {`say "a"`, `say "a"`}, {"a\nb", `"a\nb"`}, {"\x1b[31m", `"\x1b[31m"`}, {"\xff", `"\xff"`}, {"nul\x00", `"nul\x00"`},
	} {
		if got := cli.Cell(c.in); got != c.want {
			t.Errorf("Cell(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		in       []string
		want     []string
		encoding string
	}{
		{[]string{"key", "value\x00<&>"}, []string{"key", "value\x00<&>"}, ""},
		{[]string{"key", "\xff"}, []string{"a2V5", "/w=="}, "base64"},
		{[]string{"", "\uFFFD"}, []string{"", "\uFFFD"}, ""},
	} {
		var in [][]byte
		for _, s := range c.in {
			in = append(in, []byte(s))
		}
		if got, encoding := cli.Texts(in...); !slices.Equal(got, c.want) || encoding != c.encoding {
			t.Errorf("Texts(%q) = %q, %q, want %q, %q", c.in, got, encoding, c.want, c.encoding)
		}
	}
}

func TestSequence(t *testing.T) {
	type object struct {
		Key string `json:"key"`
	}
	for _, c := range []struct {
		format cli.Format
		keys   string
		want   string
	}{
		{cli.TableFormat, "a bb", "KEY\na\nbb\n"},
		{cli.TableFormat, "", "KEY\n"},
		{cli.LinesFormat, "a <b>", "{\"key\":\"a\"}\n{\"key\":\"<b>\"}\n"},
		{cli.LinesFormat, "", ""},
		{cli.RawFormat, "a bb", "a\nbb\n"},
		{cli.JSONFormat, "a bb", "{\"keys\": [\n  {\"key\":\"a\"},\n  {\"key\":\"bb\"}\n]}\n"},
		{cli.JSONFormat, "", "{\"keys\": []}\n"},
	} {
		var out bytes.Buffer
		s := cli.NewSequence(&out, c.format, "keys", "KEY")
		for key := range strings.FieldsSeq(c.keys) {
			if err := s.Add(object{key}, key, key); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s of %q: %q, want %q", c.format, c.keys, out.String(), c.want)
		}
	}
}

func TestSequenceFlushesEachLine(t *testing.T) {
	var out countingWriter
	s := cli.NewSequence(&out, cli.LinesFormat, "keys")
	for i := range 3 {
		if err := s.Add(i, ""); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d\n", i); !strings.HasSuffix(out.buf.String(), want) {
			t.Errorf("after object %d: %q", i, out.buf.String())
		}
	}
	if out.writes != 3 {
		t.Errorf("%d writes for 3 objects, want 3", out.writes)
	}
}
