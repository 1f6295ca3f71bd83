package replica_test

import (
	"math/rand/v2"
	"testing"

	"atoll/abd"
	"atoll/replica"
)

// FuzzNode plays what the fuzzer writes: see sequence. No panic, no answer
// that can't be sent, tags never go down, nothing leaves before it is durable,
// and a node that comes up again keeps what an earlier life has promised.
func FuzzNode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		f.Add(randomScript(rng, 200))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := playSequence(script, replica.Rules{}); err != nil {
			t.Error(err)
		}
	})
}

func randomScript(rng *rand.Rand, size int) []byte {
	script := make([]byte, size)
	for i := range script {
		script[i] = byte(rng.Uint32())
	}
	return script
}

// TestSequences plays random scripts, and shows for each rule of a replica
// that they notice when it is broken.
func TestSequences(t *testing.T) {
	const scripts, size = 1500, 300
	for _, c := range []struct {
		name   string
		rules  replica.Rules
		broken bool
	}{
		{"none", replica.Rules{}, false},
		{"AckBeforeSync", replica.Rules{AckBeforeSync: true}, true},
		{"StoreAnything", replica.Rules{ABD: abd.Rules{StoreAnything: true}}, true},
		{"AckDuplicateAtOnce", replica.Rules{ABD: abd.Rules{AckDuplicateAtOnce: true}}, true},
		{"RevealUnsynced", replica.Rules{ABD: abd.Rules{RevealUnsynced: true}}, true},
		{"ConfirmAnyTag", replica.Rules{ABD: abd.Rules{ConfirmAnyTag: true}}, true},
		{"EraseTombstones", replica.Rules{ABD: abd.Rules{EraseTombstones: true}}, true},
		{"DamagedIsAbsent", replica.Rules{ABD: abd.Rules{DamagedIsAbsent: true}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(2, 3))
			for i := range scripts {
				switch err := playSequence(randomScript(rng, size), c.rules); {
				case err != nil && c.broken:
					t.Logf("noticed by script %d: %v", i, err)
					return
				case err != nil:
					t.Fatalf("script %d: %v", i, err)
				}
			}
			if c.broken {
				t.Errorf("%d scripts didn't notice", scripts)
			}
		})
	}
}
