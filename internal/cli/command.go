package cli

import (
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// Command declares a leaf of a program: a command that does something.
type Command struct {
	Name string
	// Arguments are the names of the arguments, as the usage line shows
	// them: "KEY VALUE|-". One in brackets, "[PREFIX]", may be left out and
	// stands last; so does one that may be repeated: "KEY...". The count of
	// the arguments is checked before Run is called.
	Arguments string
	// Purpose is one line, without a capital in front or a full stop.
	Purpose string
	// Details are further paragraphs for the help; lines of up to 78 columns.
	Details string
	// Examples are command lines to copy, two or more.
	Examples []string
	Flags    []urfave.Flag
	// Codes are the exit codes that the command can end with, besides 0, 1,
	// 2 and, unless it serves, 130.
	Codes []int
	// Meanings are what codes mean of this command, where that isn't what
	// they mean of all.
	Meanings map[int]string
	// Check looks at the arguments before they are counted, if there is more to say of
	// them than that one is missing; nil: there isn't.
	Check func(arguments []string) error
	// Serves: the command runs until SIGINT or SIGTERM asks it to stop, and
	// is done when it has. Others are interrupted.
	Serves bool
	Run    func(*urfave.Context) error
}

// Build returns the command for App or Group.
func (c Command) Build() *urfave.Command {
	return &urfave.Command{
		Name:               c.Name,
		Usage:              c.Purpose,
		ArgsUsage:          c.Arguments,
		Flags:              c.Flags,
		CustomHelpTemplate: leafTemplate(c),
		// Run prints help; without a subcommand "help", an argument
		// called help is an argument.
		HideHelp:     true,
		OnUsageError: flagError,
		Action: func(ctx *urfave.Context) error {
			if c.Check != nil {
				if err := c.Check(ctx.Args().Slice()); err != nil {
					return err
				}
			}
			if err := checkCount(c.Arguments, ctx.Args().Slice()); err != nil {
				return err
			}
			return c.Run(ctx)
		},
	}
}

// Group returns a command that only holds others.
func Group(name, purpose string, commands ...*urfave.Command) *urfave.Command {
	return &urfave.Command{
		Name:               name,
		Usage:              purpose,
		Subcommands:        commands,
		CustomHelpTemplate: groupTemplate(purpose, commands),
		HideHelp:           true,
		OnUsageError:       flagError,
	}
}

// App returns a program of the given commands, for Run.
func App(name, purpose string, commands ...*urfave.Command) *urfave.App {
	return &urfave.App{
		Name:                  name,
		Usage:                 purpose,
		Commands:              commands,
		CustomAppHelpTemplate: groupTemplate(purpose, commands),
		HideHelp:              true,
		HideVersion:           true,
		OnUsageError:          flagError,
		// Run turns errors into exit codes; the library must not exit.
		ExitErrHandler: func(*urfave.Context, error) {},
	}
}

// flagError makes a usage error of a value that a flag can't take.
func flagError(_ *urfave.Context, err error, _ bool) error {
	return Usagef("%s", strings.NewReplacer(" for flag -", " for --", " for -", " for --").Replace(err.Error()))
}

// checkCount holds arguments against their names. A name is missing, or an
// argument too many: the error says which.
func checkCount(names string, args []string) error {
	n := 0
	repeats := false
	for name := range strings.FieldsSeq(names) {
		optional := strings.HasPrefix(name, "[")
		repeats = strings.HasSuffix(strings.TrimSuffix(name, "]"), "...")
		if n >= len(args) && !optional {
			return Usagef("%s is missing", strings.TrimSuffix(name, "..."))
		}
		n++
	}
	if len(args) > n && !repeats {
		return Usagef("unexpected argument %.60q", args[n])
	}
	return nil
}
