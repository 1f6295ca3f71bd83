package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
)

// TestErrorsInWords: an error is for people who don't know Go, and yet what a
// Go program looks for is in it.
func TestErrorsInWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		cause error
		want  string
	}{
		{&client.NoQuorumError{Cause: context.DeadlineExceeded, Within: 4998123 * time.Microsecond, Members: []client.MemberError{
			{ID: "n1", Name: "a", Text: "no answer"}, {ID: "n2", Text: "not reached"},
		}}, context.DeadlineExceeded, "no quorum, nothing was changed: the time was up (5s); a: no answer; n2: not reached"},
		{&client.NoQuorumError{Cause: context.DeadlineExceeded, Within: 12345 * time.Microsecond}, context.DeadlineExceeded,
			"no quorum, nothing was changed: the time was up (12ms)"},
		{&client.NoQuorumError{Cause: context.DeadlineExceeded, Within: -1}, context.DeadlineExceeded,
			"no quorum, nothing was changed: the time was up"},
		{&client.UnknownError{Cause: context.Canceled, Within: time.Second}, context.Canceled, "the outcome is unknown: interrupted"},
		{&client.UnknownError{Cause: client.ErrClosed}, client.ErrClosed, "the outcome is unknown: client closed"},
	} {
		if test.err.Error() != test.want || !errors.Is(test.err, test.cause) {
			t.Errorf("got %q, want %q, which wraps %q", test.err, test.want, test.cause)
		}
	}
}

// TestEndpointsInTheirOrder: whoever fails first.
func TestEndpointsInTheirOrder(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	cfg := h.clientConfig()
	cfg.Endpoints = []string{nobody(t), "nonsense", "127.0.0.1"}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := client.Open(ctx, cfg)
	var unreachable *client.UnreachableError
	if !errors.As(err, &unreachable) || len(unreachable.Endpoints) != len(cfg.Endpoints) {
		t.Fatalf("got %v, want an UnreachableError", err)
	}
	for i, e := range cfg.Endpoints {
		if !strings.Contains(unreachable.Endpoints[i].Error(), e) {
			t.Errorf("endpoint %d is %s, and it says %v", i, e, unreachable.Endpoints[i])
		}
	}
	if text := err.Error(); strings.Contains(text, "context deadline") {
		t.Errorf("got %q", text)
	}
}

func TestLoadContextWithoutAPath(t *testing.T) {
	t.Parallel()
	if _, err := client.LoadContext(""); err == nil || !strings.Contains(err.Error(), "ATOLL_CONTEXT") {
		t.Errorf("got %v, want an error that says how paths are given", err)
	}
}

func TestMaxValueIsTheClusters(t *testing.T) {
	t.Parallel()
	spec := identity.Spec{}
	spec.MaxValue = 1234
	if got := startCluster(t, 1, spec).open().MaxValue(); got != 1234 {
		t.Errorf("got %d, want 1234", got)
	}
}
