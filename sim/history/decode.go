package history

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// names keeps one copy of each client's and each key's name.
type names map[string]string

func (n names) of(text []byte) string {
	if name, ok := n[string(text)]; ok {
		return name
	}
	name := string(text)
	n[name] = name
	return name
}

// field is a field of a line; a set of fields has their bits.
type field uint8

const (
	fieldClient field = 1 << iota
	fieldOp
	fieldKey
	fieldValue
	fieldCall
	fieldReturn
	fieldOutcome
)

func fieldOf(name []byte) field {
	switch string(name) {
	case "client":
		return fieldClient
	case "op":
		return fieldOp
	case "key":
		return fieldKey
	case "value":
		return fieldValue
	case "call":
		return fieldCall
	case "return":
		return fieldReturn
	case "outcome":
		return fieldOutcome
	}
	return 0
}

// decode returns the operation of a line.
//
// It is a parser of its own: the standard library's takes names in any case
// and twice, and puts replacement characters where a text isn't Unicode, which
// can make two values one. It is also several times slower.
func decode(line []byte, names names) (Operation, error) {
	p := parser{rest: line}
	op := Operation{Outcome: OK}
	var named, seen field // those that are null are as good as not there
	if !p.take('{') {
		return op, errors.New("it must be a JSON object, {…}")
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return op, errors.New("there must be , or } after a field")
		}
		name, err := p.text()
		if err != nil {
			return op, fmt.Errorf("a field's name: %w", err)
		}
		f := fieldOf(name)
		switch {
		case f == 0:
			return op, fmt.Errorf("there is no field %s", quote(string(name)))
		case named&f != 0:
			return op, fmt.Errorf("it has %s twice", quote(string(name)))
		case !p.take(':'):
			return op, errors.New("there must be : after a field's name")
		}
		named |= f
		there, err := p.field(f, &op, names)
		if err != nil {
			return op, fmt.Errorf("%s: %w", name, err)
		}
		if there {
			seen |= f
		}
	}
	if p.space(); len(p.rest) > 0 {
		return op, errors.New("there is something after the object")
	}
	return op, op.complete(seen)
}

// complete checks that an operation has the fields that it needs, and fills
// in what follows from their absence.
func (o *Operation) complete(seen field) error {
	switch {
	case seen&fieldOp == 0:
		return errors.New("it has no op")
	case seen&fieldKey == 0:
		return errors.New("it has no key")
	case seen&fieldCall == 0:
		return errors.New("it has no call")
	case o.Kind == Write && seen&fieldValue == 0:
		return errors.New("a write has a value")
	case o.Kind == Delete && seen&fieldValue != 0:
		return errors.New("a delete has no value")
	case o.Kind == Read && o.Outcome != OK && seen&fieldValue != 0:
		return errors.New("a read has a value only if its outcome is ok")
	case o.Outcome != Unknown && seen&fieldReturn == 0:
		return errors.New("it has no return, which only an unknown outcome explains")
	}
	if seen&fieldReturn == 0 {
		o.Return = o.Call
	}
	if o.Return < o.Call {
		return errors.New("it returned before it was called")
	}
	o.Found = o.Kind == Read && seen&fieldValue != 0
	return nil
}

// parser reads JSON from the front of rest.
type parser struct {
	rest []byte
	// buf is for texts with escapes.
	buf []byte
}

func (p *parser) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t' || p.rest[0] == '\r' || p.rest[0] == '\n') {
		p.rest = p.rest[1:]
	}
}

// take takes a character after any space, and tells whether it was there.
func (p *parser) take(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// field reads what a field has, into op. It tells whether that isn't null.
func (p *parser) field(f field, op *Operation, names names) (bool, error) {
	if p.space(); len(p.rest) >= 4 && string(p.rest[:4]) == "null" {
		p.rest = p.rest[4:]
		return false, nil
	}
	if f == fieldCall || f == fieldReturn {
		n, err := p.integer()
		if f == fieldCall {
			op.Call = time.Duration(n)
		} else {
			op.Return = time.Duration(n)
		}
		return true, err
	}
	text, err := p.text()
	if err != nil {
		return false, err
	}
	switch f {
	case fieldClient:
		op.Client = names.of(text)
	case fieldKey:
		op.Key = names.of(text)
	case fieldValue:
		op.Value = string(text)
	case fieldOp:
		err = op.Kind.UnmarshalText(text)
	case fieldOutcome:
		err = op.Outcome.UnmarshalText(text)
	}
	return true, err
}

// integer reads a whole number of 64 bits.
func (p *parser) integer() (int64, error) {
	end := 0
	for end < len(p.rest) && (p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end] == '-') {
		end++
	}
	digits := p.rest[:end]
	if end < len(p.rest) && (p.rest[end] == '.' || p.rest[end]|0x20 == 'e') {
		return 0, errors.New("it must be written as a whole number, without . or e")
	}
	unsigned := digits
	if end > 0 && digits[0] == '-' {
		unsigned = digits[1:]
	}
	if len(unsigned) > 1 && unsigned[0] == '0' {
		return 0, errors.New("a number doesn't begin with 0")
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s doesn't fit into 64 bits", digits)
	case err != nil:
		return 0, errors.New("it must be a whole number")
	}
	p.rest = p.rest[end:]
	return n, nil
}

// text reads a string. What it returns is valid until the next call.
func (p *parser) text() ([]byte, error) {
	if !p.take('"') {
		return nil, errors.New(`it must be a text in "quotes"`)
	}
	text := p.rest
	for i, c := range text {
		switch {
		case c == '"':
			p.rest = text[i+1:]
			return text[:i], valid(text[:i])
		case c == '\\':
			p.rest = text[i:]
			p.buf = append(p.buf[:0], text[:i]...)
			return p.escaped()
		case c < ' ':
			return nil, errControl
		}
	}
	return nil, errors.New("a text doesn't end")
}

var errControl = errors.New("a text has a control character")

func valid(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("a text isn't UTF-8")
	}
	return nil
}

// escaped reads a string from its first escape on.
func (p *parser) escaped() ([]byte, error) {
	for len(p.rest) > 0 {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '"':
			return p.buf, valid(p.buf)
		case c == '\\':
			if err := p.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, errControl
		default:
			p.buf = append(p.buf, c)
		}
	}
	return nil, errors.New("a text doesn't end")
}

// escape reads what follows a backslash.
func (p *parser) escape() error {
	if len(p.rest) == 0 {
		return errors.New("a text doesn't end")
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	switch c {
	case '"', '\\', '/':
		p.buf = append(p.buf, c)
	case 'b':
		p.buf = append(p.buf, '\b')
	case 'f':
		p.buf = append(p.buf, '\f')
	case 'n':
		p.buf = append(p.buf, '\n')
	case 'r':
		p.buf = append(p.buf, '\r')
	case 't':
		p.buf = append(p.buf, '\t')
	case 'u':
		return p.unicode()
	default:
		return fmt.Errorf(`there is no escape \%c`, c)
	}
	return nil
}

// unicode reads what follows \u: a character, or the first half of one whose
// second half must follow.
func (p *parser) unicode() error {
	r, err := p.hex()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		second := rune(0)
		if len(p.rest) >= 2 && p.rest[0] == '\\' && p.rest[1] == 'u' {
			p.rest = p.rest[2:]
			if second, err = p.hex(); err != nil {
				return err
			}
		}
		// Half a character alone isn't Unicode: all halves would become
		// the same replacement character.
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			return errors.New(`a text has half of a character in \u`)
		}
	}
	p.buf = utf8.AppendRune(p.buf, r)
	return nil
}

// hex reads four hexadecimal digits.
func (p *parser) hex() (rune, error) {
	if len(p.rest) >= 4 {
		if n, err := strconv.ParseUint(string(p.rest[:4]), 16, 16); err == nil {
			p.rest = p.rest[4:]
			return rune(n), nil
		}
	}
	return 0, errors.New(`\u must be followed by four hexadecimal digits`)
}
