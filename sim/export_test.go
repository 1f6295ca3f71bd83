package sim

import "time"

// DelayAt returns what d yields for a draw.
func DelayAt(d Delay, u uint64) time.Duration { return d.at(u) }
