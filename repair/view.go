package repair

import (
	"errors"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// View is what repair needs of a node's store.
type View interface {
	abd.View

	// Heal, Suspects, Gap, Cell and SetCell are those of replica.Store.

	Suspects() []abd.Key

	Heal(key abd.Key, r abd.Record) (env.Position, error)
	Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error)
	Cell(name string) (value []byte, at env.Position)
	SetCell(name string, value []byte) (env.Position, error)
}

// Watch returns view, which tells r of every damage that it meets.
func (r *Replica) Watch(view abd.View) abd.View { return &watched{view, r} }

type watched struct {
	abd.View
	replica *Replica
}

func (w *watched) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	record, at, err := w.View.Load(key, withValue)
	w.replica.notice(err)
	return record, at, err
}

func (w *watched) Store(key abd.Key, record abd.Record) (env.Position, error) {
	at, err := w.View.Store(key, record)
	w.replica.notice(err)
	return at, err
}

func (w *watched) Scan(prefix, after abd.Key, each func(abd.Key, tags.Tag, bool) bool) (env.Position, error) {
	at, err := w.View.Scan(prefix, after, each)
	w.replica.notice(err)
	return at, err
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
