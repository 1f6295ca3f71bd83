package client

import "atoll/internal/live"

// Runtime returns what the client's runtime holds.
func (c *Client) Runtime() live.Stats { return c.runtime.Stats() }
