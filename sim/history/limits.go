package history

import "time"

// Limits.
const (
	// MaxLine is how many bytes a line of a file may have.
	MaxLine = 4 << 20
	// maxShownText is how many bytes of a value, key or client's name are
	// shown to people.
	maxShownText = 40
	// maxTold is how many deletes, each with the read that needs it, the
	// detail of a violation names.
	maxTold = 6
	// maxShown is how many operations of a key a violation prints.
	maxShown = 40
	// barWidth is how many columns their drawing has at most.
	barWidth = 48
	// maxPlainTime is the latest time that is printed as it is. Later ones,
	// such as those since 1970, are printed since the first of them.
	maxPlainTime = 1000 * time.Hour
)
