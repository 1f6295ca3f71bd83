package main

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

func configShowCommand() *urfave.Command {
	return cli.Command{
		Name:    "show",
		Purpose: "show a node's settings and where each comes from",
		Details: "Takes the settings that \"replica run\" would take, and starts nothing.",
		Examples: []string{
			"replica config show --data-dir cluster/a",
			"replica config show --data-dir cluster/a -o json",
		},
		Flags: append(append(settingFlags(), cli.LogFlags(defaultLogLevel)...), cli.OutputFlag(cli.TableFormat, cli.JSONFormat)),
		Codes: []int{cli.ExitPrecondition, cli.ExitDenied, cli.ExitDamaged},
		Run:   showConfig,
	}.Build()
}

// setting is one line of config show.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func showConfig(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	folder, err := identity.OpenFolder(dir)
	if err != nil {
		return err
	}
	settings := nodeSettings(c, dir, folder)
	if cli.OutputOf(c) == cli.JSONFormat {
		return cli.PrintJSON(c.App.Writer, map[string]any{"settings": settings})
	}
	t := cli.NewTable(c.App.Writer, "SETTING", "VALUE", "SOURCE")
	for _, s := range settings {
		if err := t.Row(s.Name, cli.Cell(s.Value), s.Source); err != nil {
			return err
		}
	}
	return t.Flush()
}

func nodeSettings(c *urfave.Context, dir string, folder *identity.Folder) []setting {
	file := func(name string) string { return "file " + filepath.Join(dir, name) }
	cluster := folder.Cluster
	listen := setting{flagListen, strings.Join(folder.Listen(), ","), file(identity.FileCluster)}
	if c.IsSet(flagListen) {
		listen = setting{flagListen, strings.Join(c.StringSlice(flagListen), ","), cli.Source(c, flagListen)}
	}
	advertise := setting{flagAdvertise, cmp.Or(strings.Join(folder.Advertise(), ","), "where it listens"), file(identity.FileCluster)}
	if c.IsSet(flagAdvertise) {
		advertise = setting{flagAdvertise, strings.Join(c.StringSlice(flagAdvertise), ","), cli.Source(c, flagAdvertise)}
	}
	settings := []setting{
		{flagDataDir, dir, cli.Source(c, flagDataDir)},
		listen,
		advertise,
		{flagMetrics, cmp.Or(c.String(flagMetrics), "none"), cli.Source(c, flagMetrics)},
		{flagMemory, strconv.Itoa(c.Int(flagMemory)), cli.Source(c, flagMemory)},
		{flagTransfer, strconv.Itoa(c.Int(flagTransfer)), cli.Source(c, flagTransfer)},
		{cli.FlagLogLevel, c.String(cli.FlagLogLevel), cli.Source(c, cli.FlagLogLevel)},
		{cli.FlagLogFormat, c.String(cli.FlagLogFormat), cli.Source(c, cli.FlagLogFormat)},
		{"node", string(folder.ID), file(identity.FileIdentity)},
		{"name", folder.Name, file(identity.FileIdentity)},
		{"cluster", string(cluster.Cluster), file(identity.FileCluster)},
		{flagQuorum, cmp.Or(cluster.Quorum, "as the cluster says"), file(identity.FileCluster)},
		{flagMaxValue, strconv.Itoa(cluster.MaxValue), file(identity.FileCluster)},
	}
	for _, m := range byName(cluster.Known()) {
		settings = append(settings, setting{"member " + m.Name, string(m.ID) + " at " + strings.Join(m.Addresses, ","), file(identity.FileCluster)})
	}
	return settings
}
