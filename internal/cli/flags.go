package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	return parseAddresses(FlagEndpoints, all, identity.ParseEndpoint)
}

func parseAddresses(flag string, all []string, parse func(string) (string, error)) ([]string, error) {
	var addresses []string
	for _, s := range all {
		if s == "" {
			return nil, Usagef("--%s: an address is empty", flag)
		}
		address, err := parse(s)
		if err != nil {
			return nil, Usagef("--%s: %s", flag, withoutPackage(err.Error()))
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// CheckListen returns a usage error if what was given with a flag isn't
// addresses that a node can listen on, as far as their form tells: "HOST:PORT",
// or ":PORT" for all interfaces.
func CheckListen(flag string, addresses ...string) error {
	_, err := parseAddresses(flag, addresses, identity.ParseAddress)
	return err
}

// CheckDial returns a usage error if what was given with a flag isn't addresses
// that others can dial.
func CheckDial(flag string, addresses ...string) error {
	_, err := parseAddresses(flag, addresses, identity.ParseEndpoint)
	return err
}

// checkValue returns a usage error if a flag can't take a value. where is how
// it was given, "--timeout" or "ATOLL_TIMEOUT". The library would refuse it as
// well, but with no more than that it is a "parse error".
func checkValue(where string, f urfave.Flag, value string) error {
	var err error
	want := ""
	switch f.(type) {
	case *urfave.BoolFlag:
		_, err = strconv.ParseBool(value)
		want = "true or false"
	case *urfave.IntFlag:
		_, err = strconv.ParseInt(value, 0, strconv.IntSize) // as the library does
		want = placeholderOf(f) + " as a whole number"
	case *urfave.DurationFlag:
		_, err = time.ParseDuration(value)
		want = placeholderOf(f) + " with its unit, as in " + likelyDuration(value)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return Usagef("%s %.60q: the number is too large", where, value)
	default:
		return Usagef("%s %.60q: write %s", where, value, want)
	}
}

// likelyDuration is what somebody may have meant who gave a duration that can't be
// read. Go has no days and weeks, and people do.
func likelyDuration(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value + "s"
	}
	for unit, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		number, ok := strings.CutSuffix(value, unit)
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil {
			return fmt.Sprintf("%dh: days and weeks aren't units", int(n)*hours)
		}
	}
	return "5s"
}

// DurationText is a duration without the zeros at its end: "1h", and not "1h0m0s".
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// placeholderOf returns what the help calls the value of a flag.
func placeholderOf(f urfave.Flag) string {
	name := "the value"
	if d, ok := f.(urfave.DocGenerationFlag); ok {
		name, _ = cutPlaceholder(d.GetUsage())
	}
	return name
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
