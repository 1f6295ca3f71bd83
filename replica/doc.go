// Package replica puts the protocols together into one node.
//
// A [Node] is what a host of the cluster runs, without the host: a
// deterministic step over a [Store]. The server (internal/server) drives it
// with a real network, disk and clock, the simulator (package sim) with
// simulated ones, and both treat it alike:
//
//	for each message that has arrived, Step it, collecting the Outs; a step
//	  ends by cutting its records into a group, durable together or not at all;
//	Commit, now or in the background, while further messages are stepped;
//	let each Out go once the store is durable up to its After.
//
// A node that comes up again is a new Node over the same store. Nothing that
// its earlier life knew and hadn't made durable was ever shown to anybody, so
// a crash at any moment is a pause to the rest of the cluster.
//
// An error from Step means that the store can't be trusted any more: the
// driver stops the node. Requests that make no sense or can't be met are
// answered by an env.Refused.
package replica
