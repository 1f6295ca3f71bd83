package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/replica"
)

// The tests of this file count goroutines, and so don't run beside others.

// operations are what a client can do.
func operations() map[string]func(ctx context.Context, c *client.Client, key string) error {
	return map[string]func(context.Context, *client.Client, string) error{
		"get": func(ctx context.Context, c *client.Client, key string) error {
			_, err := c.Get(ctx, key)
			if errors.Is(err, client.ErrNotFound) {
				return nil
			}
			return err
		},
		"put": func(ctx context.Context, c *client.Client, key string) error {
			_, err := c.Put(ctx, key, []byte("v"))
			return err
		},
		"delete": func(ctx context.Context, c *client.Client, key string) error {
			_, err := c.Delete(ctx, key)
			return err
		},
		"list": func(ctx context.Context, c *client.Client, key string) error {
			for _, err := range c.List(ctx, key[:1]) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"status": func(ctx context.Context, c *client.Client, _ string) error {
			_, err := c.Status(ctx)
			return err
		},
	}
}

// abandon begins operations and cancels them, each at another moment up to
// most. It returns how many were ended by that.
func abandon(t *testing.T, c *client.Client, most time.Duration) (canceled int) {
	t.Helper()
	const rounds, callers = 8, 8
	var mu sync.Mutex
	for name, operation := range operations() {
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for round := range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					after := time.AfterFunc(rand.N(most), cancel)
					if round == 0 {
						cancel() // before it begins
					}
					err := operation(ctx, c, fmt.Sprintf("%c%d", 'a'+caller%3, round))
					after.Stop()
					cancel()
					switch {
					case errors.Is(err, context.Canceled):
						mu.Lock()
						canceled++
						mu.Unlock()
					case err != nil:
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		all.Wait()
	}
	return canceled
}

// TestCanceledOperationsLeaveNothing: no goroutine, no place in the table of
// conversations, no mailbox, at whatever stage they are canceled: while all
// members answer, while none does, between the two phases of a write, and when
// nobody is there.
func TestCanceledOperationsLeaveNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		open func(t *testing.T) *client.Client
		most time.Duration
	}{
		{"three replicas", func(t *testing.T) *client.Client {
			return startCluster(t, 3, identity.Spec{}).open()
		}, 4 * time.Millisecond},
		{"a node that says nothing", func(t *testing.T) *client.Client { return openFake(t, false) }, 2 * time.Millisecond},
		{"a node that takes no put", func(t *testing.T) *client.Client { return openFake(t, true) }, 2 * time.Millisecond},
		{"nobody", func(t *testing.T) *client.Client {
			h := startCluster(t, 1, identity.Spec{})
			c := h.open()
			h.down("a")
			return c
		}, 2 * time.Millisecond},
	} {
		before := goleak.IgnoreCurrent()
		t.Run(test.name, func(t *testing.T) {
			c := test.open(t)
			canceled := abandon(t, c, test.most)
			if canceled < 40 {
				t.Errorf("%d operations were canceled: the test shows nothing", canceled)
			}
			if held := c.Runtime(); held.Asking != 0 || held.Mailboxes != 0 {
				t.Errorf("%d conversations and %d mailboxes are left", held.Asking, held.Mailboxes)
			}
			// Before Close, which would end it.
			if left := running("atoll/abd.", "live.(*scope).", "client.(*Client)."); left != "" {
				t.Errorf("an operation still runs:\n%s", left)
			}
		})
		// The client and the nodes are closed.
		if err := goleak.Find(before); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// running returns the stack of a goroutine that is in a function of one of
// these names.
func running(names ...string) string {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, name := range names {
			// The nodes' own tasks have callers, too, and are no operation.
			if strings.Contains(stack, name) && !ofNode(stack) {
				return stack
			}
		}
	}
	return ""
}

// ofNode reports whether a stack is that of a task of a node, or of the client itself.
func ofNode(stack string) bool {
	for _, name := range []string{"atoll/repair.Tasks", "atoll/rambo.Tasks", "atoll/rambo.upgrade", "atoll/rambo.merger", "atoll/join.Tasks", "atoll/replica.(*Node)", "client.(*Client).refresh", "client.(*Client).search"} {
		if strings.Contains(stack, name) {
			return true
		}
	}
	return false
}

// openFake is a client of a node that describes itself, and says nothing else
// unless gets is set: then it answers gets.
func openFake(t *testing.T, gets bool) *client.Client {
	t.Helper()
	f := startFake(t, func(f *fake, m env.Message) env.Message {
		switch m.(type) {
		case *replica.Describe:
			return f.describe()
		case *abd.Get:
			if gets {
				return &abd.GetAck{}
			}
		}
		return nil
	})
	return openClient(t, f.config)
}

// TestOpenThatIsCanceledLeavesNothing: while it dials somebody who is silent,
// and while it waits for an answer.
func TestOpenThatIsCanceledLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	// What the node's side keeps of unfinished connections goes with the node.
	t.Run("open", openAndCancel)
	goleak.VerifyNone(t, before)
}

func openAndCancel(t *testing.T) {
	f := startFake(t, func(*fake, env.Message) env.Message { return nil })
	hole, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	for name, endpoints := range map[string][]string{
		"a silent address": {hole.LocalAddr().String()},
		"a silent node":    f.config.Endpoints,
		"both":             {f.config.Endpoints[0], hole.LocalAddr().String()},
	} {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				cfg := f.config
				cfg.Endpoints = endpoints
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(40*time.Millisecond))
				defer cancel()
				c, err := client.Open(ctx, cfg)
				if err == nil {
					t.Error(errors.Join(fmt.Errorf("%s: it was opened", name), c.Close()))
				}
			})
		}
		all.Wait()
	}
}
