package target

import "testing"

func TestAccessOfNothing(t *testing.T) {
	if _, _, err := (Access{Target: "nosuch"}).Connect(t.Context(), 0); err == nil {
		t.Error("a target that there is none of was reached")
	}
}
