//go:build race

package server_test

// underRace: the race detector makes encryption so slow that a flood of large
// values starves the process that both ends are in.
const underRace = true
