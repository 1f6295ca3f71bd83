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

// Waits reports whether something waits for a member that is lost.
func (c *Client) Waits() bool { return c.waits() }

// StopRefreshing ends the goroutine that looks where members are.
func (c *Client) StopRefreshing() {
	c.ended(ErrClosed)
	c.asking.Wait()
}

// Needed reports whether something couldn't be sent since the last time, or since that
// goroutine looked.
func (c *Client) Needed() bool {
	select {
	case <-c.needed:
		return true
	default:
		return false
	}
}

// Complete reports whether there is a session with each member.
func (c *Client) Complete() bool { return c.complete() }
