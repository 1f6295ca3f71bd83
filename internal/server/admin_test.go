package server_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/logtest"
	"atoll/internal/server"
)

// metrics returns the values that /metrics shows, by name and labels.
func metrics(t testing.TB, s *server.Server) map[string]float64 {
	t.Helper()
	status, body := get(t, s, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d, %s", status, body)
	}
	values := make(map[string]float64)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("/metrics: %q: %v", line, err)
		}
		values[name] = value
	}
	return values
}

func metric(t testing.TB, s *server.Server, name string) float64 {
	t.Helper()
	value, ok := metrics(t, s)[name]
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	return value
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "localhost:0"
	s := n.start(cfg)
	c := n.client()
	for i := range 10 {
		if _, err := c.Put(t.Context(), fmt.Sprint(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if _, err := c.Delete(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	got := metrics(t, s)
	var names []string
	for name := range got {
		if !strings.Contains(name, "{") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	// Dashboards depend on these: docs/OPERATIONS.md lists them.
	want := []string{
		"atoll_answers_dropped_total", "atoll_certificate_expiry_seconds",
		"atoll_connection_memory_bytes", "atoll_connection_memory_refused_total", "atoll_connections",
		"atoll_connections_evicted_total", "atoll_connections_incoming_total", "atoll_connections_refused_total",
		"atoll_denied_total", "atoll_disk_bytes",
		"atoll_disk_full", "atoll_disk_stalled", "atoll_disk_stalls_total", "atoll_held_answers",
		"atoll_inbox_messages", "atoll_journal_sync_seconds_count", "atoll_journal_sync_seconds_sum", "atoll_keys", "atoll_mail_dropped_total",
		"atoll_messages_total", "atoll_repair_keys_compared_total", "atoll_repair_merged_bytes_total", "atoll_repair_passes_total",
		"atoll_repair_records_damaged", "atoll_repair_records_examined_total", "atoll_repair_records_healed_total",
		"atoll_repair_records_merged_total", "atoll_requests_shed_total", "atoll_tombstones", "atoll_turns_total",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the metrics are %q\nwant %q", names, want)
	}
	for name, exactly := range map[string]float64{
		"atoll_keys":                       7,
		"atoll_tombstones":                 3,
		"atoll_inbox_messages":             0,
		"atoll_held_answers":               0,
		"atoll_answers_dropped_total":      0,
		"atoll_connections":                1,
		"atoll_connections_evicted_total":  0,
		"atoll_certificate_expiry_seconds": float64(cfg.Folder.Credentials.Expiry().Unix()),
	} {
		if got[name] != exactly {
			t.Errorf("%s is %v, want %v", name, got[name], exactly)
		}
	}
	for name, atLeast := range map[string]float64{
		"atoll_messages_total":             1 + 2*13, // a description, and two phases for each write
		"atoll_turns_total":                1 + 2*13, // one after the other
		"atoll_journal_sync_seconds_count": 13,
		"atoll_journal_sync_seconds_sum":   1e-9,
		"atoll_disk_bytes":                 segmentBytes,
	} {
		if got[name] < atLeast {
			t.Errorf("%s is %v, want at least %v", name, got[name], atLeast)
		}
	}
	if got["atoll_turns_total"] > got["atoll_messages_total"] {
		t.Errorf("more turns (%v) than messages (%v)", got["atoll_turns_total"], got["atoll_messages_total"])
	}
}

// TestMetricsAreNamedByTheirTypes: counters, and they alone, end in _total; and
// each has a sentence about it.
func TestMetricsAreNamedByTheirTypes(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "localhost:0"
	_, body := get(t, n.start(cfg), "/metrics")
	helped, types := make(map[string]bool), 0
	for line := range strings.Lines(body) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			helped[words[2]] = len(words) > 3 && strings.HasSuffix(strings.TrimSpace(line), ".")
		case strings.HasPrefix(line, "# TYPE "):
			types++
			name, kind := words[2], words[3]
			if (kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s", name, kind)
			}
			if !helped[name] {
				t.Errorf("%s has no sentence before its type", name)
			}
		}
	}
	if types < 20 {
		t.Errorf("%d metrics have types:\n%s", types, body)
	}
}

// TestWhatAStartTells: who serves where, and what was found on the disk.
func TestWhatAStartTells(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	s := n.start(n.config())
	c := n.client()
	for i := range 3 {
		if _, err := c.Put(t.Context(), fmt.Sprint(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	n.stop(s)
	var log logtest.Book
	cfg := n.config()
	cfg.Log, cfg.Version = log.Log(slog.LevelInfo), "v1.2.3"
	s = n.start(cfg)
	for _, want := range []string{"msg=\"the store is open\"", "format=1", "keys=3", "replayed_records=8" /* with the five that the first start noted */, "msg=serving", "id=" + string(cfg.Folder.ID),
		"cluster=" + string(cfg.Folder.Cluster.Cluster), s.Addrs()[0].String(), "metrics=none", "version=v1.2.3", "took="} {
		if !log.Contains(want) {
			t.Errorf("no %q in\n%s", want, &log)
		}
	}
}

func TestHealthAndProfiles(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	s := n.start(cfg)
	for path, want := range map[string]string{
		"/healthz":                       "ok\n",
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/goroutine?debug=1": "atoll/internal/server.(*Server).commit",
		"/debug/pprof/heap":              "",
		"/debug/pprof/cmdline":           "test",
		"/debug/pprof/symbol":            "num_symbols",
	} {
		if status, body := get(t, s, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %.200q; want 200 and %q", path, status, body, want)
		}
	}
	for _, path := range []string{"/debug/pprof/block", "/debug/pprof/mutex?seconds=0", "/debug/pprof/block?seconds=1000000"} {
		if status, body := get(t, s, path); status != http.StatusBadRequest || !strings.Contains(body, "?seconds=N") {
			t.Errorf("%s: %d, %q", path, status, body)
		}
	}
	if status, _ := get(t, s, "/"); status != http.StatusNotFound {
		t.Errorf("/: %d", status)
	}
}

// TestProfilesOfWaiting: they are recorded while they are taken, one at a time of
// each.
func TestProfilesOfWaiting(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	s := n.start(cfg)
	type answer struct {
		status int
		body   string
	}
	first, second := make(chan answer, 1), make(chan answer, 1)
	for _, c := range []chan answer{first, second} {
		go func() {
			status, body := get(t, s, "/debug/pprof/block?seconds=1")
			c <- answer{status, body}
		}()
	}
	mutex := make(chan answer, 1)
	go func() {
		status, body := get(t, s, "/debug/pprof/mutex?seconds=1")
		mutex <- answer{status, body}
	}()
	// The loop waits, and has something to do, again and again.
	c := n.client()
	var got []answer
	for len(got) < 2 {
		if _, err := c.Get(t.Context(), "k"); err != nil && !errors.Is(err, client.ErrNotFound) {
			t.Fatal(err)
		}
		select {
		case a := <-first:
			got = append(got, a)
		case a := <-second:
			got = append(got, a)
		default:
		}
	}
	slices.SortFunc(got, func(a, b answer) int { return a.status - b.status })
	if got[0].status != http.StatusOK || got[1].status != http.StatusConflict {
		t.Fatalf("two at a time: %d and %d", got[0].status, got[1].status)
	}
	profile, err := gzip.NewReader(strings.NewReader(got[0].body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(profile)
	if err != nil || !bytes.Contains(text, []byte("atoll/internal/server.(*inbox).take")) {
		t.Errorf("the loop waits, and the profile doesn't say so: %v", err)
	}
	if a := receive(t, mutex); a.status != http.StatusOK {
		t.Errorf("the profile of mutexes: %d, %s", a.status, a.body)
	}
}

// TestCloseWaitsForNoProfile closes the server while a profile is taken that
// lasts much longer than the test may.
func TestCloseWaitsForNoProfile(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	s := n.start(cfg)
	begun := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + s.MetricsAddr().String() + "/debug/pprof/trace?seconds=3600")
		begun <- err
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body) // until it is cut off
			r.Body.Close()
		}
	}()
	if err := receive(t, begun); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := receive(t, closed); err != nil {
		t.Error(err)
	}
	receive(t, ended)
}

// TestTheEndOfTheCertificateIsLogged starts and closes a server: it looks at
// its certificate before anything else.
func TestTheEndOfTheCertificateIsLogged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		spec   identity.Spec
		change func(n node, f *identity.Folder)
		want   string
	}{
		{"a year", identity.Spec{}, nil, ""},
		{"an hour", identity.Spec{Validity: time.Hour}, nil, "level=WARN msg=\"the node's certificate ends soon\""},
		{"over", identity.Spec{}, expire, "level=ERROR msg=\"the node's certificate has ended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t, test.spec)
			var log logtest.Book
			cfg := n.config()
			cfg.Log = log.Log(slog.LevelInfo)
			if test.change != nil {
				test.change(n, cfg.Folder)
			}
			n.stop(n.start(cfg))
			text := log.String()
			if test.want == "" {
				if strings.Contains(text, "certificate") {
					t.Errorf("logged: %s", text)
				}
				return
			}
			if !strings.Contains(text, test.want) || !strings.Contains(text, filepath.Join(cfg.Folder.Dir, identity.FileCertificate)) {
				t.Errorf("logged: %s\nwant %q and the file", text, test.want)
			}
		})
	}
}

// expire gives an open folder a certificate that has ended.
func expire(n node, f *identity.Folder) {
	n.t.Helper()
	ca, certificate, key := n.renew(f, identity.Request{Now: time.Now().Add(-3 * time.Hour), Validity: 2 * time.Hour})
	var err error
	if f.Credentials, err = identity.ParseCredentials(ca, certificate, key); err != nil {
		n.t.Fatal(err)
	}
}

// renew makes another certificate for the node, and returns PEM.
func (n node) renew(f *identity.Folder, r identity.Request) (ca, certificate, key []byte) {
	n.t.Helper()
	authority, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		n.t.Fatal(err)
	}
	path := filepath.Join(f.Dir, identity.FileKey)
	if key, err = os.ReadFile(path); err != nil {
		n.t.Fatal(err)
	}
	r.Role, r.Name, r.Key = identity.RoleNode, f.Name, n.publicKey(path)
	if certificate, err = authority.Issue(r); err != nil {
		n.t.Fatal(err)
	}
	return authority.Certificate(), certificate, key
}

// publicKey returns the public half of a key in a file.
func (n node) publicKey(path string) ed25519.PublicKey {
	n.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	return publicKeyOf(n.t, b)
}

func publicKeyOf(t testing.TB, b []byte) ed25519.PublicKey {
	t.Helper()
	block, _ := pem.Decode(b)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return private.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
}

// TestACertificateIsReplacedWithoutARestart puts another certificate into the
// folder of a running node.
func TestACertificateIsReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	var log logtest.Book
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	cfg.Log = log.Log(slog.LevelInfo)
	s := n.start(cfg)
	const name = "atoll_certificate_expiry_seconds"
	before := metric(t, s, name)

	_, certificate, _ := n.renew(cfg.Folder, identity.Request{Now: time.Now(), Validity: 48 * time.Hour})
	path := filepath.Join(cfg.Folder.Dir, identity.FileCertificate)
	if err := os.WriteFile(path+".new", certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	// Nobody connects, and nobody asks: the node looks by itself.
	n.await("the log tells of the new certificate", func() bool { return log.Contains("new credentials in use") })
	if metric(t, s, name) == before {
		t.Error("the metric shows when the old certificate ends")
	}
	if _, err := n.client().Put(t.Context(), "k", nil); err != nil {
		t.Error(err)
	}
}
