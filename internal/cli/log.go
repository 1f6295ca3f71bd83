package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

var logLevels = []string{"debug", "info", "warn", "error"}

// LogFlags choose what a command logs, and how.
func LogFlags(level slog.Level) []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{
			Name: FlagLogLevel, EnvVars: []string{Environment(FlagLogLevel)}, Value: strings.ToLower(level.String()),
			Usage: "log on stderr what is of `LEVEL` or above: " + strings.Join(logLevels, "|"),
			Action: func(_ *urfave.Context, s string) error {
				if !slices.Contains(logLevels, strings.ToLower(s)) {
					return Usagef("--%s %q: one of %s is wanted", FlagLogLevel, s, strings.Join(logLevels, ", "))
				}
				return nil
			},
		},
		&urfave.StringFlag{
			Name: FlagLogFormat, EnvVars: []string{Environment(FlagLogFormat)}, Value: "text",
			Usage: "log as `FORMAT`: text|json",
			Action: func(_ *urfave.Context, s string) error {
				if s != "text" && s != "json" {
					return Usagef("--%s %q: text or json is wanted", FlagLogFormat, s)
				}
				return nil
			},
		},
	}
}

// Logger returns the log that the LogFlags ask for, on stderr.
func Logger(c *urfave.Context) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String(FlagLogLevel))); err != nil {
		level = slog.LevelInfo // LogFlags refuse what can't be read
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.String(FlagLogFormat) == "json" {
		return slog.New(slog.NewJSONHandler(c.App.ErrWriter, options))
	}
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, options))
}

// readable makes a text of a value that has one. In JSON, a duration would be
// a number without a unit, and an address an object of its parts.
func readable(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().String())
	case slog.KindAny:
		if s, ok := a.Value.Any().(fmt.Stringer); ok {
			a.Value = slog.StringValue(s.String())
		}
	}
	return a
}
