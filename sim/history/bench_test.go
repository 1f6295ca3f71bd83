package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"atoll/sim/history"
)

// large returns what a register for each key showed to a number of clients
// that worked without a pause: half reads, a tenth deletes, one operation in
// a hundred unknown.
func large(operations, keys, clients int) history.History {
	rnd := rand.New(rand.NewPCG(1, 2))
	h := make(history.History, operations)
	registers := make([]content, keys)
	free := make([]time.Duration, clients)
	names := make([]string, keys)
	for k := range names {
		names[k] = fmt.Sprintf("k%d", k)
	}
	// The i-th operation takes effect at time 10 i, so each is as long as the
	// others of its time.
	for i := range h {
		client, key := i%clients, rnd.IntN(keys)
		point := time.Duration(10 * i)
		op := history.Operation{Client: "c", Key: names[key], Outcome: history.OK,
			Call: max(free[client], point-time.Duration(rnd.IntN(5*clients))), Return: point + time.Duration(rnd.IntN(5*clients))}
		free[client] = op.Return
		register := &registers[key]
		switch draw := rnd.IntN(100); {
		case draw < 50:
			op.Kind, op.Found, op.Value = history.Read, register.found, register.value
		case draw < 60:
			op.Kind, *register = history.Delete, content{}
		default:
			op.Kind, op.Value = history.Write, fmt.Sprintf("v%d", i)
			*register = content{true, op.Value}
		}
		if op.Kind != history.Read && rnd.IntN(100) == 0 {
			op.Outcome = history.Unknown
		}
		h[i] = op
	}
	return h
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ operations, keys, clients int }{
		{1_000, 1, 5}, {1_000_000, 1, 100}, {1_000_000, 1_000, 100}, {1_000_000, 1_000, 10_000}, {10_000_000, 10_000, 1_000},
	} {
		b.Run(fmt.Sprintf("operations=%d/keys=%d/clients=%d", c.operations, c.keys, c.clients), func(b *testing.B) {
			h := large(c.operations, c.keys, c.clients)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := history.Check(h); v != nil || err != nil {
					b.Fatal(v, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.operations), "ns/operation")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	var file bytes.Buffer
	if _, err := large(100_000, 1_000, 100).WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.Load(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
