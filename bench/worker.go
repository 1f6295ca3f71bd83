package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"atoll/bench/load"
	"atoll/bench/target"
)

// workerCommand is the first argument of this program when it is a process of
// clients; the second is a job. It says when they are connected, and for each
// line of its input, an order, drives them and prints what came out. It ends
// with its input.
const workerCommand = "clients"

// connecting is how many clients connect at the same time, those of all
// processes together, and at least one of each; connectFor and connectEach are how long all may take, and how much longer for
// each client of all processes.
const (
	connecting  = 20
	connectFor  = 2 * time.Minute
	connectEach = 100 * time.Millisecond
	// connectAgain is the pause after an attempt that failed.
	connectAgain = 100 * time.Millisecond
)

// job is what a process of clients is for.
type job struct {
	Access target.Access
	// First is the number of its first client.
	First, Clients int
	// Shared: all its clients share the connections of the first.
	Shared bool
	// Limit is how long connecting may take, and AtOnce how many of the process
	// connect at the same time, at least 1.
	Limit  time.Duration
	AtOnce int
}

// order is one run. All processes have the same. Without an operation the
// clients do nothing for so long.
type order struct {
	Op       load.Op
	Keys     int
	Value    int
	Duration time.Duration
	Seed     uint64
}

// done is what came out, in a line. The first line of a process, when its
// clients are connected, has nothing in it but perhaps why they aren't.
type done struct {
	Error  string `json:",omitempty"`
	Result *load.Result
	First  string
	CPU    time.Duration // that the process used meanwhile
	// Resident is its memory at the end, in bytes.
	Resident int64
}

// runWorker is a process of clients.
func runWorker(ctx context.Context, argument string, in io.Reader, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(argument), &j); err != nil {
		return fmt.Errorf("not a job: %w", err)
	}
	answer := json.NewEncoder(out)
	clients, closeAll, err := connectAll(ctx, j)
	defer closeAll()
	if err != nil {
		return answer.Encode(done{Error: err.Error()})
	}
	if err := answer.Encode(done{}); err != nil {
		return err
	}
	orders := json.NewDecoder(in)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		before, err := ownCPU()
		if err != nil {
			return err
		}
		result, err := follow(ctx, o, j, clients)
		if err != nil {
			return err
		}
		d := done{Result: result}
		if result.First != nil {
			d.First, result.First = result.First.Error(), nil
		}
		after, err := ownCPU()
		if err != nil {
			return err
		}
		d.CPU = after - before
		if d.Resident, _, err = target.MemoryOf(os.Getpid()); err != nil {
			return err
		}
		if err := answer.Encode(d); err != nil {
			return err
		}
	}
}

// follow does what an order says.
func follow(ctx context.Context, o order, j job, clients []load.Client) (*load.Result, error) {
	if o.Op == "" {
		return new(load.Result), wait(ctx, o.Duration)
	}
	// Another process draws other keys.
	spec := load.Spec{Op: o.Op, Clients: j.Clients, Keys: keyNames(o.Keys), ValueSize: o.Value, Duration: o.Duration, Seed: o.Seed + uint64(j.First)}
	return load.Run(ctx, spec, func(i int) load.Client { return clients[i] })
}

// ownCPU returns the processor time that this process has used.
func ownCPU() (time.Duration, error) {
	var self unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &self); err != nil {
		return 0, err
	}
	return time.Duration(self.Utime.Nano() + self.Stime.Nano()), nil
}

func connectAll(ctx context.Context, j job) (clients []load.Client, closeAll func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, j.Limit)
	defer cancel()
	own := j.Clients
	if j.Shared {
		own = 1
	}
	clients = make([]load.Client, own)
	closers := make([]io.Closer, own)
	errs := make([]error, own)
	turn := make(chan struct{}, max(1, j.AtOnce))
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			clients[i], closers[i], errs[i] = j.connect(ctx, j.First+i)
		})
	}
	all.Wait()
	for len(clients) < j.Clients {
		clients = append(clients, clients[0])
	}
	return clients, func() {
		for _, c := range closers {
			if c != nil {
				_ = c.Close()
			}
		}
	}, errors.Join(errs...)
}

// connect connects one client. While thousands do, a machine may be too busy to
// answer some in time: they try again, with what they have.
func (j job) connect(ctx context.Context, i int) (load.Client, io.Closer, error) {
	var c load.Client
	var closer io.Closer
	for {
		var err error
		if c == nil {
			c, closer, err = j.Access.Connect(ctx, i)
		}
		if err == nil {
			// A connection that never did anything may not be one yet.
			if err = c.Get(ctx, keyNames(1)[0]); err == nil {
				return c, closer, nil
			}
		}
		if wait(ctx, connectAgain) != nil {
			if closer != nil {
				_ = closer.Close()
			}
			return nil, nil, err
		}
	}
}

// workers are processes of clients.
type workers struct{ all []*workerProcess }

type workerProcess struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	orders *json.Encoder
	output *json.Decoder
}

// startWorkers starts so many processes with such a job, the clients numbered
// through, and returns when all are connected.
func startWorkers(ctx context.Context, program string, j job, processes int) (w *workers, err error) {
	w = &workers{}
	j.Limit, j.AtOnce = connectFor+time.Duration(processes*j.Clients)*connectEach, connecting/processes
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	for p := range processes {
		j.First = p * j.Clients
		argument, err := json.Marshal(j)
		if err != nil {
			return w, err
		}
		process := &workerProcess{cmd: exec.CommandContext(ctx, program, workerCommand, string(argument))}
		process.cmd.Stderr = os.Stderr
		process.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if process.input, err = process.cmd.StdinPipe(); err != nil {
			return w, err
		}
		output, err := process.cmd.StdoutPipe()
		if err != nil {
			return w, err
		}
		process.orders, process.output = json.NewEncoder(process.input), json.NewDecoder(bufio.NewReader(output))
		if err := process.cmd.Start(); err != nil {
			return w, err
		}
		w.all = append(w.all, process)
	}
	_, err = w.answers()
	return w, err
}

// answers takes one from each process.
func (w *workers) answers() ([]done, error) {
	answers := make([]done, len(w.all))
	for i, p := range w.all {
		if err := p.output.Decode(&answers[i]); err != nil {
			return nil, fmt.Errorf("a process of clients ended: %w", err)
		}
		if text := answers[i].Error; text != "" {
			return nil, errors.New(text)
		}
	}
	return answers, nil
}

// each has all of them do the same, and returns what each says.
func (w *workers) each(o order) ([]done, error) {
	for _, p := range w.all {
		if err := p.orders.Encode(o); err != nil {
			return nil, err
		}
	}
	return w.answers()
}

// run has all of them do the same, and returns what came out of all.
func (w *workers) run(o order) (*load.Result, time.Duration, error) {
	answers, err := w.each(o)
	if err != nil {
		return nil, 0, err
	}
	var sum load.Result
	var cpu time.Duration
	for _, a := range answers {
		sum.Merge(a.Result)
		if a.First != "" && sum.First == nil {
			sum.First = errors.New(a.First)
		}
		cpu += a.CPU
	}
	return &sum, cpu, nil
}

// stop ends the processes.
func (w *workers) stop() {
	for _, p := range w.all {
		p.input.Close()
	}
	for _, p := range w.all {
		_ = p.cmd.Wait()
	}
}
