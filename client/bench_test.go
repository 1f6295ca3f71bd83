package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"atoll/client"
	"atoll/internal/identity"
)

// benchmark runs op from so many callers at a time, against three replicas in
// this process. All of it shares the machine: three servers, their disks and
// the client.
func benchmark(b *testing.B, op func(ctx context.Context, c *client.Client, i int) error) {
	h := startCluster(b, 3, identity.Spec{})
	c := h.open()
	ctx := b.Context()
	for i := range benchKeys {
		if _, err := c.Put(ctx, benchKey(i), make([]byte, benchValue)); err != nil {
			b.Fatal(err)
		}
	}
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			b.ResetTimer()
			var work sync.WaitGroup
			for caller := range callers {
				work.Go(func() {
					for i := caller; i < b.N; i += callers {
						if err := op(ctx, c, i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

const (
	benchKeys  = 128
	benchValue = 100 // bytes
)

func benchKey(i int) string { return fmt.Sprintf("bench/%d", i%benchKeys) }

func BenchmarkPut(b *testing.B) {
	value := make([]byte, benchValue)
	benchmark(b, func(ctx context.Context, c *client.Client, i int) error {
		_, err := c.Put(ctx, benchKey(i), value)
		return err
	})
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, func(ctx context.Context, c *client.Client, i int) error {
		_, err := c.Get(ctx, benchKey(i))
		return err
	})
}
