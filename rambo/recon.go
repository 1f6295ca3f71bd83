package rambo

import (
	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
)

// Recon has the next configuration decided and tells the members, who see to the
// rest. It returns when one of them has what was decided on its disk. For its
// errors see reconfig.Proposer.Recon. One that comes from telling means nothing:
// the members find out by themselves (Finish).
func Recon(e env.Env, p *reconfig.Proposer, proposal reconfig.Proposal) (reconfig.Decision, error) {
	d, err := p.Recon(e, proposal)
	if err != nil {
		return d, err
	}
	return d, announce(e, p, d.Configuration)
}

// Abort has the present members decided once more, so that no change that is
// pending now is, and tells the members. It returns nil if that wasn't decided; for
// its errors see reconfig.Proposer.Abort, and Recon for those beside a
// configuration.
func Abort(e env.Env, p *reconfig.Proposer) (*quorum.Configuration, error) {
	again, err := p.Abort(e)
	if err != nil {
		return nil, err
	}
	return again, announce(e, p, again)
}

// announce tells the members of a configuration, and those of the one before,
// that it was decided.
func announce(e env.Env, p *reconfig.Proposer, decided *quorum.Configuration) error {
	m := p.Known.Map()
	if _, known := m.Find(decided.Index()); !known && m.Horizon().Next == decided.Index() {
		var err error
		if m, err = m.Decide(decided); err != nil {
			return err
		}
	}
	news := &quorum.News{Map: m, Members: p.Members}
	return e.Ask(m.Active().Members(), &Announce{news}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
		told, ok := answer.(*Announced)
		return ok && told.Horizon.Next > decided.Index()
	})
}

// Finish sees to it that what a proposer has left behind is decided, when that
// has died before it told anybody. It runs on a member of the installed
// configuration of m.
func (t Tasks) Finish(e env.Env, p reconfig.Proposer, m *quorum.Map) error {
	if len(m.Active()) > 1 {
		return forever(e) // it is decided
	}
	p.Known = NewCMap(m)
	decided, err := p.Finish(e, t.Pace.withDefaults().Finish)
	if err != nil {
		return err
	}
	return announce(e, &p, decided)
}

// forever waits until the scope ends.
func forever(e env.Env) error {
	return e.Ask(nil, nil, func(env.Conversation, quorum.NodeID, env.Message) bool { return false })
}
