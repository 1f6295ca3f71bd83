package scenario

import (
	"strconv"

	"atoll/abd"
)

// keyName returns the name of the k-th register of a cluster, from 0.
func keyName(k int) abd.Key { return abd.Key("k" + strconv.Itoa(k+1)) }

// keyNumber is the inverse of keyName, -1 for other keys.
func keyNumber(key abd.Key) int {
	if len(key) < 2 || len(key) > 10 || key[0] != 'k' || key[1] == '0' {
		return -1
	}
	n := 0
	for i := 1; i < len(key); i++ {
		if key[i] < '0' || key[i] > '9' {
			return -1
		}
		n = n*10 + int(key[i]-'0')
	}
	return n - 1
}

// keyOf returns the key that a text names.
func keyOf(text string) abd.Key { return abd.Key(text) }
