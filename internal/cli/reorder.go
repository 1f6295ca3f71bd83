package cli

import (
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// Reorder returns args, a command line whose first element is the program's
// name, in the one order that urfave/cli understands: the names of the
// commands, their flags, each as --name=value under its first name, "--", and
// the arguments.
//
// In args, flags may stand anywhere: before the command, among its arguments,
// after them. A flag may have one dash or two, and its value may follow "=" or
// be the next element, whatever that begins with. "-" is an argument; "--"
// makes arguments of all that follows. What looks like a flag and isn't one of
// the command's is an error and never an argument; the error is a *UsageError.
//
// "help COMMAND" and "COMMAND --help" become the command with the flag --help
// alone, whatever else they contain; "--version" becomes the command version
// when there is one.
func Reorder(app *urfave.App, args []string) ([]string, error) {
	l, err := parse(app, args)
	if err != nil {
		return nil, err
	}
	return l.canonical(), nil
}

// line is a command line, taken apart.
type line struct {
	program string
	path    []*urfave.Command // from the root's child to the leaf
	flags   []givenFlag
	args    []string
	help    bool
}

// givenFlag is one occurrence of a flag.
type givenFlag struct {
	token string // as it was written, without its value
	flag  urfave.Flag
	value string
}

// name returns the names of the program and its commands.
func (l *line) name() string {
	names := []string{l.program}
	for _, c := range l.path {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func (l *line) canonical() []string {
	out := []string{l.program}
	for _, c := range l.path {
		out = append(out, c.Name)
	}
	if l.help {
		return append(out, "--help")
	}
	for _, f := range l.flags {
		out = append(out, "--"+f.flag.Names()[0]+"="+f.value)
	}
	out = append(out, "--")
	return append(out, l.args...)
}

// parser takes a command line apart from left to right. It goes on after an
// error, for a request for help that comes later.
type parser struct {
	line
	root []*urfave.Command
	err  error // the first
}

// parse takes args apart. The line is never nil; it reaches as far as args
// made sense.
func parse(app *urfave.App, args []string) (*line, error) {
	p := &parser{root: app.Commands, line: line{program: app.Name}}
	if len(args) == 0 {
		args = []string{app.Name}
	}
	for rest := args[1:]; len(rest) > 0; {
		token := rest[0]
		rest = rest[1:]
		switch {
		case token == "--":
			for _, a := range rest {
				p.positional(a)
			}
			rest = nil
		case len(token) > 1 && token[0] == '-':
			rest = p.flag(token, rest)
		default:
			p.positional(token)
		}
	}
	if !p.help {
		p.check()
	}
	if p.help {
		return &p.line, nil
	}
	return &p.line, p.err
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = Usagef(format, args...)
	}
}

// children returns the commands one of which must come next; none at a leaf.
func (p *parser) children() []*urfave.Command {
	if len(p.path) == 0 {
		return p.root
	}
	return p.path[len(p.path)-1].Subcommands
}

// positional takes the next command's name, or an argument.
func (p *parser) positional(token string) {
	children := p.children()
	if len(children) == 0 {
		p.args = append(p.args, token)
		return
	}
	if p.err != nil {
		return // after an unknown command nothing more can be understood
	}
	for _, c := range children {
		if c.HasName(token) {
			p.path = append(p.path, c)
			return
		}
	}
	if token == "help" && len(p.path) == 0 {
		p.help = true
		return
	}
	names := commandNames(children)
	if s := Closest(token, names); s != "" {
		p.fail("unknown command %.60q; did you mean %q?", token, s)
		return
	}
	p.fail("unknown command %.60q; the commands are %s", token, strings.Join(names, ", "))
}

// flag takes a flag, with its value when that is the next element, and
// returns what is left.
func (p *parser) flag(token string, rest []string) []string {
	token, value, hasValue := strings.Cut(token, "=")
	name := strings.TrimPrefix(strings.TrimPrefix(token, "-"), "-")
	f, ambiguous := p.lookup(name)
	switch {
	case ambiguous:
		p.fail("%s means different things to different commands; write it after the command", token)
		return rest
	case f == nil && (name == "help" || name == "h"):
		p.help = true
		return rest
	case f == nil && name == "version" && len(p.path) == 0 && slices.Contains(commandNames(p.root), name):
		p.positional(name)
		return rest
	case f == nil:
		p.unknown(token, name)
		return rest
	}
	switch {
	case hasValue:
	case !takesValue(f):
		value = "true"
	case len(rest) == 0:
		p.fail("the flag %s needs a value", token)
		return nil
	default:
		value, rest = rest[0], rest[1:]
	}
	p.flags = append(p.flags, givenFlag{token: token, flag: f, value: value})
	return rest
}

// lookup finds the flag called name: of the leaf, or, while that isn't known,
// of any command that may still come. Ambiguous: some of those take a value
// and some don't.
func (p *parser) lookup(name string) (f urfave.Flag, ambiguous bool) {
	if n := len(p.path); n > 0 && len(p.path[n-1].Subcommands) == 0 {
		return findFlag(p.path[n-1].Flags, name), false
	}
	walk(p.children(), func(c *urfave.Command) {
		g := findFlag(c.Flags, name)
		switch {
		case g == nil:
		case f == nil:
			f = g
		case takesValue(f) != takesValue(g):
			ambiguous = true
		}
	})
	return f, ambiguous
}

// check looks at the line as a whole: a leaf was reached, and it has all the
// flags that were given, those that stood before its name included.
func (p *parser) check() {
	if p.err != nil {
		return
	}
	if children := p.children(); len(children) > 0 {
		p.fail("which command? %s", strings.Join(commandNames(children), ", "))
		return
	}
	leaf := p.path[len(p.path)-1]
	for i, g := range p.flags {
		f := findFlag(leaf.Flags, g.flag.Names()[0])
		if f == nil {
			p.unknown(g.token, g.flag.Names()[0])
			return
		}
		p.flags[i].flag = f
		if err := checkValue(g.token, f, g.value); err != nil {
			p.err = err
			return
		}
	}
}

// unknown reports a flag that the command doesn't have.
func (p *parser) unknown(token, name string) {
	if len(p.path) == 0 {
		p.fail("unknown flag %.60s", token)
		return
	}
	names := []string{"help"}
	for _, f := range p.path[len(p.path)-1].Flags {
		names = append(names, f.Names()[0])
	}
	if s := Closest(name, names); s != "" {
		p.fail("unknown flag %.60s; did you mean --%s?", token, s)
		return
	}
	p.fail("unknown flag %.60s; if it is an argument, write -- before it", token)
}

func findFlag(flags []urfave.Flag, name string) urfave.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f urfave.Flag) bool {
	d, ok := f.(urfave.DocGenerationFlag)
	return ok && d.TakesValue()
}

// walk calls each for the commands and all below them.
func walk(commands []*urfave.Command, each func(*urfave.Command)) {
	for _, c := range commands {
		each(c)
		walk(c.Subcommands, each)
	}
}

func commandNames(commands []*urfave.Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}

// longestGuess is the length in bytes of the longest word for which Closest
// looks: nobody mistypes a longer one.
const longestGuess = 40

// Closest returns the one of names that s was probably meant to be, or "".
func Closest(s string, names []string) string {
	if len(s) > longestGuess {
		return ""
	}
	best, least := "", 1+max(1, len(s)/3)
	for _, n := range names {
		if d := distance(s, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of single-byte insertions, deletions, replacements
// and swaps of neighbours that make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// UsageError is a command line that makes no sense. Nothing was done.
type UsageError struct{ Text string }

// Error returns what is wrong.
func (e *UsageError) Error() string { return e.Text }

// Usagef returns a *UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}
