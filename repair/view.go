package repair

import (
	"cmp"
	"errors"
	"iter"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// View is what repair needs of a node's store.
type View interface {
	abd.View

	// Walk, Expect, Heal, Suspects, Gap, Cell and SetCell are those of replica.Store.

	Walk(after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool) (env.Position, error)
	Expect(keys iter.Seq[abd.Key])
	Suspects() []abd.Key

	Heal(key abd.Key, r abd.Record) (env.Position, error)
	Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error)
	Cell(name string) (value []byte, at env.Position)
	SetCell(name string, value []byte) (env.Position, error)
}

// Watched returns the store as the node's protocols must see it: it tells r of
// every damage that it meets, and has none of the records that are known to be
// damaged (H1). Those of which only the value is damaged have a tag that can be
// read. But what the node acknowledged by that tag would be taken back with no
// life to tell of it, if it came after the life that the healing began.
func (r *Replica) Watched() abd.View { return &watched{r} }

type watched struct{ *Replica }

func (w *watched) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	if err := w.abstains(key); err != nil {
		return abd.Record{}, 0, err
	}
	record, at, err := w.view.Load(key, withValue)
	w.notice(err)
	return record, at, err
}

func (w *watched) Store(key abd.Key, record abd.Record) (env.Position, error) {
	if err := w.abstains(key); err != nil {
		return 0, err
	}
	at, err := w.view.Store(key, record)
	w.notice(err)
	return at, err
}

func (w *watched) Scan(prefix, after abd.Key, each func(abd.Key, tags.Tag, bool) bool) (env.Position, error) {
	var abstained error
	at, err := w.view.Scan(prefix, after, func(key abd.Key, tag tags.Tag, deleted bool) bool {
		abstained = w.abstains(key)
		return abstained == nil && each(key, tag, deleted)
	})
	w.notice(err)
	return at, cmp.Or(err, abstained)
}

// walk walks the records behind a key as far as they are in a range: damage
// behind it is nobody's concern. What each is given is good until it returns.
func (r *Replica) walk(after abd.Key, in func(abd.Key) bool, each func(abd.Key, tags.Tag, bool, func() ([]byte, error)) bool) (env.Position, error) {
	var abstained error
	at, err := r.view.Walk(after, func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool {
		if !in(key) {
			return false
		}
		abstained = r.abstains(key)
		return abstained == nil && each(key, tag, deleted, value)
	})
	r.notice(err)
	return at, cmp.Or(err, abstained)
}

// abstains returns an error if the record of a key is known to be damaged.
func (r *Replica) abstains(key abd.Key) error {
	if len(r.ailing) == 0 || r.rules.TrustTags {
		return nil
	}
	if _, is := r.find(key); is {
		return &abd.DamagedRecord{Key: abd.Key(strings.Clone(string(key))), Detail: "it is damaged, and not healed yet"}
	}
	return nil
}

// notice keeps in mind which record an error says is damaged.
func (r *Replica) notice(err error) {
	if err == nil {
		return
	}
	if d, ok := errors.AsType[*abd.DamagedRecord](err); ok {
		r.ail(d.Key)
	}
}
