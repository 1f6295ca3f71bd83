package tags_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/tags"
)

// edge draws numbers that differ in few bits and sit at the borders, so that
// two drawn tags often share a component.
func edge(limit uint64) *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(0, min(2, limit)), rapid.Uint64Range(limit-min(1, limit), limit), rapid.Uint64Range(0, limit))
}

func drawPID(t *rapid.T, label string) tags.PID {
	return tags.NewPID(edge(math.MaxUint64).Draw(t, label+".hi"),
		uint16(edge(math.MaxUint16).Draw(t, label+".lo")),
		edge(tags.MaxCount).Draw(t, label+".count"))
}

func drawTag(t *rapid.T, label string) tags.Tag {
	return tags.Tag{
		Seq: tags.Seq(edge(math.MaxUint64).Draw(t, label+".seq")),
		PID: drawPID(t, label+".pid"),
		RMW: tags.RMW(edge(math.MaxUint64).Draw(t, label+".rmw")),
	}
}

// compareTwin is the order as DESIGN states it, written without looking at
// the implementation: each component as 32 digits, then the texts compared.
func compareTwin(a, b tags.Tag) int {
	flat := func(t tags.Tag) []byte {
		pid := t.PID.Bytes()
		var out []byte
		for shift := 56; shift >= 0; shift -= 8 {
			out = append(out, byte(uint64(t.Seq)>>shift))
		}
		out = append(out, pid[:]...)
		for shift := 56; shift >= 0; shift -= 8 {
			out = append(out, byte(uint64(t.RMW)>>shift))
		}
		return out
	}
	return bytes.Compare(flat(a), flat(b))
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawTag(t, "a"), drawTag(t, "b"), drawTag(t, "c")
		if got, want := a.Compare(b), compareTwin(a, b); got != want {
			t.Fatalf("%v.Compare(%v) = %d, want %d", a, b, got, want)
		}
		if a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%v and %v: compared both ways, %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
		if (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v.Compare(%v) = %d, but == says %v", a, b, a.Compare(b), a == b)
		}
		if a.Less(b) != (a.Compare(b) < 0) {
			t.Fatalf("%v.Less(%v) = %v", a, b, a.Less(b))
		}
		three := []tags.Tag{a, b, c}
		slices.SortFunc(three, tags.Tag.Compare)
		if three[0].Compare(three[2]) > 0 {
			t.Fatalf("not transitive over %v", three)
		}
	})
}

// TestOrderOfComponents states the order case by case: what is decided by an
// earlier component isn't changed by a later one.
func TestOrderOfComponents(t *testing.T) {
	pid := func(hi uint64, lo uint16, count uint64) tags.PID { return tags.NewPID(hi, lo, count) }
	ascending := []tags.Tag{
		{},
		{RMW: 1},
		{RMW: 1 << 40},
		{PID: pid(0, 0, 1)},
		{PID: pid(0, 0, tags.MaxCount), RMW: math.MaxUint64},
		{PID: pid(0, 1, 0)},
		{PID: pid(1, 0, 0)},
		{PID: pid(math.MaxUint64, math.MaxUint16, tags.MaxCount), RMW: 1},
		{Seq: 1},
		{Seq: 1, PID: pid(0, 0, 1)},
		{Seq: 2},
		{Seq: math.MaxUint64},
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := a.Compare(b), cmp.Compare(i, j); got != want {
				t.Errorf("%v.Compare(%v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestZeroIsLeastAndNeverChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := drawTag(t, "tag")
		if tag.Compare(tags.Tag{}) < 0 {
			t.Fatalf("%v is less than the zero tag", tag)
		}
		if tag.IsZero() != (tag == tags.Tag{}) || tag.PID.IsZero() != (tag.PID == tags.PID{}) {
			t.Fatalf("IsZero is wrong for %v", tag)
		}
		if next, err := tag.Next(drawPID(t, "next")); err == nil && next.IsZero() {
			t.Fatalf("a write after %v chose the zero tag", tag)
		}
		if next, err := tag.Update(); err == nil && next.IsZero() {
			t.Fatalf("an update of %v chose the zero tag", tag)
		}
	})
}

// TestSuccessors checks what the protocols stand on: a write is above the tag
// that it found and above all updates of it; an update is above its base and
// below every write that follows, with nothing in between.
func TestSuccessors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, pid := drawTag(t, "base"), drawPID(t, "pid")
		write, werr := base.Next(pid)
		if (werr != nil) != (base.Seq == math.MaxUint64) {
			t.Fatalf("%v.Next: error %v", base, werr)
		}
		update, uerr := base.Update()
		if (uerr != nil) != (base.RMW == math.MaxUint64) {
			t.Fatalf("%v.Update: error %v", base, uerr)
		}
		if werr == nil && (!base.Less(write) || write.PID != pid || write.RMW != 0) {
			t.Fatalf("%v.Next(%v) = %v", base, pid, write)
		}
		if uerr == nil && (!base.Less(update) || update.PID != base.PID || update.Seq != base.Seq) {
			t.Fatalf("%v.Update() = %v", base, update)
		}
		if werr == nil && uerr == nil && !update.Less(write) {
			t.Fatalf("after %v, the update %v is not below the write %v", base, update, write)
		}
		if other := drawTag(t, "other"); uerr == nil && base.Less(other) && other.Less(update) {
			t.Fatalf("%v lies between %v and its update %v", other, base, update)
		}
	})
}

func TestExhaustion(t *testing.T) {
	last := tags.Tag{Seq: math.MaxUint64, RMW: math.MaxUint64}
	for name, step := range map[string]func() (tags.Tag, error){
		"Next":   func() (tags.Tag, error) { return last.Next(tags.NewPID(1, 2, 3)) },
		"Update": last.Update,
	} {
		got, err := step()
		if !errors.Is(err, tags.ErrExhausted) || !got.IsZero() {
			t.Errorf("%s of %v = %v, %v; want the zero tag and ErrExhausted", name, last, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), last.String()) {
			t.Errorf("%s: the error %q doesn't name the tag", name, err)
		}
	}
}

func TestPIDWireOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPID(t, "p"), drawPID(t, "q")
		pb, qb := p.Bytes(), q.Bytes()
		if got, want := p.Compare(q), bytes.Compare(pb[:], qb[:]); got != want {
			t.Fatalf("%v.Compare(%v) = %d, the order of their bytes is %d", p, q, got, want)
		}
		if got, want := p.Compare(q), strings.Compare(p.String(), q.String()); got != want {
			t.Fatalf("%v.Compare(%v) = %d, the order of their texts is %d", p, q, got, want)
		}
		if back := tags.PIDFromBytes(pb); back != p {
			t.Fatalf("%v came back from its bytes as %v", p, back)
		}
	})
}

func TestPIDOverflowPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewPID took a count of 49 bits, which would run into the random part")
		}
	}()
	tags.NewPID(0, 0, tags.MaxCount+1)
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := drawTag(t, "tag")
		back, err := tags.Parse(tag.String())
		if err != nil || back != tag {
			t.Fatalf("Parse(%q) = %v, %v", tag, back, err)
		}
		type both struct {
			Tag tags.Tag
			PID tags.PID
		}
		in := both{tag, tag.PID}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out both
		if err := json.Unmarshal(text, &out); err != nil || out != in {
			t.Fatalf("%v came back from %s as %v, %v", in, text, out, err)
		}
	})
}

const pid0 = "000102030405060708090a0b0c0d0e0f"

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", ".", "..", "1", "1." + pid0, "1." + pid0 + ".", "." + pid0 + ".0",
		"1." + pid0 + ".0.0",                // a component too many
		"+1." + pid0 + ".0",                 // a sign
		"-1." + pid0 + ".0",                 //
		"01." + pid0 + ".0",                 // a leading zero
		"1." + pid0 + ".00",                 //
		" 1." + pid0 + ".0",                 // a space
		"1." + pid0 + ".0\n",                //
		"1_0." + pid0 + ".0",                // Go's digit separator
		"0x1." + pid0 + ".0",                //
		"1." + strings.ToUpper(pid0) + ".0", // another text of the same tag
		"1." + pid0[:31] + ".0",             // short, long
		"1." + pid0 + "0.0",                 //
		"1." + pid0[:31] + "g.0",            // no digit
		"18446744073709551616." + pid0 + ".0",
		"1." + pid0 + ".18446744073709551616",
		strings.Repeat("1", 1<<16),
	} {
		got, err := tags.Parse(s)
		if err == nil || !got.IsZero() {
			t.Errorf("Parse(%.60q) = %v, %v; want the zero tag and an error", s, got, err)
			continue
		}
		if len(err.Error()) > 400 {
			t.Errorf("Parse of %d bytes: an error of %d bytes", len(s), len(err.Error()))
		}
		keep := tags.Tag{Seq: 7}
		if keep.UnmarshalText([]byte(s)) == nil || keep != (tags.Tag{Seq: 7}) {
			t.Errorf("UnmarshalText(%.60q) succeeded or changed its receiver: %v", s, keep)
		}
	}
}

func TestParsePIDRefuses(t *testing.T) {
	for _, s := range []string{"", "0", pid0[:30], pid0 + "00", strings.ToUpper(pid0), pid0[:31] + "g", strings.Repeat("0", 1<<16)} {
		if got, err := tags.ParsePID(s); err == nil || !got.IsZero() {
			t.Errorf("ParsePID(%.60q) = %v, %v; want an error", s, got, err)
		}
		var keep tags.PID
		if keep.UnmarshalText([]byte(s)) == nil || !keep.IsZero() {
			t.Errorf("UnmarshalText(%.60q) succeeded or changed its receiver", s)
		}
	}
}

// FuzzParse: whatever Parse accepts is the one text of that tag.
func FuzzParse(f *testing.F) {
	f.Add("1." + pid0 + ".0")
	f.Add("0.00000000000000000000000000000000.0")
	f.Add("18446744073709551615.ffffffffffffffffffffffffffffffff.18446744073709551615")
	f.Add("1.2.3")
	f.Fuzz(func(t *testing.T, s string) {
		tag, err := tags.Parse(s)
		if err == nil && tag.String() != s {
			t.Errorf("Parse(%q) accepted what String writes as %q", s, tag)
		}
		if err != nil && !tag.IsZero() {
			t.Errorf("Parse(%q) returned %v with the error %v", s, tag, err)
		}
		pid, err := tags.ParsePID(s)
		if err == nil && pid.String() != s {
			t.Errorf("ParsePID(%q) accepted what String writes as %q", s, pid)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	x := tags.Tag{Seq: 1 << 40, PID: tags.NewPID(1, 2, 3), RMW: 4}
	y := x
	y.RMW++ // the last component decides: the longest path
	b.ReportAllocs()
	for b.Loop() {
		if x.Compare(y) != -1 {
			b.Fatal("wrong order")
		}
	}
}

func BenchmarkAppendText(b *testing.B) {
	tag := tags.Tag{Seq: 1 << 40, PID: tags.NewPID(1, 2, 3), RMW: 4}
	buf := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = tag.AppendText(buf[:0])
	}
}
