package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/transport"
	"atoll/quorum"
	"atoll/replica"
	"atoll/tags"
)

// fake is a node whose answers a test makes up.
type fake struct {
	*identity.Folder
	config client.Config                   // of a client of it
	answer func(m env.Message) env.Message // nil: none
	stats  func() transport.Stats
}

func (f *fake) Up(*transport.Session)          {}
func (f *fake) Down(*transport.Session, error) {}

func (f *fake) Messages(s *transport.Session, in []transport.Incoming) {
	for _, m := range in {
		if answer := f.answer(m.Message); answer != nil {
			_ = s.Queue(m.Conversation, answer) // unless the client is gone
		}
	}
	s.Flush()
}

// describe is what a good node says.
func (f *fake) describe() *replica.Description {
	member := f.Cluster.Members[0]
	return &replica.Description{
		Cluster:        f.Cluster.Cluster,
		Node:           f.ID,
		Configurations: quorum.Configurations{f.Configuration},
		Members:        []quorum.Member{{ID: member.ID, Name: member.Name, Addresses: member.Addresses}},
		MaxValue:       f.Cluster.MaxValue,
	}
}

// startFake starts the only node of a cluster. answer is called with it, on
// the goroutine of a session.
func startFake(t *testing.T, answer func(f *fake, m env.Message) env.Message) *fake {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	spec := identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: porttest.Address(t)}}}
	if _, err := identity.CreateCluster(dir, spec); err != nil {
		t.Fatal(err)
	}
	var err error
	f := &fake{}
	if f.Folder, err = identity.OpenFolder(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if f.config, err = client.LoadContext(filepath.Join(dir, identity.FileContext)); err != nil {
		t.Fatal(err)
	}
	f.answer = func(m env.Message) env.Message { return answer(f, m) }
	tr, err := transport.New(transport.Config{Credentials: f.Credentials, Listen: f.config.Endpoints, Handler: f})
	if err != nil {
		t.Fatal(err)
	}
	f.stats = tr.Stats
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestOpenTakesNoBadDescription(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer func(f *fake, m env.Message) env.Message
		want   string
	}{
		{"none", func(*fake, env.Message) env.Message { return nil }, "no answer"},
		{"a refusal", func(*fake, env.Message) env.Message {
			return &env.Refused{Reason: env.ReasonDenied, Text: "not you"}
		}, "not authorized: not you"},
		{"of another cluster", func(f *fake, _ env.Message) env.Message {
			d := f.describe()
			d.Cluster = "cother"
			return d
		}, "it describes cluster cother"},
		{"without a configuration", func(f *fake, _ env.Message) env.Message {
			d := f.describe()
			d.Configurations = nil
			return d
		}, "no configuration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t, test.answer)
			limit := patience
			if test.name == "none" {
				limit = short
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c, err := client.Open(ctx, f.config)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was opened"), c.Close()))
			}
			text := err.Error()
			if !strings.Contains(text, test.want) || strings.Count(text, f.config.Endpoints[0]) != 1 {
				t.Errorf("got %q, want %q and the address once", text, test.want)
			}
		})
	}
}

// TestWhatAllRefuseIsCertainlyNotDone: nobody has to wait for a deadline to
// hear that the disks are full.
func TestWhatAllRefuseIsCertainlyNotDone(t *testing.T) {
	t.Parallel()
	f := startFake(t, func(f *fake, m env.Message) env.Message {
		switch m := m.(type) {
		case *replica.Describe:
			return f.describe()
		case *abd.Get:
			if m.Key == "damaged" {
				return &env.Refused{Reason: env.ReasonDamaged}
			}
			return &abd.GetAck{}
		}
		return &env.Refused{Reason: env.ReasonFull, Text: "1 byte is free"}
	})
	c := openClient(t, f.config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.Put(ctx, "k", []byte("v"))
	wantNoQuorum(t, err, abd.ErrRefused, "no quorum, nothing was changed: ", "a")
	if !strings.HasSuffix(err.Error(), "a: no space: 1 byte is free") {
		t.Errorf("got %q", err)
	}
	_, err = c.Get(ctx, "damaged")
	wantNoQuorum(t, err, abd.ErrRefused, "no quorum: ", "a")
}

// TestAnswersToSomethingElseCountForNothing: a node that is confused is as one
// that is silent.
func TestAnswersToSomethingElseCountForNothing(t *testing.T) {
	t.Parallel()
	f := startFake(t, func(f *fake, m env.Message) env.Message {
		switch m.(type) {
		case *replica.Describe:
			return f.describe()
		case *abd.Get:
			return &abd.PutAck{}
		}
		return &abd.GetAck{Record: abd.Record{Tag: tags.Tag{Seq: 1}}}
	})
	c := openClient(t, f.config)
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := c.Get(ctx, "k")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
	for _, err := range c.List(ctx, "") {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("list: %v", err)
		}
	}
}

// TestAPlanThatIsDecided isn't yet one that is installed.
func TestAPlanThatIsDecided(t *testing.T) {
	t.Parallel()
	f := startFake(t, func(f *fake, m env.Message) env.Message {
		if _, ok := m.(*replica.Describe); !ok {
			return nil
		}
		d := f.describe()
		next, err := quorum.NewConfiguration(1, []quorum.NodeID{f.ID}, quorum.System{Kind: quorum.Threshold, Get: 1, Put: 1})
		if err != nil {
			t.Error(err)
		}
		d.Configurations = append(d.Configurations, next)
		return d
	})
	c := openClient(t, f.config)
	plan, err := c.Plan(t.Context(), client.Change{Set: []string{"a"}, Quorum: "get=1,put=1"})
	if err != nil || !plan.Done() || plan.Installed {
		t.Errorf("the plan of what is decided: %+v, %v", plan, err)
	}
	var busy *client.ConflictError
	if _, err := c.Plan(t.Context(), client.Change{Set: []string{"a"}, Quorum: "majority"}); !errors.As(err, &busy) {
		t.Errorf("the plan of another change: %v", err)
	}
}

// TestOpenDialsOnce: a client that finds its cluster makes one connection with
// each node, though it asks at all addresses at once and keeps sessions with the
// members.
func TestOpenDialsOnce(t *testing.T) {
	t.Parallel()
	f := startFake(t, func(f *fake, _ env.Message) env.Message { return f.describe() })
	f.config.Endpoints = []string{f.config.Endpoints[0], f.config.Endpoints[0], f.config.Endpoints[0]}
	openClient(t, f.config)
	if n := f.stats().Incoming; n != 1 {
		t.Errorf("%d connections came in", n)
	}
}
