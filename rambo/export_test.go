package rambo

import (
	"atoll/env"
	"atoll/quorum"
)

// ForgetAfter is after how many rounds of silence a node is forgotten.
const ForgetAfter = forgetAfter

// What a node's own tasks ask it.
var (
	Know env.Message = &know{}
	Age  env.Message = &age{}
)

// Told is what the node's answer to Know says, and all others that it knows.
func Told(answer env.Message) (Knowledge, []quorum.NodeID) {
	k := answer.(*known)
	return k.Knowledge, k.others
}
