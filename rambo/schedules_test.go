package rambo_test

import (
	"testing"

	"atoll/sim/schedule"
)

// The schedules in testdata break wrong implementations of the step from one
// configuration to the next.
func TestSchedules(t *testing.T) {
	schedule.Test(t, "testdata", schedule.Registers, schedule.Repair, schedule.Rambo)
}
