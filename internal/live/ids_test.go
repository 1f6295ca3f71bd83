package live_test

import (
	"testing"

	"atoll/internal/live"
)

// TestProcessesDrawTheirIDs: no two processes, nor two lives of one, name
// operations alike (R1). Each part of what they draw differs, the first eight
// bytes and the two behind them; one alone would be too little.
func TestProcessesDrawTheirIDs(t *testing.T) {
	const processes = 100
	high, low := make(map[[8]byte]bool), make(map[[2]byte]bool)
	for range processes {
		r := live.New(live.Config{Network: &line{}})
		id := r.Scope(t.Context()).ID().Bytes()
		r.Stop()
		high[[8]byte(id[:8])] = true
		low[[2]byte(id[8:10])] = true
	}
	// Of a hundred draws out of 65,536, a few may be alike by chance.
	if len(high) != processes || len(low) < processes-10 {
		t.Errorf("%d processes drew %d first parts and %d second ones", processes, len(high), len(low))
	}
}
