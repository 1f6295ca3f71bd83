// Package report holds what measurements are written down as, and makes tables
// of them.
//
// A file of results has one JSON object a line, each with a "kind": an
// [Environment] at the start of each invocation, then a [Run], [Gap] or
// [Sustained] for each measurement, in the order in which they were made.
// [Read] reads such files, also several after one another, and [Summarize]
// compares: atoll with each peer, and with the best of them, round by round.
//
// Only ratios are compared, and only of runs that were made right after one
// another: machines are noisy, and the noise of one minute is not that of the
// next. The best peer is chosen in each round anew, which is hard on atoll: it
// has to beat whoever was lucky.
package report
