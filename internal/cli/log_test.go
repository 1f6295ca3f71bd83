package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// TestLogIsText: what has a text is a text, in JSON too.
func TestLogIsText(t *testing.T) {
	log := func(c *urfave.Context) error {
		cli.Logger(c).Warn("said", "left", 90*time.Second, "address", netip.MustParseAddrPort("[::1]:7400"),
			"remote", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, "err", errors.New("broken"), "n", 3, "nothing", nil)
		return nil
	}
	app := cli.App("app", "try things", cli.Command{Name: "log", Flags: cli.LogFlags(slog.LevelWarn), Run: log}.Build())
	var errs bytes.Buffer
	app.ErrWriter = &errs
	code := cli.RunContext(context.Background(), app, []string{"app", "log", "--log-format", "json"})
	var got map[string]any
	if err := json.Unmarshal(errs.Bytes(), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v in %s", code, err, &errs)
	}
	for key, want := range map[string]any{
		"level": "WARN", "msg": "said", "left": "1m30s", "address": "[::1]:7400", "remote": "127.0.0.1:1", "err": "broken", "n": 3.0, "nothing": nil,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}
