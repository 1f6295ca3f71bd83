// Package target starts clusters of three nodes on loopback, of atoll and of
// what users would pick instead, and hands out clients of them.
//
// All are configured alike, so that what is compared is the systems:
//
//   - each node is a process of its own, with its data under the folder of
//     [Config], so all are on one file system;
//   - every write is on the disks of a majority before it is acknowledged. That
//     is the default of atoll, etcd and ZooKeeper; JetStream is told to sync
//     always;
//   - the clients' connections are spread over the three nodes;
//   - everything else is as it comes: default heaps, intervals and cache sizes.
//
// What differs, because the systems do:
//
//   - a read of etcd is linearizable. ZooKeeper's is preceded by a sync, since
//     without one any node answers from what it has. JetStream has nothing of
//     the kind to ask for: its reads may be stale, and cost the less;
//   - atoll's traffic is encrypted and both sides are authenticated, as always;
//     that of the others is plain text;
//   - a client of a peer has one of Config.Connections connections, each to one
//     node, and shares it with others. A client of atoll's library talks to
//     all nodes itself: Config.Libraries of them share the work.
//
// No node outlives this process: it is killed with it, and those that can also
// end at the end of their standard input.
//
// It needs Linux: nodes are tied to their parent by prctl, and measured by /proc.
package target
