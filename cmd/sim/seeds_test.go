package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"atoll/internal/cli"
)

func TestParseSeeds(t *testing.T) {
	for _, c := range []struct {
		text string
		want seedRange
	}{
		{"1..200", seedRange{1, 200}},
		{"7", seedRange{7, 7}},
		{"0..0", seedRange{0, 0}},
		{"18446744073709551615..18446744073709551615", seedRange{1<<64 - 1, 1<<64 - 1}},
		{"1..1000000000", seedRange{1, 1_000_000_000}},
	} {
		if got, err := parseSeeds(c.text); got != c.want || err != nil {
			t.Errorf("%s: got %v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{"", "..", "1..", "..5", "5..1", "-1..5", "1...5", "a..b", "1-5", "1..5..9", "1.5",
		"0..1000000000", "0..18446744073709551615", "1..18446744073709551616", " 1..2"} {
		_, err := parseSeeds(text)
		if _, ok := errors.AsType[*cli.UsageError](err); !ok {
			t.Errorf("%q: got %v, want a usage error", text, err)
		}
	}
}

// TestInOrder: the results come in the order of the seeds, although the first
// seed is held back until later ones are done.
func TestInOrder(t *testing.T) {
	const workers, seeds = 4, 300
	later := make(chan struct{}, seeds)
	var got []uint64
	err := inOrder(t.Context(), seedRange{10, 10 + seeds - 1}, workers, func(seed uint64) uint64 {
		if seed == 10 {
			for range workers * 3 {
				<-later
			}
		} else {
			later <- struct{}{}
		}
		return seed
	}, func(seed uint64) error {
		got = append(got, seed)
		return nil
	})
	if err != nil || len(got) != seeds || !slices.IsSorted(got) || got[0] != 10 {
		t.Errorf("got %d results, %v: %v", len(got), err, got)
	}
}

func TestInOrderReachesTheLastSeedOfAll(t *testing.T) {
	n := 0
	err := inOrder(t.Context(), seedRange{1<<64 - 3, 1<<64 - 1}, 2, func(seed uint64) uint64 { return seed }, func(uint64) error {
		n++
		return nil
	})
	if n != 3 || err != nil {
		t.Errorf("got %d results, %v", n, err)
	}
}

func TestInOrderEndsEarly(t *testing.T) {
	stop := errors.New("stop")
	var got []uint64
	err := inOrder(t.Context(), seedRange{1, maxSeeds}, 3, func(seed uint64) uint64 { return seed }, func(seed uint64) error {
		got = append(got, seed)
		if seed == 5 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("got %v, %v", got, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	got = nil
	err = inOrder(ctx, seedRange{1, maxSeeds}, 3, func(seed uint64) uint64 { return seed }, func(seed uint64) error {
		got = append(got, seed)
		if seed == 5 {
			cancel()
		}
		return nil
	})
	if err != nil || len(got) < 5 || len(got) > 5+3*ahead+3 || !slices.IsSorted(got) {
		t.Errorf("interrupted: got %v, %v", got, err)
	}
}
