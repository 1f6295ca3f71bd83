package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/join"
)

// The exit codes of every program. Scripts depend on them.
const (
	ExitDone         = 0
	ExitOther        = 1
	ExitUsage        = 2
	ExitPrecondition = 3   // something local: configuration, permission, port, lock
	ExitNotFound     = 4   // what was asked for doesn't exist
	ExitConflict     = 5   // a comparison failed, or what the caller knew was stale
	ExitNoQuorum     = 6   // definitely not applied
	ExitUnknown      = 7   // may have been applied, or not
	ExitDenied       = 8   // TLS, or not authorized
	ExitDamaged      = 9   // corruption, a newer format, or an identity that isn't the expected one
	ExitIncomplete   = 10  // it ended at a limit that it was given, before it was through
	ExitInterrupted  = 130 // 128 + SIGINT
)

// exitText says in the help what a code means.
func exitText(code int) string {
	switch code {
	case ExitDone:
		return "done"
	case ExitOther:
		return "any other error"
	case ExitUsage:
		return "wrong usage; nothing was done"
	case ExitPrecondition:
		return "not possible on this machine: configuration, permission, port or lock"
	case ExitNotFound:
		return "not found"
	case ExitConflict:
		return "conflict: the comparison failed, or the caller's knowledge was stale"
	case ExitNoQuorum:
		return "no quorum; definitely not applied"
	case ExitUnknown:
		return "outcome unknown: it may have been applied, or still be"
	case ExitDenied:
		return "TLS failed, or not authorized"
	case ExitDamaged:
		return "corruption, a newer format, or an identity that isn't the expected one"
	case ExitIncomplete:
		return "it ended at a limit that was given, before it was through"
	case ExitInterrupted:
		return "interrupted"
	}
	return ""
}

// PreconditionError is something about this machine that keeps a command from
// being done: exit code 3.
type PreconditionError struct {
	Text string
	Err  error // may be nil
}

// Error returns the text and the cause.
func (e *PreconditionError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *PreconditionError) Unwrap() error { return e.Err }

// Preconditionf returns a *PreconditionError without a cause.
func Preconditionf(format string, args ...any) error {
	return &PreconditionError{Text: fmt.Sprintf(format, args...)}
}

// NotFoundError says that what a command was asked for doesn't exist: exit
// code 4.
type NotFoundError struct{ Text string }

// Error returns the text.
func (e *NotFoundError) Error() string { return e.Text }

// ErrInterrupted is what a command returns that ended early because its
// context did, after it has printed what it had.
var ErrInterrupted = errors.New("interrupted")

// IncompleteError says that a command ended at a limit that it was given, after it
// has printed what it had: exit code 10.
type IncompleteError struct{ Text string }

// Error returns the text.
func (e *IncompleteError) Error() string { return e.Text }

// Silently returns an error that counts as err for the exit code, and that
// Run says nothing about: the code is the whole answer.
func Silently(err error) error { return &silentError{err} }

type silentError struct{ err error }

func (e *silentError) Error() string { return e.err.Error() }

// Unwrap returns the error that counts.
func (e *silentError) Unwrap() error { return e.err }

// exitRule gives the errors that it matches an exit code.
type exitRule struct {
	matches func(error) bool
	code    int
}

// is matches what wraps target.
func is(target error, code int) exitRule {
	return exitRule{func(err error) bool { return errors.Is(err, target) }, code}
}

// as matches what wraps an error of type T.
func as[T error](code int) exitRule {
	return exitRule{func(err error) bool { _, ok := errors.AsType[T](err); return ok }, code}
}

// class matches the errors of package identity that are of a class.
func class(c identity.Class, code int) exitRule {
	return exitRule{func(err error) bool { return identity.ClassOf(err) == c }, code}
}

// denied matches the refusal of a node that says that our role doesn't allow
// what we asked, also where that is why there was no quorum.
func denied(err error) bool {
	var members []client.MemberError
	if q, ok := errors.AsType[*client.NoQuorumError](err); ok {
		members = q.Members
	}
	if n, ok := errors.AsType[*client.NotReadyError](err); ok {
		members = n.Members
	}
	for _, m := range members {
		if m.Refused != nil && m.Refused.Reason == env.ReasonDenied {
			return true
		}
	}
	r, ok := errors.AsType[*env.Refused](err)
	return ok && r.Reason == env.ReasonDenied
}

// ambiguous matches a name that several nodes have.
func ambiguous(err error) bool {
	n, ok := errors.AsType[*client.NodeError](err)
	return ok && len(n.Candidates) > 0
}

// exitRules is the one table from errors to exit codes. The first rule that
// matches counts: what says more about the outcome stands before what it may
// wrap.
func exitRules() []exitRule {
	return []exitRule{
		as[*UsageError](ExitUsage),
		as[*abd.SizeError](ExitUsage), // found before anything was sent
		is(ErrInterrupted, ExitInterrupted),
		as[*IncompleteError](ExitIncomplete),

		// How an operation ended.
		is(client.ErrNotFound, ExitNotFound),
		as[*NotFoundError](ExitNotFound),
		as[*client.ChangeError](ExitUsage),
		{ambiguous, ExitUsage},
		as[*client.NodeError](ExitNotFound),
		as[*client.FragileError](ExitPrecondition),
		as[*client.ConflictError](ExitConflict),
		as[*client.ChangeUnknownError](ExitUnknown),
		as[*client.UnknownError](ExitUnknown),
		{denied, ExitDenied},
		as[*client.NoQuorumError](ExitNoQuorum),
		as[*client.NotReadyError](ExitNoQuorum),

		// Who we are, and whom we met.
		class(identity.Damaged, ExitDamaged),
		class(identity.Precondition, ExitPrecondition),
		class(identity.Certificate, ExitDenied),
		as[*transport.WrongNodeError](ExitDamaged),
		as[*join.OutcastError](ExitDamaged),
		as[*join.RefusedError](ExitDenied),

		// What this machine has.
		as[*store.DamageError](ExitDamaged),
		as[*store.InUseError](ExitPrecondition),
		as[*store.FormatError](ExitDamaged),
		as[*store.SpaceError](ExitPrecondition),
		is(store.ErrNoStore, ExitPrecondition),
		is(store.ErrExists, ExitPrecondition),
		as[*transport.ListenError](ExitPrecondition),
		as[*PreconditionError](ExitPrecondition),

		// No endpoint could be used, for no reason above: nothing was asked.
		as[*client.UnreachableError](ExitNoQuorum),
		as[*join.UnreachableError](ExitNoQuorum),

		is(context.Canceled, ExitInterrupted),
		is(fs.ErrPermission, ExitPrecondition),
		is(fs.ErrNotExist, ExitPrecondition),
		is(syscall.EADDRINUSE, ExitPrecondition),
		is(syscall.EADDRNOTAVAIL, ExitPrecondition),
		is(syscall.EROFS, ExitPrecondition),
	}
}

// ProcessError says that a process which the command had started has failed.
// Its exit code becomes the command's.
type ProcessError struct {
	Text string
	Code int
}

// Error returns the text.
func (e *ProcessError) Error() string { return e.Text }

// ExitCode returns the exit code for the error that a command returned.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if p, ok := errors.AsType[*ProcessError](err); ok && p.Code > 0 {
		return p.Code
	}
	for _, r := range exitRules() {
		if r.matches(err) {
			return r.code
		}
	}
	return ExitOther
}
