package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Format is how a command prints its result.
type Format string

// The formats. A command offers those that make sense for it.
const (
	TableFormat Format = "table" // for people
	JSONFormat  Format = "json"  // one object
	LinesFormat Format = "jsonl" // an object a line
	RawFormat   Format = "raw"   // the bytes and nothing else
)

// PrintJSON prints v as one indented JSON object.
func PrintJSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// PrintLine prints v as one line of JSON, with one write.
func PrintLine(w io.Writer, v any) error { return printJSON(w, v, "") }

func printJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// PrintObject prints v in JSONFormat or LinesFormat.
func PrintObject(w io.Writer, format Format, v any) error {
	if format == LinesFormat {
		return PrintLine(w, v)
	}
	return PrintJSON(w, v)
}

// Pairs prints names and values, in turn, as two aligned columns.
func Pairs(w io.Writer, pairs ...string) error {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, utf8.RuneCountInString(pairs[i]))
	}
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, "%-*s  %s\n", width, pairs[i], pairs[i+1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Base64 is the value of the "encoding" of a JSON object whose bytes aren't
// all UTF-8.
const Base64 = "base64"

// Texts returns the strings that stand for byte strings in one JSON object,
// and the value of its "encoding": empty when all of them are UTF-8 and stand
// for themselves, Base64 when all are encoded, because one isn't.
func Texts(fields ...[]byte) (texts []string, encoding string) {
	for _, f := range fields {
		if !utf8.Valid(f) {
			encoding = Base64
		}
	}
	for _, f := range fields {
		if encoding == "" {
			texts = append(texts, string(f))
		} else {
			texts = append(texts, base64.StdEncoding.EncodeToString(f))
		}
	}
	return texts, encoding
}

// Cell returns s as it may stand in a table: quoted as in Go when it holds
// anything that could break the line or disturb a terminal, is empty, or looks
// as if it were quoted already. So no two strings have one cell.
func Cell(s string) string {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if s == "" || s[0] == '"' || strings.IndexFunc(s, bad) >= 0 {
		return strconv.Quote(s)
	}
	return s
}

// wideColumn is how far a cell may push the next column to the right, in
// characters: one key of a thousand would make a hundred lines that long.
const wideColumn = 100

// tableBatch is how many rows a Table lays out together.
const tableBatch = 100

// Table prints rows under aligned heads, two spaces between the columns. Rows
// leave in batches: those of the first decide how wide the columns are at
// least, so that a table of any length streams. What is longer than wideColumn
// shifts its own row alone.
type Table struct {
	w      io.Writer
	rows   [][]string // not printed yet
	widths []int
}

// NewTable returns a table with the given heads.
func NewTable(w io.Writer, heads ...string) *Table {
	t := &Table{w: w, widths: make([]int, len(heads))}
	t.rows = append(t.rows, heads)
	return t
}

// Row adds a row, of as many cells as there are heads.
func (t *Table) Row(cells ...string) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBatch {
		return nil
	}
	return t.Flush()
}

// Flush prints the rows that were added; it must be called after the last.
func (t *Table) Flush() error {
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], min(utf8.RuneCountInString(cell), wideColumn))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", t.widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Sequence prints objects of one kind, each as soon as it is known: as rows
// of a table, as one JSON object with an array in it, as JSON lines, or raw.
//
// A JSON object that ends early, after an error, is left without its end: no
// program can take it for the whole.
type Sequence struct {
	w      io.Writer
	format Format
	table  *Table
	field  string
	n      int
}

// NewSequence begins to print. In JSON the objects are the elements of the
// array called field; in a table they stand under the heads.
func NewSequence(w io.Writer, format Format, field string, heads ...string) *Sequence {
	s := &Sequence{w: w, format: format, field: field}
	if format == TableFormat {
		s.table = NewTable(w, heads...)
	}
	return s
}

// Add prints an object: object as JSON, cells in a table, or raw and a
// newline.
func (s *Sequence) Add(object any, raw string, cells ...string) error {
	s.n++
	switch s.format {
	case TableFormat:
		return s.table.Row(cells...)
	case LinesFormat:
		return PrintLine(s.w, object)
	case RawFormat:
		_, err := io.WriteString(s.w, raw+"\n")
		return err
	}
	var line strings.Builder
	if err := PrintLine(&line, object); err != nil {
		return err
	}
	lead := ",\n  "
	if s.n == 1 {
		lead = fmt.Sprintf("{%q: [\n  ", s.field)
	}
	_, err := io.WriteString(s.w, lead+strings.TrimSuffix(line.String(), "\n"))
	return err
}

// Break prints what was added, after an error that ends the sequence early.
func (s *Sequence) Break() error {
	if s.format == TableFormat && s.n > 0 {
		return s.table.Flush()
	}
	return nil
}

// End prints what must follow the last object.
func (s *Sequence) End() error {
	switch {
	case s.format == TableFormat:
		return s.table.Flush()
	case s.format != JSONFormat:
		return nil
	case s.n == 0:
		_, err := fmt.Fprintf(s.w, "{%q: []}\n", s.field)
		return err
	}
	_, err := io.WriteString(s.w, "\n]}\n")
	return err
}

// IsTerminal reports whether a person watches what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
