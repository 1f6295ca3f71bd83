package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"atoll/bench/load"
)

const (
	// nodes is the size of every cluster.
	nodes = 3
	// startTimeout is how long a cluster may take until it takes writes.
	startTimeout = 60 * time.Second
	// retryPause is between two attempts at a cluster that is starting.
	retryPause = 200 * time.Millisecond
	// fillBatch is how many keys are handed to a target's Fill at most, and
	// fillBytes how many bytes of values: both must fit into one request.
	// fillers is how many batches are in flight.
	fillBatch = 100
	fillBytes = 1 << 20
	fillers   = 8
	// maxRequest is how large a request nodes must take, in bytes: a value of
	// 1 MiB and what is around it.
	maxRequest = 2 << 20
)

// Names of the targets that there are.
const (
	Atoll = "atoll"
	// Atoll2 is another build of atoll, to be compared with the first.
	Atoll2 = "atoll2"
	Etcd   = "etcd"
	NATS   = "nats"
	ZK     = "zk"
)

// Names are all of them; Peers those that are compared unless another choice is
// made: atoll, then what users would pick instead.
var (
	Names = []string{Atoll, Atoll2, Etcd, NATS, ZK}
	Peers = []string{Atoll, Etcd, NATS, ZK}
)

// Config says how to start a target.
type Config struct {
	// Dir is a folder for all that its nodes write. It is created.
	Dir string
	// Self is this executable: nodes of etcd and NATS are run by it, see
	// RunNode.
	Self string
	// Replica is atoll's program of that name.
	Replica string
	// Connections is how many connections clients of a peer share, at least 1.
	Connections int
	// Libraries is how many instances of atoll's library its clients share, at
	// least 1; each is connected to every node.
	Libraries int
}

// A Target is a running cluster.
type Target interface {
	// Client returns the i'th client. Clients share connections, and need not
	// be closed.
	Client(i int) load.Client
	// Roaming returns the i'th client that has a connection of its own, knows
	// all nodes and goes to another one when its own dies.
	Roaming(ctx context.Context, i int) (load.Client, io.Closer, error)
	// Access says how other processes reach it.
	Access() Access
	// Fill writes value to each of the keys, which have none yet, in whatever
	// way is fast. It is safe for concurrent use.
	Fill(ctx context.Context, keys []string, value []byte) error
	// Victim returns the index of the node whose death hurts most: the leader.
	// Where there is none, any may be the one, and it is the turn'th.
	Victim(ctx context.Context, turn int) (node int, leader bool, err error)
	// Victims is how many turns there are: one where a node leads.
	Victims() int
	// Nodes are the processes.
	Nodes() []*Process
	// Version says what was started.
	Version() string
	// Stop ends connections and nodes.
	Stop()
}

// MissingError says that what a target needs isn't on this machine.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What }

// Start starts the named target and returns when it takes writes.
func Start(ctx context.Context, name string, cfg Config) (Target, error) {
	start, ok := map[string]func(context.Context, Config) (Target, error){
		Atoll: startAtoll, Atoll2: startAtoll, Etcd: startEtcd, NATS: startNATS, ZK: startZK,
	}[name]
	if !ok {
		return nil, fmt.Errorf("no target %q: %s", name, strings.Join(Names, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	t, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Fill writes value to each of the keys of a fresh target.
func Fill(ctx context.Context, t Target, keys []string, value []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan []string)
	var all sync.WaitGroup
	for range fillers {
		all.Go(func() {
			for batch := range batches {
				if err := t.Fill(ctx, batch, value); err != nil {
					cancel(err)
				}
			}
		})
	}
	size := max(1, min(fillBatch, fillBytes/max(1, len(value))))
	for batch := range slices.Chunk(keys, size) {
		batches <- batch
		if ctx.Err() != nil {
			break
		}
	}
	close(batches)
	all.Wait()
	return context.Cause(ctx)
}

// FillByPuts writes value to each of the keys, all at once: for what has no
// batches.
func FillByPuts(ctx context.Context, c load.Client, keys []string, value []byte) error {
	errs := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { errs[i] = c.Put(ctx, key, value) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// eventually calls f until it returns nil, the context ends, or one of the
// nodes has.
func eventually(ctx context.Context, nodes []*Process, f func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if dead := Ended(nodes); dead != nil {
			return dead
		}
		t := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("it doesn't get ready: %w", err)
		case <-t.C:
		}
	}
}

// errNoLeader: none of the nodes says that it leads.
var errNoLeader = errors.New("no node says that it leads")
