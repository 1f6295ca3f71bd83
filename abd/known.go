package abd

import "atoll/quorum"

// Known is the config map that operations go by. It grows while they run:
// answers reveal newer configurations.
type Known interface {
	// Map returns what is known now; never nil.
	Map() *quorum.Map
	// Learn takes what an answer reveals, and returns what is known then. It is
	// called where the answer arrives, maybe from many goroutines at a time,
	// and must not block. What can't be true it leaves out.
	Learn(*quorum.News) *quorum.Map
}

// Fixed is the config map of a cluster that doesn't change: configurations
// that are all active, and stay so. It panics if they don't follow each other.
func Fixed(active ...*quorum.Configuration) Known {
	m, err := quorum.NewMap(active...)
	if err != nil {
		panic(err)
	}
	return fixed{m}
}

type fixed struct{ m *quorum.Map }

func (f fixed) Map() *quorum.Map               { return f.m }
func (f fixed) Learn(*quorum.News) *quorum.Map { return f.m }
