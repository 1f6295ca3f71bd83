package stat_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/sim/stat"
)

// within is the probability that |T| <= t with n degrees of freedom: the finite
// sums for a whole number of degrees (Abramowitz & Stegun 26.7.3, 26.7.4). It
// shares nothing with how Student gets at its quantiles.
func within(t float64, n int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(n)))
	sin, cos := math.Sincos(angle)
	if n == 1 {
		return 2 * angle / math.Pi
	}
	first := n % 2 // the exponent of the first cosine
	term := math.Pow(cos, float64(first))
	sum := term
	for k := first + 2; k <= n-2; k += 2 {
		term *= cos * cos * float64(k-1) / float64(k)
		sum += term
	}
	if n%2 == 1 {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}

func TestStudentIsTheQuantile(t *testing.T) {
	for n := 1; n <= 3000; n++ {
		got := within(stat.Student(n), n)
		limit := 1e-12 // in the table
		if n > 30 {
			limit = 4e-9 // a quantile 3e-8 off, times the density there
		}
		if math.Abs(got-0.95) > limit {
			t.Fatalf("%d degrees of freedom: %.16g within %v, want 0.95", n, got, stat.Student(n))
		}
	}
}

// TestStudentAsPrinted: what every table of the distribution says.
func TestStudentAsPrinted(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{1, "12.706"}, {2, "4.303"}, {5, "2.571"}, {9, "2.262"}, {30, "2.042"}, {31, "2.040"}, {60, "2.000"}, {120, "1.980"}, {1 << 40, "1.960"}} {
		if got := fmt.Sprintf("%.3f", stat.Student(c.n)); got != c.want {
			t.Errorf("%d degrees of freedom: got %s, want %s", c.n, got, c.want)
		}
	}
}

func TestSampleAgainstTwoPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 50).Draw(t, "xs")
		var s stat.Sample
		var sum, squares float64
		for _, x := range xs {
			s.Add(x)
			sum += x
		}
		mean := sum / float64(len(xs))
		for _, x := range xs {
			squares += (x - mean) * (x - mean)
		}
		deviation := math.Sqrt(squares / float64(len(xs)-1))
		if s.N() != len(xs) || math.Abs(s.Mean()-mean) > 1e-6 || math.Abs(s.Deviation()-deviation) > 1e-6*(1+deviation) {
			t.Fatalf("got %v ± %v of %d, want %v ± %v of %d", s.Mean(), s.Deviation(), s.N(), mean, deviation, len(xs))
		}
		if least, most := s.Range(); least != slices.Min(xs) || most != slices.Max(xs) {
			t.Fatalf("got the range %v to %v of %v", least, most, xs)
		}
	})
}

// TestInterval: the interval of figures worked out by hand, and that of the
// same figures far from zero, where the naive sum of squares has no digit left.
func TestInterval(t *testing.T) {
	for _, far := range []float64{0, 1e9} {
		var s stat.Sample
		for _, x := range []float64{4, 7, 13, 16} { // mean 10, variance 30
			s.Add(x + far)
		}
		i := s.Interval()
		half := 3.18244630528371 * math.Sqrt(30) / 2
		if i.N != 4 || i.Mean != 10+far || math.Abs(i.Half-half) > 1e-9 || !i.Known() {
			t.Errorf("far %g: got %+v, want 10 ± %v", far, i, half)
		}
	}
	var one stat.Sample
	one.Add(3)
	if i := one.Interval(); i.Known() || i.Mean != 3 || i.Apart() {
		t.Errorf("one figure: %+v", i)
	}
	var none stat.Sample
	if i := none.Interval(); i.Known() || i.N != 0 {
		t.Errorf("no figure: %+v", i)
	}
}

// TestIntervalsCover: of many samples of normal figures, 95 % have an interval
// with the true mean in it. The draws are fixed, so the count is too.
func TestIntervalsCover(t *testing.T) {
	const trials, size = 4000, 5
	state := uint64(1)
	uniform := func() float64 { // a 64-bit linear congruential generator
		state = state*6364136223846793005 + 1442695040888963407
		return (float64(state>>11) + 0.5) / (1 << 53)
	}
	covered := 0
	for range trials {
		var s stat.Sample
		for range size {
			s.Add(7 + math.Sqrt(-2*math.Log(uniform()))*math.Cos(2*math.Pi*uniform()))
		}
		if i := s.Interval(); i.Low() <= 7 && 7 <= i.High() {
			covered++
		}
	}
	// 3800 expected; the standard deviation of the count is 14.
	if covered < 3740 || covered > 3860 {
		t.Errorf("%d of %d intervals hold the mean, about 3800 expected", covered, trials)
	}
}

// TestPairs: what scatters between seeds cancels out of the difference.
func TestPairs(t *testing.T) {
	var p stat.Pairs
	for i, scatter := range []float64{100, 900, 300, 700, 500} {
		p.Add(scatter, scatter-10+float64(i%2)) // 10 or 9 less
	}
	d := p.Difference()
	if math.Abs(d.Mean+9.6) > 1e-9 || !d.Apart() || d.Half > 1 {
		t.Errorf("the difference is %+v, want about -9.6 and apart", d)
	}
	if p.Base().Mean != 500 || math.Abs(p.Other().Mean-490.4) > 1e-9 || p.Base().Half < 300 {
		t.Errorf("the means are %+v and %+v", p.Base(), p.Other())
	}
	if share, ok := p.Change(); !ok || math.Abs(share+0.0192) > 1e-12 {
		t.Errorf("the change is %v, %v", share, ok)
	}
	var zero stat.Pairs
	zero.Add(0, 1)
	if _, ok := zero.Change(); ok {
		t.Error("a change of nothing has a share")
	}
}

func TestNoFigure(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was taken for a figure", x)
				}
			}()
			var s stat.Sample
			s.Add(x)
		}()
	}
}

// TestHistogramAgainstSorting: quantiles against those of the sorted numbers.
func TestHistogramAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 60).Draw(t, "xs")
		for i := range xs { // every order of magnitude, not only the largest
			xs[i] >>= rapid.IntRange(0, 62).Draw(t, "shift")
		}
		cut := rapid.IntRange(0, len(xs)).Draw(t, "cut")
		var h, second stat.Histogram
		for i, x := range xs {
			if i < cut {
				h.Add(x)
			} else {
				second.Add(x)
			}
		}
		h.Merge(&second)
		slices.Sort(xs)
		if h.N() != uint64(len(xs)) || h.Most() != xs[len(xs)-1] {
			t.Fatalf("%d numbers up to %d, want %d up to %d", h.N(), h.Most(), len(xs), xs[len(xs)-1])
		}
		for _, q := range []uint32{0, 1, stat.P50, stat.P90, stat.P99, stat.P999, 1_000_000} {
			rank := max(1, (uint64(len(xs))*uint64(q)+999_999)/1_000_000)
			want := xs[rank-1]
			if exact := stat.QuantileOf(xs, q); exact != want {
				t.Fatalf("quantile %d of %v: got %d, want %d", q, xs, exact, want)
			}
			got := h.Quantile(q)
			if want < 128 && got != want || math.Abs(float64(got)-float64(want)) > float64(want)/200 {
				t.Fatalf("quantile %d of %v: got %d, want %d", q, xs, got, want)
			}
		}
	})
}

func TestEmptyHistogram(t *testing.T) {
	var h, empty stat.Histogram
	h.Merge(&empty)
	if h.Quantile(stat.P50) != 0 || h.Mean() != 0 || h.N() != 0 {
		t.Errorf("an empty histogram has %d, %v, %d", h.Quantile(stat.P50), h.Mean(), h.N())
	}
	h.Add(math.MaxInt64)
	if h.Quantile(stat.P50) != math.MaxInt64 || h.Mean() != math.MaxInt64 {
		t.Errorf("the largest number is %d", h.Quantile(stat.P50))
	}
}

func ExamplePairs() {
	// Messages an operation, of two algorithms with the same four seeds.
	var p stat.Pairs
	p.Add(20.1, 18.0)
	p.Add(24.9, 22.7)
	p.Add(15.2, 13.2)
	p.Add(19.8, 17.7)
	d := p.Difference()
	fmt.Printf("%.2f ± %.2f, apart: %v\n", d.Mean, d.Half, d.Apart())
	fmt.Printf("each alone: ± %.2f\n", p.Base().Half)
	// Output:
	// -2.10 ± 0.13, apart: true
	// each alone: ± 6.30
}

func BenchmarkHistogram(b *testing.B) {
	var h stat.Histogram
	h.Add(math.MaxInt32)
	b.ReportAllocs()
	var x int64
	for b.Loop() {
		h.Add(x & math.MaxInt32)
		x += 982451653
	}
}
