package report

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// How a plot is laid out, in the units of its picture.
const (
	plotWidth  = 840
	plotHeight = 230 // of one panel
	plotLeft   = 70
	plotRight  = 20
	plotTop    = 34
	plotBottom = 36
	plotTicks  = 5 // about how many lines there are across
)

// Plot draws the clients' throughput over time, the last replacement of each kind
// in a panel of its own, and writes the picture, an SVG, to a file. Replacements
// without clients are left out.
func Plot(path string, all []Replacement) error {
	all = matching(all, func(r Replacement) bool { return len(r.Series) > 0 })
	var panels []Replacement
	for _, cell := range distinct(all, Replacement.cell) {
		of := matching(all, func(r Replacement) bool { return r.cell() == cell })
		panels = append(panels, of[len(of)-1])
	}
	if len(panels) == 0 {
		return fmt.Errorf("there is nothing to plot: no replacement had clients")
	}
	var b strings.Builder
	height := plotHeight * len(panels)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, height)
	// One scale for all, so that they can be compared.
	long, most := 0.0, 0.0
	for _, r := range panels {
		for _, p := range r.Series {
			long, most = max(long, p.At), max(most, p.PerSecond)
		}
	}
	for i, r := range panels {
		panel{r, float64(i * plotHeight), long, most}.draw(&b)
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// panel is the picture of one replacement.
type panel struct {
	Replacement
	top        float64
	long, most float64 // where the axes end: seconds, operations a second
}

func (p panel) x(at float64) float64 {
	return plotLeft + at/p.long*(plotWidth-plotLeft-plotRight)
}

func (p panel) y(perSecond float64) float64 {
	return p.top + plotHeight - plotBottom - perSecond/p.most*(plotHeight-plotTop-plotBottom)
}

func (p panel) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text x="%d" y="%.0f">%s: operations a second</text>`+"\n", plotLeft, p.top+20, p.cell())
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#fde9c9"/>`+"\n",
		p.x(p.Began), p.y(p.most), p.x(p.Ended)-p.x(p.Began), p.y(0)-p.y(p.most))
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#8a5a00">replacement, %s s</text>`+"\n", p.x(p.Began)+4, p.y(p.most)+12, number(p.Ended-p.Began))
	for v, step := 0.0, round(p.most/plotTicks); v <= p.most; v += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, p.y(v), plotWidth-plotRight, plotLeft-6, p.y(v)+4, number(v))
	}
	for v, step := 0.0, round(p.long/plotTicks); v <= p.long; v += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s s</text>`+"\n", p.x(v), p.y(0)+16, number(v))
	}
	b.WriteString(`<path fill="none" stroke="#1f5fa8" stroke-width="1.5" d="`)
	for i, point := range p.Series {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(b, "%c%.1f %.1f", command, p.x(point.At), p.y(point.PerSecond))
	}
	b.WriteString(`"/>` + "\n")
}

// round returns the least of 1, 2 and 5 times a power of ten that isn't below v.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v {
			return f * power
		}
	}
	return 10 * power
}
