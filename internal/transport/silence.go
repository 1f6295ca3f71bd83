package transport

import (
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// silence notices that a peer is gone: not a packet comes for IdleTimeout after
// something was sent to it, or for as long as that and ClientKeepAlive though
// nothing was. QUIC notices as much by itself, but after as long as an idle
// connection may be silent, which for clients is ClientIdleTimeout. So that ten
// thousand idle clients cost little, they are asked for signs of life seldom, and
// those that wait for something don't wait longer for that.
//
// A peer that was restarted tells by a stateless reset, but only in answer to
// packets that are larger than one: QUIC's keepalives aren't.
//
// While nothing is sent it costs a timer, quietLooks times in that time.
type silence struct {
	packets func() uint64 // that have come on the connection
	found   func()        // called once, on a goroutine of its own
	limit   time.Duration // of silence after something was sent
	quiet   time.Duration // of silence otherwise

	mu struct {
		sync.Mutex
		awaited bool      // something was sent, and no look has found an answer
		since   time.Time // when the first was sent that no packet has followed; else when a look found a new one
		packets uint64    // that had come by then
		over    bool
		timer   *time.Timer
	}
}

// watchFor begins to watch a connection that has just been used.
func watchFor(limit, quiet time.Duration, packets func() uint64, found func()) *silence {
	w := &silence{limit: limit, quiet: quiet, packets: packets, found: found}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.since, w.mu.packets = time.Now(), packets()
	w.mu.timer = time.AfterFunc(quiet/quietLooks, w.look)
	return w
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
	if !w.mu.awaited {
		w.mu.awaited = true
		w.mu.timer.Reset(w.limit / silenceLooks)
	}
}

// look looks whether anything has come, since the last write or look.
func (w *silence) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.over {
		return
	}
	if n := w.packets(); n != w.mu.packets {
		w.mu.awaited, w.mu.since, w.mu.packets = false, time.Now(), n
	}
	limit, next := w.quiet, w.quiet/quietLooks
	if w.mu.awaited {
		limit, next = w.limit, w.limit/silenceLooks
	}
	if time.Since(w.mu.since) >= limit {
		w.mu.over = true
		go w.found()
		return
	}
	w.mu.timer.Reset(next)
}

// stop ends the watch.
func (w *silence) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.over = true
	w.mu.timer.Stop()
}

// watchSilence begins the watch of a session. Only clients need one: others
// have QUIC's. It is stopped when the session ends.
func (s *Session) watchSilence() *silence {
	if !s.dialed || s.t.cfg.Self != "" {
		return nil
	}
	packets := func() uint64 { return s.conn.ConnectionStats().PacketsReceived }
	return watchFor(IdleTimeout, ClientKeepAlive+IdleTimeout, packets, func() {
		text := "no sign of life"
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
