package join_test

import (
	"testing"

	"atoll/sim/schedule"
)

// The schedules in testdata break wrong implementations of joining and greeting.
func TestSchedules(t *testing.T) {
	schedule.Test(t, "testdata", schedule.Registers, schedule.Joining)
}
