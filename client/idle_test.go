package client_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
)

var (
	idleClients = flag.Int("idle", 60, "how many idle clients TestIdleClients opens")
	idleFor     = flag.Duration("idle-for", 0, "for how long TestIdleClients measures what they cost")
)

// TestIdleClients opens many clients, each with its own sockets and a
// connection with every replica, leaves them alone, and then has each do
// something. With -v it reports what client and replicas take together: all of
// them run in this process. -idle 10000 -idle-for 20s measures in earnest; it
// needs about two file descriptors a client.
func TestIdleClients(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	before := resident(t)
	cfg := h.clientConfig()
	clients := make([]*client.Client, *idleClients)
	var opening sync.WaitGroup
	slots := make(chan struct{}, 8) // handshakes at a time
	for i := range clients {
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			// On a busy machine a replica may take longer than a dial waits.
			for deadline := time.Now().Add(patience); ; {
				c, err := client.Open(t.Context(), cfg)
				if err == nil {
					clients[i] = c
					return
				}
				if time.Now().After(deadline) {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	opening.Wait()
	defer func() {
		for _, c := range clients {
			if c != nil {
				_ = c.Close() // what it was open for is checked
			}
		}
	}()
	if t.Failed() {
		return
	}
	if *idleFor > 0 {
		runtime.GC()
		cpu := processorTime(t)
		<-time.After(*idleFor)
		cpu = processorTime(t) - cpu
		n := float64(len(clients))
		t.Logf("%d clients: %.1f KiB of memory and %.1f µs of processor time a second each, with its connections at both ends",
			len(clients), float64(resident(t)-before)/1024/n, float64(cpu.Microseconds())/idleFor.Seconds()/n)
	}
	for i, c := range clients {
		key := fmt.Sprint(i % 10)
		if _, err := c.Put(t.Context(), key, []byte("v")); err != nil {
			t.Fatalf("client %d, after it was idle: %v", i, err)
		}
	}
}

// resident is how much memory this process has, in bytes; 0 where that isn't
// known.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// processorTime is how much this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
