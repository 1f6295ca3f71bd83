package transport

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"atoll/internal/wire"
)

// FuzzFrames: however a stream comes in pieces, it is cut into the same bodies
// as in one piece, up to the first header that no frame has.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0xc0, 0, 0, 0, 2, 1, 2}, []byte{1, 3})
	f.Add(append([]byte{0, 0, 0x20, 0}, make([]byte, 0x2000)...), []byte{255, 1})
	f.Add([]byte{0, 0, 0, 0}, []byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}, []byte{2})
	f.Fuzz(func(t *testing.T, stream, pieces []byte) {
		if len(stream) > 1<<15 {
			return // more of the same
		}
		want, wantErr := cut(stream)
		var got [][]byte
		next := 0
		r := &trickle{bytes.NewReader(stream), func() int {
			if len(pieces) == 0 {
				return len(stream)
			}
			next++
			return 16*int(pieces[next%len(pieces)]) + 1
		}}
		frames := frameReader{next: minChunk}
		var bad error
		for came := 0; bad == nil; {
			n, err := frames.fill(r)
			came += n
			if most := max(2*maxChunk, 5*came); len(frames.chunk) > most {
				t.Fatalf("room for %d bytes when %d had come", len(frames.chunk), came)
			}
			for bad == nil {
				var body []byte
				if body, bad = frames.body(); body == nil {
					break
				}
				got = append(got, body)
			}
			if err != nil {
				break
			}
		}
		if (bad == nil) != (wantErr == nil) || len(got) != len(want) {
			t.Fatalf("%d frames and %v, want %d and %v", len(got), bad, len(want), wantErr)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("frame %d is %x, want %x", i, got[i], want[i])
			}
		}
	})
}

// cut is the dumb twin of a frameReader.
func cut(stream []byte) (bodies [][]byte, err error) {
	for len(stream) >= wire.HeaderSize {
		n, err := wire.BodySize([wire.HeaderSize]byte(stream))
		if err != nil {
			return bodies, err
		}
		if len(stream) < wire.HeaderSize+n {
			break
		}
		bodies = append(bodies, stream[wire.HeaderSize:wire.HeaderSize+n])
		stream = stream[wire.HeaderSize+n:]
	}
	return bodies, nil
}

// FuzzHello: a hello is read to its last byte and no further, or refused; and
// a small one only.
func FuzzHello(f *testing.F) {
	var e wire.Encoder
	hello, err := e.AppendFrame(nil, 0, &wire.Hello{Version: wire.Version, Cluster: "c1", Node: "n1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello)
	f.Add(append(hello, hello...))
	f.Add([]byte{0, 0, 4, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		read := len(b) - r.Len()
		if read > wire.HeaderSize+maxHello {
			t.Fatalf("%d bytes were read", read)
		}
		var frame *frameError
		switch {
		case err == nil && h == nil:
			t.Error("neither a hello nor an error")
		case err != nil && !errors.As(err, &frame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Errorf("an error of type %T: %v", err, err)
		case err == nil:
			if again, err := readHello(bytes.NewReader(b[:read])); err != nil || *again != *h {
				t.Errorf("read once as %+v, and again as %+v, %v", h, again, err)
			}
		}
	})
}
