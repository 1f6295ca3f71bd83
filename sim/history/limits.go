package history

// Limits.
const (
	// MaxLine is how many bytes a line of a file may have.
	MaxLine = 1 << 20
	// maxShownValue is how many bytes of a value are shown to people.
	maxShownValue = 32
	// maxTold is how many deletes, and the reads that need them, the detail
	// of a violation names.
	maxTold = 6
	// maxShown is how many operations of a key a violation prints.
	maxShown = 48
)
