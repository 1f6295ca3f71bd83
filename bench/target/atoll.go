package target

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	nodes   []*Process
	config  client.Config
	clients []*client.Client
	version string
}

func startAtoll(ctx context.Context, cfg Config) (_ Target, err error) {
	t := &atoll{}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	if t.version, err = replicaVersion(ctx, cfg.Replica); err != nil {
		return nil, err
	}
	ports, err := freePorts("udp", nodes)
	if err != nil {
		return nil, err
	}
	var members []string
	for i, a := range addresses(ports) {
		members = append(members, memberName(i)+"="+a)
	}
	if _, err := replica(ctx, cfg.Replica, "init", "--members", strings.Join(members, ","), "--data-dir", cfg.Dir); err != nil {
		return nil, err
	}
	for i := range nodes {
		p, err := launchReplica(ctx, cfg, memberName(i))
		if p != nil {
			t.nodes = append(t.nodes, p)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.config, err = client.LoadContext(filepath.Join(cfg.Dir, "client.json")); err != nil {
		return nil, err
	}
	for range cfg.Libraries {
		c, err := client.Open(ctx, t.config)
		if err != nil {
			return nil, err
		}
		t.clients = append(t.clients, c)
	}
	return t, eventually(ctx, t.nodes, func(ctx context.Context) error { return t.Client(0).Put(ctx, "ready", nil) })
}

// memberName: a, b, c, as `replica dev` names them.
func memberName(i int) string { return string(rune('a' + i)) }

// launchReplica starts a member and returns when it serves.
func launchReplica(ctx context.Context, cfg Config, name string) (*Process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	cmd := exec.Command(cfg.Replica, "run", "--data-dir", filepath.Join(cfg.Dir, name), "--metrics", "127.0.0.1:0", "--until-eof", "--output", "json")
	cmd.Env = plainEnvironment()
	p, err := launch(cfg.Dir, name, cmd, write)
	if err != nil {
		read.Close()
		return nil, err
	}
	p.Journal = filepath.Join(p.Dir, "journal")
	serves := make(chan error, 1)
	go func() {
		defer read.Close()
		lines := bufio.NewReader(read)
		_, err := lines.ReadBytes('\n')
		serves <- err
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case err := <-serves:
		if err != nil {
			<-p.done // it ended instead, and said why
			return p, Ended([]*Process{p})
		}
		return p, nil
	case <-ctx.Done():
		return p, fmt.Errorf("replica %s doesn't serve: %w", name, ctx.Err())
	}
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
	return fillByPuts(ctx, t.Client(0), keys, value)
}

// Victim: no node is more important than another.
func (t *atoll) Victim(_ context.Context, run int) (int, bool, error) {
	return run % len(t.nodes), false, nil
}

func (t *atoll) Nodes() []*Process { return t.nodes }
func (t *atoll) Version() string   { return t.version }

func (t *atoll) Stop() {
	for _, c := range t.clients {
		_ = c.Close()
	}
	killAll(t.nodes)
}

type atollClient struct{ c *client.Client }

func (c atollClient) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.c.Put(ctx, key, value)
	return err
}

func (c atollClient) Get(ctx context.Context, key string) error {
	_, err := c.c.Get(ctx, key)
	return err
}
