package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"
)

// LineError says which line of a file isn't an operation, and why.
type LineError struct {
	Line   int // counted from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Scan returns the operations of a file one by one; the package's doc has the
// format. It ends after the first error: a *LineError, or what r gave.
func Scan(r io.Reader) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, MaxLine)
		names := make(names)
		line := 0
		for lines.Scan() {
			line++
			text := bytes.TrimLeft(lines.Bytes(), " \t\r")
			if len(text) == 0 {
				continue
			}
			op, err := decode(text, names)
			if err != nil {
				yield(Operation{}, &LineError{Line: line, Reason: err.Error()})
				return
			}
			if !yield(op, nil) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Operation{}, &LineError{Line: line + 1, Reason: fmt.Sprintf("it is longer than %d bytes", MaxLine)})
		case err != nil:
			yield(Operation{}, err)
		}
	}
}

// Load returns all operations of a file. Its errors are those of Scan.
func Load(r io.Reader) (History, error) {
	var h History
	for op, err := range Scan(r) {
		if err != nil {
			return nil, err
		}
		h = append(h, op)
	}
	return h, nil
}

// WriteTo writes h as a file that Scan reads. The error is w's, or an
// *InvalidError for what the format can't hold.
func (h History) WriteTo(w io.Writer) (int64, error) {
	var total int64
	var b []byte
	for i, op := range h {
		b = b[:0]
		var err error
		if b, err = op.AppendJSON(b); err != nil {
			return total, &InvalidError{At: i, Operation: op, Reason: err.Error()}
		}
		n, err := w.Write(append(b, '\n'))
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// AppendJSON appends o as a line of a file, without the end of the line. The
// error says why o has no such line: it's no operation, or its texts aren't
// UTF-8.
func (o Operation) AppendJSON(b []byte) ([]byte, error) {
	if reason := o.wrong(); reason != "" {
		return b, errors.New(reason)
	}
	for _, text := range []string{o.Client, o.Key, o.Value} {
		if !utf8.ValidString(text) {
			return b, fmt.Errorf("%s isn't UTF-8", quote(text))
		}
	}
	b = append(b, '{')
	if o.Client != "" {
		b = append(b, `"client":`...)
		b = append(appendString(b, o.Client), ',')
	}
	b = append(b, `"op":"`...)
	b = append(b, o.Kind.String()...)
	b = append(b, `","key":`...)
	b = appendString(b, o.Key)
	if o.Kind == Write || o.Found {
		b = append(b, `,"value":`...)
		b = appendString(b, o.Value)
	}
	b = append(b, `,"call":`...)
	b = strconv.AppendInt(b, int64(o.Call), 10)
	if o.Outcome != Unknown || o.Return > o.Call {
		b = append(b, `,"return":`...)
		b = strconv.AppendInt(b, int64(o.Return), 10)
	}
	b = append(b, `,"outcome":"`...)
	b = append(b, o.Outcome.String()...)
	return append(b, `"}`...), nil
}

// appendString appends valid UTF-8 as a JSON string.
func appendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
