package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	urfave "github.com/urfave/cli/v2"
)

// helpWidth is where the text of a flag is wrapped, in columns.
const helpWidth = 100

// helpData is what the templates of help are executed with; everything else
// is in the template already.
type helpData struct{ Name string }

// printHelp prints the help of the command that the line names.
func printHelp(w io.Writer, app *urfave.App, l *line) error {
	text := app.CustomAppHelpTemplate
	if n := len(l.path); n > 0 {
		text = l.path[n-1].CustomHelpTemplate
	}
	t, err := template.New("help").Parse(text)
	if err != nil {
		return err
	}
	return t.Execute(w, helpData{Name: l.name()})
}

// usageLine returns how the command that the line names is written.
func usageLine(l *line) string {
	if n := len(l.path); n > 0 && len(l.path[n-1].Subcommands) == 0 {
		return strings.TrimSpace(l.name() + " [flags] " + l.path[n-1].ArgsUsage)
	}
	return l.name() + " COMMAND"
}

// leafTemplate returns the template for the help of a leaf.
func leafTemplate(c Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{{.Name}}: %s\n", literal(c.Purpose))
	if c.Details != "" {
		fmt.Fprintf(&b, "\n%s\n", literal(strings.TrimSpace(c.Details)))
	}
	fmt.Fprintf(&b, "\nUSAGE\n  %s\n", strings.TrimSpace("{{.Name}} [flags] "+literal(c.Arguments)))
	b.WriteString("\nEXAMPLES\n")
	for _, e := range c.Examples {
		fmt.Fprintf(&b, "  %s\n", literal(e))
	}
	b.WriteString("\nFLAGS\n")
	for _, f := range c.Flags {
		b.WriteString(literal(flagHelp(f)))
	}
	b.WriteString("  -h, --help\n        show this\n")
	b.WriteString("\nEXIT CODES\n")
	codes := append([]int{ExitDone, ExitOther, ExitUsage}, c.Codes...)
	if !c.Serves {
		codes = append(codes, ExitInterrupted)
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		text := exitText(code)
		if own, ok := c.Meanings[code]; ok {
			text = own
		}
		if c.Serves && code == ExitDone {
			text += ", or stopped by SIGINT or SIGTERM"
		}
		fmt.Fprintf(&b, "  %3d  %s\n", code, text)
	}
	return b.String()
}

// groupTemplate returns the template for the help of a program or group.
func groupTemplate(purpose string, commands []*urfave.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{{.Name}}: %s\n\nUSAGE\n  {{.Name}} COMMAND [flags] [arguments]\n\nCOMMANDS\n", literal(purpose))
	width := 0
	for _, c := range commands {
		width = max(width, len(synopsis(c)))
	}
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, literal(synopsis(c)), literal(c.Usage))
	}
	b.WriteString("\n{{.Name}} COMMAND --help tells more about one of them.\n")
	return b.String()
}

func synopsis(c *urfave.Command) string {
	if len(c.Subcommands) > 0 {
		return c.Name + " {" + strings.Join(commandNames(c.Subcommands), ",") + "}"
	}
	return strings.TrimSpace(c.Name + " " + c.ArgsUsage)
}

// flagHelp returns the lines that describe a flag: its names and the name of
// its value; what it means, its default and its environment variable.
func flagHelp(f urfave.Flag) string {
	d, ok := f.(urfave.DocGenerationFlag)
	if !ok {
		return ""
	}
	placeholder, usage := cutPlaceholder(d.GetUsage())
	var names []string
	for _, n := range d.Names() {
		if len(n) == 1 {
			names = slices.Insert(names, 0, "-"+n)
		} else {
			names = append(names, "--"+n)
		}
	}
	head := "  " + strings.Join(names, ", ")
	if len(names) == 1 {
		head = "      " + names[0] // under the long names of the others
	}
	if d.TakesValue() {
		head += " " + placeholder
	}
	var facts []string
	byDefault := d.GetDefaultText()
	if d, ok := f.(*urfave.DurationFlag); ok && byDefault == d.Value.String() {
		byDefault = DurationText(d.Value)
	}
	if t := strings.Trim(byDefault, `"`); t != "" && d.TakesValue() {
		facts = append(facts, "default "+t)
	}
	for _, e := range d.GetEnvVars() {
		facts = append(facts, "environment "+e)
	}
	text := usage
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	return head + "\n" + wrap(text, "        ")
}

// cutPlaceholder takes the name of a flag's value out of its usage, where it
// stands in backquotes.
func cutPlaceholder(usage string) (name, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	if !ok || !closed {
		return "VALUE", usage
	}
	return name, before + name + after
}

// wrap breaks text into lines of up to helpWidth columns.
func wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > helpWidth:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}

// literal protects text from being read as template actions.
func literal(s string) string { return strings.ReplaceAll(s, "{{", `{{"{{"}}`) }
