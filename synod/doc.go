// Package synod decides values among the members of a configuration.
//
// It is single-decree Paxos (Lamport, "The part-time parliament", ACM TOCS 16,
// 1998, the Synod protocol; and "Paxos made simple", 2001, section 2), over the
// quorums that the registers use: a proposer prepares on a read quorum and has
// its value accepted by a write quorum. Every read quorum meets every write
// quorum, and that is all that Paxos needs (Howard, Malkhi and Spiegelman,
// "Flexible Paxos", 2016): two write quorums needn't meet.
//
// # The nouns
//
// An [Instance] is one question that gets one answer. A [Ballot] is one attempt
// at answering it: no two attempts share one, and later attempts have larger
// ones. An [Acceptor] is a member's half: for each instance it keeps the largest
// ballot that it has promised to, and its [Vote], the last value that it has
// accepted. A [Proposer] is the caller's half.
//
//   - Prepare(b): promise to take nothing under a ballot below b, and say what
//     was accepted. A proposer needs the promises of a read quorum.
//   - Accept(b, v): unless more was promised, accept v. Then v is the vote of
//     the highest ballot among the promises, or, if there was none, the proposer's
//     own value. When a write quorum has accepted v under b, v is *chosen*, and
//     nothing else ever will be.
//
// Why it is right: say v was chosen under b by the write quorum W, and somebody
// prepares a larger ballot on R. Some member is in both. If it had accepted v
// before it promised, its promise shows v, or something that came later, which
// by the same argument was v. If it promised first, it refused v afterwards, and
// W didn't accept it.
//
// # What an acceptor must never do
//
// Forget. Every answer waits until the record that it shows is durable. A record
// whose checksum is wrong makes the acceptor abstain on that instance, and a node
// without its disk is another node. An acceptor asks its [Guard] whether it votes
// at all: not in a configuration that isn't installed where it stands, and not
// in one that is sealed because the next one has begun (R3, R4 in
// docs/PROTOCOLS.md). Then it answers [Closed], which says what has come since.
//
// # Votes that travel
//
// Some instances are answered among the members of one configuration and are
// over with it: what the next configuration is. Others go on in the next
// one: that is what will decide updates of a register. Their votes travel with
// the state ([Acceptor.Votes], [Acceptor.Merge]); promises don't, since ballots
// begin with the index of their configuration, so that those of the next are
// larger than all before.
//
// # What a proposer can rely on
//
// [Proposer.Propose] returns what was chosen, which may be somebody else's value.
// If it fails, the error says whether the value may be chosen yet (an
// *abd.QuorumError with its Effect). It ends if a read and a write quorum live and nobody else keeps
// on proposing: rounds are tried again after pauses drawn at random, so that two
// proposers don't overtake each other for long. Nothing else hangs on time.
package synod
