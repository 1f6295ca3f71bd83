package history_test

import (
	"fmt"
	"strings"

	"atoll/sim/history"
)

// A read finds a new value, and a later one still finds the old.
func ExampleCheck() {
	h, err := history.Load(strings.NewReader(`
		{"client":"p","op":"write","key":"k","value":"old","call":0,"return":40}
		{"client":"p","op":"write","key":"k","value":"new","call":50,"outcome":"unknown"}
		{"client":"q","op":"read","key":"k","value":"new","call":60,"return":80}
		{"client":"r","op":"delete","key":"k","call":85,"return":90,"outcome":"failed"}
		{"client":"r","op":"read","key":"k","value":"old","call":100,"return":120}
	`))
	if err != nil {
		fmt.Println(err)
		return
	}
	violation, err := history.Check(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(violation)
	// Output:
	// key "k": each of two values was there before the other
	// p's write of "old" (#1) ended before q's read of "new" (#3) began, and yet q's read of "new" (#3) ended before r's read of "old" (#5) began: each value came first
	//
	//    #  client  operation              call   return
	// *  1  p       write "old"            0s     40ns    |-|
	// *  2  p       write "new" (unknown)  50ns   ?           |------------->
	// *  3  q       read "new"             60ns   80ns          |-|
	//    4  r       delete (failed)        85ns   90ns              |-|
	// *  5  r       read "old"             100ns  120ns                 |-|
}
