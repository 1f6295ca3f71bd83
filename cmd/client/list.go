package main

import (
	"context"
	"errors"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/cli"
)

func list() *urfave.Command {
	return cli.Command{
		Name:      "list",
		Arguments: "[PREFIX]",
		Purpose:   "print the keys that have a value, in order",
		Details: `Keys are printed as they come, page by page: those that begin with PREFIX, or all.
What is printed of each key is atomic; the list is no snapshot of all of them.
With -o raw each key is followed by a newline.

-o json prints one object with an array "keys" of objects with key and tag;
jsonl prints these objects, one a line. In JSON, an object whose key isn't UTF-8
has "encoding":"base64", and its key is base64. In the table such a key, one
with characters that can't be printed, and one that begins with ", is quoted as
in Go.`,
		Examples: []string{
			"client list",
			"client list config/ -o jsonl",
			"client list -o raw | wc -l",
		},
		Flags: clusterFlags("each page of keys", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat, cli.RawFormat)),
		Codes: cli.ConnectionCodes(),
		Run: func(c *urfave.Context) error {
			prefix := c.Args().First()
			if len(prefix) > abd.MaxKey {
				return &abd.SizeError{What: "prefix", Size: len(prefix), Max: abd.MaxKey}
			}
			return withClient(c.Context, c, func(ctx context.Context, conn *client.Client) error {
				return printKeys(ctx, c, conn, prefix)
			})
		},
	}.Build()
}

// listed is a key in JSON.
type listed struct {
	Key      string `json:"key"`
	Tag      string `json:"tag"`
	Encoding string `json:"encoding,omitempty"`
}

func printKeys(ctx context.Context, c *urfave.Context, conn *client.Client, prefix string) error {
	s := cli.NewSequence(c.App.Writer, cli.OutputOf(c), "keys", "KEY", "TAG")
	for entry, err := range conn.List(ctx, prefix) {
		if err != nil {
			return errors.Join(err, s.Break())
		}
		texts, encoding := cli.Texts([]byte(entry.Key))
		tag := entry.Tag.String()
		if err := s.Add(listed{Key: texts[0], Tag: tag, Encoding: encoding}, entry.Key, cli.Cell(entry.Key), tag); err != nil {
			return err
		}
	}
	return s.End()
}
