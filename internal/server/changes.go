package server

import (
	"strings"

	"atoll/quorum"
)

// removedText is what the log of a node says that no configuration names any more.
const removedText = "this node was removed: no configuration names it any more. It holds no data that counts, redirects who still asks it, and may be stopped for good"

// tellChange logs what has become of the configurations, and of this node in them,
// since the node knew old.
func (s *Server) tellChange(old, news *quorum.News) {
	if old == nil || news == nil || old.Map == news.Map {
		return
	}
	before, now := old.Map.Horizon(), news.Map.Horizon()
	for _, c := range news.Map.Active() {
		if c.Index() > 0 && c.Index() >= before.Next { // nobody has agreed on the first: it was given
			s.log.Info("new members were agreed on", "configuration", c.Index(), "members", namesOf(c, news.Members), "quorum", c.System())
		}
	}
	if before.Installed < now.Installed {
		c := news.Map.Installed()
		s.log.Info("a configuration has taken over, those before it are out", "configuration", c.Index(), "members", namesOf(c, news.Members))
	}
	self := s.folder.ID
	switch was, is := old.Map.Has(self), news.Map.Has(self); {
	case is && !was:
		s.log.Info("this node is a member now")
	case was && !is:
		s.log.Warn(removedText)
	}
}

// namesOf returns how people call a configuration's members; the id of one that isn't
// known by a name.
func namesOf(c *quorum.Configuration, members []quorum.Member) string {
	texts := make([]string, 0, len(c.Members()))
	for _, id := range c.Members() {
		text := string(id)
		for _, m := range members {
			if m.ID == id && m.Name != "" {
				text = m.Name
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}
