// Command bench measures atoll beside what users would pick instead: etcd, NATS
// JetStream and ZooKeeper. It starts each as three processes on loopback, with
// every write synced on a majority, and drives the same closed-loop clients at
// them in turn.
//
//	cd bench && go build -o ../bin/bench .
//	../bin/bench compare                 # all targets, interleaved
//	../bin/bench connections             # a thousand connections of their own
//	../bin/bench idle                    # ten thousand clients that do nothing
//	../bin/bench gap                     # what the death of a node does to writes
//	../bin/bench silent                  # what a replica does that isn't heard
//	../bin/bench sustained               # a million keys, a minute
//	../bin/bench startup                 # starts with millions of keys, memory
//	../bin/bench chaos                   # a hundred kills, and a judgement
//	../bin/bench report FILE...          # the tables of earlier results again
//
// What is the same for all targets, and what can't be, is in the doc of package
// target; what a client does, in that of package load; how results are written
// and compared, in that of package report.
//
// # compare
//
// All targets are up at the same time. For each cell (an operation and a number
// of clients) and each round, each target is driven in turn for the same time;
// the order is rotated from round to round, so that nobody always comes first.
// Before a run, this process collects its garbage, and waits until no target
// does anything any more: what a target left to do later must not burden the
// next one. Each run records how much processor time the idle targets and the
// rest of the machine used meanwhile, and the report says when it was too much.
// All keys are written, and all targets are warmed up, before the first run.
//
// Each size of values has clusters of its own. Of large values there are fewer
// keys, and cells whose clients would hold more than 64 MiB are left out.
//
// The target atoll2 is another build of the replica, so that a change is measured
// against what was before it in one run.
//
// # connections
//
// The clients are in processes of their own, which this program starts, and each
// has connections of its own: one to a node of a peer, one to each node of atoll.
// With --shared those of a process share one, and with --bench2 the processes that
// drive atoll2 are those of another build of this program, and so of the library.
//
// # idle
//
// Thousands of clients that are connected and do nothing, in processes of their
// own: what they cost the replicas, and themselves; what they do to a few busy
// clients, measured before they came and beside them; and how long it takes until
// a replica that was killed and started again has all of them back.
//
// # gap
//
// Eight clients, each with a connection of its own and the addresses of all
// nodes, write in a closed loop; then one node is killed with SIGKILL, or, with
// --stop, stopped with SIGSTOP. It is the leader where there is one; of atoll's
// nodes it is each in turn, since any may be the one that matters. The longest
// time in which nobody's write was done is given for the time before the kill and
// for an equally long one after it, and beside it the longest that any single
// client waited. Each death has a fresh cluster.
//
// # silent
//
// Clients and replicas reach each other through proxies of package udpproxy. One
// replica is made silent, lossy or flapping, or is stopped, under reads and then
// under writes; what clients see is measured before, while and after. In the mode
// "nothing" nothing is done, which shows what the machine does by itself.
//
// # sustained
//
// Each target is alone on the machine, is filled with a million keys, and takes
// random writes for a minute. The record has the writes of each second, and
// memory and disk of each node once a second.
//
// # startup
//
// A replica, alone in its cluster, has its store filled while it doesn't run; then
// it is started, with everything applied, and with a journal that it has to read
// back. Time is taken until it says that it serves, and until a client that was
// there all along has an answer; memory then, and after reads and writes. It may also
// be killed while clients write, and started with the journal that this leaves.
//
// # chaos
//
// No measurement: it kills and stops replicas of atoll, a hundred times, while
// clients read and write, and ends with 1 unless every operation fits. Package
// chaos says what is done and what is judged.
//
// # What it can't show
//
// Nodes and load generator share one machine, its processors and its disk; so
// what is compared is how much work a system makes of an operation, as much as
// how it waits. On machines of their own, with a network between them, the
// number of round trips counts for more and processor time for less.
package main
