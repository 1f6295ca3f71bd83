// Package logtest has a log that a test can read.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
)

// Book keeps what is written to it. The zero Book is empty, and safe for
// concurrent use.
type Book struct {
	mu struct {
		sync.Mutex
		text strings.Builder
	}
}

// Write implements io.Writer.
func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.text.Write(p)
}

// String returns what was written so far.
func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.text.String()
}

// Contains reports whether s was written.
func (b *Book) Contains(s string) bool { return strings.Contains(b.String(), s) }

// Count returns how often s was written.
func (b *Book) Count(s string) int { return strings.Count(b.String(), s) }

// Log returns a log of that level and above, as text.
func (b *Book) Log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: level}))
}
