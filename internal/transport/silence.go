package transport

import (
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// silence notices that a peer acknowledges nothing of what is sent to it, for a
// time. QUIC's own timeout isn't enough for two reasons:
//
//   - It is as long as an idle connection may be silent, which for clients is
//     ClientIdleTimeout. So that ten thousand idle clients cost little, they are
//     asked for signs of life seldom, and those that wait for something don't wait
//     longer for that.
//   - Any packet of the peer starts it anew. If the path got narrower, large
//     packets no longer get through, and QUIC sends them again as they are,
//     before anything else. Requests arrive then, and each is acknowledged, but
//     no answer gets out, for as long as somebody asks.
//
// It costs nothing while nothing is sent.
type silence struct {
	heard func() uint64 // another number after each acknowledgement
	found func()        // called once, on a goroutine of its own
	limit time.Duration

	mu struct {
		sync.Mutex
		awaited bool      // something was sent, and no look has found an answer
		since   time.Time // when the first was sent that nothing heard has followed
		heard   uint64    // by then
		over    bool
		timer   *time.Timer
	}
}

func newSilence(limit time.Duration, heard func() uint64, found func()) *silence {
	return &silence{limit: limit, heard: heard, found: found}
}

// sent is called before each write. What was heard since the write before
// answers that: from here on, this one waits.
func (w *silence) sent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.heard()
	if w.mu.over || w.mu.awaited && n == w.mu.heard {
		return
	}
	w.mu.since, w.mu.heard = time.Now(), n
	switch {
	case w.mu.awaited: // the timer runs
	case w.mu.timer == nil:
		w.mu.timer = time.AfterFunc(w.limit/silenceLooks, w.look)
	default:
		w.mu.timer.Reset(w.limit / silenceLooks)
	}
	w.mu.awaited = true
}

// look looks whether anything was heard since the last write.
func (w *silence) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.over:
	case w.heard() != w.mu.heard:
		w.mu.awaited = false
	case time.Since(w.mu.since) >= w.limit:
		w.mu.over = true
		go w.found()
	default:
		w.mu.timer.Reset(w.limit / silenceLooks)
	}
}

// stop ends the watch.
func (w *silence) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.over = true
	if w.mu.timer != nil {
		w.mu.timer.Stop()
	}
}

// watchSilence returns the watch of a session. A client, whose QUIC would take
// long to find that a node is gone, is as quick as nodes among themselves; who
// else takes nothing has stalled.
func (s *Session) watchSilence() *silence {
	// The newest round trip is measured anew by each acknowledgement of what was
	// sent last, in nanoseconds: twice the same is chance.
	heard := func() uint64 { return uint64(s.conn.ConnectionStats().LatestRTT) }
	if !s.dialed || s.t.cfg.Self != "" {
		return newSilence(s.t.cfg.StallTimeout, heard, s.stalled)
	}
	return newSilence(IdleTimeout, heard, func() {
		text := fmt.Sprintf("no sign of life for %v", IdleTimeout)
		s.end(fmt.Errorf("%w: %w", ErrClosed, &worded{text, &quic.IdleTimeoutError{}}))
		s.link.close(CodeSilent, text)
	})
}
