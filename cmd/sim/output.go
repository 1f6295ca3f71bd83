package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/scenario"
	"atoll/sim/stat"
)

// reporter prints runs as they end, and the summary.
type reporter interface {
	run(r *record) error
	end(s *summary) error
}

func newReporter(c *urfave.Context, g campaign) reporter {
	switch cli.OutputOf(c) {
	case cli.JSONFormat, cli.LinesFormat:
		return &jsonReporter{w: c.App.Writer, g: g, figures: figures()}
	case CSVFormat:
		return &csvReporter{w: csv.NewWriter(c.App.Writer), errors: c.App.ErrWriter, g: g, figures: figures()}
	}
	return newTableReporter(c.App.Writer, g)
}

// object is a JSON object whose fields have an order.
type object []field

type field struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, field{name, value}) }

// MarshalJSON returns the object with its fields in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		b = append(strconv.AppendQuote(b, f.name), ':')
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// jsonReporter prints an object a run, and the summary as the last one.
type jsonReporter struct {
	w       io.Writer
	g       campaign
	figures []figure
}

func (j *jsonReporter) run(r *record) error { return cli.PrintLine(j.w, runObject(j.g, r, j.figures)) }

// runObject is a run in JSON.
func runObject(g campaign, r *record, all []figure) object {
	s := g.sides[r.side].scenario
	o := object{
		{"scenario", s.Name},
		{"algorithm", algorithmOf(s)},
		{"seed", r.seed},
		{"hash", fmt.Sprintf("%016x", r.hash)},
		{"violation", violationObject(r.violation)},
		{"events", r.figures.Events},
		{"messages", r.figures.Messages},
		{"operations", r.operations()},
		{"failed", r.failed()},
		{"unknown", r.unknown()},
		{"faults", r.figures.Decisions},
		{"simulated_s", rounded(r.figures.Simulated.Seconds())},
		{"d_ms", rounded(milliseconds(r.figures.DelayBound))},
	}
	for _, kind := range scenario.Kinds() {
		k := r.figures.ByKind[kind]
		if r.count[kind]+k.Failed+k.Unknown == 0 {
			continue
		}
		ko := object{{"operations", r.count[kind]}, {"failed", k.Failed}, {"unknown", k.Unknown}}
		addFigures(&ko, kind, r.values, all)
		o.add(kind.String(), ko)
	}
	addFigures(&o, everything, r.values, all)
	if r.violation != nil {
		o.add("replay", g.replay(r.seed))
	}
	return o
}

func addFigures(o *object, kind scenario.Kind, values []optional, all []figure) {
	for i := range all {
		if all[i].kind == kind && values[i].ok {
			o.add(all[i].name, rounded(values[i].value))
		}
	}
}

// violationObject is a violation in JSON, null if there is none.
func violationObject(v *scenario.Violation) any {
	if v == nil {
		return nil
	}
	return object{
		{"rule", v.Rule},
		{"text", v.Text},
		{"at_ms", rounded(milliseconds(v.At))},
		{"cluster", v.Cluster},
		{"key", v.Key},
		{"operations", v.Operations},
	}
}

func (j *jsonReporter) end(s *summary) error {
	o := object{{"summary", true}}
	for i := range s.sides {
		prefix := ""
		if i > 0 {
			prefix = "compare_"
		}
		o.add(prefix+"scenario", s.sides[i].scenario.Name)
		o.add(prefix+"algorithm", algorithmOf(s.sides[i].scenario))
	}
	t := s.totals
	for _, f := range []field{
		{"seeds", s.done},
		{"first_seed", s.seeds.first},
		{"complete", s.complete},
		{"runs", t.runs},
		{"violations", t.violations},
		{"operations", t.operations},
		{"failed", t.failed},
		{"unknown", t.unknown},
		{"messages", t.messages},
		{"seconds", rounded(t.took.Seconds())},
		{"messages_per_s", rounded(t.messagesPerSecond())},
		{"figures", meansObject(s, 0)},
	} {
		o.add(f.name, f.value)
	}
	if len(s.sides) > 1 {
		o.add("compare_figures", meansObject(s, 1))
		o.add("differences", differencesObject(s))
	}
	if s.first != nil {
		o.add("first_violation", object{{"seed", s.first.seed}, {"rule", s.first.violation.Rule}})
		o.add("replay", s.replay)
	}
	return cli.PrintLine(j.w, o)
}

// byKind returns an object with what of returns for each figure that it has
// something for, those of each kind of operations in an object of their own.
func byKind(s *summary, of func(at int) (any, bool)) object {
	var o object
	for _, kind := range append(scenario.Kinds(), everything) {
		var ko object
		for i := range s.figures {
			if s.figures[i].kind != kind {
				continue
			}
			if v, ok := of(i); ok {
				ko.add(s.figures[i].name, v)
			}
		}
		switch {
		case kind == everything:
			o = append(o, ko...)
		case len(ko) > 0:
			o.add(kind.String(), ko)
		}
	}
	return o
}

// meansObject are the means of a side.
func meansObject(s *summary, side int) object {
	return byKind(s, func(at int) (any, bool) {
		i := s.samples[side][at].Interval()
		return intervalObject(i), i.N > 0
	})
}

func intervalObject(i stat.Interval) object {
	o := object{{"n", i.N}, {"mean", rounded(i.Mean)}, {"ci95", nil}}
	if i.Known() {
		o[2].value = rounded(i.Half)
	}
	return o
}

func differencesObject(s *summary) object {
	return byKind(s, func(at int) (any, bool) {
		p := &s.pairs[at]
		d := p.Difference()
		o := intervalObject(d)
		if share, ok := p.Change(); ok {
			o.add("change", rounded(share))
		}
		o.add("apart", d.Apart())
		return o, d.N > 0
	})
}

// csvReporter prints a row a run.
type csvReporter struct {
	w       *csv.Writer
	errors  io.Writer
	g       campaign
	figures []figure
	headed  bool
}

func (t *csvReporter) run(r *record) error {
	if !t.headed {
		t.headed = true
		if err := t.w.Write(t.heads()); err != nil {
			return err
		}
	}
	s := t.g.sides[r.side].scenario
	rule := ""
	if r.violation != nil {
		rule = r.violation.Rule
	}
	row := []string{
		s.Name, algorithmOf(s), strconv.FormatUint(r.seed, 10), fmt.Sprintf("%016x", r.hash), rule,
		strconv.FormatUint(r.figures.Events, 10), strconv.FormatUint(r.figures.Messages, 10),
		strconv.FormatUint(r.operations(), 10), strconv.FormatUint(r.failed(), 10), strconv.FormatUint(r.unknown(), 10),
		strconv.Itoa(r.figures.Decisions), number(r.figures.Simulated.Seconds()), number(milliseconds(r.figures.DelayBound)),
	}
	for _, kind := range scenario.Kinds() {
		k := r.figures.ByKind[kind]
		row = append(row, strconv.FormatUint(r.count[kind], 10), strconv.FormatUint(k.Failed, 10), strconv.FormatUint(k.Unknown, 10))
	}
	for _, v := range r.values {
		cell := ""
		if v.ok {
			cell = number(v.value)
		}
		row = append(row, cell)
	}
	if err := t.w.Write(row); err != nil {
		return err
	}
	t.w.Flush()
	return t.w.Error()
}

func (t *csvReporter) heads() []string {
	heads := []string{"scenario", "algorithm", "seed", "hash", "violation", "events", "messages",
		"operations", "failed", "unknown", "faults", "simulated_s", "d_ms"}
	for _, kind := range scenario.Kinds() {
		for _, name := range []string{"operations", "failed", "unknown"} {
			heads = append(heads, kind.String()+"_"+name)
		}
	}
	for _, f := range t.figures {
		heads = append(heads, f.column())
	}
	return heads
}

// end says on stderr how to replay a violation: CSV has no place for it.
func (t *csvReporter) end(s *summary) error {
	if s.first != nil {
		fmt.Fprintln(t.errors, s.replay)
	}
	return nil
}

// column is the name of a figure where all have one list of names.
func (f *figure) column() string {
	if f.kind == everything {
		return f.name
	}
	return f.kind.String() + "_" + f.name
}

// number returns f for CSV.
func number(f float64) string { return strconv.FormatFloat(rounded(f), 'f', -1, 64) }

// seconds returns d for people.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s" }
