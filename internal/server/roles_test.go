package server_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/logtest"
	"atoll/internal/server"
	"atoll/internal/wire"
	"atoll/replica"
)

// messagesOnTheWire returns a message of every kind, from the goldens of
// package wire, where a test sees to it that none is missing.
func messagesOnTheWire(t *testing.T) map[string]env.Message {
	t.Helper()
	f, err := os.Open("../wire/testdata/frames.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[string]env.Message)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, text, ok := strings.Cut(lines.Text(), ": ")
		frame, err := hex.DecodeString(text)
		if !ok || err != nil || len(frame) < wire.HeaderSize {
			continue
		}
		if _, m, err := wire.DecodeFrame(frame[wire.HeaderSize:]); err == nil {
			all[reflect.TypeOf(m).Elem().String()] = m
		}
	}
	if err := lines.Err(); err != nil || len(all) < 13 {
		t.Fatalf("%d kinds of messages, %v: the search is broken", len(all), err)
	}
	return all
}

// TestWhoMaySendWhat: every message has a line in the table; answers come from
// nodes only, since nobody else was asked; and no other role has what clients
// don't have and nodes do.
func TestWhoMaySendWhat(t *testing.T) {
	for name, m := range messagesOnTheWire(t) {
		node, client, admin := server.MaySend(identity.RoleNode, m), server.MaySend(identity.RoleClient, m), server.MaySend(identity.RoleAdmin, m)
		switch {
		case name == "wire.Hello":
			if node || client || admin {
				t.Error("somebody may send a second hello")
			}
		case !node && !client && !admin:
			t.Errorf("nobody may send %s: decide in roles.go who may", name)
		case replica.IsAnswer(m) && (!node || client || admin):
			t.Errorf("%s is an answer, and a node asks nodes only", name)
		case client && (!node || !admin):
			t.Errorf("a client may send %s, and a node or an admin may not", name)
		}
		for _, role := range []identity.Role{"", "owner"} {
			if server.MaySend(role, m) {
				t.Errorf("the role %q may send %s", role, name)
			}
		}
	}
	if server.MaySend(identity.RoleNode, &unheardOf{}) || server.MaySend(identity.RoleAdmin, &unheardOf{}) {
		t.Error("what isn't in the table may be sent")
	}
}

// unheardOf is a message that no table knows.
type unheardOf struct{}

func (*unheardOf) Message() {}

// TestAClientIsRefusedWhatNodesMaySend: it is told so by name, nothing is
// done, and the session goes on. A node is served.
func TestAClientIsRefusedWhatNodesMaySend(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	var log logtest.Book
	cfg := n.config()
	cfg.Metrics, cfg.Log = "127.0.0.1:0", log.Log(slog.LevelInfo)
	cfg.NodesOnly(func(m env.Message) bool { _, put := m.(*abd.Put); return put })
	s := n.start(cfg)
	for _, file := range []string{identity.FileContext, identity.FileAdmin} {
		p := n.dialAs(n.contextCredentials(file), nil)
		refused, ok := p.ask(putOf("k", "v")).(*env.Refused)
		if !ok || refused.Reason != env.ReasonDenied || !strings.Contains(refused.Text, "may not send abd.Put") {
			t.Errorf("%s: a put was answered by %v, want that it isn't authorized", file, refused)
		}
		if err := p.session.Queue(0, putOf("k", "v")); err != nil { // nobody waits for an answer
			t.Fatal(err)
		}
		if err := p.session.Queue(77, &abd.PutAck{}); err != nil { // nobody asked
			t.Fatal(err)
		}
		if ack, ok := p.ask(&abd.Get{Key: "k"}).(*abd.GetAck); !ok || !ack.Record.Tag.IsZero() {
			t.Errorf("%s: after a put that was refused, a get says %+v", file, ack)
		}
		p.nothing()
	}
	if got := metric(t, s, "atoll_denied_total"); got != 6 {
		t.Errorf("%v refusals are counted, want 6", got)
	}
	if text := log.String(); !strings.Contains(text, "abd.Put") || !strings.Contains(text, "role doesn't allow") {
		t.Errorf("logged: %s", text)
	}

	other := n.issue(identity.RoleNode)
	if _, ok := n.dialAs(other, nil).ask(putOf("k", "v")).(*abd.PutAck); !ok {
		t.Error("a node's put wasn't acked")
	}
}

// TestNotAuthorizedIsACodeOfItsOwn: what a command ends with.
func TestNotAuthorizedIsACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.NodesOnly(func(m env.Message) bool { _, put := m.(*abd.Put); return put })
	n.start(cfg)
	_, err := n.client().Put(t.Context(), "k", []byte("v"))
	var none *client.NoQuorumError
	if !errors.As(err, &none) || cli.ExitCode(err) != cli.ExitDenied || !strings.Contains(err.Error(), "not authorized") {
		t.Errorf("a put that isn't allowed: %v, exit code %d", err, cli.ExitCode(err))
	}
}

// TestDenialsDontFillTheLog: one line for each interval, which says how many
// there might have been.
func TestDenialsDontFillTheLog(t *testing.T) {
	var d server.Denials
	now := time.Unix(1_000_000, 0)
	if _, ok := d.Allow(now); !ok {
		t.Error("the first one isn't logged")
	}
	for range 5 {
		if _, ok := d.Allow(now.Add(server.DenialLogEvery / 2)); ok {
			t.Error("one within the interval is logged")
		}
	}
	if unlogged, ok := d.Allow(now.Add(server.DenialLogEvery)); !ok || unlogged != 5 {
		t.Errorf("after the interval: logged %v, %d were not, want 5", ok, unlogged)
	}
}
