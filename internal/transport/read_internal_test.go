package transport

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"atoll/internal/wire"
)

// trickle reads at most n bytes at a time.
type trickle struct {
	r io.Reader
	n func() int
}

func (t *trickle) Read(p []byte) (int, error) { return t.r.Read(p[:min(len(p), max(1, t.n()))]) }

// TestFrameReader cuts streams of random frames that come in random pieces,
// and compares with cutting the whole. The bodies are compared at the end, so
// that a byte that was used twice shows.
func TestFrameReader(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var want [][]byte
		var stream []byte
		for range 1 + rng.IntN(20) {
			size := 1 + rng.IntN([]int{1, 8, 300, 5000, 100_000}[rng.IntN(5)])
			body := bytes.Repeat([]byte{byte(rng.Uint32())}, size)
			want = append(want, body)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(size)), body...)
		}
		most := []int{1, 7, 1400, 60_000, 1 << 20}[rng.IntN(5)]
		if len(stream) > 10_000 && most < 100 {
			most = 1400
		}
		r := &trickle{bytes.NewReader(stream), func() int { return rng.IntN(most) }}
		f := frameReader{next: minChunk}
		var got [][]byte
		for {
			_, err := f.fill(r)
			for {
				body, err := f.body()
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if body == nil {
					break
				}
				if len(body) > maxChunk && cap(body) != len(body) {
					t.Errorf("seed %d: a body of %d bytes has room for %d", seed, len(body), cap(body))
				}
				got = append(got, body)
			}
			if err == io.EOF {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d frames, want %d", seed, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("seed %d: frame %d of %d bytes differs", seed, i, len(want[i]))
			}
		}
	}
}

// TestFrameReaderBelievesNoLength: room is made for what came, not for what
// was announced.
func TestFrameReaderBelievesNoLength(t *testing.T) {
	f := frameReader{next: minChunk}
	announced := binary.BigEndian.AppendUint32(nil, wire.MaxFrame)
	body := make([]byte, 1<<20)
	r := &trickle{io.MultiReader(bytes.NewReader(announced), bytes.NewReader(body)), func() int { return 1000 }}
	chunks, chunk := 0, &[]byte{0}[0]
	for came := 0; came < len(body); {
		n, err := f.fill(r)
		if err != nil {
			t.Fatal(err)
		}
		came += n
		if &f.chunk[0] != chunk {
			chunks, chunk = chunks+1, &f.chunk[0]
		}
		if most := max(2*maxChunk, 5*came); len(f.chunk) > most {
			t.Fatalf("room for %d bytes when %d had come", len(f.chunk), came)
		}
	}
	if chunks > 5 {
		t.Errorf("%d chunks for a part of one frame: it was copied that often", chunks)
	}
}

// TestChunksFollowTheTraffic: they grow under load and shrink afterwards.
func TestChunksFollowTheTraffic(t *testing.T) {
	size := 1 << 20
	endless := &trickle{zeros{}, func() int { return size }}
	f := frameReader{next: minChunk}
	grow := func(reads int) {
		for range reads {
			if _, err := f.fill(endless); err != nil {
				t.Fatal(err)
			}
			f.start = f.end // everything was cut off
		}
	}
	grow(20)
	if f.next != maxChunk {
		t.Errorf("chunks of %d bytes under load, want %d", f.next, maxChunk)
	}
	size = 100
	grow(3000)
	if f.next != minChunk {
		t.Errorf("chunks of %d bytes when there is little, want %d", f.next, minChunk)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestBackoff(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		want := BackoffCap
		if attempt < 7 {
			want = min(want, backoffBase<<(attempt-1))
		}
		if d := backoff(attempt); d < want/2 || d > want {
			t.Errorf("attempt %d: pause of %v, want %v to %v", attempt, d, want/2, want)
		}
	}
	if longest := backoffBase << 9; longest < BackoffCap {
		t.Errorf("doubling ends at %v, below %v", longest, time.Duration(BackoffCap))
	}
}
