package wire

import "fmt"

// FormatError says what is wrong with a frame that came from a peer.
type FormatError struct {
	// Kind is the frame's message, 0 if it wasn't read yet.
	Kind Kind
	// Field is the field that can't be read.
	Field string
	// Offset is where it stands in the body, in bytes.
	Offset int
	// Problem is what is wrong with it, and Err the cause, if there is one.
	Problem string
	Err     error
}

// Error names message, field, place and problem.
func (e *FormatError) Error() string {
	message := "frame"
	if e.Kind != 0 {
		message = e.Kind.String()
	}
	problem := e.Problem
	if e.Err != nil {
		problem = e.Err.Error()
	}
	return fmt.Sprintf("wire: bad %s: %s at byte %d: %s", message, e.Field, e.Offset, problem)
}

// Unwrap returns the cause, if there is one.
func (e *FormatError) Unwrap() error { return e.Err }

// UnknownKindError says that a well-formed frame holds a message that this
// build doesn't know: its sender is newer.
type UnknownKindError struct{ Kind Kind }

// Error names the number.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("wire: unknown message, %v", e.Kind)
}

// LimitError says that a message can't be sent because one of its fields is
// beyond what any peer accepts. Nothing was encoded.
type LimitError struct {
	Field string
	Size  int64 // bytes, elements, or the number itself
	Max   int64
}

// Error states the size and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("wire: %s: %d is not in 0 to %d", e.Field, e.Size, e.Max)
}
