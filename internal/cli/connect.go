package cli

import (
	"fmt"
	"os"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
)

// ClientConfig returns how to reach the cluster that the ConnectionFlags, or
// what stands in for them, mean:
//
//   - the context file of --context, or, without a context and endpoints, that
//     of the dev cluster on this machine;
//   - in place of its endpoints, CA, certificate and key those that are given
//     one by one. Given all four, no context is needed.
//
// The timeout is that of a TimeoutFlag, if the command has one, and the log
// that of the LogFlags. The errors are local preconditions.
func ClientConfig(c *urfave.Context) (client.Config, error) {
	cfg, err := contextConfig(c)
	if err != nil {
		return client.Config{}, err
	}
	endpoints, err := parseEndpoints(c.StringSlice(FlagEndpoints))
	if err != nil {
		return client.Config{}, err
	}
	if len(endpoints) > 0 {
		cfg.Endpoints = endpoints
	}
	for _, f := range []struct {
		flag string
		to   *[]byte
	}{{FlagCACert, &cfg.CA}, {FlagCert, &cfg.Certificate}, {FlagKey, &cfg.Key}} {
		path := c.Path(f.flag)
		if path == "" {
			continue
		}
		if *f.to, err = os.ReadFile(path); err != nil {
			return client.Config{}, &PreconditionError{Text: "--" + f.flag, Err: err}
		}
	}
	cfg.Timeout = c.Duration(FlagTimeout)
	cfg.Log = Logger(c)
	return cfg, nil
}

// contextConfig returns what the context says; nothing when none is needed.
func contextConfig(c *urfave.Context) (client.Config, error) {
	if path := c.Path(FlagContext); path != "" {
		cfg, err := client.LoadContext(path)
		if source := Source(c, FlagContext); err != nil && source != "flag" {
			err = fmt.Errorf("%s: %w", Environment(FlagContext), err)
		}
		return cfg, err
	}
	credentials := c.Path(FlagCACert) != "" && c.Path(FlagCert) != "" && c.Path(FlagKey) != ""
	if len(c.StringSlice(FlagEndpoints)) > 0 {
		if !credentials {
			return client.Config{}, Preconditionf("endpoints alone are not enough: give --%s FILE, or --%s, --%s and --%s, too",
				FlagContext, FlagCACert, FlagCert, FlagKey)
		}
		return client.Config{}, nil
	}
	dev, alive, err := FindDev()
	if err != nil {
		return client.Config{}, &PreconditionError{Text: "looking for a dev cluster on this machine", Err: err}
	}
	if !alive {
		return client.Config{}, Preconditionf("which cluster? give --%s FILE (or set %s), or start a cluster on this machine with: replica dev",
			FlagContext, Environment(FlagContext))
	}
	return client.LoadContext(dev.Context)
}

// ConnectionCodes are the exit codes of a command that talks to a cluster.
func ConnectionCodes(more ...int) []int {
	return append(more, ExitPrecondition, ExitNoQuorum, ExitDenied)
}
