package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/cli"
	"atoll/tags"
)

func put() *urfave.Command {
	return cli.Command{
		Name:      "put",
		Arguments: "KEY VALUE|-",
		Purpose:   "store a value under a key",
		Details: `The value is VALUE, or, if that is -, what stdin holds (for a value that is -:
printf %s - | client put KEY -). The timeout counts while stdin is read, too. An
empty value is a value: the key is then there, and empty. When the command ends
with 0 the value is on the disks of a write quorum.

` + writtenHelp,
		Examples: []string{
			"client put greeting hello",
			"client put config/site - < site.json",
			"client put offset -o json -- -5",
		},
		Flags: clusterFlags("the whole command", writtenOutput()),
		Codes: cli.ConnectionCodes(cli.ExitUnknown),
		Run: func(c *urfave.Context) error {
			key := c.Args().Get(0)
			if err := abd.Key(key).Check(); err != nil {
				return err
			}
			ctx, cancel := bounded(c)
			defer cancel()
			value, err := valueOf(ctx, c.Args().Get(1), c.App.Reader)
			if errors.Is(err, context.DeadlineExceeded) {
				return cli.Preconditionf("stdin did not end within %v, and nothing was sent; --%s gives it longer",
					c.Duration(cli.FlagTimeout), cli.FlagTimeout)
			}
			if err != nil {
				return err
			}
			return withClient(ctx, c, func(ctx context.Context, conn *client.Client) error {
				tag, err := conn.Put(ctx, key, value)
				if err != nil {
					return err
				}
				return printWritten(c, key, tag)
			})
		},
	}.Build()
}

// valueOf returns the value that an argument means, of no more than any
// cluster takes. What this cluster takes, the client library checks.
func valueOf(ctx context.Context, arg string, stdin io.Reader) ([]byte, error) {
	value := []byte(arg)
	if arg == "-" {
		var err error
		value, err = readAll(ctx, io.LimitReader(stdin, abd.LargestMaxValue+1))
		if err != nil {
			return nil, fmt.Errorf("read the value from stdin: %w", err)
		}
		if len(value) > abd.LargestMaxValue {
			// How much more there is isn't known.
			return nil, cli.Usagef("stdin holds more than %d bytes, and no value is larger than that", abd.LargestMaxValue)
		}
	}
	return value, abd.CheckValue(value, abd.LargestMaxValue)
}

// readAll is io.ReadAll until ctx ends. A terminal, or a pipe that nobody
// writes to, can't be made to return: then the read is left behind, and ends
// with the process.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(r)
		done <- result{b, err}
	}()
	select {
	case all := <-done:
		return all.b, all.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// writtenHelp says what put and delete print.
const writtenHelp = `Prints OK; with -o raw the tag alone, and with -o json or jsonl key and tag.
` + base64Help

// writtenOutput is the format of the result of put and delete.
func writtenOutput() urfave.Flag {
	return cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat, cli.RawFormat)
}

// written is the result of put and delete in JSON.
type written struct {
	Key      string `json:"key"`
	Tag      string `json:"tag"`
	Encoding string `json:"encoding,omitempty"`
}

// printWritten prints "OK" for people, and the tag for programs.
func printWritten(c *urfave.Context, key string, tag tags.Tag) error {
	var err error
	switch format := cli.OutputOf(c); format {
	case cli.TableFormat:
		_, err = fmt.Fprintln(c.App.Writer, "OK")
	case cli.RawFormat:
		_, err = fmt.Fprintln(c.App.Writer, tag)
	default:
		texts, encoding := cli.Texts([]byte(key))
		err = cli.PrintObject(c.App.Writer, format, written{Key: texts[0], Tag: tag.String(), Encoding: encoding})
	}
	if err != nil {
		return fmt.Errorf("it was done, but %w", err)
	}
	return nil
}
