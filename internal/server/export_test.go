package server

import (
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/repair"
	"atoll/replica"
)

// Disk is what the server needs of a store.
type Disk = disk

// WrapDisk has the server use what wrap makes of its store.
func (c *Config) WrapDisk(wrap func(Disk) Disk) {
	c.openStore = func(cfg store.Config) (disk, error) {
		d, err := openDisk(cfg)
		if err != nil {
			return nil, err
		}
		return wrap(d), nil
	}
}

// MaySend reports whether a role may send a message to a node.
func MaySend(role identity.Role, m env.Message) bool { return senders(m).has(role) }

// NodesOnly has the server take the messages that match from nodes only.
func (c *Config) NodesOnly(match func(env.Message) bool) {
	c.senders = func(m env.Message) roles {
		if match(m) {
			return nodes
		}
		return senders(m)
	}
}

// Node is what the server drives.
type Node = node

// WrapNode has the server drive what wrap makes of its node.
func (c *Config) WrapNode(wrap func(*replica.Node) Node) { c.wrapNode = wrap }

// Told is what the log was told of repair.
type Told = told

// DamageLogEvery is the least time between two lines about damage.
const DamageLogEvery = damageLogEvery

// Due is the method of the same name; whoever logs what was healed notes how much.
func (t *told) Due(p repair.Progress, now time.Time) (damage, healing bool) {
	damage, healing = t.due(p, now)
	if healing {
		t.healed = p.Healed
	}
	return damage, healing
}

// Denials is what keeps refusals from filling the log.
type Denials = denials

// DenialLogEvery is the least time between two lines about refusals.
const DenialLogEvery = denialLogEvery

// Allow is the method of the same name.
func (d *denials) Allow(now time.Time) (unlogged int64, ok bool) { return d.allow(now) }
