package server

import (
	"fmt"
	"sync"
	"time"
)

// A stopwatch notices when something that is done over and over lasts too
// long: a commit, whose sync may hang with the disk, or a turn of the loop,
// whose reads may.
type stopwatch struct {
	limit   time.Duration
	changed func(late bool, lasts time.Duration) // called with mu held
	mu      struct {
		sync.Mutex
		begun time.Time // zero between two
		late  bool
		timer *time.Timer
	}
}

func newStopwatch(limit time.Duration, changed func(late bool, lasts time.Duration)) *stopwatch {
	w := &stopwatch{limit: limit, changed: changed}
	w.mu.timer = time.AfterFunc(limit, w.look)
	w.mu.timer.Stop()
	return w
}

// begin and end enclose what is watched.
func (w *stopwatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.begun = time.Now()
	w.mu.timer.Reset(w.limit)
}

func (w *stopwatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.timer.Stop()
	if w.mu.late {
		w.mu.late = false
		w.changed(false, time.Since(w.mu.begun))
	}
	w.mu.begun = time.Time{}
}

// look is called when the limit has passed, or a little after the end of what
// it was set for.
func (w *stopwatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lasts := time.Since(w.mu.begun); !w.mu.begun.IsZero() && lasts >= w.limit && !w.mu.late {
		w.mu.late = true
		w.changed(true, lasts)
	}
}

// late returns how long what is watched has lasted, 0 unless that is too long.
func (w *stopwatch) late() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.late {
		return 0
	}
	return time.Since(w.mu.begun)
}

// watchDisk makes the stopwatches. A hanging disk is no failure: what it was
// asked for may still come. Until then the node does what it can without.
func (s *Server) watchDisk(limit time.Duration) {
	if limit == 0 {
		limit = stallAfter
	}
	s.commits = newStopwatch(limit, func(late bool, lasts time.Duration) {
		s.held.stall(late)
		s.tellStall(late, lasts, "a commit", s.store.Condition().Waits)
	})
	s.turns = newStopwatch(limit, func(late bool, lasts time.Duration) {
		s.tellStall(late, lasts, "a turn of the loop", "something to be read, or for the processor")
	})
}

func (s *Server) tellStall(late bool, lasts time.Duration, what, waits string) {
	if late {
		s.metrics.stalls.Inc()
		s.log.Warn(what+" doesn't end: the node isn't ready", "lasts", lasts.Round(time.Millisecond), "waits_for", waits)
	} else {
		s.log.Info(what+" has ended: the node is ready again", "lasted", lasts.Round(time.Millisecond))
	}
}

// trouble says what keeps the node from taking writes, or from answering at
// all; "" if nothing does.
func (s *Server) trouble() string {
	condition := s.store.Condition()
	if lasts := s.commits.late(); lasts > 0 {
		return fmt.Sprintf("the disk hangs: a commit has lasted %v, and waits for %s", lasts.Round(time.Millisecond), condition.Waits)
	}
	if lasts := s.turns.late(); lasts > 0 {
		return fmt.Sprintf("the disk hangs, or the machine: a turn of the loop has lasted %v", lasts.Round(time.Millisecond))
	}
	if condition.Full != nil {
		return fmt.Sprintf("no space: %v", condition.Full)
	}
	return ""
}

// stalled reports whether the disk hangs.
func (s *Server) stalled() bool { return s.commits.late() > 0 || s.turns.late() > 0 }
