package repair

import (
	"errors"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// examinePage is how many records a node reads at a time in search of damage.
const examinePage = 256

// Pace says how much of a node's time repair may take. The zero value of a
// field stands for its default.
type Pace struct {
	// Pass is the pause after a pass over all keys of another member, and of
	// the node's own. Default one minute.
	Pass time.Duration
	// Page is the pause after each page of about a thousand keys. Default
	// 50 ms: a million keys take most of a minute.
	Page time.Duration
	// Rate is how many bytes of records a node takes from another one in a
	// second. Default 32 MiB.
	Rate int64
	// Look is how often a node looks for damage that was noticed. Default one
	// second.
	Look time.Duration
}

// Defaults of Pace.
const (
	DefaultPass = time.Minute
	DefaultPage = 50 * time.Millisecond
	DefaultRate = 32 << 20
	DefaultLook = time.Second
)

func (p Pace) withDefaults() Pace {
	if p.Pass <= 0 {
		p.Pass = DefaultPass
	}
	if p.Page <= 0 {
		p.Page = DefaultPage
	}
	if p.Rate <= 0 {
		p.Rate = DefaultRate
	}
	if p.Look <= 0 {
		p.Look = DefaultLook
	}
	return p
}

// Tasks are what a node does about repair beside answering. Its methods run
// until their scope ends.
type Tasks struct {
	// Configurations are the active ones.
	Configurations quorum.Configurations
	Horizon        quorum.Horizon // of the config map that they are from
	Pace           Pace
	Rules          Rules
}

// Pull takes from a peer what the node has missed, over and over. While the
// peer is away it waits.
func (t Tasks) Pull(e env.Env, peer quorum.NodeID) error {
	pace := t.Pace.withDefaults()
	if err := pause(e, pace.Look); err != nil { // not all nodes at once
		return err
	}
	for {
		// A node that has no space goes on with the next pass: what it missed
		// it misses still.
		if err := t.Pass(e, peer); err != nil && !isRefused(err, env.ReasonFull) {
			return err
		}
		if err := pause(e, pace.Pass); err != nil {
			return err
		}
	}
}

// Pass takes from a peer what the node has missed, once.
func (t Tasks) Pass(e env.Env, peer quorum.NodeID) error {
	return (puller{e, peer, t.Pace.withDefaults()}).pass()
}

func isRefused(err error, reason env.Reason) bool {
	refused, ok := errors.AsType[*env.Refused](err)
	return ok && refused.Reason == reason
}

// pause sleeps for d, give or take half of it.
func pause(e env.Env, d time.Duration) error {
	return e.Sleep(d/2 + time.Duration(e.Rand()%uint64(d)))
}

type puller struct {
	env.Env
	peer quorum.NodeID
	pace Pace
}

// pass compares all keys once.
func (p puller) pass() error {
	after := abd.Key("")
	for more := true; more; {
		page, err := env.AskOne[*stock](p, p.Self(), &inventory{after})
		if err != nil {
			return err
		}
		in := Range{After: after}
		if len(page.Items) == 0 && page.Skip != "" {
			after = page.Skip
			continue
		}
		if more = page.More; more {
			in.To = page.Items[len(page.Items)-1].Key
		}
		if err := p.compare(in, page.Items); err != nil {
			return err
		}
		after = in.To
		done := Progress{Compared: int64(len(page.Items))}
		if !more {
			done.Passes = 1
		}
		p.Tell([]quorum.NodeID{p.Self()}, &report{done})
		if err := p.Sleep(p.pace.Page); err != nil {
			return err
		}
	}
	return nil
}

// compare takes over what the peer has in a range and the node hasn't.
func (p puller) compare(in Range, items []abd.Item) error {
	summary, err := env.AskOne[*Summary](p, p.peer, &Summarize{Range: in, Keys: len(items)})
	if isRefused(err, env.ReasonDamaged) {
		return nil // in the peer's range, which it will heal
	}
	if err != nil {
		return err
	}
	if own := SummaryOf(items, nil, nil); summary.Keys == own.Keys && summary.Hash == own.Hash {
		return nil
	}
	for more := true; more; {
		missing, err := env.AskOne[*Missing](p, p.peer, &Offer{Range: in, Items: items})
		if isRefused(err, env.ReasonDamaged) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(missing.Entries) > 0 {
			if _, err := env.AskOne[*merged](p, p.Self(), &merge{missing.Entries}); err != nil {
				return err
			}
		}
		if more = missing.More && missing.Last > in.After; !more {
			return nil
		}
		in.After = missing.Last
		for len(items) > 0 && items[0].Key <= in.After {
			items = items[1:]
		}
		if err := p.Sleep(p.pace.of(missing.Entries)); err != nil {
			return err
		}
	}
	return nil
}

// of is how long the transfer of records may take.
func (p Pace) of(entries []Entry) time.Duration {
	size := int64(0)
	for _, e := range entries {
		size += int64(len(e.Key) + len(e.Record.Value))
	}
	return time.Duration(size * int64(time.Second) / p.Rate)
}

// Examine reads all records of the node, values too, over and over: damage that
// nobody meets would add up.
func (t Tasks) Examine(e env.Env) error {
	pace := t.Pace.withDefaults()
	for {
		if err := pause(e, pace.Pass); err != nil {
			return err
		}
		after := abd.Key("")
		for done := false; !done; {
			page, err := env.AskOne[*examined](e, e.Self(), &examine{after})
			if err != nil {
				return err
			}
			after, done = page.Last, page.Done
			if err := e.Sleep(pace.Page); err != nil {
				return err
			}
		}
	}
}

// errNoAttest: too many others refused, or are damaged in the same place.
var errNoAttest = errors.New("no read quorum of other members can attest what the record should be")

// Heal replaces damaged records, whenever there are any.
func (t Tasks) Heal(e env.Env) error {
	pace := t.Pace.withDefaults()
	for {
		if err := pause(e, pace.Look); err != nil {
			return err
		}
		for again := true; again; {
			var err error
			again, err = t.HealGap(e)
			if _, ended := errors.AsType[*env.Unfinished](err); ended {
				return err
			}
			// Otherwise the others can't attest the gap for now.
		}
	}
}

// HealGap heals the damage at one place, if there is any, and reports whether
// it did.
func (t Tasks) HealGap(e env.Env) (bool, error) {
	gap, err := env.AskOne[*ailment](e, e.Self(), &ail{})
	switch {
	case err != nil || len(gap.Damaged) == 0:
		return false, err
	case !t.curable(e.Self()):
		return false, errNoAttest
	}
	err = t.heal(e, gap)
	return err == nil, err
}

// curable reports whether the others have a read quorum in every configuration.
func (t Tasks) curable(self quorum.NodeID) bool {
	var without quorum.Tally
	without.Begin(t.Configurations)
	without.Add(self)
	return without.LeavesRead()
}

// heal mends one gap.
func (t Tasks) heal(e env.Env, gap *ailment) error {
	life := gap.Life
	if !gap.Begun {
		next, err := env.AskOne[*renewed](e, e.Self(), &renew{})
		if err != nil {
			return err
		}
		life = next.Life
	}
	req := &Attest{gap.After, gap.Before, life, t.Horizon}
	for more := true; more; {
		pages, err := t.attest(e, req)
		if err != nil {
			return err
		}
		entries, end := mergePages(pages)
		if t.Rules.HealOneKey {
			entries = slices.DeleteFunc(entries, func(e Entry) bool { return !slices.Contains(gap.Damaged, e.Key) })
		}
		more = end != ""
		part := &mend{Entries: entries, Damaged: gap.Damaged, Done: !more, Life: life}
		if _, err := env.AskOne[*mended](e, e.Self(), part); err != nil {
			return err
		}
		req = &Attest{end, gap.Before, life, t.Horizon}
	}
	return nil
}

// attest asks the others what they hold in a range, until those that have
// answered contain a read quorum of every configuration (H4).
func (t Tasks) attest(e env.Env, req *Attest) ([]*Attested, error) {
	self := e.Self()
	others := slices.DeleteFunc(slices.Clone(t.Configurations.Members()), func(n quorum.NodeID) bool { return n == self })
	var attested, refused quorum.Tally
	attested.Begin(t.Configurations)
	refused.Begin(t.Configurations)
	refused.Add(self)
	if t.Rules.HealFromSelf {
		attested.Add(self)
	}
	var pages []*Attested
	hopeless := false
	err := e.Ask(others, req, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *env.Refused:
			refused.Add(from)
			hopeless = !refused.LeavesRead()
			return hopeless
		case *Attested:
			if !attested.Has(from) && answer.fits(req) {
				attested.Add(from)
				pages = append(pages, answer)
			}
		}
		return attested.HasRead() || t.Rules.HealFromAny && len(pages) > 0
	})
	switch {
	case err != nil:
		return nil, err
	case hopeless:
		return nil, errNoAttest
	}
	return pages, nil
}

// fits reports whether an answer can be one to a question about a range.
func (a *Attested) fits(req *Attest) bool {
	last := req.After
	for i := range a.Entries {
		if k := a.Entries[i].Key; k <= last || !req.has(k) {
			return false
		}
		last = a.Entries[i].Key
	}
	return !a.More || a.Last >= last && a.Last > req.After
}

// mergePages returns the largest record of each key, in order, up to the
// smallest end of the pages; end is empty if all of them reach the end of the
// range.
func mergePages(pages []*Attested) (entries []Entry, end abd.Key) {
	for _, p := range pages {
		if p.More && (end == "" || p.Last < end) {
			end = p.Last
		}
	}
	for _, p := range pages {
		for _, e := range p.Entries {
			if end == "" || e.Key <= end {
				entries = append(entries, e)
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		if c := strings.Compare(string(a.Key), string(b.Key)); c != 0 {
			return c
		}
		return b.Record.Tag.Compare(a.Record.Tag) // the largest first
	})
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.Key == b.Key })
	return entries, end
}
