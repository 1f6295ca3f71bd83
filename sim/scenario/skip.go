package scenario

import "strconv"

// skip are the operations that a shrunken plan leaves out.
type skip struct {
	keys map[string]bool // those that stay; nil: all
	ones map[string]bool
}

func (p Plan) skips() *skip {
	if len(p.Keys) == 0 && len(p.Skip) == 0 {
		return nil
	}
	s := &skip{ones: make(map[string]bool)}
	for _, one := range p.Skip {
		s.ones[one] = true
	}
	for _, key := range p.Keys {
		if s.keys == nil {
			s.keys = make(map[string]bool)
		}
		s.keys[key] = true
	}
	return s
}

// has reports whether the operation that a client has just drawn is left out.
func (s *skip) has(cl *client, g *register) bool {
	if s.keys != nil && !s.keys[g.name] {
		return true
	}
	return s.ones[operationName(cl.name, cl.next)]
}

// operationName names the n-th operation of a client, from 1.
func operationName(client string, n int) string { return client + "/" + strconv.Itoa(n) }
