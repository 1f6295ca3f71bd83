package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/tags"
)

// Config is what a campaign does. Each field must be set.
type Config struct {
	// Seed makes all choices; what they meet depends on the machine.
	Seed uint64
	// Kills is how many times replicas are killed. Killing two or all of them
	// at once counts once.
	Kills int
	// Limit is how long killing may go on; a campaign that has it reached
	// before its kills are done ends early, without an error.
	Limit time.Duration
	// Clients is how many operations are in flight.
	Clients int
	// Pause is the longest time between two operations of a client.
	Pause time.Duration
	// Hot is the number of keys that all clients fight for, Many that of the
	// other keys.
	Hot, Many int
	// Silence is how long a replica is stopped with SIGSTOP: longer than
	// connections live without a word.
	Silence time.Duration
	// Quiet is the longest time between two events of mischief, and Down how
	// long killed replicas stay down at most.
	Quiet, Down time.Duration
	// Note is told of what happens.
	Note func(format string, args ...any)
}

const (
	// slots is how many instances of the client library there are at a time,
	// and lifetime how long one of them lives.
	slots    = 4
	lifetime = 7 * time.Second

	// patience is the time that an operation has, and haste the longest that
	// one in hastily (a share) has.
	patience = 2 * time.Second
	haste    = 8 * time.Millisecond
	hastily  = 0.03
	// resumed is the share of unknown operations that are tried again, and
	// resumeFor how long.
	resumed   = 0.5
	resumeFor = 20 * time.Second
	// retryPause is between two attempts to resume, to open a library, or to
	// read at the end.
	retryPause = 50 * time.Millisecond

	// paddingMost bounds what a value has behind its label, in bytes; largeMost
	// is the same for the share large of values.
	paddingMost = 1 << 10
	largeMost   = 64 << 10
	large       = 0.01

	// startingMost is how long after its start a replica is killed at most
	// that is to die while it starts.
	startingMost = 150 * time.Millisecond
	// startFor is how long a replica may take until it serves.
	startFor = 60 * time.Second

	// noteEvery is after how many kills a word is said about it.
	noteEvery = 10

	// settleFor is how long after the last mischief a read of a key may fail.
	settleFor = 60 * time.Second
	// grace is how long after the return of a quorum operations may still
	// fail without being called a surprise: connections are dialed again with
	// pauses of up to a second.
	grace = 3 * time.Second
	// complaintsKept bounds the list of what went wrong.
	complaintsKept = 20
)

func (c Config) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Kills", c.Kills}, {"Clients", c.Clients}, {"Hot", c.Hot}, {"Many", c.Many}} {
		if f.value < 1 {
			return fmt.Errorf("chaos: %s is %d, and must be at least 1", f.name, f.value)
		}
	}
	if min(c.Limit, c.Pause, c.Silence, c.Quiet, c.Down) <= 0 || c.Note == nil {
		return errors.New("chaos: all times, and Note, must be set")
	}
	return nil
}

// Cluster is what is tormented: a cluster of replicas that are processes.
type Cluster interface {
	// Members is how many replicas there are; a majority is a quorum.
	Members() int
	// Name returns the name of a replica.
	Name(i int) string
	// Begin starts a replica; the function waits until it serves.
	Begin(i int) (serves func(context.Context) error, err error)
	// Kill ends it with SIGKILL, and returns when it is gone.
	Kill(i int)
	// Pause stops it with SIGSTOP, and Resume lets it go on.
	Pause(i int) error
	Resume(i int) error
	// Ended says why a replica isn't running, though nobody killed it; nil if
	// it is.
	Ended(i int) error
	// Twin starts a second process on its folder; that must end at once with
	// an error, which wraps ErrTwinRefused if it is the right one.
	Twin(ctx context.Context, i int) error
	// Open returns a new client.
	Open(ctx context.Context) (Library, error)
}

// ErrTwinRefused: a second process on a folder was refused as it must be.
var ErrTwinRefused = errors.New("the folder is in use")

// Library is atoll's client library, see package client.
type Library interface {
	Put(ctx context.Context, key string, value []byte) (tags.Tag, error)
	Delete(ctx context.Context, key string) (tags.Tag, error)
	Get(ctx context.Context, key string) (client.Value, error)
	Resume(ctx context.Context, op abd.Operation) (tags.Tag, error)
	Close() error
}
