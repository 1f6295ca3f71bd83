package quorum_test

import (
	"fmt"

	"atoll/quorum"
)

// Node a stands in a better place and has the weight of two others.
func ExampleConfiguration_Tolerance() {
	system, err := quorum.ParseSystem("weights=a:2,b:1,c:1,d:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c", "d"}, system)
	if err != nil {
		fmt.Println(err)
		return
	}
	t := c.Tolerance()
	fmt.Println("reads go on whichever", t.Reads.Any, "of", t.Members, "members die")
	fmt.Println("they are stopped by", t.Reads.Blocking)
	fmt.Println(t)
	// Output:
	// reads go on whichever 1 of 4 members die
	// they are stopped by [[a b] [a c] [a d] [b c d]]
	// reads: any 1 of 4, at best 2 (stopped by a+b, a+c, a+d, b+c+d); writes: any 1 of 4, at best 2 (stopped by a+b, a+c, a+d, b+c+d)
}

// A phase of an operation is done when what answered contains a quorum of
// every active configuration.
func ExampleTally() {
	abc, _ := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c"}, quorum.System{})
	bcd, _ := quorum.NewConfiguration(1, []quorum.NodeID{"b", "c", "d"}, quorum.System{})

	var t quorum.Tally
	t.Begin(quorum.Configurations{abc, bcd})
	for _, answered := range []quorum.NodeID{"a", "b", "b", "d"} {
		t.Add(answered)
		fmt.Println(answered, t.HasRead())
	}
	// Output:
	// a false
	// b false
	// b false
	// d true
}
