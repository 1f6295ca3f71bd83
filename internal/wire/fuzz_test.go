package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"atoll/abd"
	"atoll/internal/wire"
	"atoll/quorum"
	"atoll/synod"
	"atoll/tags"
)

// Decoding takes memory in proportion to the bytes: at most this many for one
// (a member list of the least elements: 56 bytes of Go for 4 on the wire, and
// as much again where a configuration is laid out), and a constant for the
// decoder, an error, and what the test itself does at the same time.
const (
	allocPerByte = 64
	allocAnyway  = 256 << 10
)

// What decodes can be encoded, and decodes to the same.
func FuzzDecodeFrame(f *testing.F) {
	for _, frame := range readGoldens(f) {
		f.Add(frame[wire.HeaderSize:])
	}
	f.Add([]byte{0xdd, 0x01, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{0x91}, 1000))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		n := allocated(func() {
			conversation, m, err := wire.DecodeFrame(b)
			var bad *wire.FormatError
			var unknown *wire.UnknownKindError
			switch {
			case err == nil:
				wantSame(t, conversation, m)
			case !errors.As(err, &bad) && !errors.As(err, &unknown):
				t.Fatalf("an error of type %T", err)
			case m != nil:
				t.Fatalf("an error, %v, and a message, %+v", err, m)
			}
		})
		if most := uint64(4*allocPerByte*len(b) + allocAnyway); n > most { // decoded twice and encoded
			t.Fatalf("%d bytes allocated for a frame of %d", n, len(b))
		}
		if !bytes.Equal(b, before) {
			t.Fatal("decoding wrote into the body")
		}
	})
}

// fuzzPart checks the decoder of a part of messages, and the skipper against
// it: what a decoder reads as one element, the skipper skips as one.
func fuzzPart[T any](f *testing.F, part wire.Part[T], seeds ...T) {
	for _, v := range seeds {
		b, err := part.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := part.Decode(b)
		if err != nil {
			return
		}
		if skipped, err := wire.Skip(b); err != nil || skipped != n {
			t.Fatalf("decoding read %d bytes, skipping %d, %v", n, skipped, err)
		}
		again, err := part.Encode(v)
		if err != nil {
			t.Fatalf("decoded, and can't be encoded: %+v: %v", v, err)
		}
		w, n, err := part.Decode(again)
		if err != nil || n != len(again) || !reflect.DeepEqual(v, w) {
			t.Fatalf("encoded and decoded: %+v, %v, want %+v", w, err, v)
		}
	})
}

func FuzzTag(f *testing.F) {
	fuzzPart(f, wire.TagPart(), tags.Tag{}, tags.Tag{Seq: 300, PID: tags.NewPID(1, 2, 3), RMW: 1})
}

func FuzzRecord(f *testing.F) {
	fuzzPart(f, wire.RecordPart(), abd.Record{}, abd.Record{Tag: tags.Tag{Seq: 1}, Value: []byte("v")}, abd.Record{Deleted: true})
}

func FuzzItem(f *testing.F) {
	fuzzPart(f, wire.ItemPart(), abd.Item{}, abd.Item{Key: "k", Tag: tags.Tag{Seq: 1}, Confirmed: true})
}

func FuzzBallot(f *testing.F) {
	fuzzPart(f, wire.BallotPart(), synod.Ballot{}, synod.Ballot{Index: 300, Round: 7, ID: tags.NewPID(1, 2, 3)})
}

func FuzzVote(f *testing.F) {
	fuzzPart(f, wire.VotePart(), synod.Vote{}, synod.Vote{Ballot: synod.Ballot{Round: 1}, Value: []byte("v")})
}

func FuzzConfiguration(f *testing.F) {
	var all []*quorum.Configuration
	for _, system := range []string{"majority", "get=1,put=4", "grid=2x2", "weights=a:1,b:0,c:3,d:1"} {
		all = append(all, configuration(7, system, "a", "b", "c", "d"))
	}
	fuzzPart(f, wire.ConfigurationPart(), all...)
}

func FuzzMember(f *testing.F) {
	fuzzPart(f, wire.MemberPart(), quorum.Member{ID: "n1", Name: "one", Addresses: []string{"a:1", "[::1]:2"}})
}

// The skipper agrees with msgpack's own, which recurses and so is tried on
// short input only.
func FuzzSkip(f *testing.F) {
	for _, frame := range readGoldens(f) {
		f.Add(frame[wire.HeaderSize:])
	}
	f.Add([]byte{0xdf, 0, 0, 0, 1, 0xc7, 2, 9, 1, 2, 0xd8})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		n, err := wire.Skip(b)
		theirs := bytes.NewReader(b)
		wantErr := msgpack.NewDecoder(theirs).Skip()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, and msgpack's own skipper says %v", err, wantErr)
		}
		if err == nil && n != len(b)-theirs.Len() {
			t.Fatalf("skipped %d bytes, and msgpack's own skipper %d", n, len(b)-theirs.Len())
		}
	})
}
