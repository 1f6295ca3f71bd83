package client_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/store"
	"atoll/internal/udpproxy"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/tags"
)

// join starts new nodes, which are on standby then.
func (h harness) join(names ...string) {
	h.t.Helper()
	for _, name := range names {
		h.joinAt(name, identity.JoinSpec{Listen: []string{porttest.Address(h.t)}})
	}
}

// joinBehind starts a new node that others reach through a proxy.
func (h harness) joinBehind(name string) *udpproxy.Proxy {
	h.t.Helper()
	listen := porttest.Address(h.t)
	proxy, err := udpproxy.New(udpproxy.Config{To: listen})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.joinAt(name, identity.JoinSpec{Listen: []string{listen}, Advertise: []string{proxy.Addr().String()}})
	return proxy
}

// joinAt starts a new node. Of spec it needs the addresses alone.
func (h harness) joinAt(name string, spec identity.JoinSpec) {
	h.t.Helper()
	ca, err := identity.LoadCA(filepath.Join(h.dir, "ca"))
	if err != nil {
		h.t.Fatal(err)
	}
	var endpoints []string
	for _, s := range h.servers {
		endpoints = append(endpoints, s.Addrs()[0].String())
	}
	spec.Ticket, err = ca.Ticket(identity.TicketRequest{Name: name, MaxValue: 1 << 20, Endpoints: endpoints, Now: time.Now()})
	if err != nil {
		h.t.Fatal(err)
	}
	spec.Prepare = func(dir string) error { return store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}) }
	if err := identity.CreateMember(filepath.Join(h.dir, name), spec); err != nil {
		h.t.Fatal(err)
	}
	h.up(name)
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	if err := h.servers[name].Join(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// admin opens a client that may change the members.
func (h harness) admin() *client.Client {
	h.t.Helper()
	cfg, err := client.LoadContext(filepath.Join(h.dir, identity.FileAdmin))
	if err != nil {
		h.t.Fatal(err)
	}
	cfg.Timeout = patience
	return openClient(h.t, cfg)
}

// change changes the members, and fails the test if that fails.
func change(t *testing.T, c *client.Client, ch client.Change) *quorum.Configuration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	target, err := c.Reconfigure(ctx, ch)
	if err != nil {
		p, perr := c.Progress(context.Background())
		for _, m := range p.Members {
			t.Logf("%s at %v: %+v", m.Label(), m.Addresses, m.Status)
		}
		t.Fatalf("%+v: %v; active: %v, %v", ch, err, p.Active, perr)
	}
	return target
}

// members are the names of a configuration's members, in their order.
func members(c *client.Client, of *quorum.Configuration) string {
	_, names, _ := strings.Cut(c.ConfigurationText(of), " of ")
	all := strings.Fields(names)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// traffic is one writer and one reader for each of a few keys.
type traffic struct {
	ctx    context.Context
	end    context.CancelFunc
	done   sync.WaitGroup
	acked  []atomic.Int64 // by key: the last that was acked; one writer each
	count  atomic.Int64
	beat   chan struct{}
	failed chan error
}

func startTraffic(t *testing.T, c *client.Client, keys int) *traffic {
	l := &traffic{acked: make([]atomic.Int64, keys), beat: make(chan struct{}, 1), failed: make(chan error, 2*keys)}
	l.ctx, l.end = context.WithCancel(t.Context())
	t.Cleanup(func() { l.end(); l.done.Wait() })
	for k := range keys {
		l.done.Go(func() {
			if err := l.write(c, k); err != nil && l.ctx.Err() == nil {
				l.failed <- err
			}
		})
		l.done.Go(func() {
			if err := l.read(c, k); err != nil && l.ctx.Err() == nil {
				l.failed <- err
			}
		})
	}
	return l
}

func trafficKey(k int) string { return fmt.Sprintf("traffic/%d", k) }

func (l *traffic) write(c *client.Client, k int) error {
	for n := int64(1); ; n++ {
		if _, err := c.Put(l.ctx, trafficKey(k), []byte(strconv.FormatInt(n, 10))); err != nil {
			return fmt.Errorf("put %s: %w", trafficKey(k), err)
		}
		l.acked[k].Store(n)
		l.count.Add(1)
		select {
		case l.beat <- struct{}{}:
		default:
		}
	}
}

// read checks that each value is at least as new as the last that was acked or read
// before.
func (l *traffic) read(c *client.Client, k int) error {
	var last tags.Tag
	for {
		acked := l.acked[k].Load()
		v, err := c.Get(l.ctx, trafficKey(k))
		if errors.Is(err, client.ErrNotFound) && acked == 0 {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s: %w", trafficKey(k), err)
		}
		n, err := strconv.ParseInt(string(v.Bytes), 10, 64)
		if err != nil || n < acked || v.Tag.Less(last) {
			return fmt.Errorf("get %s: %q, tag %v; %d was acked before and %v read", trafficKey(k), v.Bytes, v.Tag, acked, last)
		}
		last = v.Tag
	}
}

// more waits for that many further writes.
func (l *traffic) more(t *testing.T, writes int64) {
	t.Helper()
	for goal := l.count.Load() + writes; l.count.Load() < goal; {
		select {
		case <-l.beat:
		case err := <-l.failed:
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatal("the writers stand still")
		}
	}
}

// stop ends the traffic; nothing of it may have failed.
func (l *traffic) stop(t *testing.T) {
	t.Helper()
	l.end()
	l.done.Wait()
	select {
	case err := <-l.failed:
		t.Error(err)
	default:
	}
}

// check reads back all that was acked.
func (l *traffic) check(t *testing.T, c *client.Client) {
	t.Helper()
	for k := range l.acked {
		v, err := c.Get(t.Context(), trafficKey(k))
		n, bad := strconv.ParseInt(string(v.Bytes), 10, 64)
		if acked := l.acked[k].Load(); err != nil || bad != nil || n < acked {
			t.Errorf("%s is %q, %v; %d was acked", trafficKey(k), v.Bytes, err, acked)
		}
	}
}

// TestMembersChangeUnderLoad grows a cluster from one to three, replaces each of
// those, so that none of the first is left, and shrinks it again; no operation fails
// and every acked write is there.
func TestMembersChangeUnderLoad(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	admin := h.admin()
	load := startTraffic(t, h.open(), 4)
	load.more(t, 50)
	h.join("b", "c")
	if got := members(admin, change(t, admin, client.Change{Add: []string{"b", "c"}})); got != "a b c" {
		t.Errorf("grown: %s", got)
	}
	for _, r := range []client.Replacement{{Old: "a", New: "d"}, {Old: "b", New: "e"}, {Old: "c", New: "f"}} {
		load.more(t, 50)
		h.join(r.New)
		change(t, admin, client.Change{Replace: []client.Replacement{r}})
		h.down(r.Old)
	}
	load.more(t, 50)
	target := change(t, admin, client.Change{Remove: []string{"f", "e"}, Force: true})
	if got := members(admin, target); got != "d" || target.Index() != 5 {
		t.Errorf("shrunk: %d, %s", target.Index(), got)
	}
	h.down("e", "f")
	load.more(t, 50)
	load.stop(t)
	load.check(t, admin)
}

// TestTheSameChangeTwice changes nothing the second time, whichever it is.
func TestTheSameChangeTwice(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	h.join("d")
	admin := h.admin()
	for _, ch := range []client.Change{
		{Add: []string{"d"}},
		{Quorum: "get=2,put=3"},
		{Remove: []string{"a"}, Quorum: "majority"},
		{Replace: []client.Replacement{{Old: "b", New: "a"}}},
		{Set: []string{"b", "c", "d"}},
		{Quorum: "weights=d:1,b:2,c:2"},
		{Replace: []client.Replacement{{Old: "b", New: "a"}}}, // with its weight
	} {
		first := change(t, admin, ch)
		plan, err := admin.Plan(t.Context(), ch)
		if err != nil || !plan.Done() || !plan.Present.Equal(first) {
			t.Errorf("%+v again: %+v, %v", ch, plan, err)
		}
		if again := change(t, admin, ch); !again.Equal(first) {
			t.Errorf("%+v again: %v, was %v", ch, again, first)
		}
	}
	s, err := admin.Status(t.Context())
	if err != nil || s.Configuration.Index() != 7 || !strings.Contains(admin.ConfigurationText(s.Configuration), "a:2") {
		t.Errorf("%v, %v", s.Configuration, err)
	}
}

// TestADeadMemberIsReplacedAndRemoved while a quorum lives; what needs a dead node
// isn't proposed, and that one is named.
func TestADeadMemberIsReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	h.join("d", "e")
	admin := h.admin()
	load := startTraffic(t, h.open(), 2)
	h.down("c")
	h.down("e")
	var missing *client.NotReadyError
	err := within(t, func(ctx context.Context) (bool, error) {
		_, err := admin.Reconfigure(ctx, client.Change{Replace: []client.Replacement{{Old: "c", New: "e"}}})
		return errors.As(err, &missing), err
	})
	if missing == nil || !slices.ContainsFunc(missing.Members, func(m client.MemberError) bool { return m.Name == "e" }) {
		t.Errorf("a new node that is down: %v", err)
	}
	if got := members(admin, change(t, admin, client.Change{Replace: []client.Replacement{{Old: "c", New: "d"}}})); got != "a b d" {
		t.Errorf("replaced: %s", got)
	}
	load.more(t, 20)
	h.up("e")
	change(t, admin, client.Change{Add: []string{"e"}})
	h.down("a")
	if got := members(admin, change(t, admin, client.Change{Remove: []string{"a"}})); got != "b d e" {
		t.Errorf("removed: %s", got)
	}
	load.more(t, 20)
	load.stop(t)
	load.check(t, admin)
}

// TestChangesThatAreRefused: nothing is proposed, and the error says why.
func TestChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	h.join("b", "c", "x", "x2")
	admin := h.admin()
	_, err := admin.Reconfigure(t.Context(), client.Change{Add: []string{"b"}})
	if fragile, ok := errors.AsType[*client.FragileError](err); !ok || fragile.Tolerance.Reads.Any != 0 || !strings.Contains(err.Error(), "any 0 of 2") {
		t.Errorf("to two: %v", err)
	}
	for text, ch := range map[string]client.Change{
		"changes nothing":            {},
		"and some to add":            {Set: []string{"a"}, Add: []string{"b"}},
		"no member would be left":    {Remove: []string{"a"}},
		"c isn't a member":           {Replace: []client.Replacement{{Old: "c", New: "b"}}},
		"are the same node":          {Replace: []client.Replacement{{Old: "a", New: "a"}}},
		`by the id or name "nobody"`: {Add: []string{"nobody"}},
		"is not a quorum system":     {Quorum: "all"},
		"doesn't fit 1 members":      {Quorum: "grid=2x2"},
		`"b" is not a member`:        {Quorum: "weights=b:1"},
		"get+put must exceed 3":      {Add: []string{"b", "c"}, Quorum: "get=1,put=2"},
	} {
		_, err := admin.Plan(t.Context(), ch)
		_, bad := errors.AsType[*client.ChangeError](err)
		_, unknown := errors.AsType[*client.NodeError](err)
		if !bad && !unknown || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", ch, err, text)
		}
	}
	// A client's certificate isn't enough.
	_, err = h.open().Reconfigure(t.Context(), client.Change{Add: []string{"b", "c"}})
	if refused, ok := errors.AsType[*env.Refused](err); !ok || refused.Reason != env.ReasonDenied {
		t.Errorf("without an admin's certificate: %v", err)
	}
	if _, err := h.open().Abort(t.Context()); err == nil || !strings.Contains(err.Error(), "may not change") {
		t.Errorf("aborting without an admin's certificate: %v", err)
	}
	if got := members(admin, change(t, admin, client.Change{Add: []string{"b"}, Force: true})); got != "a b" {
		t.Errorf("forced: %s", got)
	}
}

// TestTwoAdminsAtOnce: one configuration is decided, and who proposed another is told
// which.
func TestTwoAdminsAtOnce(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	names := []string{"d", "e"}
	h.join(names...)
	var errs [2]error
	var plans [2]client.Plan
	admins := []*client.Client{h.admin(), h.admin()}
	for i, name := range names {
		var err error
		if plans[i], err = admins[i].Plan(t.Context(), client.Change{Add: []string{name}}); err != nil {
			t.Fatal(err)
		}
	}
	var racing sync.WaitGroup
	for i := range names {
		racing.Go(func() { _, errs[i] = admins[i].Propose(t.Context(), plans[i]) })
	}
	racing.Wait()
	won := slices.Index(errs[:], nil)
	if won < 0 {
		t.Fatalf("nobody won: %v", errs)
	}
	lost, ok := errors.AsType[*client.ConflictError](errs[1-won])
	if !ok || !lost.Configuration.Equal(plans[won].Target) {
		t.Errorf("the other one: %v", errs[1-won])
	}
	admin := admins[0]
	if err := admin.Await(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	target := change(t, admin, client.Change{Add: names})
	if got := members(admin, target); got != "a b c d e" {
		t.Errorf("both in the end: %s", got)
	}
}

// TestAbort: what wasn't decided isn't any more; with nothing to abort it says so.
func TestAbort(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	h.join("d", "e")
	admin := h.admin()
	if _, err := admin.Abort(t.Context()); !errors.Is(err, reconfig.ErrNothingPending) {
		t.Errorf("with nothing pending: %v", err)
	}
	h.down("e")
	var r *reconfig.Report
	err := within(t, func(ctx context.Context) (far bool, err error) {
		if _, err := admin.Reconfigure(ctx, client.Change{Add: []string{"d", "e"}}); err == nil {
			t.Fatal("added while it was down")
		}
		r, err = admin.Pending(t.Context())
		return err != nil || len(r.Ready) > 0, err
	})
	if err != nil || len(r.Ready) != 1 || members(admin, r.Ready[0].Configuration) != "a b c d e" || len(r.Accepted) > 0 {
		t.Errorf("pending: %+v, %v", r, err)
	}
	again, err := admin.Abort(t.Context())
	if err != nil || members(admin, again) != "a b c" || again.Index() != 1 {
		t.Fatalf("aborted: %v, %v", again, err)
	}
	if once, err := admin.Abort(t.Context()); err == nil && !once.Equal(again) || err != nil && !errors.Is(err, reconfig.ErrNothingPending) {
		t.Errorf("at once again, installed or not: %v, %v", once, err)
	}
	if err := admin.Await(t.Context(), again.Index(), nil); err != nil {
		t.Error(err)
	}
	if _, err := admin.Abort(t.Context()); !errors.Is(err, reconfig.ErrNothingPending) {
		t.Errorf("again: %v", err)
	}
	p, err := admin.Progress(t.Context())
	if err != nil || len(p.Active) != 1 || len(p.Members) != 3 || len(p.Merging()) > 0 {
		t.Errorf("progress: %+v, %v", p, err)
	}
}
