package transport

import (
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// silence notices that a peer doesn't answer what is sent to it: not a packet
// comes for IdleTimeout. QUIC notices as much by itself, but after as long as an
// idle connection may be silent, which for clients is ClientIdleTimeout. So that
// ten thousand idle clients cost little, they are asked for signs of life
// seldom, and those that wait for something don't wait longer for that.
//
// It costs nothing while nothing is sent.
type silence struct {
	packets func() uint64 // that have come on the connection
	found   func()        // called once, on a goroutine of its own
	limit   time.Duration

	mu struct {
		sync.Mutex
		awaited bool      // something was sent, and no look has found an answer
		since   time.Time // when the first was sent that no packet has followed
		packets uint64    // that had come by then
		over    bool
		timer   *time.Timer
	}
}

func newSilence(limit time.Duration, packets func() uint64, found func()) *silence {
	return &silence{limit: limit, packets: packets, found: found}
}

// sent is called before each write. A packet that has come since the write
// before answers that: from here on, this one waits.
func (w *silence) sent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.packets()
	if w.mu.over || w.mu.awaited && n == w.mu.packets {
		return
	}
	w.mu.since, w.mu.packets = time.Now(), n
	switch {
	case w.mu.awaited: // the timer runs
	case w.mu.timer == nil:
		w.mu.timer = time.AfterFunc(w.limit/silenceLooks, w.look)
	default:
		w.mu.timer.Reset(w.limit / silenceLooks)
	}
	w.mu.awaited = true
}

// look looks whether anything has come since the last write.
func (w *silence) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.over:
	case w.packets() != w.mu.packets:
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

// watchSilence returns the watch of a session. Only clients need one: others
// have QUIC's.
func (s *Session) watchSilence() *silence {
	if !s.dialed || s.t.cfg.Self != "" {
		return nil
	}
	packets := func() uint64 { return s.conn.ConnectionStats().PacketsReceived }
	return newSilence(IdleTimeout, packets, func() {
		text := fmt.Sprintf("no sign of life for %v", IdleTimeout)
		s.end(fmt.Errorf("%w: %w", ErrClosed, &worded{text, &quic.IdleTimeoutError{}}))
		s.link.close(CodeSilent, text)
	})
}

// wrote tells the watch, if there is one.
func (s *Session) wrote() {
	if s.silence != nil {
		s.silence.sent()
	}
}
