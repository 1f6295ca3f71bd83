package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
)

// A value is its label, a zero byte, the number of bytes that follow, another
// zero byte, and padding that follows from label and number: so a read that got
// a part of a value, or bytes of another one, is told from one that got it
// whole, and only labels are kept.

// valueOf returns the value with a label and so many bytes of padding.
func valueOf(label string, padding int) []byte {
	b := fmt.Appendf(make([]byte, 0, len(label)+padding+16), "%s\x00%d\x00", label, padding)
	return append(b, paddingOf(label, padding)...)
}

// labelOf returns the label of a value; an error if it isn't one.
func labelOf(value []byte) (string, error) {
	parts := bytes.SplitN(value, []byte{0}, 3)
	if len(parts) < 3 {
		return "", fmt.Errorf("a value of %d bytes without a label", len(value))
	}
	label, padding := string(parts[0]), parts[2]
	if n, err := strconv.Atoi(string(parts[1])); err != nil || n != len(padding) {
		return "", fmt.Errorf("%d bytes behind the label %q, not %q", len(padding), label, parts[1])
	}
	if !bytes.Equal(padding, paddingOf(label, len(padding))) {
		return "", fmt.Errorf("the %d bytes behind the label %q aren't its own", len(padding), label)
	}
	return label, nil
}

func paddingOf(label string, n int) []byte {
	seed := fnv.New64a()
	seed.Write([]byte(label))
	r := rand.NewPCG(seed.Sum64(), uint64(n))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}
