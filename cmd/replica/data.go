package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/internal/store"
)

const flagPrefix = "prefix"

func dataCommands() *urfave.Command {
	return cli.Group("data", "look into the files of a node that doesn't run",
		dataCheckCommand(),
		dataDumpCommand(),
		dataCompactCommand(),
	)
}

// dataCodes are the exit codes of what reads a node's files.
func dataCodes() []int { return []int{cli.ExitPrecondition, cli.ExitDamaged} }

func dataCheckCommand() *urfave.Command {
	return cli.Command{
		Name:    "check",
		Purpose: "read all files of a node, and name everything that is damaged",
		Details: `Reads identity, database and journal to the last byte, holds every checksum
against what it covers, and changes nothing. The node must not run. A node that
this finds nothing wrong with starts.

Exit code 9 says that something is damaged; what it is stands in the result.`,
		Examples: []string{
			"replica data check --data-dir cluster/a",
			"replica data check --data-dir cluster/a -o json",
		},
		Flags: []urfave.Flag{
			dataDirFlag(dataDirOfNode),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat),
		},
		Codes: dataCodes(),
		Run:   checkData,
	}.Build()
}

// checkObject is what data check prints as JSON.
type checkObject struct {
	Dir        string         `json:"dir"`
	OK         bool           `json:"ok"`
	Keys       int64          `json:"keys"`
	Tombstones int64          `json:"tombstones"`
	Files      []fileObject   `json:"files"`
	Damage     []damageObject `json:"damage"`
}

type fileObject struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Records int64  `json:"records"`
	Damaged int    `json:"damaged"`
	Note    string `json:"note,omitempty"`
}

type damageObject struct {
	File     string `json:"file"`
	Offset   *int64 `json:"offset,omitempty"`
	Key      string `json:"key,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	Reason   string `json:"reason"`
	WayOut   string `json:"way_out,omitempty"`
	text     string // for people, without the way out
}

func checkData(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	_, folderErr := identity.OpenFolder(dir)
	report, err := store.Check(dir)
	own := ownStore(dir)
	if errors.Is(own, store.ErrNoStore) {
		report, err = &store.Report{}, nil
	}
	if err != nil {
		return cmp.Or(folderErr, err)
	}
	o := checkObject{Dir: dir, Keys: report.Keys, Tombstones: report.Tombstones, Damage: []damageObject{}}
	all := report.Damage()
	if own != nil {
		all = append([]error{own}, all...)
	}
	if identity.ClassOf(folderErr) == identity.Damaged {
		all = append([]error{folderErr}, all...)
		folderErr = cli.Silently(folderErr)
	} else if folderErr == nil && len(all) > 0 {
		folderErr = cli.Silently(all[0])
	}
	for _, err := range all {
		d := describeDamage(err)
		d.text = strings.TrimSuffix(d.text, "; "+d.WayOut)
		o.Damage = append(o.Damage, d)
	}
	o.OK = len(all) == 0
	o.Files = identityFiles(dir, o.Damage)
	for _, f := range report.Files {
		o.Files = append(o.Files, fileObject{File: f.Path, Bytes: f.Bytes, Records: f.Records, Damaged: len(f.Damage), Note: f.Note})
	}
	// What else keeps the node from starting, an old certificate say, is said
	// after the result.
	return cmp.Or(printCheck(c, o), folderErr)
}

// ownStore returns the error of a folder whose store is gone, or isn't the one that
// the node began with; what is damaged in it is another matter. Without an identity
// there is nothing to hold a store against.
func ownStore(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, identity.FileIdentity)); err != nil {
		return nil
	}
	_, err := server.StoreOf(dir)
	if identity.ClassOf(err) == identity.Damaged {
		return err
	}
	return nil
}

// identityFiles are those that make a folder a certain node's.
func identityFiles(dir string, damage []damageObject) (files []fileObject) {
	for _, name := range []string{identity.FileIdentity, identity.FileCluster, identity.FileCA, identity.FileCertificate, identity.FileKey, identity.FileInstance} {
		f := fileObject{File: filepath.Join(dir, name)}
		info, err := os.Stat(f.File)
		switch {
		case err == nil:
			f.Bytes = info.Size()
		case name == identity.FileInstance:
			continue // an earlier version made the folder: the next start writes it
		}
		for _, d := range damage {
			if d.File == f.File {
				f.Damaged++
			}
		}
		files = append(files, f)
	}
	return files
}

// describeDamage takes apart what an error says.
func describeDamage(err error) damageObject {
	var d *store.DamageError
	var f *identity.FolderError
	switch {
	case errors.As(err, &d):
		o := damageObject{File: d.File, Reason: d.Reason, WayOut: d.WayOut, text: err.Error()}
		if d.Offset >= 0 {
			o.Offset = &d.Offset
		}
		if d.OneRecord {
			texts, encoding := cli.Texts([]byte(d.Key))
			o.Key, o.Encoding = texts[0], encoding
		}
		return o
	case errors.As(err, &f):
		return damageObject{File: f.File, Reason: f.Problem, WayOut: f.WayOut, text: err.Error()}
	}
	var newer *store.FormatError
	if errors.As(err, &newer) {
		return damageObject{File: newer.File, Reason: fmt.Sprintf("format %d, and this program reads up to %d", newer.Found, newer.Supported),
			WayOut: "use a newer program", text: err.Error()}
	}
	return damageObject{Reason: err.Error(), text: err.Error()}
}

func printCheck(c *urfave.Context, o checkObject) error {
	if cli.OutputOf(c) == cli.JSONFormat {
		return cli.PrintJSON(c.App.Writer, o)
	}
	t := cli.NewTable(c.App.Writer, "FILE", "SIZE", "RECORDS", "STATE")
	for _, f := range o.Files {
		state := "good"
		if f.Damaged > 0 {
			state = "DAMAGED"
		} else if f.Note != "" {
			state = f.Note
		}
		if err := t.Row(cli.Cell(f.File), cli.Bytes(f.Bytes), strconv.FormatInt(f.Records, 10), state); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.App.Writer, "\n%d keys, %d deleted; damage: %d\n", o.Keys, o.Tombstones, len(o.Damage))
	for _, d := range o.Damage {
		if err == nil {
			_, err = fmt.Fprintln(c.App.Writer, d.text)
		}
	}
	// Damage of one kind has one way out, however much there is of it.
	var told []string
	for _, d := range o.Damage {
		if err == nil && d.WayOut != "" && !slices.Contains(told, d.WayOut) {
			told = append(told, d.WayOut)
			_, err = fmt.Fprintf(c.App.Writer, "\nwhat to do: %s\n", d.WayOut)
		}
	}
	return err
}

func dataDumpCommand() *urfave.Command {
	return cli.Command{
		Name:    "dump",
		Purpose: "print every record that a node has, as JSON lines",
		Details: `Prints what this one node holds, which may be older than what the cluster does:
the newest record of each key in its database and journal, deleted ones too, in
order of the keys. The node must not run.

In each object key and value stand for themselves, or both are base64 and the
object says so with "encoding":"base64". What is damaged is left out and logged;
then the exit code is 9, and a record that is printed may be an older one.`,
		Examples: []string{
			"replica data dump --data-dir cluster/a",
			"replica data dump --data-dir cluster/a --prefix config/ | jq -r .key",
		},
		Flags: append([]urfave.Flag{
			dataDirFlag(dataDirOfNode),
			&urfave.StringFlag{Name: flagPrefix, EnvVars: []string{cli.Environment(flagPrefix)}, Usage: "only keys that begin with `TEXT`; without it, all"},
		}, cli.LogFlags(slog.LevelWarn)...),
		Codes: dataCodes(),
		Run:   dumpData,
	}.Build()
}

// dumped is a record in JSON.
type dumped struct {
	Key      string `json:"key"`
	Tag      string `json:"tag"`
	Deleted  bool   `json:"deleted"`
	Value    string `json:"value"`
	Encoding string `json:"encoding,omitempty"`
}

func dumpData(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	log := cli.Logger(c)
	var first error
	n := 0
	own := ownStore(dir)
	if errors.Is(own, store.ErrNoStore) {
		return own
	}
	err = store.Dump(dir, abd.Key(c.String(flagPrefix)), func(key abd.Key, r abd.Record) error {
		if c.Context.Err() != nil {
			return cli.ErrInterrupted
		}
		texts, encoding := cli.Texts([]byte(key), r.Value)
		return cli.PrintLine(c.App.Writer, dumped{Key: texts[0], Tag: r.Tag.String(), Deleted: r.Deleted, Value: texts[1], Encoding: encoding})
	}, func(damage error) {
		log.Warn("left out", "err", damage)
		n++
		if first == nil {
			first = damage
		}
	})
	if err == nil && n > 0 {
		err = fmt.Errorf("damage was met %d times, and what it touches was left out: %w", n, first)
	}
	return cmp.Or(err, own)
}

func dataCompactCommand() *urfave.Command {
	return cli.Command{
		Name:    "compact",
		Purpose: "rewrite a node's database without the space that it no longer uses",
		Details: `Writes a new state.db beside the old one, reads it back, and puts it in the old
one's place; a crash at any moment leaves one of the two. The journal stays as
it is. The node must not run, "replica data check" must find no damage, and there
must be as much free space as the old file uses.`,
		Examples: []string{
			"replica data compact --data-dir cluster/a",
			"replica data compact --data-dir cluster/a -o json",
		},
		Flags: []urfave.Flag{
			dataDirFlag(dataDirOfNode),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat),
		},
		Codes: dataCodes(),
		Run:   compactData,
	}.Build()
}

// compactObject is what data compact prints as JSON.
type compactObject struct {
	File    string  `json:"file"`
	Before  int64   `json:"before_bytes"`
	After   int64   `json:"after_bytes"`
	Records int64   `json:"records"`
	Seconds float64 `json:"seconds"`
}

func compactData(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	if _, err := identity.OpenFolder(dir); err != nil {
		return err
	}
	if err := ownStore(dir); err != nil {
		return err
	}
	begin := time.Now()
	done, err := store.Compact(store.Config{Dir: dir})
	if err != nil {
		return err
	}
	o := compactObject{File: filepath.Join(dir, store.StateFile), Before: done.Before, After: done.After, Records: done.Records,
		Seconds: time.Since(begin).Seconds()}
	if cli.OutputOf(c) == cli.JSONFormat {
		return cli.PrintJSON(c.App.Writer, o)
	}
	return cli.Pairs(c.App.Writer,
		"file", o.File,
		"before", cli.Bytes(o.Before),
		"after", cli.Bytes(o.After),
		"records", strconv.FormatInt(o.Records, 10),
		"took", time.Since(begin).Round(time.Millisecond).String())
}
