package tags_test

import (
	"fmt"

	"atoll/tags"
)

// Two writers find the same tag at a read quorum and write at the same time;
// then a third operation updates the value that won.
func Example() {
	var found tags.Tag // a register that was never written

	ann := tags.NewPID(0xa, 0, 1) // in a program, hi and lo are drawn at random
	bob := tags.NewPID(0xb, 0, 1)
	first, _ := found.Next(ann)
	second, _ := found.Next(bob)
	fmt.Println("ann:   ", first)
	fmt.Println("bob:   ", second)
	fmt.Println("bob's is later:", first.Less(second))

	update, _ := second.Update()
	fmt.Println("update:", update)

	later, _ := second.Next(ann)
	fmt.Println("a write after bob's comes after its updates:", update.Less(later))
	// Output:
	// ann:    1.000000000000000a0000000000000001.0
	// bob:    1.000000000000000b0000000000000001.0
	// bob's is later: true
	// update: 1.000000000000000b0000000000000001.1
	// a write after bob's comes after its updates: true
}
