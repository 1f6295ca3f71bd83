package main

import (
	"fmt"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// Seeds, by default and at most.
const (
	defaultSeeds = "1..20"
	// maxSeeds is more than a machine does in a month; who asks for more
	// mistyped the end.
	maxSeeds = 1_000_000_000
)

const (
	flagSeed  = "seed"
	flagSeeds = "seeds"
)

// seedRange is the seeds from first to last, both included.
type seedRange struct{ first, last uint64 }

func (r seedRange) count() uint64 { return r.last - r.first + 1 }

// String returns the range as --seeds takes it.
func (r seedRange) String() string { return fmt.Sprintf("%d..%d", r.first, r.last) }

// parseSeeds reads "A..B", or "A" for one seed.
func parseSeeds(text string) (seedRange, error) {
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		to = from
	}
	first, err := parseSeed(from)
	if err != nil {
		return seedRange{}, cli.Usagef("--%s %.60q: write FIRST..LAST, such as 1..200: %v", flagSeeds, text, err)
	}
	last, err := parseSeed(to)
	if err != nil {
		return seedRange{}, cli.Usagef("--%s %.60q: write FIRST..LAST, such as 1..200: %v", flagSeeds, text, err)
	}
	r := seedRange{first, last}
	switch {
	case first > last:
		return seedRange{}, cli.Usagef("--%s %s: the first seed is larger than the last; write %d..%d", flagSeeds, r, last, first)
	case last-first >= maxSeeds:
		return seedRange{}, cli.Usagef("--%s %s: that is more than %d seeds", flagSeeds, r, maxSeeds)
	}
	return r, nil
}

func parseSeed(text string) (uint64, error) {
	if text == "" {
		return 0, fmt.Errorf("a seed is missing")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.30q is no whole number from 0 to %d", text, uint64(1<<64-1))
	}
	return n, nil
}

// seedsFlags are --seed and --seeds, one of which seedsOf reads.
func seedsFlags() []urfave.Flag {
	return []urfave.Flag{
		seedFlag("run the seed `N` alone, instead of --seeds"),
		&urfave.StringFlag{
			Name: flagSeeds, Value: defaultSeeds, Usage: "run the seeds `A..B`, both included; what is printed is in their order",
			Action: func(_ *urfave.Context, s string) error {
				_, err := parseSeeds(s)
				return err
			},
		},
	}
}

func seedFlag(usage string) urfave.Flag {
	return &urfave.StringFlag{
		Name: flagSeed, Usage: usage,
		Action: func(_ *urfave.Context, s string) error {
			if _, err := parseSeed(s); err != nil {
				return cli.Usagef("--%s: %v", flagSeed, err)
			}
			return nil
		},
	}
}

// seedsOf returns the seeds that the flags mean.
func seedsOf(c *urfave.Context) (seedRange, error) {
	if !c.IsSet(flagSeed) {
		return parseSeeds(c.String(flagSeeds))
	}
	if c.IsSet(flagSeeds) {
		return seedRange{}, cli.Usagef("--%s and --%s exclude each other", flagSeed, flagSeeds)
	}
	n, err := parseSeed(c.String(flagSeed))
	return seedRange{n, n}, err
}
