package udpproxy

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Way is a direction.
type Way int

// The ways.
const (
	ToServer Way = iota
	ToClient
	ways
)

// String names the way.
func (w Way) String() string {
	if w == ToServer {
		return "to the server"
	}
	return "to the client"
}

// Faults are what becomes of datagrams. The zero value forwards each as it is,
// at once.
type Faults struct {
	// Blackhole swallows everything.
	Blackhole bool
	// MTU is the size in bytes above which a datagram is lost, without a word
	// to its sender. 0: none is too large.
	MTU int
	// Loss, Truncate, Corrupt, Duplicate and Reorder are how probable it is
	// that a datagram is lost, loses its end, has one bit flipped, arrives
	// twice, or is held back by ReorderBy, so that later ones overtake it. 0
	// to 1.
	Loss, Truncate, Corrupt, Duplicate, Reorder float64
	// ReorderBy is how long a datagram that is reordered is held back beyond
	// its Delay.
	ReorderBy time.Duration
	// Delay is how long each datagram takes, and Jitter the most that is
	// added to it at random, for each datagram anew: with it they overtake
	// each other.
	Delay, Jitter time.Duration
	// Rate is how many bytes a second pass in this direction, all flows
	// together. What comes faster waits for its turn. 0: any number.
	Rate int
}

// Validate says what is wrong with f.
func (f Faults) Validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"Loss", f.Loss}, {"Truncate", f.Truncate}, {"Corrupt", f.Corrupt}, {"Duplicate", f.Duplicate}, {"Reorder", f.Reorder},
	} {
		if !(p.value >= 0 && p.value <= 1) { // and so not NaN either
			return fmt.Errorf("udpproxy: %s of %v is no probability", p.name, p.value)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"ReorderBy", f.ReorderBy}, {"Delay", f.Delay}, {"Jitter", f.Jitter}} {
		if d.value < 0 || d.value > MaxDelay {
			return fmt.Errorf("udpproxy: %s of %v isn't between 0 and %v", d.name, d.value, MaxDelay)
		}
	}
	if f.MTU < 0 || f.Rate < 0 {
		return fmt.Errorf("udpproxy: negative limit (MTU %d, Rate %d)", f.MTU, f.Rate)
	}
	return nil
}

// draws are the random numbers of one datagram. All are drawn for each,
// whatever the faults: so the next datagram's don't depend on them.
type draws struct {
	loss, truncate, corrupt, duplicate, reorder, jitter float64 // in [0, 1)
	at                                                  uint64  // where it is cut or flipped
}

func draw(r *rand.Rand) draws {
	return draws{
		loss: r.Float64(), truncate: r.Float64(), corrupt: r.Float64(), duplicate: r.Float64(), reorder: r.Float64(), jitter: r.Float64(),
		at: r.Uint64(),
	}
}

// source returns the randomness of one direction of a flow.
func source(seed, flow uint64, w Way) *rand.Rand {
	return rand.New(rand.NewPCG(seed, flow*uint64(ways)+uint64(w)))
}

// fate is what becomes of one datagram.
type fate struct {
	datagram []byte
	copies   int // 0: it is lost
	delay    time.Duration
	damaged  bool
}

// decide applies f to a datagram, whose bytes it may change.
func (f *Faults) decide(datagram []byte, d draws) fate {
	if f.Blackhole || f.MTU > 0 && len(datagram) > f.MTU || d.loss < f.Loss {
		return fate{}
	}
	decided := fate{datagram: datagram, copies: 1, delay: f.Delay + time.Duration(d.jitter*float64(f.Jitter))}
	if d.truncate < f.Truncate && len(datagram) > 0 {
		decided.datagram = datagram[:d.at%uint64(len(datagram))]
		decided.damaged = true
	}
	if bits := 8 * uint64(len(decided.datagram)); d.corrupt < f.Corrupt && bits > 0 {
		bit := d.at % bits
		decided.datagram[bit/8] ^= 1 << (bit % 8)
		decided.damaged = true
	}
	if d.reorder < f.Reorder {
		decided.delay += f.ReorderBy
	}
	if d.duplicate < f.Duplicate {
		decided.copies = 2
	}
	return decided
}
