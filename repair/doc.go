// Package repair lets replicas copy from each other what they missed, and heal
// records that were damaged on their disks.
//
// # Pulling
//
// A put reaches every member that can be reached; one that was down, cut off or
// out of space has missed it. Reads write back what they find, but nobody may
// ever read that key. So each member pulls from every other one, over and over:
// it walks its own keys page by page, and asks the other for a hash of the
// tags of the same range ([Summarize]). Where the hashes differ it says what it
// has ([Offer]), and gets the records in which the other is ahead.
//
// Merging a record that some member holds durably is what a late put would
// have done. It needs no quorum and can't be wrong.
//
// # Healing
//
// A damaged record makes its node abstain on the key. To put back what some
// read quorum of the others holds isn't enough: the node may have acknowledged
// a put that no other member had got yet. If it then went back to an older
// record while the put ended by an acknowledgement of another member, a write
// that was acknowledged would be at one member of its write quorum fewer, and a
// later read quorum could miss it.
//
// So what the node has acknowledged is taken back first, everywhere where it
// could still count. docs/PROTOCOLS.md has the rules, H1 to H4, and why they
// are enough:
//
//   - H1: a node abstains on a damaged record.
//   - H2: before it heals, and after it has noticed the damage, it durably begins
//     another life (renew; see abd.Life).
//   - H3: an acknowledgement counts as long as nobody whose answer counts
//     beside it knows of a later life of its node (package abd).
//   - H4: it heals from a read quorum of others, each of which durably
//     knows of that life before it answers ([Attest]).
//
// What is healed is a gap: the range between the nearest records that can
// still be trusted, since the damage may be in the key itself, and then it isn't
// known which one is lost.
//
// # Pace
//
// All of it is in pages with pauses between them ([Pace]), by tasks that a node
// runs beside its other work, and progress shows in [Progress].
package repair
