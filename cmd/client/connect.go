package main

import (
	"context"
	"log/slog"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
)

// clusterFlags are the flags of every command that talks to the cluster.
// what is what the timeout bounds.
func clusterFlags(what string, more ...urfave.Flag) []urfave.Flag {
	return slices.Concat(more, []urfave.Flag{cli.TimeoutFlag(what)}, cli.ConnectionFlags(), cli.LogFlags(slog.LevelWarn))
}

// bounded returns the context of a whole command, which the timeout bounds.
func bounded(c *urfave.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context, c.Duration(cli.FlagTimeout))
}

// with opens the client that the flags mean and calls do with it. The timeout
// bounds all of it, opening included.
func with(c *urfave.Context, do func(context.Context, *client.Client) error) error {
	ctx, cancel := bounded(c)
	defer cancel()
	return withClient(ctx, c, do)
}

// withClient is with, without a bound: the timeout is that of opening, and
// then of each operation.
func withClient(ctx context.Context, c *urfave.Context, do func(context.Context, *client.Client) error) error {
	cfg, err := cli.ClientConfig(c)
	if err != nil {
		return err
	}
	conn, err := client.Open(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(ctx, conn)
	if closing := conn.Close(); closing != nil {
		// It changes nothing about how the command ended.
		cfg.Log.Warn("closing the client", "err", closing)
	}
	return err
}
