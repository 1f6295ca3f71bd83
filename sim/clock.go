package sim

import "time"

// clock is what a process takes for the time, where that isn't the world's:
// since the world's time was set, it has run from read on, faster or slower.
type clock struct {
	set, read time.Duration
	drift     int64         // parts per million
	high      time.Duration // it never shows less
}

// maxDrift is how many parts per million a clock may drift.
const maxDrift = million / 2

// at returns what the clock shows at a time of the world.
func (c *clock) at(now time.Duration) time.Duration { return max(c.high, c.free(now)) }

// free returns what the clock would show if it could go back.
func (c *clock) free(now time.Duration) time.Duration {
	d := now - c.set
	return c.read + d + d/million*time.Duration(c.drift) + d%million*time.Duration(c.drift)/million
}

// when returns the first time of the world, from now on, at which the clock
// shows t or more.
func (c *clock) when(now, t time.Duration) time.Duration {
	if t <= c.at(now) {
		return now
	}
	d := t - c.read
	rate := million + time.Duration(c.drift)
	at := max(now, c.set+d/rate*million+d%rate*million/rate)
	for c.at(at) < t {
		at++ // what the divisions cut off
	}
	return at
}

// Clock returns what the process takes for the time: env.Now of its callers,
// by which their deadlines, sleeps and resends go. It is the world's time
// unless the clock was touched.
func (p *Process) Clock() time.Duration {
	if p.clock == nil {
		return p.w.now
	}
	return p.clock.at(p.w.now)
}

// JumpClock moves the clock of a process by d at once: what was due meanwhile
// is due now. A clock that is moved back stands still until it has caught up,
// since env.Now never goes back.
func (p *Process) JumpClock(by time.Duration) {
	p.adjust(by, p.drift())
}

// DriftClock lets the clock of a process go faster or slower than the world's
// by that many parts per million, half a million at most, from now on.
func (p *Process) DriftClock(perMillion int) {
	if perMillion < -maxDrift || perMillion > maxDrift {
		panic("sim: a clock that drifts by more than half")
	}
	p.adjust(0, int64(perMillion))
}

func (p *Process) drift() int64 {
	if p.clock == nil {
		return 0
	}
	return p.clock.drift
}

func (p *Process) adjust(by time.Duration, drift int64) {
	shown := p.Clock()
	read := shown
	if p.clock != nil {
		read = p.clock.free(p.w.now)
	}
	p.clock = &clock{set: p.w.now, read: read + by, drift: drift, high: shown}
	for _, c := range p.callers {
		if c.timed {
			c.rearm()
		}
	}
}

// when returns the time of the world, from now on, at which the process's
// clock shows t.
func (p *Process) when(t time.Duration) time.Duration {
	if p.clock == nil {
		return max(p.w.now, t)
	}
	return p.clock.when(p.w.now, t)
}
