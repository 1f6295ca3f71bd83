package cells_test

import (
	"bytes"
	"math"
	"testing"

	"atoll/internal/cells"
)

func TestFieldsComeBack(t *testing.T) {
	b := []byte{7}
	b = cells.AppendNumber(b, 0)
	b = cells.AppendNumber(b, math.MaxUint64)
	b = cells.AppendBytes(b, "text")
	b = cells.AppendBytes(b, []byte{1, 2})
	b = cells.AppendBool(b, true)
	b = cells.AppendBool(b, false)
	b = append(b, 9, 8)
	r := cells.Read(b)
	r.Format(7)
	if got := [...]uint64{r.Any(), r.Any()}; got != [...]uint64{0, math.MaxUint64} {
		t.Errorf("numbers %v", got)
	}
	if s := r.String(); s != "text" {
		t.Errorf("string %q", s)
	}
	if got := r.Bytes(2); !bytes.Equal(got, []byte{1, 2}) || cap(got) != 2 {
		t.Errorf("bytes %v of capacity %d", got, cap(got))
	}
	if got := [...]uint64{r.Any(), r.Any()}; got != [...]uint64{1, 0} {
		t.Errorf("truths %v", got)
	}
	if r.Done() || r.Left() != 2 {
		t.Errorf("done %v, %d bytes left, want two", r.Done(), r.Left())
	}
	if got := r.Take(2); !bytes.Equal(got, []byte{9, 8}) || !r.Done() {
		t.Errorf("took %v, done %v", got, r.Done())
	}
}

// What can't be is an error that stays, and nothing is read behind it.
func TestWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		read func(*cells.Reader)
	}{
		{"another format", []byte{2, 1}, func(r *cells.Reader) { r.Format(1) }},
		{"no format", nil, func(r *cells.Reader) { r.Format(1) }},
		{"no number", nil, func(r *cells.Reader) { r.Any() }},
		{"a number cut off", []byte{0x80}, func(r *cells.Reader) { r.Any() }},
		{"a number beyond 64 bits", bytes.Repeat([]byte{0xff}, 11), func(r *cells.Reader) { r.Any() }},
		{"a number above its limit", []byte{5, 1}, func(r *cells.Reader) { r.Number(4) }},
		{"bytes cut off", []byte{2, 1}, func(r *cells.Reader) { r.Bytes(9) }},
		{"bytes above their limit", []byte{2, 1, 1}, func(r *cells.Reader) { r.Bytes(1) }},
		{"a length that lies", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}, func(r *cells.Reader) { _ = r.String() }},
		{"said by the caller", []byte{1}, func(r *cells.Reader) { r.Fail() }},
	} {
		r := cells.Read(c.b)
		c.read(&r)
		if n := r.Any(); r.OK() || r.Done() || n != 0 || r.Take(1) != nil || r.String() != "" {
			t.Errorf("%s: ok %v, done %v, a number %d behind it", c.name, r.OK(), r.Done(), n)
		}
	}
}
