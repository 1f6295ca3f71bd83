package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// Which is a kind of fault of a certificate or a key.
type Which string

// The kinds of faults. Unknown is that of an alert that says no more.
const (
	WrongCA      Which = "wrong CA"
	Expired      Which = "certificate expired"
	NotYetValid  Which = "certificate not yet valid"
	OtherCluster Which = "other cluster"
	WrongRole    Which = "wrong role"
	WrongKey     Which = "wrong key"
	Malformed    Which = "malformed certificate"
	Missing      Which = "no certificate"
	Version      Which = "no protocol version in common"
	Unknown      Which = "handshake failed"
)

// The alerts of TLS that tell the other side which fault we found, and those
// that crypto/tls sends by itself. RFC 8446, section 6.2.
const (
	alertBadCertificate      tls.AlertError = 42
	alertCertificateExpired  tls.AlertError = 45
	alertCertificateUnknown  tls.AlertError = 46
	alertUnknownCA           tls.AlertError = 48
	alertAccessDenied        tls.AlertError = 49
	alertCertificateRequired tls.AlertError = 116
	alertNoApplicationProto  tls.AlertError = 120
)

// PeerError says why we don't trust the certificate of the other side.
type PeerError struct {
	Which  Which  // any but WrongKey and Unknown
	Detail string // the facts, for a person
}

func (e *PeerError) Error() string { return fmt.Sprintf("%s: %s", e.Which, e.Detail) }

// Unwrap returns the alert that tells the other side. QUIC sends the alert
// that it finds in the error of the verification; see ExplainHandshake.
func (e *PeerError) Unwrap() error {
	switch e.Which {
	case WrongCA:
		return alertUnknownCA
	case Expired, NotYetValid: // the RFC has one alert for both
		return alertCertificateExpired
	case OtherCluster:
		return alertCertificateUnknown
	case WrongRole:
		return alertAccessDenied
	case Missing:
		return alertCertificateRequired
	default:
		return alertBadCertificate
	}
}

// RefusedError says that the other side ended the handshake, and why, as far
// as its alert tells.
type RefusedError struct {
	Which Which
	Alert tls.AlertError
	Err   error // as it came from the connection
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused by the other side: %s: %s", e.Which, refusal(e.Which, e.Alert))
}

// Unwrap returns the error as it came from the connection.
func (e *RefusedError) Unwrap() error { return e.Err }

// Part is a part of credentials.
type Part string

// The parts of credentials.
const (
	PartCA          Part = "CA"
	PartCertificate Part = "certificate"
	PartKey         Part = "key"
)

// CredentialError says what is wrong with our own CA, certificate or key.
type CredentialError struct {
	Part   Part
	Which  Which
	Detail string
}

func (e *CredentialError) Error() string {
	return fmt.Sprintf("our own %s: %s: %s", e.Part, e.Which, e.Detail)
}

// FolderError says which file of a folder is wrong, how, and what to do.
type FolderError struct {
	File    string // its path; the folder's, if it concerns the whole
	Problem string
	WayOut  string
	Class   Class
	Err     error // the cause, if one was returned by the system
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("%s %s; %s", e.File, e.Problem, e.WayOut)
}

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// ContextError says what is wrong with a context file.
type ContextError struct {
	File    string
	Problem string
	WayOut  string
	Err     error // the cause: of the system, or a *CredentialError
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("the context file %s %s; %s", e.File, e.Problem, e.WayOut)
}

// Unwrap returns the cause.
func (e *ContextError) Unwrap() error { return e.Err }

// Class sorts errors by who must do something about them.
type Class uint8

// The classes. Programs turn them into exit codes.
const (
	// NoClass is that of errors that aren't of this package.
	NoClass Class = iota
	// Precondition: something local isn't as it must be (a folder that isn't
	// there, isn't empty, can't be read or written; a context file).
	Precondition
	// Damaged: files are damaged, missing, or don't belong together.
	Damaged
	// Certificate: a certificate isn't accepted, here or by the other side.
	Certificate
)

// ClassOf returns the class of an error, wrapped or not.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*FolderError](err); ok {
		return e.Class
	}
	if _, ok := errors.AsType[*CredentialError](err); ok {
		return Certificate
	}
	if _, ok := errors.AsType[*ContextError](err); ok {
		return Precondition
	}
	if _, ok := errors.AsType[*TicketError](err); ok {
		return Precondition
	}
	if _, ok := errors.AsType[*PeerError](err); ok {
		return Certificate
	}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return Certificate
	}
	return NoClass
}
