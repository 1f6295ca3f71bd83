package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
	"atoll/internal/store"
)

const (
	// killWithin bounds how long clients write until a replica is killed.
	killWithin = 10 * time.Minute
	// writtenLive is how much of the journal is left to them, in MiB: two segments, of
	// which the last is only begun. The rest is there before, as a replica would have
	// it applied in time.
	writtenLive = 32
	// killPoll is how often its journal is looked at meanwhile.
	killPoll = 20 * time.Millisecond
	// segmentPattern is what segments of the journal are called that are in use.
	segmentPattern = "[0-9]*.log"
)

// killed starts a replica with a journal, has clients write to keys at random while
// that is applied, and kills it in the midst of both when so many MiB are in use. It
// notes what is there.
func (s startups) killed(b *bed, cluster *target.Cluster, c *client.Client, o *offline, r *report.Start) error {
	if _, _, err := o.journal(b.ctx, r.Keys, int64(max(0, r.Asked-writtenLive))<<20); err != nil {
		return err
	}
	if err := cluster.Launch(b.ctx, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.ctx, killWithin)
	defer cancel()
	wrote := make(chan error, 1)
	go func() {
		spec := load.Spec{Op: load.Put, Clients: s.clients, Keys: sampleOf(r.Keys), ValueSize: s.value, Duration: killWithin, Seed: uint64(r.Round)}
		_, err := load.Run(ctx, spec, func(int) load.Client { return target.AtollClient(c) })
		wrote <- err
	}()
	journal := filepath.Join(cluster.Folder(0), "journal")
	for {
		used, err := segmentBytes(journal)
		if err != nil {
			return err
		}
		if used >= int64(r.Asked)<<20 {
			break
		}
		if err := wait(ctx, killPoll); err != nil {
			return fmt.Errorf("the journal has %d MiB in use, and doesn't get more: %w", used>>20, err)
		}
	}
	cluster.Member(0).Kill()
	cancel()
	if err := <-wrote; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	found, err := store.Check(cluster.Folder(0))
	if err != nil {
		return err
	}
	if damage := found.Damage(); len(damage) > 0 {
		return fmt.Errorf("after the kill: %w", damage[0])
	}
	for _, f := range found.Files {
		if inUse, _ := filepath.Match(segmentPattern, filepath.Base(f.Path)); inUse {
			r.Unapplied += f.Records
		}
	}
	r.Journal, err = segmentBytes(journal)
	return err
}

// segmentBytes is the size of the segments of a journal that are in use.
func segmentBytes(journal string) (total int64, err error) {
	names, err := filepath.Glob(filepath.Join(journal, segmentPattern))
	for _, name := range names {
		size, err := target.Size(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		total += size
	}
	return total, err
}
