package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/replica"
)

// eventually returns when is says so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: it never came to that", what)
		}
	}
}

// status asks a node how it is.
func (p *peer) status() *replica.Status {
	p.t.Helper()
	s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status)
	if !ok {
		p.t.Fatalf("got %T, want a Status", s)
	}
	return s
}

// wantCondition checks what the node says of itself on the metrics listener.
func wantCondition(t *testing.T, s *server.Server, trouble string, metrics ...string) {
	t.Helper()
	status, body := get(t, s, "/healthz")
	if trouble == "" && (status != 200 || body != "ok\n") || trouble != "" && (status != 503 || !strings.Contains(body, trouble)) {
		t.Errorf("/healthz: %d, %q, want %q", status, body, trouble)
	}
	if status, body := get(t, s, "/livez"); status != 200 {
		t.Errorf("/livez: %d, %q: a node in trouble lives", status, body)
	}
	_, body = get(t, s, "/metrics")
	for _, m := range metrics {
		if !strings.Contains(body, "\n"+m+"\n") {
			t.Errorf("/metrics has no %q", m)
		}
	}
}

// TestAHangingDisk: while a commit hangs the node says so, goes on with what
// needs no write, however much it is asked to write, and acks nothing. When
// the disk goes on, so does the node, and everything that it took is acked.
func TestAHangingDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	var disk *slowDisk
	cfg := n.config()
	cfg.StallAfter = 20 * time.Millisecond
	cfg.Metrics = "127.0.0.1:0"
	cfg.WrapDisk(func(d server.Disk) server.Disk {
		disk = newSlowDisk(d)
		return disk
	})
	s := n.start(cfg)
	n.t.Cleanup(func() { close(disk.result) })
	p := n.dial(nil)
	wantCondition(t, s, "", "atoll_disk_stalled 0", "atoll_disk_stalls_total 0")

	first := p.send(putOf("k", "v"))
	receive(t, disk.began)
	eventually(t, "the node notices", func() bool { return p.status().Trouble != "" })
	if trouble := p.status().Trouble; !strings.Contains(trouble, "the disk hangs") {
		t.Errorf("status says %q", trouble)
	}
	wantCondition(t, s, "the disk hangs: a commit has lasted", "atoll_disk_stalled 1", "atoll_disk_stalls_total 1")

	// More than may wait for a disk. The node takes it and lets it go, since
	// it answers what comes behind it.
	writer := n.dial(nil)
	eventually(t, "the node lets writes go", func() bool {
		for range 10_000 {
			writer.last++
			if writer.session.Queue(writer.last, putOf("much", "v")) != nil {
				break // it doesn't take as many at a time
			}
		}
		writer.session.Flush()
		_, body := get(t, s, "/metrics")
		return strings.Contains(body, "atoll_requests_shed_total ") && !strings.Contains(body, "atoll_requests_shed_total 0\n")
	})
	if ack, ok := p.ask(&abd.Get{Key: "other"}).(*abd.GetAck); !ok || !ack.Record.Tag.IsZero() {
		t.Errorf("a get that needs no write: %+v", ack)
	}
	// It would have to wait for the disk, and is asked again.
	p.send(&abd.Get{Key: "k"})
	p.ask(&abd.Get{Key: "other"})
	p.nothing()
	writer.nothing()

	// Once it goes on, everything does.
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-disk.began:
				disk.result <- nil
			case <-end:
				return
			}
		}
	}()
	disk.result <- nil
	if _, ok := p.receive(first).(*abd.PutAck); !ok {
		t.Error("the put that waited isn't acked")
	}
	// What it let go keeps coming, and 20 ms are little on a busy machine: it
	// may be in trouble now and then until that is done.
	eventually(t, "the node is ready again", func() bool {
		_, metrics := get(t, s, "/metrics")
		health, _ := get(t, s, "/healthz")
		return p.status().Trouble == "" && health == 200 && strings.Contains(metrics, "\natoll_disk_stalled 0\n")
	})
	if _, ok := p.askAgain(putOf("later", "v")).(*abd.PutAck); !ok {
		t.Error("a put after the disk went on isn't acked")
	}
	close(end)
	<-ended
}

// TestAFullDisk: the node refuses writes and says why, serves reads, and goes
// on by itself.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	s := n.start(n.config())
	p := n.dial(nil)
	p.ask(putOf("k", "v"))
	n.stop(s)

	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	cfg.Store.ReserveBytes = 1 << 62 // no disk has so much
	s = n.start(cfg)
	p = n.dial(nil)
	eventually(t, "the node notices", func() bool { return p.status().Trouble != "" })
	refused, ok := p.ask(putOf("new", "v")).(*env.Refused)
	if !ok || refused.Reason != env.ReasonFull || !strings.Contains(refused.Text, n.folder().Dir) {
		t.Errorf("a put on a full disk: %+v", refused)
	}
	if ack, ok := p.ask(&abd.Get{Key: "k"}).(*abd.GetAck); !ok || string(ack.Record.Value) != "v" {
		t.Errorf("a get on a full disk: %+v", ack)
	}
	if trouble := p.status().Trouble; !strings.Contains(trouble, "no space: ") {
		t.Errorf("status says %q", trouble)
	}
	wantCondition(t, s, "no space: ", "atoll_disk_full 1", "atoll_disk_stalled 0")
}

// applied starts a node of which all records are in its database, which stays as
// it is: what a start finds in the journal is more than a table, and goes there,
// in order; what comes behind it is less.
func applied(t *testing.T, n node) (*peer, string) {
	t.Helper()
	const records = 100
	last := ""
	s := n.start(n.config())
	p := n.dial(nil)
	for i := range records {
		key := fmt.Sprintf("key-%04d", i)
		last = "the value of " + key
		if m := p.ask(putOf(key, last)); !isA[*abd.PutAck](m) {
			t.Fatalf("a put is answered by %T", m)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := n.config()
	cfg.Store.TableBytes = 4 << 10
	n.start(cfg)
	file := filepath.Join(n.folder().Dir, store.StateFile)
	eventually(t, "the records are in the database", func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte(last))
	})
	return n.dial(nil), file
}

// TestRecordsThatRotWhileTheNodeRuns: a flipped bit in a value, a tag or a key
// is noticed when the record is read. The node abstains on that key, names the
// file, and serves all others.
func TestRecordsThatRotWhileTheNodeRuns(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	p, file := applied(t, n)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Where the byte is before the value: in the value, in the tag, in the key.
	for key, before := range map[string]int{"key-0010": 0, "key-0020": 37, "key-0030": 47} {
		// In every copy of it: only bbolt knows which is in use.
		for at := 0; ; {
			next := bytes.Index(b[at:], []byte("the value of "+key))
			if next < 0 {
				break
			}
			at += next
			if _, err := f.WriteAt([]byte{b[at-before] ^ 1}, int64(at-before)); err != nil {
				t.Fatal(err)
			}
			at++
		}
		refused, ok := p.ask(&abd.Get{Key: abd.Key(key)}).(*env.Refused)
		if !ok || refused.Reason != env.ReasonDamaged || !strings.Contains(refused.Text, file) || !strings.Contains(refused.Text, "replica data check") {
			t.Errorf("get of %s: %+v, want a refusal that names the file and the way out", key, refused)
		}
	}
	if ack, ok := p.ask(&abd.Get{Key: "key-0050"}).(*abd.GetAck); !ok || string(ack.Record.Value) != "the value of key-0050" {
		t.Errorf("get of a sound record: %+v", ack)
	}
	if _, ok := p.ask(putOf("new", "v")).(*abd.PutAck); !ok {
		t.Error("a put of another key isn't acked")
	}
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// TestADatabaseThatIsCutWhileTheNodeRuns: what is behind the cut is a memory
// fault, which costs the node those keys, and never its process.
func TestADatabaseThatIsCutWhileTheNodeRuns(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	p, file := applied(t, n)
	if err := os.Truncate(file, 2<<12); err != nil {
		t.Fatal(err)
	}
	for _, m := range []env.Message{&abd.Get{Key: "key-0010"}, putOf("new", "v"), &abd.List{Limit: 10}} {
		refused, ok := p.ask(m).(*env.Refused)
		if !ok || refused.Reason != env.ReasonDamaged || !strings.Contains(refused.Text, file) {
			t.Errorf("%T on a file that was cut: %+v", m, refused)
		}
	}
	if p.status().Usage.Keys < 60 {
		t.Error("status says that there is next to nothing")
	}
}
