package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/store"
	"atoll/internal/wire"
)

// Build says what a program was built from, and what it speaks. In JSON it is
// what `version -o json` prints.
type Build struct {
	// Version is the module's: a release, or one that the Go command made
	// of the commit, or "(devel)".
	Version string `json:"version"`
	// Commit is the revision, with "+dirty" if files were changed; "unknown"
	// outside of a checkout, and with `go run`.
	Commit string `json:"commit"`
	Go     string `json:"go"`
	// Wire are the versions of the wire format, as they are negotiated.
	Wire []string `json:"wire_versions"`
	// Storage is the format of the files that it writes.
	Storage int `json:"storage_format"`
}

// ThisBuild returns what this program was built from.
func ThisBuild() Build {
	b := Build{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Wire: []string{wire.ALPN}, Storage: store.Format}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	b.Commit += dirty
	return b
}

// Version returns the command that says which build a program is.
func Version(program string) *urfave.Command {
	return Command{
		Name:     "version",
		Purpose:  "say which build this is, and which formats it speaks",
		Examples: []string{program + " version", program + " version -o json"},
		Flags:    []urfave.Flag{OutputFlag(TableFormat, JSONFormat, LinesFormat)},
		Run: func(c *urfave.Context) error {
			b := ThisBuild()
			if OutputOf(c) != TableFormat {
				return PrintObject(c.App.Writer, OutputOf(c), b)
			}
			return Pairs(c.App.Writer,
				"version", b.Version,
				"commit", b.Commit,
				"go", b.Go,
				"wire versions", strings.Join(b.Wire, ", "),
				"storage format", fmt.Sprint(b.Storage))
		},
	}.Build()
}
