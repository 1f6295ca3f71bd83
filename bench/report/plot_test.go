package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/bench/report"
)

// TestPlot: a picture is XML, has a panel for each kind of replacement, of which the
// last one is drawn, and leaves out those without clients.
func TestPlot(t *testing.T) {
	with := func(rate int, took float64) report.Replacement {
		return report.Replacement{Target: "atoll", Rate: rate, Began: 1, Ended: 1 + took,
			Series: []report.Point{{At: 1, PerSecond: 90}, {At: 2, PerSecond: 30}, {At: 6, PerSecond: 100}}}
	}
	file := filepath.Join(t.TempDir(), "plot.svg")
	all := []report.Replacement{with(0, 1), with(8, 4), {Target: "idle"}, with(0, 2.5)}
	if err := report.Plot(file, all); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int{
		"operations a second": 2, "replacement, 2.50 s": 1, "replacement, 4.00 s": 1, "replacement, 1.00 s": 0, "idle": 0, "at most 8 MiB/s": 1,
	} {
		if got := strings.Count(string(b), text); got != want {
			t.Errorf("%q is there %d times, not %d, in\n%s", text, got, want, b)
		}
	}
	if err := report.Plot(file, all[2:3]); err == nil {
		t.Error("nothing was plotted")
	}
}
