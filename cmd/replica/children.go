package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

const (
	// startTimeout is how long a replica of a dev cluster may take until it
	// serves: it may have a journal to replay.
	startTimeout = 30 * time.Second
	// stopTimeout is how long it may take to end once its input has.
	stopTimeout = 5 * time.Second
	logFile     = "replica.log"
)

// child is a replica of a dev cluster: this executable again, as a process of
// its own.
type child struct {
	serving serving
	folder  string
	cmd     *exec.Cmd
	input   io.Closer     // its standard input: it ends when this does
	done    chan struct{} // closed when the process has ended
	err     error         // how, before done is closed
}

// children are the replicas of a dev cluster.
type children struct {
	all []*child
	// damaged says of members whose folder is damaged, or gone, why they weren't
	// started. The others do what they can without them.
	damaged []error
}

// startChildren starts a replica for each member of the cluster in dir, and
// waits until all serve whose folder isn't damaged. On an error none is left.
func startChildren(ctx context.Context, dir string, cluster identity.ClusterFile) (*children, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folders, err := memberFolders(dir, cluster)
	if err != nil {
		return nil, err
	}
	cs := &children{all: make([]*child, len(folders))}
	errs := make([]error, len(folders))
	var wg sync.WaitGroup
	for i, folder := range folders {
		wg.Go(func() {
			c, err := startChild(ctx, self, folder)
			if errs[i] = err; err == nil {
				cs.all[i] = c
			}
		})
	}
	wg.Wait()
	cs.all = slices.DeleteFunc(cs.all, func(c *child) bool { return c == nil })
	var fatal error // the others fail for the same reason, or for this one
	for i, err := range errs {
		process, ended := errors.AsType[*cli.ProcessError](err)
		switch {
		case err == nil:
		case ended && process.Code == cli.ExitDamaged:
			cs.damaged = append(cs.damaged, err)
		case errors.Is(err, fs.ErrNotExist):
			cs.damaged = append(cs.damaged, &cli.ProcessError{Code: cli.ExitDamaged,
				Text: fmt.Sprintf("replica %s: %s is gone; a lost disk is a new node: client member ticket, replica join", filepath.Base(folders[i]), folders[i])})
		default:
			fatal = cmp.Or(fatal, err)
		}
	}
	if fatal == nil && len(cs.all) == 0 {
		fatal = cs.damaged[0]
	}
	if fatal != nil {
		cs.stop()
		return nil, fatal
	}
	return cs, nil
}

// memberFolders are the folders of the cluster's first members, and of those that
// have joined it in dir since.
func memberFolders(dir string, cluster identity.ClusterFile) ([]string, error) {
	var folders []string
	for _, m := range byName(cluster.Members) {
		folders = append(folders, filepath.Join(dir, m.Name))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		folder := filepath.Join(dir, e.Name())
		if !e.IsDir() || slices.Contains(folders, folder) {
			continue
		}
		if f, err := identity.OpenFolder(folder); err == nil && f.Cluster.Cluster == cluster.Cluster {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// join makes a new node in dir, on loopback, and starts it. Its name is the next
// that is free.
func (cs *children) join(ctx context.Context, dir string, maxValue int) (*child, error) {
	return cs.joinAt(ctx, dir, filepath.Join(dir, memberName(len(cs.all))), maxValue)
}

// joinAt is join with any folder for the node.
func (cs *children) joinAt(ctx context.Context, dir, folder string, maxValue int) (*child, error) {
	ca, err := identity.LoadCA(filepath.Join(dir, "ca"))
	if err != nil {
		return nil, err
	}
	request := identity.TicketRequest{Name: memberName(len(cs.all)), MaxValue: maxValue, Now: time.Now()}
	for _, c := range cs.all {
		request.Endpoints = append(request.Endpoints, c.serving.Addresses...)
	}
	ticket, err := ca.Ticket(request)
	if err != nil {
		return nil, err
	}
	ports := make([]int, 1)
	if err := freePorts(ports); err != nil {
		return nil, err
	}
	listen := loopbackMembers(ports)[0].Address
	if err := identity.CreateMember(folder, identity.JoinSpec{Ticket: ticket, Listen: []string{listen}, Prepare: prepareStore}); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := startChild(ctx, self, folder)
	if err == nil {
		cs.all = append(cs.all, c)
	}
	return c, err
}

// startChild starts the replica in folder. It is in a process group of its
// own, so that a Ctrl-C at the terminal reaches only its parent, which then
// ends it; and it ends by itself when the parent is gone.
func startChild(ctx context.Context, self, folder string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(folder, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := &child{
		folder: folder,
		cmd:    exec.Command(self, "run", "--data-dir", folder, "--metrics", "127.0.0.1:0", "--until-eof", "--output", "json"),
		done:   make(chan struct{}),
	}
	c.cmd.Stderr = log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Env = childEnvironment()
	input, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.input = input
	ready := make(chan error, 1)
	go func() {
		ready <- json.NewDecoder(bufio.NewReader(output)).Decode(&c.serving)
		_, _ = io.Copy(io.Discard, output)
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, c.await(ctx, ready)
}

// await waits until the child serves; if it doesn't, it is ended.
func (c *child) await(ctx context.Context, ready <-chan error) error {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	var err error
	select {
	case err = <-ready:
		if err == nil {
			return nil
		}
		err = c.failure()
	case <-timeout.C:
		err = cli.Preconditionf("replica %s doesn't serve after %v, see %s", filepath.Base(c.folder), startTimeout, filepath.Join(c.folder, logFile))
	case <-ctx.Done():
		err = cli.ErrInterrupted
	}
	c.stop()
	return err
}

// failure says why the process ended instead of serving, in the words and with
// the exit code that it had for it.
func (c *child) failure() error {
	<-c.done
	last := strings.TrimPrefix(lastLine(filepath.Join(c.folder, logFile)), "replica: run: ")
	return &cli.ProcessError{Text: fmt.Sprintf("replica %s: %s", filepath.Base(c.folder), last), Code: c.cmd.ProcessState.ExitCode()}
}

// kill ends the process as a power cut would: with SIGKILL.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	<-c.done
	return nil
}

// stop asks the process to end, and after a while makes it.
func (c *child) stop() {
	c.input.Close()
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// stop ends all that still run, at once.
func (cs *children) stop() {
	var wg sync.WaitGroup
	for _, c := range cs.all {
		wg.Go(c.stop)
	}
	wg.Wait()
}

// lines are the children as a table shows them.
func (cs *children) lines() []memberLine {
	var lines []memberLine
	for _, c := range cs.all {
		l := memberLine{Name: c.serving.Name, ID: c.serving.Node, PID: c.serving.PID, Folder: c.folder}
		if len(c.serving.Addresses) > 0 {
			l.Address = c.serving.Addresses[0]
		}
		lines = append(lines, l)
	}
	return lines
}

// childEnvironment is this environment without what would change a child's
// settings behind its command line.
func childEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, flag := range []string{flagDataDir, flagListen, flagMetrics, cli.FlagOutput} {
			if name := cli.Environment(flag) + "="; len(v) >= len(name) && v[:len(name)] == name {
				return true
			}
		}
		return false
	})
}

// lastLine returns the last line of a log, for an error that must fit on one.
func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	last := "it said nothing"
	for line := range bytes.Lines(b) {
		if text := bytes.TrimSpace(line); len(text) > 0 {
			last = string(text)
		}
	}
	return last
}
