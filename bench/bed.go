package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
)

// bed is what measurements lie on: a temporary folder, the program to start, and
// where results go.
type bed struct {
	settings
	ctx     context.Context
	dir     string
	self    string
	started int // targets, for the names of their folders
	results report.Records
	stdout  io.Writer
	file    *os.File // of results, or nil
}

// onBed runs measurements on a bed made for them.
func onBed(ctx context.Context, s settings, run func(*bed) error) error {
	b, err := newBed(ctx, s)
	if err != nil {
		return err
	}
	return errors.Join(run(b), b.close())
}

// newBed prepares measurements. Its caller calls close.
func newBed(ctx context.Context, s settings) (_ *bed, err error) {
	b := &bed{settings: s, ctx: ctx, stdout: os.Stdout}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp(s.dir, "atoll-bench-"); err != nil {
		return nil, err
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return nil, err
	}
	if s.out != "" {
		if b.file, err = os.Create(s.out); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	e, err := environment(b.dir)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	if inMemory(e.FileSystem) {
		b.note("%s is in memory: syncing costs nothing there, and no figure will mean anything; see -dir", b.dir)
	}
	b.results.Environments = append(b.results.Environments, e)
	if err := b.write(e); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close prints the tables of what was measured, and cleans up.
func (b *bed) close() error {
	var errs []error
	if !b.results.Empty() {
		errs = append(errs, b.writeTables())
	}
	if b.file != nil {
		errs = append(errs, b.file.Close())
	}
	if b.keep {
		b.note("kept %s", b.dir)
	} else {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

func (b *bed) writeTables() error {
	if len(b.results.Runs) > 0 {
		if err := b.write(report.Summarize(b.results.Runs)); err != nil {
			return err
		}
	}
	var tables bytes.Buffer
	if err := b.results.WriteMarkdown(&tables); err != nil {
		return err
	}
	if b.out != "" {
		if err := os.WriteFile(b.out+".md", tables.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(b.stdout, "\n%s", tables.Bytes())
	return err
}

// write writes a record to standard output and to the file of results, at once:
// an interrupted measurement keeps what it has.
func (b *bed) write(record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	to := b.stdout
	if b.file != nil {
		to = io.MultiWriter(to, b.file)
	}
	_, err = to.Write(line)
	return err
}

// note tells the user what isn't a result.
func (b *bed) note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// start starts a target in a folder of its own; nil without an error if it isn't
// on this machine, which was said.
func (b *bed) start(name string) (target.Target, error) {
	program := b.replica2
	if name != target.Atoll2 {
		if err := b.build(); err != nil {
			return nil, err
		}
		program = b.replica
	}
	begin := time.Now()
	t, err := target.Start(b.ctx, name, target.Config{
		Dir: b.folder(name), Self: b.self, Replica: program, Connections: b.connections, Libraries: b.libraries,
	})
	b.started++
	if missing, ok := errors.AsType[*target.MissingError](err); ok {
		b.note("skipping %s: %s", name, missing.What)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b.note("%s %s is up after %v", name, t.Version(), time.Since(begin).Round(time.Millisecond))
	return t, nil
}

func (b *bed) folder(name string) string {
	return filepath.Join(b.dir, name+"-"+strconv.Itoa(b.started))
}

// discard stops a target and removes its files.
func (b *bed) discard(t target.Target) {
	t.Stop()
	if b.keep {
		return
	}
	if err := os.RemoveAll(filepath.Dir(t.Nodes()[0].Dir)); err != nil {
		b.note("%v", err)
	}
}

// build builds atoll's replica from the checkout, unless there is one already.
func (b *bed) build() error {
	if b.replica != "" {
		return nil
	}
	root, err := checkout()
	if err != nil {
		return err
	}
	program := filepath.Join(b.dir, "replica")
	b.note("building %s", filepath.Join(root, "cmd", "replica"))
	cmd := exec.CommandContext(b.ctx, "go", "build", "-buildvcs=auto", "-o", program, "./cmd/replica")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building replica: %w\n%s", err, bytes.TrimSpace(out))
	}
	b.replica = program
	return nil
}

// checkout returns the root of atoll's module, around the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module atoll\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", usagef("the working directory isn't in atoll's checkout: give -replica")
		}
		dir = up
	}
}

// fill writes all keys of a target.
func (b *bed) fill(name string, t target.Target, keys []string) error {
	begin := time.Now()
	value := load.RandomValue(rand.New(rand.NewPCG(1, 1)), b.value)
	if err := target.Fill(b.ctx, t, keys, value); err != nil {
		return fmt.Errorf("%s: writing the keys: %w", name, err)
	}
	b.note("%s has %d keys after %v", name, len(keys), time.Since(begin).Round(time.Millisecond))
	return nil
}
