package explore

import (
	"fmt"
	"strings"
)

// kind is what a move does. The first letter of a move in a path says it.
type kind byte

const (
	// arrives: a held message arrives, and what is answered. At is its place
	// among those that are held.
	arrives kind = 'a'
	// unheard: the same, but what nodes answer is lost.
	unheard kind = 'u'
	// hangs: the same, and from now on no commit of a node ends, until it dies.
	// By is its index.
	hangs kind = 'h'
	// dies: a process dies, and with what its disk has not synced. At is its index.
	dies kind = 'd'
	// passes: time passes.
	passes kind = 't'
)

// move is one thing that may happen next.
type move struct {
	kind kind
	by   uint8
	at   uint32
}

// String returns the move as it stands in a path.
func (m move) String() string {
	switch m.kind {
	case passes:
		return "t"
	case hangs:
		return fmt.Sprintf("h%d:%d", m.at, m.by)
	}
	return fmt.Sprintf("%c%d", m.kind, m.at)
}

// path is a row of moves, from the beginning.
type path []move

// String returns the path as ParsePath reads it.
func (p path) String() string {
	var words []string
	for _, m := range p {
		words = append(words, m.String())
	}
	return strings.Join(words, ".")
}

// parsePath reads a path.
func parsePath(text string) (p path, err error) {
	for word := range strings.SplitSeq(text, ".") {
		m := move{}
		switch {
		case word == "":
			return nil, fmt.Errorf("explore: a path has no empty moves: %q", text)
		case word == "t":
		case strings.HasPrefix(word, "h"):
			_, err = fmt.Sscanf(word[1:], "%d:%d", &m.at, &m.by)
		default:
			_, err = fmt.Sscanf(word[1:], "%d", &m.at)
		}
		m.kind = kind(word[0])
		if err != nil || m.String() != word || !strings.ContainsRune("auhtd", rune(m.kind)) {
			return nil, fmt.Errorf("explore: a path has no move %q", word)
		}
		p = append(p, m)
	}
	return p, nil
}
