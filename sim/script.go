package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// Script drives a world by commands, one a line, and says what happened in a
// transcript that is the same in every run. Time stands still and every
// message between two processes is held unless a command says otherwise.
//
// The processes:
//
//	node a b c        start nodes
//	client p q        start clients
//	crash a           kill the process: what wasn't written is lost
//	powerloss a [n]   kill it, and lose what wasn't synced but n groups
//	restart a         begin its next life; what waits for its answer is sent
//	                  again
//	stall a           from now on no commit of a ends
//	sync a            end the commit that is under way, and stall no more
//	disk a key        show the record, and the durable one if that is another
//
// What else can happen to them:
//
//	pause p           freeze the process; what arrives waits
//	resume p          let it go on
//	clock p 1h        its clock jumps, back with a minus
//	clock p 200ppm    its clock goes so much faster from now on
//	limit p 5s        operations that p begins from now on end after that much
//	nearest p c a b   c, a and b, in this order, come before all others for p:
//	                  whom it asks first. Otherwise nodes come as they are given
//	gray p 2s         everything to p and from it takes so much longer; 0s ends it
//	break p a         the connection between the two breaks
//	tear a            kill it in the middle of a write of its disk
//	slowdisk a 5ms    commits take so much longer
//	failsync a        the next fsync fails
//	damage a key      flip a bit in a record
//	rot a key         flip a bit in a value: the tag can still be read
//	damagekey a k l   flip bits in the key of a record, which stands under
//	                  another key from then on
//	damagecell a name flip a bit in a cell, which the node's next life would read
//	misdirect a key   the next record is written in the place of this one
//	fill a            no more fits on the disk
//	free a            there is room again
//	lose a            kill it and destroy its disk
//	save a            take a backup of the disk
//	restore a         kill it, and give it that back
//
// The operations, whose names the ScriptConfig says:
//
//	write p k x       begin the operation "write" on p, with arguments k, x
//	cancel p          end the scope of p's operation
//	when-done p ...   run the rest of the line when p's operation ends
//	pending           say which operations are under way
//
// The messages. LINK is from->to, either of which may be *; NAME is the first
// word of a message's description and may be left out:
//
//	deliver LINK NAME the first held message that fits arrives
//	deliver-all LINK NAME
//	                  all arrive that are held now
//	copy LINK NAME    a copy of it arrives, and it stays held
//	drop LINK NAME    it is lost
//	drop-all LINK NAME
//	exchange p a b    held messages among these processes arrive, in the
//	                  order in which they were sent, until there are none
//	held              list the held messages
//	cut LINK          from now on what is sent there is lost
//	mend LINK         undo cut
//	partition a b p   cut all ways between these processes and all others, in
//	                  both directions; mend *->* undoes it
//	flow 1ms [30%]    hold no message any more, and say nothing of them: they take
//	                  so long, and so many are lost
//	hold              undo flow
//
// And time:
//
//	advance 200ms     time passes, and what wasn't answered is sent again
type Script struct {
	World *World

	cfg     ScriptConfig
	out     strings.Builder
	sending []Observation // of one message to several, not printed yet
	running []*run

	flowing bool
	link    Link                       // what every way is like
	limits  map[*Process]time.Duration // of operations
	nearest map[*Process][]quorum.NodeID
	saved   map[*Process]*Disk
}

// ScriptConfig says what a script works with.
type ScriptConfig struct {
	// World is what the world is like. Its Link, Sync, Nearest, Intercept,
	// Observe and Trace are the script's own.
	World Config
	// Boot builds the steppers of nodes.
	Boot Boot
	// Operations are the operations that commands name.
	Operations map[string]Operation
	// Commands are further commands, which end at once. They return what the
	// transcript says of them.
	Commands map[string]func(args []string) (string, error)
	// Describe puts a message into words, the first of which is its name. Nil:
	// World.Describe.
	Describe func(m env.Message) string
}

// Operation is an operation that a script can begin on a process. It returns
// what the transcript says of its result.
type Operation func(process quorum.NodeID, e env.Env, args []string) (string, error)

// run is an operation under way.
type run struct {
	process *Process
	text    string
	scope   *Scope
	result  string
	began   time.Duration
	took    time.Duration
	then    [][]string // commands for when it ends
}

// scriptSettleLimit is how many messages an exchange delivers at most: more
// are a loop.
const scriptSettleLimit = 10_000

// NewScript returns a script over an empty world.
func NewScript(cfg ScriptConfig) *Script {
	now := Constant(0)
	s := &Script{cfg: cfg, link: Link{Delay: now}, limits: make(map[*Process]time.Duration),
		nearest: make(map[*Process][]quorum.NodeID), saved: make(map[*Process]*Disk)}
	cfg.World.Link = func(_, _ quorum.NodeID) Link { return s.link }
	cfg.World.Sync = func(quorum.NodeID) Delay { return now }
	cfg.World.Nearest = s.order
	cfg.World.Intercept = s.intercept
	cfg.World.Observe = s.observe
	cfg.World.Trace = func(on *Process, e env.Event) {
		if !s.flowing {
			s.print("trace   %s: %s %s %s", on.id, e.Name, e.Key, s.World.TagText(e.Tag))
		}
	}
	s.World = New(cfg.World)
	if s.cfg.Describe == nil {
		s.cfg.Describe = s.World.Describe
	}
	return s
}

// Do runs commands and returns what happened. A command that makes no sense
// ends the run with an "error:" line.
func (s *Script) Do(commands string) string {
	s.out.Reset()
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		err := s.command(words[0], words[1:])
		s.settle()
		if err != nil {
			s.print("error: %s: %v", strings.TrimSpace(line), err)
			break
		}
	}
	return s.out.String()
}

// settle lets everything happen that is due, and reports operations that
// have ended.
func (s *Script) settle() {
	s.World.Settle()
	s.flush()
	s.running = slices.DeleteFunc(s.running, func(r *run) bool {
		if !r.scope.Done() {
			return false
		}
		took := ""
		if s.flowing {
			took = fmt.Sprintf(", after %v", r.took)
		}
		if err := r.scope.Err(); err != nil {
			s.print("failed  %s: %s: %v%s", r.process.id, r.text, err, took)
		} else {
			s.print("done    %s: %s: %s%s", r.process.id, r.text, r.result, took)
		}
		return true
	})
}

func (s *Script) print(format string, args ...any) {
	s.flush()
	fmt.Fprintf(&s.out, format+"\n", args...)
}

// flush prints the message that was being sent, once for all whom it went to.
func (s *Script) flush() {
	if len(s.sending) == 0 {
		return
	}
	first := s.sending[0]
	fmt.Fprintf(&s.out, "send    %s->", first.From.id)
	for i, o := range s.sending {
		if i > 0 {
			s.out.WriteByte(',')
		}
		s.out.WriteString(string(o.To.id))
	}
	fmt.Fprintf(&s.out, ": %s\n", s.cfg.Describe(first.Message))
	s.sending = s.sending[:0]
}

// order is what the Nearest of an Env returns.
func (s *Script) order(asker *Process, nodes []quorum.NodeID) []quorum.NodeID {
	var order []quorum.NodeID
	for _, id := range s.nearest[asker] {
		if slices.Contains(nodes, id) {
			order = append(order, id)
		}
	}
	for _, id := range nodes {
		if !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	return order
}

func (s *Script) intercept(Transit) Fate {
	if s.flowing {
		return Pass
	}
	return Hold
}

func (s *Script) observe(o Observation) {
	if s.flowing && o.What != Failed {
		return
	}
	if o.What == Sent {
		if len(s.sending) > 0 && (s.sending[0].From != o.From || s.sending[0].Message != o.Message) {
			s.flush()
		}
		s.sending = append(s.sending, o)
		return
	}
	switch o.What {
	case Arrived:
		s.print("deliver %s->%s: %s", o.From.id, o.To.id, s.cfg.Describe(o.Message))
	case ArrivedTooLate:
		s.print("late    %s->%s: %s", o.From.id, o.To.id, s.cfg.Describe(o.Message))
	case Lost:
		s.print("lost    %s->%s: %s", o.From.id, o.To.id, s.cfg.Describe(o.Message))
	case Synced:
		s.print("sync    %s", o.Process.id)
	case Failed:
		s.print("down    %s: %v", o.Process.id, o.Process.failure)
	}
}

func (s *Script) command(name string, args []string) error {
	if op := s.cfg.Operations[name]; op != nil {
		return s.begin(name, op, args)
	}
	if command := s.cfg.Commands[name]; command != nil {
		said, err := command(args)
		if said != "" {
			s.print("%s", strings.TrimSuffix(said, "\n"))
		}
		return err
	}
	switch name {
	case "node", "client":
		return s.add(name, args)
	case "break":
		return s.breakConnection(args)
	case "partition":
		return s.partition(args)
	case "flow":
		return s.flow(args)
	case "hold":
		s.stopFlow()
		return nil
	case "when-done":
		return s.whenDone(args)
	case "deliver", "deliver-all", "copy", "drop", "drop-all", "cut", "mend":
		return s.onLinks(name, args)
	case "exchange":
		return s.exchange(args)
	case "held":
		for _, h := range s.World.Held() {
			s.print("held    %s->%s: %s", h.From.id, h.To.id, s.cfg.Describe(h.Message))
		}
		return nil
	case "pending":
		for _, r := range s.running {
			s.print("pending %s: %s", r.process.id, r.text)
		}
		return nil
	case "advance":
		return s.duration(args, s.World.RunFor)
	}
	return s.onProcess(name, args)
}

// begin starts an operation.
func (s *Script) begin(name string, op Operation, args []string) error {
	if len(args) == 0 {
		return errors.New("want a process")
	}
	p, err := s.process(args[0])
	if err != nil {
		return err
	}
	r := &run{process: p, text: strings.Join(append([]string{name}, args[1:]...), " "), scope: p.Scope(s.limits[p]), began: s.World.now}
	r.scope.Start(func(e env.Env) (err error) {
		r.result, err = op(p.id, e, args[1:])
		r.took = s.World.now - r.began
		for _, command := range r.then {
			s.World.At(0, func() {
				if err := s.command(command[0], command[1:]); err != nil {
					s.print("error: %s: %v", strings.Join(command, " "), err)
				}
			})
		}
		return err
	})
	s.running = append(s.running, r)
	return nil
}

func (s *Script) process(id string) (*Process, error) {
	if p := s.World.Process(quorum.NodeID(id)); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no process %q", id)
}

// AddNodes starts nodes, as "node a b" does.
func (s *Script) AddNodes(ids []string) error { return s.add("node", ids) }

// add is "node a b" and "client p q".
func (s *Script) add(name string, ids []string) error {
	if len(ids) == 0 {
		return errors.New("want a process")
	}
	for _, id := range ids {
		if s.World.Process(quorum.NodeID(id)) != nil {
			return fmt.Errorf("there is a process %q already", id)
		}
		if name == "client" {
			s.World.AddClient(quorum.NodeID(id))
		} else if _, err := s.World.AddNode(quorum.NodeID(id), s.cfg.Boot); err != nil {
			return err
		}
	}
	return nil
}

// onProcess runs a command about one process.
func (s *Script) onProcess(name string, args []string) error {
	switch {
	case !slices.Contains(strings.Fields(processCommands+" "+nodeCommands), name):
		return errors.New("no such command")
	case len(args) == 0:
		return errors.New("want a process")
	}
	p, err := s.process(args[0])
	if err != nil {
		return err
	}
	switch name {
	case "crash":
		p.Crash()
	case "powerloss":
		keep := 0
		if len(args) > 1 {
			keep, err = strconv.Atoi(args[1])
		}
		if err == nil {
			p.PowerLoss(keep)
		}
		return err
	case "restart":
		if p.up {
			return errors.New("it is up")
		}
		if err := p.Restart(); err != nil {
			s.print("down    %s: %v", p.id, err)
		}
	case "cancel":
		for _, r := range s.running {
			if r.process == p {
				r.scope.Cancel()
			}
		}
	default:
		return s.processFault(name, p, args[1:])
	}
	return nil
}

// onLinks runs a command about messages.
func (s *Script) onLinks(command string, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return errors.New("want from->to, and perhaps a name")
	}
	from, to, ok := strings.Cut(args[0], "->")
	if !ok {
		return fmt.Errorf("%q is not from->to", args[0])
	}
	if command == "cut" || command == "mend" {
		for _, f := range s.World.processes {
			for _, t := range s.World.processes {
				if f != t && fits(from, f) && fits(to, t) {
					f.linkTo(t).cut = command == "cut"
				}
			}
		}
		return nil
	}
	found := false
	for i := 0; i < len(s.World.held); {
		h := &s.World.held[i]
		if !fits(from, h.From) || !fits(to, h.To) || len(args) > 1 && args[1] != s.name(h.Message) {
			i++
			continue
		}
		found = true
		switch command {
		case "deliver":
			s.World.Release(i)
			return nil
		case "copy":
			s.World.Copy(i)
			return nil
		case "drop":
			s.World.Discard(i)
			return nil
		case "deliver-all":
			s.World.Release(i)
		case "drop-all":
			s.World.Discard(i)
		}
	}
	if !found {
		s.print("nothing %s", strings.Join(args, " "))
	}
	return nil
}

// partition is "partition a b p": two sides, of which one is named.
func (s *Script) partition(ids []string) error {
	if len(ids) == 0 {
		return errors.New("want the processes of one side")
	}
	for _, id := range ids {
		if _, err := s.process(id); err != nil {
			return err
		}
	}
	for _, from := range s.World.processes {
		for _, to := range s.World.processes {
			if slices.Contains(ids, string(from.id)) != slices.Contains(ids, string(to.id)) {
				from.linkTo(to).cut = true
			}
		}
	}
	return nil
}

func fits(pattern string, p *Process) bool { return pattern == "*" || pattern == string(p.id) }

// name returns the first word of a message's description.
func (s *Script) name(m env.Message) string {
	name, _, _ := strings.Cut(s.cfg.Describe(m), " ")
	return name
}

// exchange delivers held messages among the given processes, or all.
func (s *Script) exchange(ids []string) error {
	for _, id := range ids {
		if _, err := s.process(id); err != nil {
			return err
		}
	}
	among := func(p *Process) bool { return len(ids) == 0 || slices.Contains(ids, string(p.id)) }
	for range scriptSettleLimit {
		i := slices.IndexFunc(s.World.held, func(h Held) bool { return among(h.From) && among(h.To) })
		if i < 0 {
			return nil
		}
		s.World.Release(i)
		s.settle()
	}
	return errors.New("these processes never fall silent")
}
