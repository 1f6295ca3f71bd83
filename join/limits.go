package join

import "time"

// Limits.
const (
	// MaxNodes is how many nodes a node remembers by their instances: many more than
	// it knows, since those that were removed and are silent are remembered here. When
	// there are more, of these some make room.
	MaxNodes = 512
	// positionStep is by how many records a position has grown when it is
	// written again.
	positionStep = 4096
	// DefaultPace is how often a node greets others, unless Tasks says
	// otherwise.
	DefaultPace = 10 * time.Second
	// JoinPause is how long a node that wants to join waits for an answer until
	// it looks again at what it knows.
	JoinPause = time.Second
)
