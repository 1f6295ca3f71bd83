package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/quorum"
)

// Config says who a Transport is and how it behaves.
type Config struct {
	// Credentials prove who this process is, and who others are. Required.
	Credentials *identity.Credentials
	// Self and Cluster are who this process is meant to be. Where they are
	// set, they must be those of the certificate; empty: as that says. A
	// client has no Self.
	Self    quorum.NodeID
	Cluster quorum.ClusterID
	// Listen is where to accept connections, as identity.ParseAddress reads
	// it. Port 0 takes a free one, an empty host means every address of both
	// families, a name its first IPv4 address if it has one. A client listens
	// nowhere.
	Listen []string
	// Addresses returns where a node may be dialed, "host:port" each. It is
	// called at every attempt, from several goroutines. Nil: no node is
	// dialed by id.
	Addresses func(quorum.NodeID) []string
	// Resolve returns what a name stands for now. It is called at every attempt.
	// Nil: the system's resolver is asked.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Handler is told of sessions and messages. Required.
	Handler Handler
	// Log takes what operators may want to know. Nil: nothing is logged.
	Log *slog.Logger
	// StatelessResetKey, kept across restarts, lets peers notice a restart
	// with the next message that they send, and not only after IdleTimeout.
	// It is secret: who knows it can break the node's connections. Zero:
	// none.
	StatelessResetKey [32]byte
	// MaxPending is how many bytes may wait for one node, MaxPendingClient
	// how many for one client. 0: DefaultMaxPending and
	// DefaultMaxPendingClient. A single message goes out even if it is larger.
	MaxPending, MaxPendingClient int
	// MaxBulk and MaxBulkClient are the same for large frames, those of more
	// than BulkAbove bytes. 0: DefaultMaxBulk and DefaultMaxBulkClient.
	MaxBulk, MaxBulkClient int
	// MaxIncoming is how many connections may come in; nodes have some places
	// more. 0: DefaultMaxIncoming.
	MaxIncoming int
	// Memory is how many bytes all connections together may cost, as far as
	// peers decide about it; see the package doc. 0: DefaultMemory. The least is
	// 16 MiB.
	Memory int
	// StallTimeout is how long a peer may take nothing of what waits for it, or
	// acknowledge nothing. It is noticed after half of that at the earliest. 0:
	// DefaultStallTimeout.
	StallTimeout time.Duration
}

// Handler is told of sessions and messages. For each session, Up comes
// first, then Messages any number of times, then Down once. Messages is called
// on two goroutines of the session's own, one for small frames and one for
// large ones, so that calls run concurrently, for one session and for several.
// A handler that takes long slows down what this peer sends of the same size,
// and nothing else. It must not wait for another message of the same peer, nor
// call Transport.Close.
type Handler interface {
	// Up reports a new session. It can be sent on already.
	Up(s *Session)
	// Messages takes everything that one read brought, in the order in which
	// the peer queued it; between small and large frames there is no order. The slice is used again when Messages returns, the
	// messages in it are not.
	Messages(s *Session, in []Incoming)
	// Down reports the end of a session and why. Send doesn't use it any
	// more; another session with the same node may live, see Connected.
	Down(s *Session, err error)
}

// Drainer is a Handler that asks sessions whether they are Congested or
// BulkCongested.
type Drainer interface {
	// Drained reports that a session no longer is, perhaps because it ends. It is
	// called by whoever took or ended it, and must not block.
	Drained(s *Session)
}

// Incoming is a message that came.
type Incoming struct {
	// Conversation is what the sender gave to Queue or Send.
	Conversation uint64
	// Message is immutable, and may be kept.
	Message env.Message
	// Size is that of the frame that it came in, in bytes.
	Size int
}

// validated returns c with its defaults, or what is wrong with it.
func (c Config) validated() (Config, error) {
	switch {
	case c.Credentials == nil:
		return c, errors.New("transport: no credentials")
	case c.Handler == nil:
		return c, errors.New("transport: no handler")
	}
	certificate := c.Credentials.Self()
	if c.Self == "" {
		c.Self = certificate.Node
	}
	if c.Cluster == "" {
		c.Cluster = certificate.Cluster
	}
	switch {
	case c.Self != certificate.Node || c.Cluster != certificate.Cluster:
		return c, fmt.Errorf("transport: node %q of cluster %q can't use the certificate of %v of cluster %q",
			c.Self, c.Cluster, certificate, certificate.Cluster)
	case c.Self == "" && len(c.Listen) > 0:
		return c, errors.New("transport: only a node may listen")
	case c.Memory != 0 && c.Memory < leastMemory:
		return c, fmt.Errorf("transport: %d bytes of memory for connections, at least %d are needed", c.Memory, leastMemory)
	case c.MaxPending < 0 || c.MaxPendingClient < 0 || c.MaxBulk < 0 || c.MaxBulkClient < 0 || c.MaxIncoming < 0 || c.StallTimeout < 0:
		return c, fmt.Errorf("transport: negative limit (MaxPending %d, MaxPendingClient %d, MaxBulk %d, MaxBulkClient %d, MaxIncoming %d, StallTimeout %v)",
			c.MaxPending, c.MaxPendingClient, c.MaxBulk, c.MaxBulkClient, c.MaxIncoming, c.StallTimeout)
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Addresses == nil {
		c.Addresses = func(quorum.NodeID) []string { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, l := range []struct {
		limit    *int
		standard int
	}{
		{&c.MaxPending, DefaultMaxPending}, {&c.MaxPendingClient, DefaultMaxPendingClient},
		{&c.MaxBulk, DefaultMaxBulk}, {&c.MaxBulkClient, DefaultMaxBulkClient},
		{&c.MaxIncoming, DefaultMaxIncoming}, {&c.Memory, DefaultMemory},
	} {
		if *l.limit == 0 {
			*l.limit = l.standard
		}
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = DefaultStallTimeout
	}
	return c, nil
}
