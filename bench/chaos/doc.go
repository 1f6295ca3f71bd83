// Package chaos kills the replicas of a cluster again and again, while clients
// read and write, and then says whether anything was lost or went back.
//
// [Run] has three parts that know nothing of each other:
//
//   - the clients (clients.go). Each does one operation at a time: puts of
//     values that are never written twice, gets and deletes; of a few keys, so
//     that they contend, of many, and of keys that are written once. Some
//     operations get so little time that their outcome stays unknown; half of
//     the unknown ones are resumed. Libraries are closed and opened again.
//   - the mischief (mischief.go). It kills one, two or all replicas with
//     SIGKILL, at random moments: under load, and while they start. It stops
//     some with SIGSTOP for longer than connections bear it. It starts a second
//     process on a folder in use, which must be refused.
//   - the record (record.go), which writes down every operation as its client
//     saw it, and on the spot holds each answer's tag against those that its
//     key had before.
//
// When enough has been killed, all replicas are killed once more and started
// again, every key that was ever touched is read, and the verdict (verdict.go)
// is that of the oracle of atoll/sim/history on all operations, the last reads
// among them; of the tags; of each key that was written once; and of what no
// replica or client may ever do: end by itself, refuse its folder, or return an
// error of no known kind.
//
// What is unknown is counted as unknown, and whether it took effect is left to
// the reads. That is why the history of a campaign proves something: it has no
// guess in it.
//
// A SIGKILL takes away what the process had in memory and leaves what it gave
// to the operating system. So this finds what was acknowledged before it was
// written, and not what was written and never synced; for the latter package
// sim has a disk that forgets.
package chaos
