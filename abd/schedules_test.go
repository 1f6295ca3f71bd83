package abd_test

import (
	"testing"

	"atoll/sim/schedule"
)

// The schedules in testdata break wrong implementations of registers.
func TestSchedules(t *testing.T) {
	schedule.Test(t, "testdata", schedule.Registers)
}
