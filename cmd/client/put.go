package main

import (
	"context"
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
		Details: `The value is VALUE, or, if that is -, what stdin holds. An empty value is a value:
the key is then there, and empty. When the command ends with 0 the value is on
the disks of a write quorum.`,
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
			value, err := valueOf(c.Args().Get(1), c.App.Reader)
			if err != nil {
				return err
			}
			return with(c, func(ctx context.Context, conn *client.Client) error {
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
func valueOf(arg string, stdin io.Reader) ([]byte, error) {
	value := []byte(arg)
	if arg == "-" {
		var err error
		value, err = io.ReadAll(io.LimitReader(stdin, abd.LargestMaxValue+1))
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
