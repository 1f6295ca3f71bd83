// Command bench measures atoll beside what users would pick instead: etcd, NATS
// JetStream and ZooKeeper. It starts each as three processes on loopback, with
// every write synced on a majority, and drives the same closed-loop clients at
// them in turn.
//
//	cd bench && go build -o ../bin/bench .
//	../bin/bench compare                 # all targets, interleaved
//	../bin/bench gap                     # what the death of a node does to writes
//	../bin/bench sustained               # a million keys, a minute
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
// # gap
//
// Eight clients, each with a connection of its own and the addresses of all
// nodes, write in a closed loop; then one node is killed with SIGKILL. It is the
// leader where there is one; of atoll's nodes it is each in turn, since any may
// be the one that matters. The longest time in which nobody's write was done is
// given for the time before the kill and for the time after it, and beside it
// the longest that any single client waited. Each death has a fresh cluster.
//
// # sustained
//
// Each target is alone on the machine, is filled with a million keys, and takes
// random writes for a minute. The record has the writes of each second, and
// memory and disk of each node once a second.
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
