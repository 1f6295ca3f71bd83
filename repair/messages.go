package repair

import (
	"strconv"

	"atoll/abd"
	"atoll/quorum"
	"atoll/synod"
	"atoll/tags"
)

// Limits of what one message holds.
const (
	// MaxHealed is how many nodes can begin another life, ever: no life is forgotten
	// (H6). What is left up to abd.MaxLives is for those that begin one at the same
	// time, before they have heard of each other: what nodes know together must fit
	// into a message, or they could tell each other nothing more.
	MaxHealed = 48
	// MaxEntries is how many records an answer holds at most, unless the request
	// says otherwise, and LargestPage what that may say.
	MaxEntries  = abd.MaxPage
	LargestPage = 8 * abd.MaxPage
	// LargestStock is how many of its own tags a node that merges compares at a time,
	// and MaxDigests how many a Sketch stands for: with them, what another member has
	// given for the same range.
	LargestStock = 16 * abd.MaxPage
	MaxDigests   = LargestStock + 4*abd.MaxPage
	// MaxItems is how many tags an Offer tells. Nobody tells more than abd.MaxPage
	// any more, but for members of an older version that merge.
	MaxItems = abd.MaxPage + LargestPage
	// MaxEntryBytes is about how many bytes of keys and values it holds. One
	// record is always possible, and the last may be large, as far as all of them are no
	// more than the largest value: an answer that doesn't fit into a frame never comes.
	MaxEntryBytes = 1 << 20
	maxAnswer     = abd.LargestMaxValue
	entryOverhead = 64 // of a record or vote in an answer, beside keys and values, at most
	// MaxVotes is how many votes an answer holds.
	MaxVotes = 64
	// maxExamined is how many keys a node looks at for one answer.
	maxExamined = MaxDigests
	// MaxDamaged is how many damaged records a node keeps in mind: when it knows of
	// so many, there may be more.
	MaxDamaged = 4096
)

// Range is what lies between two keys: all keys that come after After and, when
// To isn't empty, not behind To.
type Range struct{ After, To abd.Key }

// Has reports whether a key is in the range.
func (r Range) Has(key abd.Key) bool { return key > r.After && (r.To == "" || key <= r.To) }

// Entry is a record and its key.
type Entry struct {
	Key    abd.Key
	Record abd.Record
}

// Summarize asks a node for a hash of the tags that it has in a range.
type Summarize struct {
	Range
	// Keys is how many keys the asker has there. A node that has more doesn't
	// look at the rest.
	Keys int
	Terms
	// Cut: a node that has more answers for the first Keys alone, and says where
	// they end.
	Cut bool
}

// Terms are what an asker needs an answer for. The zero Terms: to take over what
// was missed, for which any record will do.
type Terms struct {
	// Knows is the configuration that the node must durably know before it
	// answers, so that the answer counts for the merge of a read quorum's
	// records into that configuration (R4.3). Such an answer leaves no record
	// out: a node that abstains on one of the range refuses. 0: none.
	Knows quorum.ConfigIndex
}

// Summary answers Summarize.
type Summary struct {
	Keys int
	Hash uint64 // of the keys and tags; see SummaryOf
	abd.Standing
	// Last is the last key of what it stands for, if that was cut; else empty.
	Last abd.Key
}

// Offer tells a node which tags the asker has in a range, and asks for the
// records that it lacks: by Items for those whose tags are larger, or by a Sketch for
// all that isn't in it. The zero Sketch: by Items.
type Offer struct {
	Range
	Items []abd.Item // sorted, all in the range
	Sketch
	Terms
	// Limit is how many records the answer may hold, up to LargestPage; 0:
	// MaxEntries.
	Limit int
	// Expect is about how many bytes the answer will have, 0 if nobody knows. It
	// isn't sent.
	Expect int
}

// AnswerBytes implements env.Bulky.
func (m *Offer) AnswerBytes() int { return m.Expect }

// Records are those of a range, or a part of it.
type Records struct {
	Entries []Entry // sorted
	// More: the keys behind Last must be asked for.
	More bool
	Last abd.Key
}

// Missing answers Offer. If that has Terms, it holds the node's votes on the keys
// of the same range, too: those are what the acceptor and the register hold at
// one time (R3).
type Missing struct {
	Records
	abd.Standing
	Votes []synod.Carried // sorted by instance, at most MaxVotes
}

// Attest tells a node that the sender is in a later life, and asks for all
// records of a range. The node answers once it durably knows of that life.
type Attest struct {
	// After and Before enclose the range: neither is in it, and an empty one is
	// no bound.
	After, Before abd.Key
	Life          abd.Life
	// Horizon is what the sender knows of configurations. Who knows of more
	// refuses: the sender needs a read quorum of that, too.
	Horizon quorum.Horizon
}

// has reports whether a key is in the range.
func (m *Attest) has(key abd.Key) bool { return key > m.After && (m.Before == "" || key < m.Before) }

// Attested answers Attest.
type Attested struct{ Records }

// The messages that follow are those of a node's tasks to the node itself, and
// its answers. They have no encoding.

// inventory asks for a page of the node's own keys.
type inventory struct{ After abd.Key }

// stock answers inventory.
type stock struct {
	Items []abd.Item
	More  bool
	// Skip, when there are no Items, is where to go on behind records that
	// can't be trusted. Empty: nowhere.
	Skip abd.Key
}

// merge asks the node to store those records that are larger than its own.
type merge struct{ Entries []Entry }

// merged answers merge.
type merged struct{ Stored int }

// examine makes a node read its own records, values too, to notice damage.
type examine struct{ After abd.Key }

// examined answers examine.
type examined struct {
	Last abd.Key // the last one that was read
	Keys int
	Done bool
}

// ail asks a node for some damage that it has noticed.
type ail struct{}

// ailment answers ail: a gap that wants healing, none if Damaged is empty.
type ailment struct {
	// After and Before enclose it, as in Attest.
	After, Before abd.Key
	// Damaged are the records in it that can't be trusted, sorted.
	Damaged []abd.Key
	// Begun: the node has begun another life since it knows of all of them,
	// and is in Life.
	Begun bool
	Life  abd.Life
}

// renew makes a node begin another life.
type renew struct{}

// renewed answers renew, once that life is durable.
type renewed struct{ Life abd.Life }

// mend puts what a read quorum of others holds into a gap, or a part of it.
type mend struct {
	Entries []Entry // sorted
	// Damaged are those of the gap. What remains of them is removed with the
	// last Mend of a gap, which is marked by Done.
	Damaged []abd.Key
	Done    bool
	// Life is the one that the others knew of.
	Life abd.Life
}

// mended answers mend.
type mended struct{}

// report adds to a node's Progress.
type report struct{ Progress }

// Progress is what repair has done on a node since its process started.
type Progress struct {
	Passes   int64 // over the keys of another member, completed
	Compared int64 // keys whose tags were compared with another member's
	Merged   int64 // records taken from another member
	Bytes    int64 // of their keys and values
	Examined int64 // records read in search of damage
	Healed   int64 // damaged records that were replaced
	Damaged  int64 // damaged records that are known and not healed, now; up to MaxDamaged
}

// DamagedText says for people how many damaged records are known: from MaxDamaged on
// that is a bound, and no count.
func (p Progress) DamagedText() string {
	if p.Damaged >= MaxDamaged {
		return "at least " + strconv.FormatInt(p.Damaged, 10)
	}
	return strconv.FormatInt(p.Damaged, 10)
}

// SummaryOf returns what a node would answer that had the tags of items, and
// beside them, or in their places, those of entries that are larger; and these
// votes on the same keys. All are sorted.
//
// To compare two ranges costs two numbers. Two that differ and have the same hash
// stay different until one of them changes.
func SummaryOf(items []abd.Item, entries []Entry, votes []synod.Carried) *Summary {
	s, h := &Summary{}, newHash()
	add := func(key abd.Key, tag tags.Tag) {
		h.add(key, tag)
		s.Keys++
	}
	for i := range entries {
		key, tag := entries[i].Key, entries[i].Record.Tag
		for len(items) > 0 && items[0].Key < key {
			add(items[0].Key, items[0].Tag)
			items = items[1:]
		}
		if len(items) > 0 && items[0].Key == key {
			if tag.Less(items[0].Tag) {
				tag = items[0].Tag
			}
			items = items[1:]
		}
		add(key, tag)
	}
	for i := range items {
		add(items[i].Key, items[i].Tag)
	}
	for i := range votes {
		h.vote(&votes[i])
	}
	s.Hash = uint64(h)
	return s
}

// Message marks the type as a message.
func (*Summarize) Message() {}

// Message marks the type as a message.
func (*Summary) Message() {}

// Message marks the type as a message.
func (*Offer) Message() {}

// Message marks the type as a message.
func (*Missing) Message() {}

// Message marks the type as a message.
func (*Attest) Message() {}

// Message marks the type as a message.
func (*Attested) Message() {}

// Message marks the type as a message.
func (*inventory) Message() {}

// Message marks the type as a message.
func (*stock) Message() {}

// Message marks the type as a message.
func (*merge) Message() {}

// Message marks the type as a message.
func (*merged) Message() {}

// Message marks the type as a message.
func (*examine) Message() {}

// Message marks the type as a message.
func (*examined) Message() {}

// Message marks the type as a message.
func (*ail) Message() {}

// Message marks the type as a message.
func (*ailment) Message() {}

// Message marks the type as a message.
func (*renew) Message() {}

// Message marks the type as a message.
func (*renewed) Message() {}

// Message marks the type as a message.
func (*mend) Message() {}

// Message marks the type as a message.
func (*mended) Message() {}

// Message marks the type as a message.
func (*report) Message() {}
