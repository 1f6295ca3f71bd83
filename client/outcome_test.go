package client_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/identity"
)

// short is the deadline of what can't succeed.
const short = 150 * time.Millisecond

// blamed returns the names of the members that an error blames.
func blamed(err error) string {
	var all []client.MemberError
	if none, ok := errors.AsType[*client.NoQuorumError](err); ok {
		all = none.Members
	}
	if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
		all = unknown.Members
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// expire runs an operation that can't succeed under a deadline, and returns
// its error. If that blames other members than those that are down, the
// machine is so slow that the others had no time either: then it is run again
// under a longer one.
func expire(t *testing.T, down string, op func(context.Context) error) error {
	t.Helper()
	return within(t, func(ctx context.Context) (bool, error) {
		err := op(ctx)
		return blamed(err) == down, err
	})
}

// within runs an operation that can't succeed under a deadline, and again under a
// longer one until it says that it got as far as it can.
func within(t *testing.T, op func(context.Context) (far bool, err error)) error {
	t.Helper()
	for limit := short; ; limit *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		far, err := op(ctx)
		cancel()
		if far || limit > patience {
			return err
		}
	}
}

// wantNoQuorum fails unless err says that nothing was done, because of cause,
// and blames these members.
func wantNoQuorum(t *testing.T, err, cause error, text, down string) {
	t.Helper()
	var none *client.NoQuorumError
	if !errors.As(err, &none) || !errors.Is(err, cause) || blamed(err) != down {
		t.Errorf("got %v, want a NoQuorumError because of %q that blames %s", err, cause, down)
		return
	}
	switch cause {
	case context.Canceled:
		text += "interrupted"
	case context.DeadlineExceeded:
		_, within, _ := strings.Cut(err.Error(), "the time was up (")
		within, _, _ = strings.Cut(within, ")")
		text += "the time was up (" + within + ")"
	default:
		text += cause.Error()
	}
	for _, m := range none.Members {
		if m.Text == "" || strings.Contains(m.Text, string(m.ID)) {
			t.Errorf("of %s (%s) it says %q, want something that isn't its id", m.Name, m.ID, m.Text)
		}
		text += "; " + m.Name + ": " + m.Text
	}
	if got, _, _ := strings.Cut(err.Error(), "; no node is found"); got != text {
		t.Errorf("got %q\nwant %q", err, text)
	}
}

// wantUnknown fails unless err says that the outcome is unknown, because of
// cause, and blames these members. It returns the operation.
func wantUnknown(t *testing.T, err, cause error, down string) abd.Operation {
	t.Helper()
	var unknown *client.UnknownError
	if !errors.As(err, &unknown) || !errors.Is(err, cause) || !strings.Contains(blamed(err), down) {
		t.Fatalf("got %v, want an UnknownError because of %q that blames %s", err, cause, down)
	}
	if op := unknown.Operation; op.ID.IsZero() || op.Tag.IsZero() || !op.Sent {
		t.Errorf("an operation of unknown outcome with id %v, tag %v, sent %v", op.ID, op.Tag, op.Sent)
	}
	if !strings.HasPrefix(err.Error(), "the outcome is unknown: ") {
		t.Errorf("got %q", err)
	}
	return unknown.Operation
}

func TestWithoutAQuorumEachMemberIsNamed(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	c, admin := h.open(), h.admin()
	kept := put(t, c, "kept", "v")
	h.down("b", "c")
	const reading, writing = "no quorum: ", "no quorum, nothing was changed: "
	for _, test := range []struct {
		text string
		op   func(context.Context) error
	}{
		{reading, func(ctx context.Context) error { _, err := c.Get(ctx, "kept"); return err }},
		{reading, func(ctx context.Context) (last error) {
			for _, last = range c.List(ctx, "") {
			}
			return last
		}},
		{reading, func(ctx context.Context) error { _, err := admin.Pending(ctx); return err }},
		{writing, func(ctx context.Context) error { _, err := c.Put(ctx, "new", []byte("v")); return err }},
		{writing, func(ctx context.Context) error { _, err := c.Delete(ctx, "kept"); return err }},
	} {
		wantNoQuorum(t, expire(t, "b c", test.op), context.DeadlineExceeded, test.text, "b c")
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Get(canceled, "kept")
	wantNoQuorum(t, err, context.Canceled, reading, "a b c")

	h.up("b", "c")
	wantMissing(t, c, "new")
	wantValue(t, c, "kept", "v", kept)
}

func TestTheTimeoutCountsWhereNoDeadlineIs(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 2, identity.Spec{})
	cfg := h.clientConfig()
	cfg.Timeout = short
	c := openClient(t, cfg)
	h.down("b")
	start := time.Now()
	_, err := c.Get(context.Background(), "k")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "; b: ") {
		t.Errorf("got %v, want that the deadline was exceeded because of b", err)
	}
	if took := time.Since(start); took < short {
		t.Errorf("it ended after %v, the timeout is %v", took, short)
	}
}

// half is a cluster in which a get phase ends with any member and a put phase
// needs all three, of which two are down: a put reaches the one that is left,
// and its outcome is unknown.
func half(t *testing.T) harness {
	t.Helper()
	h := startCluster(t, 3, identity.Spec{Quorum: "get=1,put=3"})
	h.down("b", "c")
	return h
}

func TestAnUnknownPutIsResumedAsTheSameOne(t *testing.T) {
	t.Parallel()
	h := half(t)
	c := h.open()
	value := []byte("value")
	err := expire(t, "b c", func(ctx context.Context) error { _, err := c.Put(ctx, "k", value); return err })
	op := wantUnknown(t, err, context.DeadlineExceeded, "b c")
	copy(value, "other") // the operation has a copy
	if op.Key != "k" || op.Delete || string(op.Value) != "value" {
		t.Errorf("the operation is %+v", op)
	}

	err = expire(t, "b c", func(ctx context.Context) error { _, err := c.Resume(ctx, op); return err })
	again := wantUnknown(t, err, context.DeadlineExceeded, "b c")
	if again.ID != op.ID || again.Tag != op.Tag || !bytes.Equal(again.Value, op.Value) {
		t.Errorf("resumed, the operation %+v became %+v", op, again)
	}

	h.up("b", "c")
	tag, err := h.open().Resume(t.Context(), again) // as another process would
	if err != nil || tag != op.Tag {
		t.Fatalf("resume: %v, %v; want tag %v", tag, err, op.Tag)
	}
	wantValue(t, c, "k", "value", op.Tag)

	// What was written since isn't undone by trying once more.
	later := put(t, c, "k", "later")
	if tag, err := c.Resume(t.Context(), op); err != nil || tag != op.Tag {
		t.Errorf("resume: %v, %v; want tag %v", tag, err, op.Tag)
	}
	wantValue(t, c, "k", "later", later)
}

func TestAnUnknownDeleteIsResumedAsADelete(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{Quorum: "get=1,put=3"})
	c := h.open()
	put(t, c, "k", "v")
	h.down("c")
	err := expire(t, "c", func(ctx context.Context) error { _, err := c.Delete(ctx, "k"); return err })
	op := wantUnknown(t, err, context.DeadlineExceeded, "c")
	if !op.Delete || op.Key != "k" {
		t.Errorf("the operation is %+v", op)
	}
	h.up("c")
	if tag, err := c.Resume(t.Context(), op); err != nil || tag != op.Tag {
		t.Errorf("resume: %v, %v; want tag %v", tag, err, op.Tag)
	}
	wantMissing(t, c, "k")
}

// pending begins a put that can't end, and returns when a replica has stored
// it.
func pending(t *testing.T, c *client.Client, ctx context.Context) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := c.Put(ctx, "k", []byte("v"))
		result <- err
	}()
	deadline := time.Now().Add(patience)
	for {
		// Two of three are silent, so it ends with its context.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		s, err := c.Status(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Members {
			if m.Status != nil && m.Status.Usage.Keys == 1 {
				return result
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the put never arrived")
		}
	}
}

func receive(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("the operation doesn't end")
		return nil
	}
}

func TestCancelEndsAPutThatIsUnderWay(t *testing.T) {
	t.Parallel()
	h := half(t)
	c := h.open()
	ctx, cancel := context.WithCancel(t.Context())
	result := pending(t, c, ctx)
	cancel()
	wantUnknown(t, receive(t, result), context.Canceled, "b c")
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	h := half(t)
	c := h.open()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result := pending(t, c, ctx)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	op := wantUnknown(t, receive(t, result), client.ErrClosed, "b c")

	if err := c.Close(); err != client.ErrClosed {
		t.Errorf("close again: %v", err)
	}
	_, err := c.Get(ctx, "k")
	closed := []error{err}
	_, err = c.Put(ctx, "k", nil)
	closed = append(closed, err)
	_, err = c.Delete(ctx, "k")
	closed = append(closed, err)
	_, err = c.Status(ctx)
	closed = append(closed, err)
	for _, err := range c.List(ctx, "") {
		closed = append(closed, err)
	}
	for i, err := range closed {
		if err != client.ErrClosed {
			t.Errorf("call %d of a closed client: %v", i, err)
		}
	}
	// That the client is closed tells nothing of what became of the put.
	_, err = c.Resume(ctx, op)
	wantUnknown(t, err, client.ErrClosed, "")
}

func TestCloseEndsAGetThatIsUnderWay(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 2, identity.Spec{})
	c := h.open()
	h.down("a", "b")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		close(began)
		_, err := c.Get(ctx, "k")
		result <- err
	}()
	<-began
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	// Whether or not it had begun, it ends with ErrClosed.
	if err := receive(t, result); !errors.Is(err, client.ErrClosed) {
		t.Errorf("get: %v", err)
	}
}

func TestReplicasThatComeBackAreFoundAgain(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	c := h.open()
	before := put(t, c, "before", "v")
	h.down("a", "b", "c")
	err := expire(t, "a b c", func(ctx context.Context) error { _, err := c.Get(ctx, "before"); return err })
	wantNoQuorum(t, err, context.DeadlineExceeded, "no quorum: ", "a b c")

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := c.Put(ctx, "during", []byte("v"))
		result <- err
	}()
	h.up("a", "b", "c")
	if err := receive(t, result); err != nil {
		t.Errorf("the put that waited for them: %v", err)
	}
	wantValue(t, c, "before", "v", before)
}

func TestStatusSaysWhoIsSilent(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	c := h.open()
	put(t, c, "k", "v")
	// What a member says that has no time to answer isn't the point.
	status := func(up int) (s client.Status) {
		t.Helper()
		for limit := short; limit < patience; limit *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			var err error
			s, err = c.Status(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, m := range s.Members {
				if m.Status != nil {
					n++
				}
			}
			if n == up {
				return s
			}
		}
		return s
	}
	s := status(3)
	if len(s.Members) != 3 || s.Configuration == nil || s.Cluster == "" {
		t.Fatalf("got %+v", s)
	}
	for i, m := range s.Members {
		if want := string(rune('a' + i)); m.Name != want || m.Status == nil || m.Silence != "" || m.Status.Version != "test" {
			t.Errorf("member %d: %+v, want %s to be up", i, m, want)
		}
	}
	h.down("b")
	for _, m := range status(2).Members {
		if silent := m.Status == nil && m.Silence != ""; silent != (m.Name == "b") {
			t.Errorf("%s: status %+v, silence %q", m.Name, m.Status, m.Silence)
		}
	}
}
