package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	urfave "github.com/urfave/cli/v2"
)

// Run runs a program, made by App, on a command line whose first element is
// the program's name, and returns the exit code. It writes to app.Writer and
// app.ErrWriter, by default stdout and stderr.
//
// SIGINT and SIGTERM end the context of the command; a second one ends the
// process at once, with ExitInterrupted. A command that then returns an error
// was interrupted, and one that returns nil (a server that was asked to stop)
// is done.
//
// Run removes from the environment of the process the variables that don't
// count: those of the command's flags that are empty, or beaten by a flag.
func Run(app *urfave.App, args []string) int {
	// A reader that goes away is an error of the write, so that what must be
	// cleaned up is, and not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilSignal()
	defer stop()
	return RunContext(ctx, app, args)
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends. The
// second ends the process, and not by the signal itself: scripts would find
// another exit code than after the first.
func untilSignal() (ctx context.Context, stop func()) {
	words := new(lastWords)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), lastWordsKey{}, words))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		defer cancel()
		select {
		case <-signals:
			cancel()
		case <-over:
			return
		}
		select {
		case <-signals:
			words.say(os.Stderr)
			os.Exit(ExitInterrupted)
		case <-over:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
	}
}

// lastWords are what the process says when a second signal ends it.
type lastWords struct {
	mu struct {
		sync.Mutex
		words []string
	}
}

type lastWordsKey struct{}

func (l *lastWords) say(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.mu.words {
		fmt.Fprintln(w, text)
	}
}

// LeavesBehind has the process say a line, if a second signal ends it before gone is
// called: what the command, whose context ctx is, hasn't cleaned up then.
func LeavesBehind(ctx context.Context, text string) (gone func()) {
	l, ok := ctx.Value(lastWordsKey{}).(*lastWords)
	if !ok {
		return func() {} // no signal ends it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.words = append(l.mu.words, text)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.words = slices.DeleteFunc(l.mu.words, func(s string) bool { return s == text })
	}
}

// RunContext is Run without its signals: the command is interrupted when ctx
// is canceled.
func RunContext(ctx context.Context, app *urfave.App, args []string) int {
	if app.Writer == nil {
		app.Writer = os.Stdout
	}
	if app.ErrWriter == nil {
		app.ErrWriter = os.Stderr
	}
	out := &watchedWriter{w: app.Writer}
	app.Writer = out

	line, err := parse(app, args)
	switch {
	case err != nil:
	case line.help:
		err = printHelp(out, app, line)
	default:
		if err = settleEnvironment(line); err == nil {
			err = app.RunContext(ctx, line.canonical())
		}
	}
	if err == nil {
		err = out.err
	}
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, syscall.EPIPE) && out.err != nil {
		return ExitOther // whoever read stdout has gone: nobody is left to tell
	}
	if _, silent := errors.AsType[*silentError](err); !silent {
		report(app.ErrWriter, line, err)
	}
	if code := ExitCode(err); ctx.Err() == nil || code == ExitUsage {
		return code
	}
	return ExitInterrupted
}

// report prints the one line that says what went wrong, and after a wrong
// command line one that says how to write it.
func report(w io.Writer, l *line, err error) {
	prefix := strings.ReplaceAll(l.name(), " ", ": ")
	text := withoutPackage(oneLine(err.Error()))
	if ExitCode(err) == ExitInterrupted {
		text = ErrInterrupted.Error()
	}
	fmt.Fprintf(w, "%s: %s\n", prefix, text)
	if ExitCode(err) == ExitUsage {
		fmt.Fprintf(w, "usage: %s (%s --help tells more)\n", usageLine(l), l.name())
	}
}

// oneLine joins the lines of an error that wraps several.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// withoutPackage drops the names of our packages from the front of an error:
// they help who reads code, and stand in the way of who reads a terminal.
func withoutPackage(s string) string {
	for {
		name, rest, ok := strings.Cut(s, ": ")
		if !ok || !slices.Contains(packages[:], name) {
			return s
		}
		s = rest
	}
}

var packages = [...]string{"abd", "client", "history", "identity", "quorum", "scenario", "server", "sim", "store", "tags", "transport"}

// settleEnvironment unsets the variables that must not count, and checks those
// that do. The library takes one that is set but empty for a value, and
// complains about the value of one although a flag beats it.
func settleEnvironment(l *line) error {
	given := make(map[urfave.Flag]bool)
	for _, g := range l.flags {
		given[g.flag] = true
	}
	for _, f := range l.path[len(l.path)-1].Flags {
		for _, name := range environmentOf(f) {
			value := os.Getenv(name)
			if given[f] || value == "" {
				os.Unsetenv(name)
				continue
			}
			if err := checkValue(name, f, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func environmentOf(f urfave.Flag) []string {
	if d, ok := f.(urfave.DocGenerationFlag); ok {
		return d.GetEnvVars()
	}
	return nil
}

// watchedWriter remembers the first error, so that no result is lost
// silently, whatever a command does with the errors of its writes.
type watchedWriter struct {
	w   io.Writer
	err error
}

// Write writes to the underlying writer. After an error it writes nothing.
func (w *watchedWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(b)
	if err != nil {
		w.err = fmt.Errorf("the result could not be written: %w", err)
	}
	return n, w.err
}
