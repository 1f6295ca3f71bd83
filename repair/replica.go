package repair

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
	"atoll/tags"
)

// Replica is the replica's half: a deterministic step over a View. It is not
// safe for concurrent use.
type Replica struct {
	self     quorum.NodeID
	view     View
	seen     abd.View // Watched
	maxValue int
	votes    Votes // nil: none
	rules    Rules

	standing abd.Standing
	at       env.Position // of the record that says so

	ailing   []ailing // sorted by key
	turn     int      // of those, whose is next
	progress Progress
}

// Config is what NewReplica needs.
type Config struct {
	Self quorum.NodeID
	// MaxValue is the largest value in bytes that the node stores.
	MaxValue int
	// Votes are the node's votes on instances that travel. Nil: it has none.
	Votes Votes
	Rules Rules
}

// NewReplica returns a replica over view, which remembers the lives that an
// earlier process has noted there. An error means that it can't be trusted.
func NewReplica(cfg Config, view View) (*Replica, error) {
	r := &Replica{self: cfg.Self, view: view, maxValue: cfg.MaxValue, votes: cfg.Votes, rules: cfg.Rules}
	cell, at := view.Cell(cellLives)
	standing, err := decodeLives(cell)
	if err != nil {
		return nil, err
	}
	r.standing, r.at = standing, at
	r.seen = r.Watched()
	for _, key := range view.Suspects() {
		r.ail(key)
	}
	return r, nil
}

// Progress returns what was done so far.
func (r *Replica) Progress() Progress {
	p := r.progress
	p.Damaged = int64(len(r.ailing))
	return p
}

// Damaged returns the first of the records that are known to be damaged, if there
// is one.
func (r *Replica) Damaged() (first abd.Key, found bool) {
	if len(r.ailing) == 0 {
		return "", false
	}
	return r.ailing[0].key, true
}

// Standing returns what the node's answers must say of lives, and the position
// of the record that says so. A step can change it.
func (r *Replica) Standing() (abd.Standing, env.Position) { return r.standing, r.at }

// Step acts on one message and appends what to send to out. An error means
// that the node's store is broken and the node must stop.
func (r *Replica) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	answer, after, err := r.dispatch(from.Node, m)
	switch {
	case err != nil:
		refused := abd.Refusal(err)
		if refused == nil {
			return out, err
		}
		answer, after = refused, 0
	case answer == nil:
		return out, nil
	}
	return append(out, env.Out{To: from, Message: answer, After: after}), nil
}

func (r *Replica) dispatch(from quorum.NodeID, m env.Message) (env.Message, env.Position, error) {
	switch m := m.(type) {
	case *Summarize:
		return r.summarize(m)
	case *Offer:
		return r.offer(m)
	case *Attest:
		return r.attest(from, m)
	case *inventory:
		return r.inventory(m)
	case *merge:
		return r.merge(m)
	case *examine:
		return r.examine(m)
	case *ail:
		return r.ailment()
	case *renew:
		return r.renew()
	case *mend:
		return r.mend(m)
	case *report:
		r.progress.Passes += m.Passes
		r.progress.Compared += m.Compared
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("repair: no step for %T", m)
}

// IsOwn reports whether m is a request that a node's own tasks make, and that
// nobody else may.
func IsOwn(m env.Message) bool {
	switch m.(type) {
	case *inventory, *merge, *examine, *ail, *renew, *mend, *report:
		return true
	}
	return false
}

// OnlyReads reports whether a step on m appends nothing to the journal.
func OnlyReads(m env.Message) bool {
	switch m.(type) {
	case *Summarize, *Offer, *inventory, *examine, *ail, *report:
		return true
	}
	return false
}

// inventory answers with a page of the node's own tags. Nobody else sees them,
// so they needn't be durable.
func (r *Replica) inventory(m *inventory) (env.Message, env.Position, error) {
	items, more, err := r.Stock(m.After, abd.MaxPage)
	switch d, ok := errors.AsType[*abd.DamagedRecord](err); {
	case ok && len(items) > 0:
		more = true // the next page begins with it
	case ok:
		return &stock{Skip: r.behind(d.Key, m.After)}, 0, nil
	case err != nil:
		return nil, 0, err
	}
	return &stock{Items: items, More: more}, 0, nil
}

// Stock returns a page of the node's own tags, behind a key: at most so many. An
// error that wraps abd.ErrDamaged comes with those before the damage.
func (r *Replica) Stock(after abd.Key, most int) (items []abd.Item, more bool, err error) {
	size := 0
	var kept copies
	_, err = r.walk(after, Range{After: after}.Has, func(key abd.Key, tag tags.Tag, deleted bool, _ func() ([]byte, error)) bool {
		items = append(items, abd.Item{Key: kept.key(key), Tag: tag, Deleted: deleted})
		size += len(key)
		more = len(items) == most || size >= most*(abd.MaxPageBytes/abd.MaxPage)
		return !more
	})
	return items, more, err
}

// behind returns where a walk goes on that can't get past a damaged record: a
// sound one behind it, empty if there is none.
func (r *Replica) behind(damaged, after abd.Key) abd.Key {
	_, to, _, err := r.view.Gap(damaged)
	if err != nil || to <= after {
		return ""
	}
	return to
}

// summarize answers with the hash of what the node has in a range.
func (r *Replica) summarize(m *Summarize) (env.Message, env.Position, error) {
	h, in := newHash(), m.Range
	answer := &Summary{Standing: r.standing}
	var last []byte // of what was hashed, if there may be more
	at, err := r.walk(m.After, m.Has, func(key abd.Key, tag tags.Tag, _ bool, _ func() ([]byte, error)) bool {
		if m.Cut && answer.Keys == m.Keys {
			answer.Last = abd.Key(last)
			return false
		}
		h.add(key, tag)
		answer.Keys++
		if m.Cut && answer.Keys == m.Keys {
			last = []byte(key)
		}
		return answer.Keys <= m.Keys && answer.Keys <= maxExamined
	})
	if answer.Last != "" {
		in.To = answer.Last
	}
	if err == nil && m.Knows > 0 {
		var voted env.Position
		voted, err = r.eachVote(in, func(c synod.Carried) bool {
			h.vote(&c)
			return true
		})
		at = max(at, voted)
	}
	answer.Hash = uint64(h)
	return answer, max(at, r.at), err
}

// offer answers with the records in which this node is ahead of the asker. What
// it shows is durable, as an answer to a get is.
func (r *Replica) offer(m *Offer) (env.Message, env.Position, error) {
	lacks, examined := m.lacks(r.rules), 0
	limit := min(cmp.Or(max(m.Limit, 0), MaxEntries), LargestPage)
	// A record that is damaged is left out: another member may have it.
	c := collection{replica: r, skip: m.Knows == 0 || r.rules.SkipTheDamaged, limit: limit}
	at, err := r.walk(m.After, m.Has, func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool {
		if lacks(key, tag) && !c.take(key, tag, deleted, value) {
			return false
		}
		examined++
		c.pass(key)
		c.records.More = c.taken == limit || examined == maxExamined
		return !c.records.More
	})
	missing := &Missing{Standing: r.standing}
	if missing.Records, err = c.end(err); err != nil {
		return nil, 0, err
	}
	if m.Knows == 0 {
		return missing, max(at, r.at), nil
	}
	voted, err := r.addVotes(missing, m.Range, c.bytes())
	return missing, max(at, voted, r.at), err
}

// merge stores what is larger than what the node has: each is a put whose
// caller was somebody else.
func (r *Replica) merge(m *merge) (env.Message, env.Position, error) {
	stored, bytes, after, err := r.take(m.Entries, true)
	r.progress.Merged += stored
	r.progress.Bytes += bytes
	return &merged{int(stored)}, after, err
}

// Take stores those records that are larger than the node's own, and returns
// how many they were and how many bytes. An error wraps abd.ErrDamaged if the
// node abstains on one of them, is a *abd.SizeError or an *env.Refused if one
// can't be stored, and else what the store said.
func (r *Replica) Take(entries []Entry) (stored, bytes int64, err error) {
	stored, bytes, _, err = r.take(entries, false)
	return stored, bytes, err
}

func (r *Replica) take(entries []Entry, skip bool) (stored, bytes int64, after env.Position, err error) {
	for i, e := range entries {
		if i%expected == 0 {
			r.expect(entries[i:min(i+expected, len(entries))])
		}
		err := (&abd.Put{Key: e.Key, Record: e.Record}).Check(r.maxValue)
		switch {
		case err != nil && skip:
			continue // whoever sent it is mistaken, and the rest may be good
		case err != nil:
			return stored, bytes, after, err // to leave it out would say that it is there
		}
		old, _, err := r.seen.Load(e.Key, false)
		if skip && errors.Is(err, abd.ErrDamaged) {
			continue
		}
		if err != nil {
			return stored, bytes, after, err
		}
		if !old.Tag.Less(e.Record.Tag) && !r.rules.MergeAnything {
			continue
		}
		if after, err = r.seen.Store(e.Key, e.Record); err != nil {
			return stored, bytes, after, err
		}
		stored++
		bytes += int64(len(e.Key) + len(e.Record.Value))
	}
	return stored, bytes, after, nil
}

// expected is of how many records the store is told beforehand.
const expected = 256

func (r *Replica) expect(entries []Entry) {
	r.view.Expect(func(yield func(abd.Key) bool) {
		for i := range entries {
			if !yield(entries[i].Key) {
				return
			}
		}
	})
}

// examine reads some records, values too.
func (r *Replica) examine(m *examine) (env.Message, env.Position, error) {
	answer := &examined{Done: true}
	last, size := []byte(m.After), 0
	_, err := r.walk(m.After, Range{After: m.After}.Has, func(key abd.Key, _ tags.Tag, _ bool, value func() ([]byte, error)) bool {
		v, err := value()
		r.notice(err)
		last = append(last[:0], key...)
		answer.Keys++
		size += len(v)
		answer.Done = answer.Keys < examinePage && size < MaxEntryBytes
		return answer.Done
	})
	switch d, ok := errors.AsType[*abd.DamagedRecord](err); {
	case ok && answer.Keys > 0:
		answer.Done = false
	case ok:
		to := r.behind(d.Key, m.After)
		return &examined{Last: to, Done: to == ""}, 0, nil
	case err != nil:
		return nil, 0, err
	}
	answer.Last = abd.Key(last)
	r.progress.Examined += int64(answer.Keys)
	return answer, 0, nil
}

// ailing is a record that is known to be damaged. Until it is healed the node
// abstains on it.
type ailing struct {
	key abd.Key
	// begun: the node has begun another life since it noticed, which is life.
	begun bool
	life  abd.Life
}

func (r *Replica) find(key abd.Key) (at int, is bool) {
	return slices.BinarySearchFunc(r.ailing, key, func(a ailing, k abd.Key) int { return strings.Compare(string(a.key), string(k)) })
}

// ail keeps in mind that a record is damaged.
func (r *Replica) ail(key abd.Key) {
	if i, known := r.find(key); !known && len(r.ailing) < MaxDamaged {
		r.ailing = slices.Insert(r.ailing, i, ailing{key: key})
	}
}

// recovered forgets that it was, and reports whether it was known.
func (r *Replica) recovered(key abd.Key) bool {
	i, known := r.find(key)
	if known {
		r.ailing = slices.Delete(r.ailing, i, i+1)
	}
	return known
}

// ailment answers with a gap that wants healing: each time another one, so that
// one which can't be healed for now doesn't keep the others waiting.
func (r *Replica) ailment() (env.Message, env.Position, error) {
	for len(r.ailing) > 0 {
		r.turn = (r.turn + 1) % len(r.ailing)
		key := r.ailing[r.turn].key
		after, to, damaged, err := r.view.Gap(key)
		if err != nil {
			return nil, 0, err
		}
		if len(damaged) == 0 {
			r.recovered(key) // it can be read after all
			continue
		}
		answer := &ailment{After: after, Before: to, Damaged: damaged, Begun: true, Life: r.standing.Life}
		for _, k := range damaged {
			r.ail(k)
			if i, known := r.find(k); !known || !r.ailing[i].begun {
				answer.Begun = false
			}
		}
		// The life that it tells goes to others next: a copy of an earlier renew
		// may have begun it a moment ago.
		return answer, r.at, nil
	}
	return &ailment{}, 0, nil
}
