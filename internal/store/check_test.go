package store

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// The pieces of the tree are checked apart from one another: a key that is too
// great for its own must not go unnoticed.
func TestKeyBeyondItsPage(t *testing.T) {
	cfg := filled(t, 200)
	good := usedPages(t, cfg.Dir+"/"+stateName)
	n := binary.NativeEndian
	refused, leaves := 0, 0
	for page := 2; page < len(good)/boltPage; page++ {
		b := slices.Clone(good)
		p := b[page*boltPage : (page+1)*boltPage]
		count := int(n.Uint16(p[10:]))
		if n.Uint16(p[8:]) != pageLeaf || count < 5 {
			continue
		}
		at := pageHead + (count-1)*pageElement
		p[at+int(n.Uint32(p[at+4:]))] = 'z' // the first byte of its last key
		c, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil)
		switch {
		case err != nil:
			wantDamage(t, err, stateName)
			refused, leaves = refused+1, leaves+1
		case len(c.damaged) > 0: // in the last page nothing is too great
			leaves++
		}
	}
	if leaves < 3 || refused != leaves-1 {
		t.Errorf("%d of %d pages were refused, want all but the last", refused, leaves)
	}
}
