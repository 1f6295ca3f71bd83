package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// How often a bar is drawn, and how wide in columns.
const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 40
)

// Progress is a bar on a terminal; elsewhere it is nothing. It is safe for
// concurrent use.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress shows how far something is, out of total, if w is a terminal.
func NewProgress(w io.Writer, text string, total int64) *Progress {
	if !IsTerminal(w) {
		return &Progress{}
	}
	return &Progress{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(text),
		progressbar.OptionThrottle(progressEvery),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetWidth(progressWidth),
		progressbar.OptionClearOnFinish(),
	)}
}

// Set says how far it is now.
func (p *Progress) Set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that can't be drawn harms nothing
	}
}

// End removes the bar.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
