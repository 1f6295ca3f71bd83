// Package join makes nodes known to a cluster, and tells a node from a copy of
// it.
//
// # Nouns
//
// A node is its key (package identity). What it has acknowledged is in its
// store, and a store has an [Instance]: random bits, drawn when it was made. A
// node's [Life] says more of one process of it: the instance, how often it has
// been started, and how far its journal is durable. These only grow. So an
// instance that isn't the one that others know, or a life below one that they
// know, is a node that has lost what it promised: it must not answer.
//
// # Joining
//
// A node that isn't in the first configuration asks the members of the newest
// one to let it in ([Join]), with its instance and the word of the cluster's CA
// (its ticket). Each notes durably with which instance the node first came, and
// refuses another one (J1). It is in when members that contain a read and a
// write quorum have noted that (J2): two uses of one ticket meet in one of them,
// and not both succeed. Then it is known, and no more: it votes in nothing
// until a configuration names it.
//
// # Greeting
//
// Before it serves, and every now and then, a node tells the nodes that it
// knows of its life ([Greet]). Each keeps the largest, and answers one that
// can't be (J3): the node then ends with an [*OutcastError]. It waits for the
// first answer only, and not for long: when all nodes start at once, or none
// but this one, nobody may know, and the cluster must not stand still for that.
// So this catches what can be caught (docs/PROTOCOLS.md), and no protocol counts
// on it.
//
// What others keep is durable when it has news of instances or starts. Positions
// grow all the time: one is written once it has grown by positionStep, and in
// memory until then.
package join
