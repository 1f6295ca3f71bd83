// Package client is the Go library: registers, read and written through
// quorums of replicas.
//
// A [Client] knows the members of the cluster and talks to all of them; there
// is no leader to find and none to lose. It starts from the addresses of any
// members that live ([Config.Endpoints]) and learns the others from them. It
// is safe for concurrent use, and one is enough for a process: thousands of
// operations share its connections.
//
//	cfg, err := client.LoadContext("client.json")
//	...
//	c, err := client.Open(ctx, cfg)
//	...
//	defer c.Close()
//	tag, err := c.Put(ctx, "greeting", []byte("hello"))
//	value, err := c.Get(ctx, "greeting")
//
// # What holds
//
// Each key is an atomic register: operations on it take effect one after
// another, each between its call and its return (linearizability), across
// crashes and restarts of any replica. A Put or Delete that returned nil is on
// the disks of a write quorum. List is atomic for each key, and no snapshot.
//
// # How an operation ends
//
// An operation ends when quorums have answered, whatever the other members
// do; otherwise when its context ends, or after [Config.Timeout] if the
// context has no deadline. It ends in one of three ways:
//
//   - done: the error is nil, or [ErrNotFound] from Get;
//   - definitely not done: any error but the next. [*NoQuorumError] names each
//     member and what it said;
//   - unknown: [*UnknownError], from Put, Delete and Resume. The operation may
//     have taken effect, and may yet. [Client.Resume] tries the same operation
//     again under the same tag, and so never undoes a later write by others.
package client
