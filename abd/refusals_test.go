package abd_test

import (
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// TestARefusalEndsOnlyWhatItMakesImpossible: a get phase needs a read quorum
// and a put phase a write quorum, and neither cares for the other's.
func TestARefusalEndsOnlyWhatItMakesImpossible(t *testing.T) {
	for _, test := range []struct {
		name, system string
		run          func(l *lister, e env.Env) error
	}{
		{"a read of one, when writes need all", "get=1,put=3", func(l *lister, e env.Env) error {
			_, err := l.registers.Read(e, "k")
			return err
		}},
		{"a put to one, when reads need all", "get=3,put=1", func(l *lister, e env.Env) error {
			// Its tag is chosen: what is left is the put phase.
			op := abd.Operation{ID: pid(9), Key: "k", Tag: tags.Tag{Seq: 9, PID: pid(9)}}
			_, err := l.registers.Write(e, op)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(20) {
				l := newLister(t, seed, test.system, 3)
				for _, node := range l.nodes[:2] {
					node.Disk().Damage("k") // it refuses what concerns the key
				}
				scope := l.world.AddClient("p").Scope(time.Minute)
				scope.Start(func(e env.Env) error { return test.run(l, e) })
				if err := l.world.Wait(2*time.Minute, scope); err != nil || scope.Err() != nil {
					t.Fatalf("seed %d: %v, %v; one member is left, and enough", seed, err, scope.Err())
				}
			}
		})
	}
}
