package transport

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/quic-go/quic-go"

	"atoll/internal/identity"
	"atoll/quorum"
)

// Errors of Send and Queue. Nothing was queued.
var (
	// ErrClosed: the transport or the session is closed.
	ErrClosed = errors.New("closed")
	// ErrConnecting: the first attempt to reach the node goes on.
	ErrConnecting = errors.New("not reached yet")
	// ErrQueueFull: as much as Config allows waits for the peer already.
	ErrQueueFull = errors.New("too much waits for it already")
	// ErrNoAddress: nobody knows where the node is.
	ErrNoAddress = errors.New("no address is known")
	// errPeerLimit: maxPeers nodes are dialed already.
	errPeerLimit = fmt.Errorf("%d other nodes are dialed already, not one more", maxPeers)
	// errSelf: nobody dials itself.
	errSelf = errors.New("this is the node itself")
)

// UnreachableError says why there is no session with a node.
type UnreachableError struct {
	Node quorum.NodeID
	Err  error
}

// Error names the node and the reason.
func (e *UnreachableError) Error() string { return fmt.Sprintf("node %s: %v", e.Node, e.Err) }

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ListenError says that an address can't be listened on.
type ListenError struct {
	Address string
	Err     error
}

// NewListenError returns the error for an address that the system refused with
// err, in words.
func NewListenError(address string, err error) *ListenError {
	return &ListenError{Address: address, Err: plainBind(err)}
}

// Error names the address and the reason.
func (e *ListenError) Error() string { return fmt.Sprintf("can't listen on %s: %v", e.Address, e.Err) }

// Unwrap returns the reason; errors.Is finds syscall.EADDRINUSE in it when the
// port is taken.
func (e *ListenError) Unwrap() error { return e.Err }

// DialError says why an address led to no session.
type DialError struct {
	Address string
	Err     error
}

// Error names the address and the reason.
func (e *DialError) Error() string { return fmt.Sprintf("%s: %v", e.Address, e.Err) }

// Unwrap returns the reason.
func (e *DialError) Unwrap() error { return e.Err }

// WrongNodeError: another node than the one wanted is at an address.
type WrongNodeError struct {
	Address   string
	Want, Got quorum.NodeID
}

// Error names the address and both nodes.
func (e *WrongNodeError) Error() string {
	return fmt.Sprintf("address %s belongs to node %s, not %s", e.Address, e.Got, e.Want)
}

// Code says to the peer why a session is closed. The numbers are part of the
// wire protocol.
type Code uint64

// The reasons to close a session.
const (
	// CodeShutdown: the process ends.
	CodeShutdown Code = 1 + iota
	// CodeRefused: the peer isn't who it should be, or who it says it is.
	CodeRefused
	// CodeBadFrame: the peer sent something that isn't a frame.
	CodeBadFrame
	// CodeStalled: the peer took nothing of what waited for it.
	CodeStalled
	// CodeDuplicate: another session with the same peer is used.
	CodeDuplicate
	// CodeSilent: the peer didn't say hello in time, or gave no sign of life.
	CodeSilent
	// CodeUnwanted: the side that closes has no more use for the peer.
	CodeUnwanted
	// CodeOverBudget: the side that closes has no memory left for all of its
	// connections, and this one has more than its share.
	CodeOverBudget
)

// OverBudgetError says that a session gets no more memory, or has to go.
type OverBudgetError struct {
	// Bytes is what the session has, Limit what all may have.
	Bytes, Limit int
	// Connections is how many there are.
	Connections int
}

// Error says how much there is and how much the session has.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("out of memory for connections: this one has %d KiB of the %d MiB for all %d",
		e.Bytes>>10, e.Limit>>20, e.Connections)
}

// ClosedError says who closed a session and why.
type ClosedError struct {
	// Remote: the peer closed it.
	Remote bool
	Code   Code
	Text   string
}

// Error says who closed and why.
func (e *ClosedError) Error() string {
	if e.Remote {
		return "closed by the peer: " + e.Text
	}
	return "closed: " + e.Text
}

// Unwrap returns ErrClosed.
func (e *ClosedError) Unwrap() error { return ErrClosed }

// refusal is why this side won't talk to a peer.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// frameError says that a peer sent something that isn't a frame.
type frameError struct{ err error }

func (e *frameError) Error() string { return "bad frame: " + e.err.Error() }

func (e *frameError) Unwrap() error { return e.err }

// worded is an error in words for an operator, who has no use for those of
// the error behind it.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }

func (e *worded) Unwrap() error { return e.err }

// explain turns what QUIC says into words for an operator, and keeps the
// original behind them.
func explain(err error) error {
	var (
		application *quic.ApplicationError
		transport   *quic.TransportError
		reset       *quic.StatelessResetError
		idle        *quic.IdleTimeoutError
		handshake   *quic.HandshakeTimeoutError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &application):
		return &ClosedError{Remote: application.Remote, Code: Code(application.ErrorCode), Text: application.ErrorMessage}
	case errors.As(err, &reset):
		return &worded{"the peer was restarted", err}
	case errors.As(err, &idle):
		return &worded{"no sign of life", err}
	case errors.As(err, &handshake):
		return &worded{fmt.Sprintf("the handshake did not end within %v", 2*HandshakeTimeout), err}
	case errors.As(err, &transport) && transport.ErrorCode == quic.ConnectionRefused:
		if transport.Remote {
			return &worded{"refused, it has too many connections", err}
		}
		// QUIC takes the first packet, sent twice, for two connections.
		return &worded{"not taken: it came twice, or too many came at once, or this side was closing", err}
	}
	return identity.ExplainHandshake(err)
}

// explainDial is explain for an attempt that has led to no session yet, where
// silence means that nobody is there.
func explainDial(err error) error {
	var idle *quic.IdleTimeoutError
	switch {
	case errors.As(err, &idle) || errors.Is(err, os.ErrDeadlineExceeded):
		return &worded{fmt.Sprintf("no answer within %v", HandshakeTimeout), err}
	case errors.Is(err, context.DeadlineExceeded):
		return &worded{"no answer before the time was up", err}
	case errors.Is(err, context.Canceled):
		return &worded{"interrupted", err}
	}
	return explain(err)
}
