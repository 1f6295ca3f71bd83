package cli_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/join"
)

func TestExitCode(t *testing.T) {
	unreachable := func(err error) error {
		return &client.UnreachableError{Endpoints: []error{errors.New("a:1: no answer"), fmt.Errorf("b:1: %w", err)}}
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("something"), 1},
		{client.ErrClosed, 1},
		{cli.Usagef("wrong"), 2},
		{&abd.SizeError{What: "key"}, 2},
		{cli.Preconditionf("not here"), 3},
		{&transport.ListenError{Address: "a:1", Err: syscall.EADDRINUSE}, 3},
		{&store.InUseError{Dir: "d"}, 3},
		{store.ErrNoStore, 3},
		{&identity.FolderError{Class: identity.Precondition}, 3},
		{&identity.ContextError{}, 3},
		{client.ErrNotFound, 4},
		{fmt.Errorf("shrink: %w", &cli.NotFoundError{Text: "nothing"}), 4},
		{&client.NoQuorumError{Cause: context.DeadlineExceeded}, 6},
		{&client.NoQuorumError{Cause: context.Canceled}, 6},
		{unreachable(errors.New("no answer")), 6},
		{&join.UnreachableError{Endpoints: []error{errors.New("a:1: no answer")}}, 6},
		{&join.UnreachableError{Endpoints: []error{&identity.PeerError{Which: identity.WrongCA}}}, 8},
		{&client.UnknownError{Cause: context.Canceled}, 7},
		{unreachable(&identity.PeerError{Which: identity.WrongCA}), 8},
		{unreachable(&identity.RefusedError{Which: identity.Expired}), 8},
		{&identity.CredentialError{}, 8},
		{&env.Refused{Reason: env.ReasonDenied}, 8},
		{unreachable(&env.Refused{Reason: env.ReasonDenied}), 8},
		{&client.NoQuorumError{Cause: abd.ErrRefused, Members: []client.MemberError{{Text: "no answer"}, {Refused: &env.Refused{Reason: env.ReasonDenied}}}}, 8},
		{&client.NoQuorumError{Cause: abd.ErrRefused, Members: []client.MemberError{{Refused: &env.Refused{Reason: env.ReasonFull}}}}, 6},
		{&client.UnknownError{Cause: abd.ErrRefused, Members: []client.MemberError{{Refused: &env.Refused{Reason: env.ReasonDenied}}}}, 7},
		{&env.Refused{Reason: env.ReasonFull}, 1},
		{&identity.FolderError{Class: identity.Damaged}, 9},
		{&store.DamageError{File: "f"}, 9},
		{&cli.IncompleteError{Text: "ended by --for"}, 10},
		{cli.ErrInterrupted, 130},
		{context.Canceled, 130},
	} {
		if got := cli.ExitCode(c.err); got != c.want {
			t.Errorf("%T %v: exit %d, want %d", c.err, c.err, got, c.want)
		}
		if c.err == nil {
			continue
		}
		if got := cli.ExitCode(fmt.Errorf("while trying: %w", c.err)); got != c.want {
			t.Errorf("%T, wrapped: exit %d, want %d", c.err, got, c.want)
		}
	}
}
