package client

import (
	"context"
	"net/netip"

	"atoll/internal/live"
	"atoll/quorum"
)

// Runtime returns what the client's runtime holds.
func (c *Client) Runtime() live.Stats { return c.runtime.Stats() }

// Hear has the client learn what somebody says of a node.
func (c *Client) Hear(m quorum.Member) {
	(*known)(c).Learn(&quorum.News{Map: c.known.Load(), Members: []quorum.Member{m}})
}

// Addresses are where the client dials a node.
func (c *Client) Addresses(id quorum.NodeID) []string { return c.addressesOf(id) }

// ResolvedBy returns a config whose names stand for what f says.
func (cfg Config) ResolvedBy(f func(context.Context, string) ([]netip.Addr, error)) Config {
	cfg.resolve = f
	return cfg
}
