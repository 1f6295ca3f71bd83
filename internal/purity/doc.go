// Package purity holds the test that keeps the protocol code pure and the
// imports going one way. It has no code of its own to call.
//
// Why: a simulator replays a run from one seed only if the code under test
// does the same thing every time, and a protocol can be read beside its paper
// only if nothing but the protocol is in it. Both are lost by a single
// goroutine, clock or map iteration in the wrong folder, and nothing else
// would notice.
//
// # What is kept
//
// The table in table_test.go names every folder, in the order of
// docs/ARCHITECTURE.md. A package may import those above it, never those
// below. A folder that isn't in the table fails the test, so that somebody
// decides where it belongs.
//
// In the folders marked pure:
//
//   - no go statement, no select, no channel;
//   - no iteration whose order differs from run to run: ranging over a map,
//     and what package maps iterates over unless it is sorted at once;
//   - only imports that are listed as pure, so nothing of sync, context, os,
//     net, math/rand, crypto/rand and their like;
//   - of package time only Duration, its units and its text;
//   - no printing, and no coroutine outside of the simulator;
//   - no package variable but errors and unexported tables of constants, and
//     neither is ever assigned to;
//   - no file that is built on some platforms only.
//
// Everywhere: no init function, and no time.Sleep in a test, except in files
// that use testing/synctest, where time is virtual and a sleep costs nothing.
//
// Tests in external packages (package x_test) may import anything. Tests
// inside a package may import what they like from outside of the module, and
// keep the order within it.
//
// # How
//
// The test parses and type-checks the sources itself, with the standard
// library and the modules on which pure folders depend read from source, as
// far as their declarations need it. It opens every file through package os and
// runs no command: so `go test` knows what the result depends on, and doesn't
// serve a cached pass after a change elsewhere in the module.
//
// Each rule is shown to catch what it forbids (rules_test.go).
package purity
