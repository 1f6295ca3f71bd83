// Package succession checks that the configurations of a cluster follow each
// other as they should, and that nothing is lost from one to the next.
//
// A [Watch] is told what nodes durably know of configurations; what they durably hold
// of registers it asks. A [Journal] says in which order both become durable. So it goes
// by what is on disks, and believes nobody. It holds that against the rules R4 of
// docs/PROTOCOLS.md:
//
//	config-map          a node's config map makes sense: its configurations follow
//	                    each other, and what is installed was decided
//	config-map-falls    what a node durably knows never shrinks, restarts included
//	one-configuration   there is one configuration for each index
//	fenced              when the first node durably marks k as installed, members of
//	                    the one before who contain a read and a write quorum of it
//	                    durably know of k (R4.2)
//	fence-before-merge  a page for the merge of k comes from who durably knows of k
//	                    (R4.3)
//	lost-at-retirement  when k is first marked as installed: what every read quorum
//	                    of the one before would have returned, of what its members
//	                    held when they durably learned of k, every read quorum of k
//	                    finds (R4.5)
//	durable-on-quorum   the tag with which an operation ends is found by every read
//	                    quorum of the newest installed configuration
//
// That all which *some* read quorum could return is in k would be too strong: a
// tag that one node alone holds may be returned by some read, which writes it
// back then, and nothing is lost when it goes. What came to a member after it was
// fenced came from callers who know of k, and put it there themselves.
package succession
