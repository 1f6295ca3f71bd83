package rambo

import "atoll/quorum"

// CMap is a caller's config map, which grows as answers reveal newer
// configurations: abd.Known for a caller that runs by itself. It is not safe
// for concurrent use.
type CMap struct {
	m *quorum.Map
	// OnChange, if set, is told each new map.
	OnChange func(*quorum.Map)
}

// NewCMap returns a config map that begins with m.
func NewCMap(m *quorum.Map) *CMap { return &CMap{m: m} }

// Map implements abd.Known.
func (c *CMap) Map() *quorum.Map { return c.m }

// Learn implements abd.Known. What contradicts what is known is left out.
func (c *CMap) Learn(news *quorum.News) *quorum.Map {
	m, err := c.m.Merge(news.Map)
	if err != nil || m == c.m {
		return c.m
	}
	c.m = m
	if c.OnChange != nil {
		c.OnChange(m)
	}
	return c.m
}
