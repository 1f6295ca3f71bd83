package main

import (
	"context"
	"errors"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/cli"
)

func get() *urfave.Command {
	return cli.Command{
		Name:      "get",
		Arguments: "KEY",
		Purpose:   "print the value of a key",
		Details: `Prints the value and a newline; with -o raw the value's bytes and nothing else.
A key that has no value prints nothing, and the command ends with 4.

-o json and jsonl print key, value and tag.
` + base64Help,
		Examples: []string{
			"client get greeting",
			"client get config/site -o raw > site.json",
			"client get greeting -o json --timeout 1s",
		},
		Flags: clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat, cli.RawFormat)),
		Codes: cli.ConnectionCodes(cli.ExitNotFound),
		Run: func(c *urfave.Context) error {
			key := c.Args().First()
			if err := abd.Key(key).Check(); err != nil {
				return err
			}
			return with(c, func(ctx context.Context, conn *client.Client) error {
				value, err := conn.Get(ctx, key)
				switch {
				case errors.Is(err, client.ErrNotFound):
					return cli.Silently(err) // nothing is printed, on stderr neither
				case err != nil:
					return err
				}
				return printValue(c, key, value)
			})
		},
	}.Build()
}

// base64Help says how bytes are printed for which JSON has no string.
const base64Help = `In JSON, an object whose key or value isn't UTF-8 has "encoding":"base64", and
then both are base64.`

// found is the result of get in JSON. The encoding is that of key and value.
type found struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Tag      string `json:"tag"`
	Encoding string `json:"encoding,omitempty"`
}

func printValue(c *urfave.Context, key string, v client.Value) error {
	format := cli.OutputOf(c)
	switch format {
	case cli.RawFormat:
		_, err := c.App.Writer.Write(v.Bytes)
		return err
	case cli.TableFormat:
		_, err := c.App.Writer.Write(append(v.Bytes[:len(v.Bytes):len(v.Bytes)], '\n'))
		return err
	}
	texts, encoding := cli.Texts([]byte(key), v.Bytes)
	return cli.PrintObject(c.App.Writer, format, found{Key: texts[0], Value: texts[1], Tag: v.Tag.String(), Encoding: encoding})
}
