// Package store makes replica records durable: a journal in front of bbolt.
//
// A [Store] is one node's memory of its registers. It implements
// replica.Store: steps read and append records on one goroutine, and at the
// same time Commit makes what they appended durable on another.
//
// # The life of a record
//
//	Store  ──▶ memory table (visible to Load at once) and the open group
//	Cut    ──▶ the group is closed: its records share one fate
//	Commit ──▶ every closed group, in ONE write and ONE fdatasync, as one
//	           frame of the journal: durable, answers may leave
//	apply  ──▶ in the background the table goes into bbolt in key order, and
//	           the journal segments that it covers are used again
//
// A record's [atoll/env.Position] is its number in the journal, from 1: the
// position "behind" the first record is 1. A record that Load finds in bbolt
// has position 0. It was durable before it got there, so nothing waits for it.
//
// # Speed
//
// The memory table (table.go) is made of chunks of bytes and of numbers, so
// that the garbage collector has nothing to walk through, and is sorted run by
// run. A put asks twice what was there, in its get phase and when it is
// stored, and the apply once more: bbolt is searched the first time only, the
// head that was found is remembered for a while (memo), and what was there
// before stays with the key in the table. All loads share a read transaction.
// Who looks at many records walks over them in one transaction, and copies what
// it wants (Walk).
//
// The apply rewrites each page of bbolt that a table has a key of. So what a
// record costs the disk is a page divided by the records of one table that
// share one: pages are filled, tables are large, and are written in order of
// the keys. And it takes its time, about as long as the next table needs to
// fill, so that callers don't have the disk against them now and not then.
//
// Open reads the journal and then all of bbolt's file, on all processors, and
// writes nothing before both are found to be sound. Of the journal it keeps the
// keys, in a table, and where their newest records are (load.go): those stay in
// their segments until the table is applied (filed.go). How many keys there are the
// last frame says, unless bbolt is damaged; what the table replaces is looked up by
// the apply. docs/adr/0009-bbolt-under-many-keys.md and 0014-loading-the-journal.md
// have the figures.
//
// # The folder
//
//	store.json            format, the store's random id, when it was created.
//	                      Written last by Create: without it there is no store
//	lock                  held (flock) while a process uses the folder
//	state.db              bbolt: all records and cells up to the applied position
//	journal/00000007.log  segments, filled with zeros before their first use
//	journal/spare-*.log   segments that wait for their (next) use
//
// # What a crash leaves
//
// A frame is recovered wholly or not at all, because one checksum covers it.
// As the next frame is written only after the sync of the one before has
// returned, at most the last frame can be torn. So a bad frame with a valid
// one behind it is damage, and Open refuses with a [DamageError] that names
// file and offset; a bad frame with nothing behind it is taken for one that was
// never acknowledged, and is cut off; the log says what stood there (ending.go).
// What can't be told apart: damage that reaches to the end of what was written,
// one frame or many, and a frame that was torn; nor a last segment that somebody
// removed, and one that was never begun. Then an acknowledged write is lost
// here, until it is pulled from the others.
//
// Segments are used again, so old frames with good checksums lie behind the
// new ones. The checksum of a frame covers the store's id, the number of the
// segment's use (its generation) and the frame's first position. Only a frame
// that fits all three counts.
//
// Frames that a process wrote but never synced may be found by the next one
// in the system's cache, and so may frames whose sync has failed. Open writes
// the last frame again and syncs it before it trusts it. For the same reason
// it commits to bbolt once before any segment is used again.
//
// # Damage
//
// Every record carries two checksums, over its key, tag and sizes and over
// its value. They are computed in Store and compared whenever the record
// comes from bbolt. A key that isn't found must be proved absent: its
// neighbours must be in order and carry good checksums, or a flipped bit in
// some other key could have led the search astray.
//
// bbolt believes what it reads, panics on a bad page and faults on a missing
// one. So Open reads the file page by page on its own first (check.go), and
// every access after that turns panics and memory faults into errors.
//
// A damaged record is an error that wraps an abd.DamagedRecord: the node
// abstains on the keys that it stands in the way of, until it is healed. A
// damaged file is a DamageError that doesn't wrap it, and the way
// out is in its text: this node is given up, and the others go on.
// Nothing here ever starts empty in place of what is damaged.
//
// # Healing
//
// Store refuses to replace a record whose tag can't be read. Heal replaces it
// with what others hold, or removes it, and that is journaled and applied like
// any other change. From then on the tables say what is right, and searches
// pass over what bbolt still has under the key: it is as good as gone.
//
// A flipped key K' is a record that nobody wrote, in the place of K's that is
// nowhere to be found. So K' is removed and K stored. Heal does either only
// where the place of the key is certain: between two sound records, all that
// is between them in order. Otherwise it returns the error of the record that
// is in the way, and if a key is out of order, that of the key itself: bbolt
// might find it or not, and a second record could end up beside the first.
// Open refuses such a file, so this is damage that came later.
//
// What a damaged record counted as, a key or a tombstone, its flag tells. If
// that byte is the damaged one, the checksum fits when it is put right. If
// more is damaged, the split of the two counts may be wrong by one until the
// store is opened with nothing damaged left in it, and all of the journal in
// bbolt; the sum, which Open holds against the file, is always right.
//
// # Cells
//
// A cell is a small value of the node's own: its life's number, the
// configuration map, a vote. All are in memory. SetCell appends an entry to
// the group that is open, so a cell and the records beside it become durable
// together. The cells that a table has go into bbolt with its last
// transaction, the one that moves the applied position. A damaged cell is
// damage of the file: a node that has forgotten its promises can't go on.
//
// # Limits
//
// When the apply is slower than the writes, Commit is delayed more and more
// (see [Config], TableBytes and JournalBytes), so memory and journal stay
// bounded. When the disk is nearly full, Store returns abd.ErrFull; reads go
// on, and so do writes when there is space again.
//
// Formats: folder 1, journal segment 3, record 1, summary 1. Journal segments
// of format 1, which have neither cells nor removed records, and of format 2,
// whose frames don't say how many keys there are, are read and never appended
// to. A state.db without a bucket of cells gets one.
package store
