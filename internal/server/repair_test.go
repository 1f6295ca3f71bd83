package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/repair"
	"atoll/replica"
)

// brisk is a pace for those who wait for repair.
func brisk() repair.Pace {
	return repair.Pace{Pass: 20 * time.Millisecond, Page: time.Millisecond, Look: 10 * time.Millisecond}
}

// statusOf asks until the node's status is as it should be.
func (n node) statusOf(what string, is func(s *replica.Status) bool) {
	n.t.Helper()
	c := n.client()
	eventually(n.t, n.name+" "+what, func() bool {
		s, err := c.Status(n.t.Context())
		if err != nil {
			n.t.Fatal(err)
		}
		for _, m := range s.Members {
			if m.Name == n.name {
				return m.Status != nil && is(m.Status)
			}
		}
		return false
	})
}

// TestRepair: a member that was down takes over what it has missed, and one
// whose records were damaged on disk, in a value, a tag and a key, heals them.
// Then it answers for all of it together with one who has missed it.
func TestRepair(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b", "c")
	start := func(n node) *server.Server {
		cfg := n.config()
		cfg.Pace = brisk()
		cfg.Store.TableBytes = 1 << 10 // so that records get into bbolt at once
		return n.start(cfg)
	}
	a, b, c := start(nodes[0]), start(nodes[1]), start(nodes[2])
	writer := nodes[0].client()
	const keys = 60
	key := func(i int) string { return fmt.Sprintf("key-%02d-x", i) }
	value := func(i int) []byte { return fmt.Appendf(nil, "the value of %02d", i) }
	put := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := writer.Put(t.Context(), key(i), value(i)); err != nil {
				t.Fatal(err)
			}
		}
	}

	// c misses the second half, and the deletion of one of the first.
	put(0, keys/2)
	nodes[2].stop(c)
	put(keys/2, keys)
	if _, err := writer.Delete(t.Context(), key(0)); err != nil {
		t.Fatal(err)
	}
	c = start(nodes[2])
	nodes[2].statusOf("has what it missed", func(s *replica.Status) bool {
		return s.Usage.Keys == keys-1 && s.Usage.Tombstones == 1 && s.Repair.Merged > keys/2
	})

	// On b's disk, bits flip.
	nodes[1].stop(b)
	flip(t, filepath.Join(nodes[1].dir, "b", "state.db"), map[string]int{
		key(5):  len(key(5)) + 50, // in the value
		key(9):  len(key(9)) + 3,  // in the tag
		key(13): len(key(13)) - 1, // in the key, which turns into another one in the same place
	})
	b = start(nodes[1])
	// Three: that one record under a wrong key was removed for it, and the right one
	// put, counts once.
	nodes[1].statusOf("has healed", func(s *replica.Status) bool {
		return s.Repair.Healed == 3 && s.Repair.Damaged == 0 && s.Usage.Keys == keys-1
	})

	// What was healed is in state.db as well, soon.
	nodes[1].stop(b)
	b = start(nodes[1])
	nodes[1].statusOf("has nothing damaged", func(s *replica.Status) bool { return s.Repair.Examined >= keys && s.Repair.Damaged == 0 })

	// Without a, all that is read comes from b and c.
	nodes[0].stop(a)
	reader := nodes[2].client()
	for i := 1; i < keys; i++ {
		v, err := reader.Get(t.Context(), key(i))
		if err != nil || !bytes.Equal(v.Bytes, value(i)) {
			t.Errorf("%s: %q, %v", key(i), v.Bytes, err)
		}
	}
	nodes[1].stop(b)
	nodes[2].stop(c)
}

// Damage that comes record by record makes a line now and then, and none is made
// without news.
func TestDamageIsToldNowAndThen(t *testing.T) {
	t.Parallel()
	var told server.Told
	begin := time.Unix(1000, 0)
	damage, healing := 0, 0
	step := func(after time.Duration, damaged, healed int64) {
		d, h := told.Due(repair.Progress{Damaged: damaged, Healed: healed}, begin.Add(after))
		if d {
			damage++
		}
		if h {
			healing++
		}
	}
	for i := range 1000 { // within a second
		step(time.Duration(i)*time.Millisecond, int64(i), 0)
	}
	if damage != 1 || healing != 0 {
		t.Fatalf("%d lines about damage, %d about healing, want 1 and 0", damage, healing)
	}
	step(server.DamageLogEvery+time.Second, 999, 0) // what was left out is told later
	step(2*server.DamageLogEvery+time.Second, 999, 0)
	if damage != 2 {
		t.Errorf("%d lines about damage, want 2", damage)
	}
	for i := range 999 {
		step(time.Minute, 998-int64(i), int64(i)+1)
	}
	step(time.Minute+server.DamageLogEvery, 0, 999)
	step(2*time.Minute, 0, 999)
	if damage != 2 || healing != 2 {
		t.Errorf("%d lines about damage, %d about healing, want 2 and 2", damage, healing)
	}
	step(2*time.Minute, 1, 999) // another one, when all was well
	if damage != 3 {
		t.Errorf("%d lines about damage, want 3", damage)
	}
}

// flip flips the lowest bit of a byte, so far from the beginning of a key's
// newest copy, in a file.
func flip(t *testing.T, path string, at map[string]int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for key, offset := range at {
		found := 0
		for i := 0; ; {
			next := bytes.Index(b[i:], []byte(key))
			if next < 0 {
				break
			}
			i += next
			b[i+offset] ^= 1 // every copy: most are on pages that are free
			i += len(key)
			found++
		}
		if found == 0 {
			t.Fatalf("%s isn't in %s", key, path)
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
