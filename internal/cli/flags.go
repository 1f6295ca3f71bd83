package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/identity"
)

// The names of the shared flags. Each stands on the leaves that honour it.
const (
	FlagEndpoints = "endpoints"
	FlagContext   = "context"
	FlagTimeout   = "timeout"
	FlagOutput    = "output"
	FlagCACert    = "cacert"
	FlagCert      = "cert"
	FlagKey       = "key"
	FlagLogLevel  = "log-level"
	FlagLogFormat = "log-format"
	FlagYes       = "yes"
)

// DefaultTimeout is how long an operation may take unless --timeout says
// otherwise.
const DefaultTimeout = 5 * time.Second

// Environment returns the name of the environment variable of a flag:
// ATOLL_LOG_LEVEL for log-level.
func Environment(flag string) string {
	return "ATOLL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Source says where the value of a flag came from: "flag", "environment" and
// the variable's name, or "default".
func Source(c *urfave.Context, flag string) string {
	// Run has unset the variables that a flag beats.
	if name := Environment(flag); os.Getenv(name) != "" && c.IsSet(flag) {
		return "environment " + name
	}
	if c.IsSet(flag) {
		return "flag"
	}
	return "default"
}

// ConnectionFlags are those of a command that talks to a cluster.
func ConnectionFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringSliceFlag{
			Name: FlagEndpoints, Aliases: []string{"e"}, EnvVars: []string{Environment(FlagEndpoints)},
			Usage: "find the cluster through the replicas at `HOST:PORT,...`; may be repeated; without it, through those that the context names",
			Action: func(_ *urfave.Context, all []string) error {
				_, err := parseEndpoints(all)
				return err
			},
		},
		&urfave.PathFlag{
			Name: FlagContext, EnvVars: []string{Environment(FlagContext)},
			Usage: "read endpoints, CA, certificate and key from `FILE`; without it and --endpoints, from that of the dev cluster on this machine",
		},
		&urfave.PathFlag{
			Name: FlagCACert, EnvVars: []string{Environment(FlagCACert)},
			Usage: "trust the CA whose certificate is in `FILE`, PEM; without it, that of the context",
		},
		&urfave.PathFlag{
			Name: FlagCert, EnvVars: []string{Environment(FlagCert)},
			Usage: "show the certificate in `FILE`, PEM; without it, that of the context",
		},
		&urfave.PathFlag{
			Name: FlagKey, EnvVars: []string{Environment(FlagKey)},
			Usage: "use the key in `FILE`, PEM, which is that of the certificate; without it, that of the context",
		},
	}
}

// parseEndpoints returns the addresses to dial, or a usage error that says
// how one is written.
func parseEndpoints(all []string) ([]string, error) {
	var endpoints []string
	for _, e := range all {
		if e == "" {
			return nil, Usagef("--%s: an endpoint is empty", FlagEndpoints)
		}
		address, err := identity.ParseEndpoint(e)
		if err != nil {
			return nil, Usagef("--%s: %s", FlagEndpoints, withoutPackage(err.Error()))
		}
		endpoints = append(endpoints, address)
	}
	return endpoints, nil
}

// TimeoutFlag bounds an operation, which what names: "the put".
func TimeoutFlag(what string) urfave.Flag {
	return &urfave.DurationFlag{
		Name: FlagTimeout, EnvVars: []string{Environment(FlagTimeout)}, Value: DefaultTimeout,
		Usage: fmt.Sprintf("let %s take no longer than `DURATION`, with its unit: 500ms, 5s, 1m", what),
		Action: func(_ *urfave.Context, d time.Duration) error {
			if d <= 0 {
				return Usagef("--%s must be more than 0, not %v", FlagTimeout, d)
			}
			return nil
		},
	}
}

// OutputFlag chooses among the formats that a command can print; the first is
// the default. OutputOf reads it.
func OutputFlag(formats ...Format) urfave.Flag {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	list := strings.Join(names, "|")
	return &urfave.StringFlag{
		Name: FlagOutput, Aliases: []string{"o"}, EnvVars: []string{Environment(FlagOutput)}, Value: names[0],
		Usage: "print the result as `FORMAT`: " + list,
		Action: func(_ *urfave.Context, s string) error {
			if !slices.Contains(names, s) {
				return Usagef("--%s %q: this command prints %s", FlagOutput, s, list)
			}
			return nil
		},
	}
}

// OutputOf returns the format that was chosen.
func OutputOf(c *urfave.Context) Format { return Format(c.String(FlagOutput)) }

// YesFlag answers the questions of a command that asks before it acts.
func YesFlag() urfave.Flag {
	return &urfave.BoolFlag{Name: FlagYes, Aliases: []string{"y"}, Usage: "don't ask, do it"}
}
