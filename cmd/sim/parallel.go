package main

import (
	"context"
	"sync"
)

// ahead is how many results a worker may be ahead of the first one that isn't
// there yet: seeds differ in how long they take, and nobody should wait for
// one that takes ten times as long; nor may what has run wait without a bound.
const ahead = 16

// inOrder calls work for every seed, on so many workers at a time, and hands
// the results to each in the order of the seeds, whoever finished first. It
// returns the first error of each, after which no seed is begun, and returns
// when no worker is left. When ctx ends, no seed is begun either; those that
// run are finished and handed over.
func inOrder[T any](ctx context.Context, seeds seedRange, workers int, work func(seed uint64) T, each func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		seed   uint64
		result chan T
	}
	jobs := make(chan job)
	pending := make(chan chan T, workers*ahead)

	var done sync.WaitGroup
	defer done.Wait()
	for range workers {
		done.Go(func() {
			for j := range jobs {
				j.result <- work(j.seed)
			}
		})
	}
	done.Go(func() {
		defer close(pending)
		defer close(jobs)
		for i := range seeds.count() {
			if ctx.Err() != nil {
				return
			}
			j := job{seed: seeds.first + i, result: make(chan T, 1)}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
			pending <- j.result
		}
	})

	var first error
	for result := range pending {
		r := <-result
		if first != nil {
			continue
		}
		if first = each(r); first != nil {
			cancel()
		}
	}
	return first
}
