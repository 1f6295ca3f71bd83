package scenario

import (
	"fmt"

	"atoll/abd"
)

// keyName returns the name of the k-th register of a cluster, from 0.
func keyName(k int) abd.Key { return abd.Key(fmt.Sprintf("k%d", k+1)) }
