package transport_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"atoll/internal/logtest"
	"atoll/internal/transport"
	"atoll/internal/wire"
)

// jsonLines returns what was logged in JSON.
func jsonLines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, m)
	}
	return all
}

// TestWhatIsLogged: a peer that goes away is no news, one that is wrong is,
// even right after it; and who reads the log as JSON finds strings.
func TestWhatIsLogged(t *testing.T) {
	t.Parallel()
	const failed = "a connection failed before it was known whose it is"
	c := newCluster(t)
	book := new(logtest.Book)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo),
		Log: slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	address := server.Addrs()[0].String()

	gone, _ := rawDial(t, c.client(), address, nil)
	if err := gone.CloseWithError(0, "gone"); err != nil {
		t.Fatal(err)
	}
	until(t, "one is gone", func() bool { return book.Contains(failed) })
	conn, stream := rawDial(t, c.client(), address, nil)
	if _, err := stream.Write(frame(t, 0, &wire.Hello{Version: wire.Version, Cluster: "cother"})); err != nil {
		t.Fatal(err)
	}
	receive(t, conn.Context().Done())
	until(t, "one is strange", func() bool { return book.Contains("cother") })
	dial(t, open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)}), address)
	until(t, "there is a session", func() bool { return book.Contains(`"msg":"session"`) })

	levels := ""
	for _, line := range jsonLines(t, book.String()) {
		if line["msg"] == failed {
			levels += line["level"].(string) + " "
		}
		for _, key := range []string{"remote", "peer", "err"} {
			v, ok := line[key]
			if _, text := v.(string); ok && !text {
				t.Errorf("%s is %v, no string: %v", key, v, line)
			}
		}
		if peer, ok := line["peer"]; ok && peer != "client someone" {
			t.Errorf("the peer is %q", peer)
		}
	}
	if levels != "DEBUG WARN " {
		t.Errorf("failed connections are logged as %s, want DEBUG WARN", levels)
	}
}
