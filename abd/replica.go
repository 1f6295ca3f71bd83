package abd

import (
	"errors"
	"fmt"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

const (
	// maxConfirmed is how many keys a replica remembers a confirmed tag for.
	// Forgetting one costs a later read its second phase, nothing more.
	maxConfirmed = 1 << 16
)

// Replica is the replica's half of the protocol: a deterministic step over a
// View. It is not safe for concurrent use.
type Replica struct {
	view      View
	maxValue  int
	rules     Rules
	confirmed confirmations

	standing   Standing     // without News
	standingAt env.Position // of what standing says
	ack        *PutAck      // that says so, too
	news       *quorum.News // in full what standing says of configurations
	member     bool         // of an active configuration, or of one to come
}

// NewReplica returns a replica over view that refuses values of more than
// maxValue bytes.
func NewReplica(view View, maxValue int, rules Rules) *Replica {
	return &Replica{view: view, maxValue: maxValue, rules: rules, confirmed: newConfirmations(maxConfirmed), ack: new(PutAck), member: true}
}

// Stand sets what the replica's answers say of lives and configurations, and
// the position in the journal of the record that says so: no answer shows what
// could be forgotten in a crash. news is what there is to say of the
// configurations, nil if the node knows of none; member says whether the node
// answers for registers.
func (r *Replica) Stand(s Standing, news *quorum.News, member bool, at env.Position) {
	if s.News = nil; news != nil {
		s.Horizon = news.Map.Horizon()
	}
	r.standing, r.news, r.member, r.standingAt, r.ack = s, news, member, at, &PutAck{s}
}

// stand returns what an answer says to somebody who knows as much of the
// configurations as a horizon says.
func (r *Replica) stand(asker quorum.Horizon) Standing {
	s := r.standing
	if asker.Behind(s.Horizon) {
		s.News = r.news
	}
	return s
}

// Step acts on one message and appends what to send to out. A request that
// can't be met is refused by a message; an error means that the node's store
// is broken and the node must stop.
func (r *Replica) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	var (
		answer env.Message
		after  env.Position
		err    error
	)
	switch m := m.(type) {
	case *Get:
		if answer, err = r.admit(m.Horizon); answer == nil && err == nil {
			answer, after, err = r.get(m)
		}
	case *Put:
		if answer, err = r.admit(m.Horizon); answer == nil && err == nil {
			answer, after, err = r.put(m)
		}
	case *List:
		if answer, err = r.admit(m.Horizon); answer == nil && err == nil {
			answer, after, err = r.list(m)
		}
	case *Confirm:
		if !r.member {
			return out, nil
		}
		return out, r.confirm(m)
	default:
		return out, fmt.Errorf("abd: no step for %T", m)
	}
	if err != nil {
		if answer = Refusal(err); answer == nil {
			return out, err
		}
		return append(out, env.Out{To: from, Message: answer}), nil
	}
	return append(out, env.Out{To: from, Message: answer, After: max(after, r.standingAt)}), nil
}

// admit returns the answer, or the refusal as an error, for who asks in vain.
//
// A node in no active configuration counts in no quorum. It tells who comes
// with an old config map of the newer one, as long as it runs.
//
// Who says nothing of configurations is of a version that can't hear of them.
// It would go on with the first one when that is out (schedule 30).
func (r *Replica) admit(asker quorum.Horizon) (env.Message, error) {
	switch {
	case asker.Next == 0 && r.standing.Horizon.Next > 1 && !r.rules.ServeTheOutdated:
		return nil, &env.Refused{Reason: env.ReasonOutdated,
			Text: "the members have changed, and this version can't follow that"}
	case !r.member && r.news != nil && asker.Behind(r.standing.Horizon):
		return &Moved{r.stand(asker)}, nil
	case !r.member:
		return nil, &env.Refused{Reason: env.ReasonNotMember, Text: "this node is in no active configuration"}
	}
	return nil, nil
}

// get answers with what is stored. The answer reveals the record, and so
// waits until it is durable: a value that was shown and then lost in a power
// cut would have been read and unread (schedule 3).
func (r *Replica) get(m *Get) (env.Message, env.Position, error) {
	if err := m.Key.Check(); err != nil {
		return nil, 0, err
	}
	rec, pos, err := r.load(m.Key, !m.TagOnly)
	if err != nil {
		return nil, 0, err
	}
	omitted := 0
	switch size := len(rec.Value); {
	case m.TagOnly:
		rec.Value = nil
	case m.ValueLimit > 0 && size > m.ValueLimit:
		rec.Value, omitted = nil, size
	}
	if r.rules.RevealUnsynced {
		pos = 0
	}
	return &GetAck{Record: rec, Confirmed: r.confirmed.has(m.Key, rec.Tag), Omitted: omitted, Standing: r.stand(m.Horizon)}, pos, nil
}

// put stores the record if its tag is larger than the stored one, and acks
// always: the ack says "I durably hold this tag or a larger one" (R2). So the
// ack of a put that changes nothing waits for the record that is there.
func (r *Replica) put(m *Put) (env.Message, env.Position, error) {
	if err := m.Check(r.maxValue); err != nil {
		return nil, 0, err
	}
	old, pos, err := r.load(m.Key, false)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case old.Tag.Less(m.Record.Tag) || r.rules.StoreAnything:
		if pos, err = r.view.Store(m.Key, m.Record); err != nil {
			return nil, 0, err
		}
	case r.rules.AckDuplicateAtOnce:
		pos = 0
	}
	if m.Horizon.Behind(r.standing.Horizon) {
		return &PutAck{r.stand(m.Horizon)}, pos, nil
	}
	return r.ack, pos, nil
}

// load returns the record that the replica acts on.
func (r *Replica) load(key Key, withValue bool) (Record, env.Position, error) {
	rec, pos, err := r.view.Load(key, withValue)
	switch {
	case r.rules.DamagedIsAbsent && errors.Is(err, ErrDamaged), r.rules.EraseTombstones && rec.Deleted:
		return Record{}, 0, nil
	}
	return rec, pos, err
}

// confirm notes that the put phase of a tag has ended, so that a read which
// meets it here needn't put it again. Only the tag that is stored right now
// matters. It is a hint and isn't stored: that a write quorum holds the tag
// stays true whatever this node forgets.
func (r *Replica) confirm(m *Confirm) error {
	if m.Key.Check() != nil {
		return nil
	}
	rec, _, err := r.view.Load(m.Key, false)
	switch {
	case errors.Is(err, ErrDamaged):
		return nil
	case err != nil:
		return err
	case rec.Tag == m.Tag && !m.Tag.IsZero() || r.rules.ConfirmAnyTag:
		r.confirmed.note(m.Key, rec.Tag)
	}
	return nil
}

// list answers with one page of tags. A damaged record refuses the page that
// would contain it, so that the node counts in no quorum for that range.
func (r *Replica) list(m *List) (env.Message, env.Position, error) {
	if m.Limit < 1 || m.Limit > MaxPage || len(m.Prefix) > MaxKey || len(m.After) > MaxKey {
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest,
			Text: fmt.Sprintf("a page has 1 to %d keys of at most %d bytes", MaxPage, MaxKey)}
	}
	page := &Page{Standing: r.stand(m.Horizon)}
	size := 0
	pos, err := r.view.Scan(m.Prefix, m.After, func(key Key, tag tags.Tag, deleted bool) bool {
		page.Items = append(page.Items, Item{Key: key, Tag: tag, Deleted: deleted, Confirmed: r.confirmed.has(key, tag)})
		size += len(key)
		page.More = len(page.Items) == m.Limit || size >= MaxPageBytes
		return !page.More
	})
	if err != nil {
		return nil, 0, err
	}
	if r.rules.RevealUnsynced {
		pos = 0
	}
	return page, pos, nil
}

// Refusal returns the message that tells a caller of err, or nil if err
// isn't the request's fault nor a matter of one key.
func Refusal(err error) env.Message {
	if refused, ok := errors.AsType[*env.Refused](err); ok {
		return refused
	}
	if size, ok := errors.AsType[*SizeError](err); ok {
		reason := env.ReasonTooLarge
		if size.Size < size.Min {
			reason = env.ReasonBadRequest
		}
		return &env.Refused{Reason: reason, Text: size.Error()}
	}
	switch {
	case errors.Is(err, ErrDamaged):
		return &env.Refused{Reason: env.ReasonDamaged, Text: err.Error()}
	case errors.Is(err, ErrFull):
		return &env.Refused{Reason: env.ReasonFull, Text: err.Error()}
	}
	return nil
}

// confirmations is a bounded map from key to its confirmed tag. The oldest
// entry makes room for a new one.
type confirmations struct {
	tags  map[Key]tags.Tag
	limit int
	ring  []Key // in order of arrival
	next  int
}

func newConfirmations(limit int) confirmations {
	return confirmations{tags: make(map[Key]tags.Tag), limit: limit}
}

func (c *confirmations) has(key Key, tag tags.Tag) bool {
	t, ok := c.tags[key]
	return ok && t == tag
}

func (c *confirmations) note(key Key, tag tags.Tag) {
	if _, known := c.tags[key]; !known {
		if len(c.ring) < c.limit {
			c.ring = append(c.ring, key)
		} else {
			delete(c.tags, c.ring[c.next])
			c.ring[c.next] = key
			c.next = (c.next + 1) % len(c.ring)
		}
	}
	c.tags[key] = tag
}
