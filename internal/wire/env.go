package wire

import (
	"math"

	"atoll/env"
)

func encodeRefused(e *Encoder, m *env.Refused) {
	e.array(2)
	e.uint(uint64(m.Reason))
	e.text(m.Text, maxText)
}

func decodeRefused(d *Decoder) *env.Refused {
	n := d.begin("refused", 1)
	m := &env.Refused{Reason: decodeReason(d)}
	if n > 1 {
		m.Text = d.string("text", maxText)
	}
	d.end(n - 2)
	return m
}

// decodeReason reads a reason of a refusal. One that a newer build has added
// is still a refusal.
func decodeReason(d *Decoder) env.Reason {
	r := d.uint("reason", math.MaxUint64)
	if r > uint64(env.ReasonDenied) {
		return env.ReasonUnknown
	}
	return env.Reason(r)
}
