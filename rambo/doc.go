// Package rambo keeps registers atomic while configurations change: the config
// map, and how one configuration takes over from the one before.
//
// # The config map
//
// Each node keeps a [quorum.Map] and tells others of it: by gossip, and in
// every answer to who knows less. What a node says that it knows is on its
// disk first. Operations go by the map as well (package abd): a phase needs
// its quorum in every active configuration, and learns of newer ones from what
// it is answered.
//
// # From one configuration to the next
//
// The members of configuration k decide on k+1 (package reconfig). From then
// on both are active. Then any node may bring about that k is out (rule R4 in
// docs/PROTOCOLS.md):
//
//  1. Fence: members of k that contain a read and a write quorum of it durably
//     learn of k+1. So every later phase that counts on k alone meets one of
//     them and is told.
//  2. Install: members of k+1 merge, page by page, what a read quorum of k
//     holds, and what its acceptors have accepted of updates. A page counts only if its node durably knew of k+1 when it gave
//     it: a put that came later reveals k+1, and its caller puts there too
//     (schedule 7b).
//  3. Retire: once so many have merged that every read quorum of k+1 has one of
//     them in it, k+1 is marked as installed, and k is out of all quorums.
//
// Each step can be repeated, by anybody, at the same time by several. A driver
// that dies leaves nothing that the next one must know: it begins at the fence.
// Only the newest installed configuration is fenced, for its direct successor
// (S7).
//
// This is RAMBO (Lynch and Shvartsman, DISC 2002) with one upgrade at a time, and
// with the state transferred in pages while reads and writes go on, where the
// paper's register fits in one message.
//
// # Lives
//
// A node that healed a damaged record has taken back what it had acknowledged
// (package repair). Who counts acknowledgements learns of that from those who
// attested. When a configuration goes out, they may go with it. So whoever
// learns that k+1 is installed learns, in the same message and in the same
// record, of all lives that the fenced members knew (H5). None is ever forgotten
// (H6).
//
// # Forgetting
//
// A node that is no member and silent is forgotten after a while (forget.go).
package rambo
