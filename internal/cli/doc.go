// Package cli holds what the programs share: flags, output, exit codes.
//
// A program is a tree of commands. Its leaves are declared as [Command]
// values, put together by [App] and [Group], and run by [Run], which is the
// whole of a main function:
//
//	func main() { os.Exit(cli.Run(app(), os.Args)) }
//
// The contract that scripts depend on, and where it is kept:
//
//   - Results go to stdout; logs, prompts, progress and errors go to stderr.
//     An error is one line, "client: put: what happened". After what ends with
//     exit code 2 there is one more, how to write the command (run.go).
//   - The exit code says how a command ended ([ExitCode], exit.go).
//   - Flags stand before or after arguments, "--" ends them (reorder.go).
//   - A flag beats its environment variable, that beats a file, that beats the
//     default. A variable that is set but empty counts as unset ([Source] says
//     where a value came from; flags.go).
//   - Table, JSON, JSON lines or raw bytes: the names in JSON are stable; ids,
//     tags and revisions are strings; counts and measurements are numbers;
//     where a byte string isn't UTF-8, all byte strings of its object are
//     base64, and the object says so with "encoding":"base64" (output.go).
//   - The help of a leaf shows its purpose, its usage, examples to copy, each
//     flag with default, environment name and unit, and its exit codes
//     (help.go).
//
// Parsing of flag values is urfave/cli's; the order of the command line, help
// and exit codes are this package's, because there the library takes late
// flags for arguments, prints usage errors on stdout and exits 3 for an
// unknown command.
package cli
