// Package envtest holds the cases that say what an [env.Env] must do.
//
// They run unchanged in the real Env and in the simulated one. Each brings a
// tiny protocol of its own: a few message types, what a node does with them (a
// [Stepper]), and callers. The first three have the shapes on which all real
// protocols stand:
//
//   - register: reads and writes of a tagged register over a majority, two
//     conversations each;
//   - combiner: a task on a node takes what callers put into its mailbox,
//     batch by batch, asks a write quorum, and answers each caller;
//   - watch: a caller asks once and is pushed answers until it has seen
//     enough.
//
// The others pin single sentences of Env's contract: whose answers are passed
// on, what is sent again, how scopes end, what tasks and ids promise.
//
// A test runs them over its own [Cluster]:
//
//	for _, c := range envtest.Cases() {
//		t.Run(c.Name, func(t *testing.T) {
//			if err := c.Run(newCluster(t)); err != nil {
//				t.Error(err)
//			}
//		})
//	}
//
// No case measures time. A case that can't end gives up after [Patience] of
// its Env's own time, virtual in the simulator, and reports what its
// conversation waited for.
package envtest
