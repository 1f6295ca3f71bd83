package reconfig

import (
	"errors"
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/quorum"
)

// ErrNothingPending: no member of a read quorum has heard of a proposal for the
// next index.
var ErrNothingPending = errors.New("no change of the members is pending")

// FragileError says that a target isn't proposed because some member's death
// alone would stop reads or writes, and that there are more such members than
// now.
type FragileError struct {
	Target *quorum.Configuration
	// Tolerance is what it would tolerate.
	Tolerance quorum.Tolerance
	// Present is what the present configuration tolerates.
	Present quorum.Tolerance
}

// Error says what the target would tolerate, and what is tolerated now.
func (e *FragileError) Error() string {
	return fmt.Sprintf("%v would tolerate: %v (now: %v); it is proposed only if that is forced", e.Target, e.Tolerance, e.Present)
}

// NotReadyError says that a target isn't proposed because members of it didn't
// say that they are ready. Nothing was decided.
type NotReadyError struct {
	Target *quorum.Configuration
	// Cause is one of env.ErrCanceled, env.ErrDeadline, env.ErrStopped and
	// abd.ErrRefused.
	Cause error
	// Missing are those members, sorted, and what each said, or why it is silent.
	Missing []abd.NodeError
}

// Error names each that is missing.
func (e *NotReadyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "not all that must be are ready for %v: %v", e.Target, e.Cause)
	for _, n := range e.Missing {
		fmt.Fprintf(&b, "; %s: %s", n.Node, n.Text)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// BusyError says that the configuration of the next index is decided already and
// not installed yet: one change at a time.
type BusyError struct{ Decided *quorum.Configuration }

// Error says what is waited for.
func (e *BusyError) Error() string {
	return fmt.Sprintf("another change of the members is under way: %v is decided and not installed yet", e.Decided)
}

// PastError says that the index that was to be decided is out already: more has
// changed since than the caller knew of.
type PastError struct {
	Index quorum.ConfigIndex
	// Installed is the configuration that is installed now.
	Installed *quorum.Configuration
}

// Error says what is installed now.
func (e *PastError) Error() string {
	return fmt.Sprintf("configuration %d is out already; installed is %v", e.Index, e.Installed)
}

// TooLateError says that a change can't be aborted: it is decided.
type TooLateError struct{ Decided *quorum.Configuration }

// Error says what is decided.
func (e *TooLateError) Error() string { return fmt.Sprintf("too late: %v is decided", e.Decided) }
