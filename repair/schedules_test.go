package repair_test

import (
	"testing"

	"atoll/sim/schedule"
)

// The schedules in testdata break wrong ways of pulling and healing.
func TestSchedules(t *testing.T) {
	schedule.Test(t, "testdata", schedule.Registers, schedule.Repair)
}
