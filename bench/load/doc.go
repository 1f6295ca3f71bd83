// Package load drives closed-loop clients at a store and measures them.
//
// Each client does one operation at a time and starts the next when the last
// one has ended; so the number of clients is the number of operations in
// flight. A [Spec] says what they do, [Run] does it, a [Result] is what came
// out. The same seed gives each client the same sequence of keys, so that all
// stores of a comparison are asked the same.
//
// Operations in flight when the time is over are waited for, and count, as
// does the time that they take: cutting them off would favour who lets
// operations hang. Failed operations are counted apart and have no latency;
// after one its client pauses for a moment, so as not to spin.
//
// A stall is a time in which nothing was done. [Stalls] measures two kinds:
// the longest time in which no client's operation was done, and the longest
// that any one client had to wait.
package load
