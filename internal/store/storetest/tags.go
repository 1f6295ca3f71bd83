package storetest

import (
	"fmt"
	"math"
	"testing"

	"atoll/abd"
	"atoll/tags"
)

// wholeTags stores tags that differ in a single bit, wherever it is: an order
// of tags that forgets one isn't the order that the replicas agree on.
func wholeTags(t *testing.T, h Harness) {
	var all []tags.Tag
	for bit := range 64 {
		all = append(all, tags.Tag{Seq: 1 << bit}, tags.Tag{Seq: 1, RMW: 1 << bit}, tags.Tag{Seq: 1, PID: tags.NewPID(1<<bit, 0, 0)})
	}
	for bit := range 16 {
		all = append(all, tags.Tag{Seq: 1, PID: tags.NewPID(0, 1<<bit, 0)})
	}
	for bit := uint64(1); bit <= tags.MaxCount; bit <<= 1 {
		all = append(all, tags.Tag{Seq: 1, PID: tags.NewPID(0, 0, bit)})
	}
	all = append(all, tags.Tag{Seq: math.MaxUint64, PID: tags.NewPID(math.MaxUint64, math.MaxUint16, tags.MaxCount), RMW: math.MaxUint64})
	key := func(i int) abd.Key { return abd.Key(fmt.Sprintf("%03d", i)) }
	check := func() {
		t.Helper()
		for i, tag := range all {
			wantRecord(t, h.Store(), key(i), abd.Record{Tag: tag, Value: []byte(tag.String())})
		}
		got := list(t, h.Store(), "", "", len(all)+1)
		if len(got) != len(all) {
			t.Fatalf("Scan has %d keys, want %d", len(got), len(all))
		}
		for i, g := range got {
			if g != (item{key(i), all[i], false}) {
				t.Fatalf("key %d of Scan is %v, want tag %v", i, g, all[i])
			}
		}
	}
	for i, tag := range all {
		put(t, h.Store(), key(i), abd.Record{Tag: tag, Value: []byte(tag.String())})
	}
	check()
	h.Store().Cut()
	commit(t, h.Store())
	check()
	h.Crash()
	check()
	h.Reopen()
	check()
}
