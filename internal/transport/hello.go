package transport

import (
	"errors"
	"fmt"
	"io"

	"atoll/internal/identity"
	"atoll/internal/wire"
)

// The first frame each way is a wire.Hello. The certificates say the same, and
// both must agree: a process that is configured for another cluster or node
// than its certificate finds out here, and not by strange answers.

// hello is what this side says.
func (t *Transport) hello() *wire.Hello {
	return &wire.Hello{Version: wire.Version, Cluster: t.cfg.Cluster, Node: t.cfg.Self, Bulk: true}
}

// writeHello writes this side's hello.
func (t *Transport) writeHello(w io.Writer) error {
	var e wire.Encoder
	b, err := e.AppendFrame(nil, 0, t.hello())
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// readHello reads the other side's hello, and not a byte more.
func readHello(r io.Reader) (*wire.Hello, error) {
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n, err := wire.BodySize(header)
	if err != nil {
		return nil, &frameError{err}
	}
	if n > maxHello {
		return nil, &frameError{fmt.Errorf("a hello of %d bytes, at most %d are allowed", n, maxHello)}
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	_, m, err := wire.DecodeFrame(body)
	if err != nil {
		return nil, &frameError{err}
	}
	h, ok := m.(*wire.Hello)
	if !ok {
		return nil, &frameError{fmt.Errorf("the first frame is %T, not a hello", m)}
	}
	return h, nil
}

// checkHello holds what a peer says against what its certificate says, and
// both against what this side is.
func (t *Transport) checkHello(h *wire.Hello, certificate identity.Peer) error {
	switch own := t.hello(); {
	case h.Version != own.Version:
		return &refusal{fmt.Sprintf("it speaks wire version %d, this side %d", h.Version, own.Version)}
	case h.Cluster != own.Cluster:
		return &refusal{fmt.Sprintf("it belongs to cluster %q, this side to %q", h.Cluster, own.Cluster)}
	case h.Cluster != certificate.Cluster:
		return &refusal{fmt.Sprintf("it says it belongs to cluster %q, its certificate says %q", h.Cluster, certificate.Cluster)}
	case h.Node != certificate.Node:
		return &refusal{fmt.Sprintf("it says it is node %q, its certificate says %q", h.Node, certificate.Node)}
	case h.Node != "" && h.Node == own.Node:
		return &refusal{fmt.Sprintf("it is node %q, and so is this side: the address is its own, or the key was copied", h.Node)}
	}
	return nil
}

// closeBad closes a connection whose hello was wrong, with the reason if the
// peer can do something about it.
func (l *link) closeBad(err error) {
	var (
		refused *refusal
		wrong   *WrongNodeError
		frame   *frameError
	)
	switch {
	case errors.As(err, &refused):
		l.close(CodeRefused, "refused: "+refused.text)
	case errors.As(err, &wrong):
		l.close(CodeRefused, "refused: "+wrong.Error())
	case errors.As(err, &frame):
		l.close(CodeBadFrame, frame.Error())
	default:
		l.close(CodeSilent, "no hello within "+HelloTimeout.String())
	}
}
