package target

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"atoll/bench/load"
	"atoll/client"
)

const (
	fullHash  = 40 // digits of a commit
	shortHash = 12
)

type atoll struct {
	*Cluster
	config  client.Config
	clients []*client.Client
}

func startAtoll(ctx context.Context, cfg Config) (_ Target, err error) {
	cluster, err := CreateCluster(ctx, ClusterConfig{Dir: cfg.Dir, Program: cfg.Replica, Members: nodes})
	if err != nil {
		return nil, err
	}
	t := &atoll{Cluster: cluster}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	if err := cluster.LaunchAll(ctx); err != nil {
		return nil, err
	}
	if t.config, err = cluster.ClientConfig(); err != nil {
		return nil, err
	}
	for range cfg.Libraries {
		c, err := client.Open(ctx, t.config)
		if err != nil {
			return nil, err
		}
		t.clients = append(t.clients, c)
	}
	return t, eventually(ctx, t.Nodes(), func(ctx context.Context) error { return t.Client(0).Put(ctx, "ready", nil) })
}

// replica runs a command of atoll's program to its end.
func replica(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = plainEnvironment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// replicaVersion returns the commit that a program was built from.
func replicaVersion(ctx context.Context, program string) (string, error) {
	out, err := replica(ctx, program, "version", "--output", "json")
	if err != nil {
		return "", err
	}
	var v struct{ Version, Commit string }
	if err := json.Unmarshal(out, &v); err != nil {
		return "", fmt.Errorf("%s version: %w", program, err)
	}
	commit, dirty := strings.CutSuffix(v.Commit, "+dirty")
	if len(commit) != fullHash {
		return v.Version, nil // no checkout: all that is known
	}
	commit = commit[:shortHash]
	if dirty {
		commit += "+dirty"
	}
	return commit, nil
}

// plainEnvironment is this environment without the settings of an atoll program.
func plainEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ATOLL_") })
}

func (t *atoll) Client(i int) load.Client { return atollClient{t.clients[i%len(t.clients)]} }

func (t *atoll) Roaming(ctx context.Context, _ int) (load.Client, io.Closer, error) {
	c, err := client.Open(ctx, t.config)
	if err != nil {
		return nil, nil, err
	}
	return atollClient{c}, c, nil
}

func (t *atoll) Fill(ctx context.Context, keys []string, value []byte) error {
	return FillByPuts(ctx, t.Client(0), keys, value)
}

// Victim: no node is more important than another.
func (t *atoll) Victim(_ context.Context, turn int) (int, bool, error) {
	return turn % nodes, false, nil
}

func (t *atoll) Victims() int { return nodes }

func (t *atoll) Version() string { return t.Cluster.Version }

func (t *atoll) Stop() {
	for _, c := range t.clients {
		_ = c.Close()
	}
	t.Cluster.Stop()
}

// AtollClient returns a client of atoll as package load drives it.
func AtollClient(c *client.Client) load.Client { return atollClient{c} }

type atollClient struct{ c *client.Client }

func (c atollClient) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.c.Put(ctx, key, value)
	return err
}

func (c atollClient) Get(ctx context.Context, key string) error {
	_, err := c.c.Get(ctx, key)
	return err
}
