package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// FileError says where a file isn't what it should be.
type FileError struct {
	Line int // counted from 1
	// Field is the name of the field in which it is, with those of the
	// objects around it: "network.delay". It is empty outside of all fields.
	Field  string
	Reason string
}

// Error returns all of it, in a line.
func (e *FileError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Reason)
}

// textError is a text that a field can't take.
type textError struct{ text, want string }

func (e *textError) Error() string { return fmt.Sprintf("%.60q is not %s", e.text, e.want) }

// decode reads one JSON object and nothing behind it. What is wrong with the
// file is a *FileError.
func decode(r io.Reader, v any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return err
	}
	if len(b) > maxFile {
		return fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	places, err := scan(b)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(b, places, err)
	}
	return nil
}

// place is where a name or a value of a file is.
type place struct {
	offset int
	path   []string // the names around it, and its own
	name   bool     // it is the name of a field
	text   string   // of a name or a text
}

func (p *place) field() string { return strings.Join(p.path, ".") }

func lineOf(b []byte, offset int) int { return 1 + bytes.Count(b[:min(offset, len(b))], []byte("\n")) }

// scan returns the places of a file that is one JSON object. It finds what the
// decoder takes without a word: a field that is there twice, or is written in
// another case.
func scan(b []byte) ([]place, error) {
	type frame struct {
		object bool
		key    bool // a name comes next
		seen   []string
	}
	var places []place
	var stack []frame
	var path []string
	d := json.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		offset := int(d.InputOffset())
		if err != nil {
			return nil, noJSON(b, offset, len(places) == 0, err)
		}
		if len(places) == 0 && token != json.Delim('{') {
			return nil, &FileError{Line: lineOf(b, offset), Reason: "a JSON object, {…}, is wanted"}
		}
		p := place{offset: offset}
		p.text, _ = token.(string)
		top := len(stack) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			stack = stack[:top]
		case top >= 0 && stack[top].key:
			stack[top].key = false
			p.name = true
			path = append(path, p.text)
			if slices.Contains(stack[top].seen, p.text) {
				return nil, &FileError{Line: lineOf(b, offset), Field: strings.Join(path, "."), Reason: "it is there twice"}
			}
			if p.text != strings.ToLower(p.text) {
				return nil, &FileError{Line: lineOf(b, offset), Field: strings.Join(path, "."), Reason: "there is no such field; names are in lower case"}
			}
			stack[top].seen = append(stack[top].seen, p.text)
			p.path = slices.Clone(path)
			places = append(places, p)
			continue
		}
		p.path = slices.Clone(path)
		places = append(places, p)
		if token == json.Delim('{') || token == json.Delim('[') {
			stack = append(stack, frame{object: token == json.Delim('{'), key: token == json.Delim('{')})
			continue
		}
		// A value has ended.
		if len(stack) == 0 {
			if rest := bytes.TrimSpace(b[offset:]); len(rest) > 0 {
				at := len(b) - len(bytes.TrimLeft(b[offset:], " \t\r\n"))
				return nil, &FileError{Line: lineOf(b, at), Reason: "something comes behind the object"}
			}
			return places, nil
		}
		if top := &stack[len(stack)-1]; top.object {
			top.key = true
			path = path[:len(path)-1]
		}
	}
}

// noJSON explains why a file, up to an offset, isn't JSON.
func noJSON(b []byte, offset int, empty bool, err error) error {
	reason := err.Error()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(syntax.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, reason = len(b), "the file ends too early"
		if empty {
			reason = "the file is empty: a JSON object, {…}, is wanted"
		}
	}
	return &FileError{Line: lineOf(b, offset), Reason: reason}
}

// explain says where in a file the decoder stopped, and why.
func explain(b []byte, places []place, err error) error {
	find := func(match func(*place) bool) *FileError {
		for i := range places {
			if match(&places[i]) {
				return &FileError{Line: lineOf(b, places[i].offset), Field: places[i].field()}
			}
		}
		return &FileError{Line: 1}
	}
	var e *FileError
	if text, ok := errors.AsType[*textError](err); ok {
		e = find(func(p *place) bool { return !p.name && p.text == text.text })
		e.Reason = text.Error()
		return e
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		e = find(func(p *place) bool { return !p.name && p.offset >= int(wrong.Offset) })
		e.Reason = fmt.Sprintf("a %s can't be a value of type %v", wrong.Value, wrong.Type)
		return e
	}
	// The decoder has no type for this one; its text ends with the name.
	if _, quoted, ok := strings.Cut(err.Error(), "unknown field "); ok {
		name := strings.Trim(quoted, `"`)
		e = find(func(p *place) bool { return p.name && p.text == name })
		e.Reason = "there is no such field"
		return e
	}
	return &FileError{Line: 1, Reason: err.Error()}
}
