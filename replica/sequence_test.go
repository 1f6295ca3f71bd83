package replica_test

import (
	"bytes"
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// maxSequence is how many bytes of a script are read: more adds nothing but
// time.
const maxSequence = 4096

// maxValue is the largest value of the cluster: small, so that scripts find
// what is too large.
const maxValue = 64

// A sequence does to a node what the bytes of a script say: messages from
// several senders, commits, crashes, power cuts, a full disk, damage. After
// each it holds the node against a twin that is a map, and every message that
// may leave against what a power cut would leave on the disk.
type sequence struct {
	script []byte
	rules  replica.Rules
	member bool
	disk   *sim.Disk
	node   *replica.Node

	twin map[abd.Key]abd.Record
	// puts are all records that anybody ever asked to store under a key.
	puts map[abd.Key][]abd.Record
	// confirmed are the tags that were confirmed in this life of the node
	// while it held them.
	confirmed map[abd.Key][]tags.Tag
	// promised is the largest tag of a key that a message which has left shows
	// or acknowledges.
	promised map[abd.Key]tags.Tag
	held     []answer
	durable  env.Position
	encoder  wire.Encoder
}

// answer is a message on its way out, and the request that it answers.
type answer struct {
	request env.Message
	out     env.Out
}

// playSequence returns the first rule that the node broke.
func playSequence(script []byte, rules replica.Rules) error {
	s := &sequence{
		script: script[:min(len(script), maxSequence)], rules: rules, disk: sim.NewDisk(),
		twin: map[abd.Key]abd.Record{}, puts: map[abd.Key][]abd.Record{}, promised: map[abd.Key]tags.Tag{},
	}
	s.member = s.next()%16 != 0
	if err := s.boot(); err != nil {
		return err
	}
	for len(s.script) > 0 {
		what, err := s.act()
		if err != nil {
			return fmt.Errorf("%s, with %d bytes of the script left: %w", what, len(s.script), err)
		}
	}
	return nil
}

// next takes a byte of the script, 0 behind its end.
func (s *sequence) next() byte {
	if len(s.script) == 0 {
		return 0
	}
	b := s.script[0]
	s.script = s.script[1:]
	return b
}

func (s *sequence) take(n int) []byte {
	n = min(n, len(s.script))
	b := s.script[:n]
	s.script = s.script[n:]
	return b
}

// boot starts a life of the node.
func (s *sequence) boot() error {
	system, err := quorum.ParseSystem("majority")
	if err != nil {
		return err
	}
	members := []quorum.NodeID{"a", "b", "c"}
	if !s.member {
		members[0] = "d"
	}
	configuration, err := quorum.NewConfiguration(0, members, system)
	if err != nil {
		return err
	}
	cfg := replica.Config{Cluster: "c1", Self: "a", Configurations: quorum.Configurations{configuration}, MaxValue: maxValue, Rules: s.rules}
	for _, id := range members {
		cfg.Members = append(cfg.Members, quorum.Member{ID: id, Name: "name-" + string(id), Addresses: []string{"h:1"}})
	}
	s.node, err = replica.New(cfg, s.disk)
	s.confirmed = map[abd.Key][]tags.Tag{}
	s.held = nil
	_, s.durable = s.disk.Positions()
	return err
}

// act does the next thing, and names it.
func (s *sequence) act() (what string, err error) {
	switch op := s.next() % 16; op {
	case 0, 1, 2, 3:
		return s.step(s.put())
	case 4, 5:
		return s.step(&abd.Get{Key: s.key(), TagOnly: op == 5})
	case 6:
		prefix, after := s.key(), s.key()
		if b := s.next(); b%4 != 0 {
			prefix = prefix[:min(int(b%2), len(prefix))]
		}
		return s.step(&abd.List{Prefix: prefix, After: after, Limit: int(s.next()) - 1})
	case 7:
		return s.step(&abd.Confirm{Key: s.key(), Tag: s.tag()})
	case 8, 9:
		s.durable, err = s.disk.Commit()
		if err != nil {
			return "commit", err
		}
		return "commit", s.release()
	case 10:
		s.disk.LoseUnwritten()
		return "crash", s.restarted()
	case 11:
		s.disk.LoseUnsynced(int(s.next() % 4))
		return "power cut", s.restarted()
	case 12:
		return "disk", s.trouble()
	case 13:
		// Whatever a peer can say: a frame that may be anything.
		_, m, err := wire.DecodeFrame(s.take(int(s.next())))
		if err != nil || m == nil {
			return "frame", nil
		}
		return s.step(m)
	case 14:
		return s.step(s.oddity())
	default:
		if s.durable, err = s.disk.Commit(); err != nil {
			return "restart", err
		}
		if err := s.release(); err != nil {
			return "restart", err
		}
		return "restart", s.restarted()
	}
}

// The keys of scripts: some begin with others, and two no node takes.
func (s *sequence) key() abd.Key {
	keys := [...]abd.Key{"a", "ab", "a\x00", "b", "\xff", "\xff\xff", "", abd.Key(strings.Repeat("k", abd.MaxKey+1))}
	b := s.next()
	if b < 224 {
		b %= 4
	}
	return keys[b%8]
}

func (s *sequence) tag() tags.Tag {
	b := s.next()
	t := tags.Tag{Seq: tags.Seq(b % 8), PID: tags.NewPID(0, 0, uint64(b/8%4)), RMW: tags.RMW(b / 32 % 2)}
	if b == 255 {
		t.Seq = ^tags.Seq(0)
	}
	return t
}

func (s *sequence) put() *abd.Put {
	p := &abd.Put{Key: s.key(), Record: abd.Record{Tag: s.tag()}}
	switch b := s.next(); {
	case b < 32:
		p.Record.Deleted = true
	case b < 40:
		p.Record.Deleted, p.Record.Value = true, []byte{b}
	default:
		p.Record.Value = bytes.Repeat([]byte{b}, int(b)%(maxValue+2))
	}
	return p
}

// oddity is a message that isn't a request of abd.
func (s *sequence) oddity() env.Message {
	all := [...]env.Message{
		&replica.Describe{}, &replica.StatusQuery{}, &env.Refused{Reason: env.ReasonFull}, &abd.PutAck{}, &abd.Page{},
		&abd.GetAck{Record: abd.Record{Tag: tags.Tag{Seq: 9}}}, &replica.Description{}, &replica.Status{}, &wire.Hello{},
	}
	return all[int(s.next())%len(all)]
}

func (s *sequence) trouble() error {
	switch b := s.next(); b % 4 {
	case 0:
		s.disk.Fill()
	case 1, 2:
		s.disk.Free()
	case 3:
		if key := s.key(); !s.twin[key].Tag.IsZero() {
			s.disk.Damage(key)
		}
	}
	return nil
}
