package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"atoll/abd"
	"atoll/quorum"
)

// Commands about one process, and about one node.
const (
	processCommands = "crash powerloss restart cancel pause resume limit clock gray nearest"
	nodeCommands    = "stall sync disk slowdisk failsync damage rot damagekey damagecell misdirect fill free tear lose save restore"
)

// processFault runs a command that does something bad to one process, or ends
// it.
func (s *Script) processFault(name string, p *Process, args []string) error {
	switch name {
	case "pause":
		p.Pause()
	case "resume":
		p.Resume()
	case "limit":
		return s.duration(args, func(d time.Duration) { s.limits[p] = d })
	case "nearest":
		s.nearest[p] = nil
		for _, id := range args {
			s.nearest[p] = append(s.nearest[p], quorum.NodeID(id))
		}
	case "clock":
		return s.clock(p, args)
	case "gray":
		return s.duration(args, func(d time.Duration) { p.Gray(Constant(d)) })
	default:
		if p.disk == nil {
			return errors.New("not a node")
		}
		return s.diskFault(name, p, args)
	}
	return nil
}

// diskFault is the part of processFault that is about nodes.
func (s *Script) diskFault(name string, p *Process, args []string) error {
	switch name {
	case "disk":
		return s.disk(p, args)
	case "slowdisk":
		return s.duration(args, func(d time.Duration) { p.SlowDisk(Constant(d)) })
	case "damage", "misdirect", "rot", "damagecell":
		if len(args) != 1 {
			return errors.New("want a key, or a cell")
		}
		switch name {
		case "damage":
			p.disk.Damage(abd.Key(args[0]))
		case "misdirect":
			p.disk.Misdirect(abd.Key(args[0]))
		case "rot":
			p.disk.Rot(abd.Key(args[0]))
		case "damagecell":
			p.disk.DamageCell(args[0])
		}
	case "damagekey":
		if len(args) != 2 {
			return errors.New("want a key, and the key that it turns into")
		}
		p.disk.DamageKey(abd.Key(args[0]), abd.Key(args[1]))
	case "stall":
		p.Stall()
	case "sync":
		p.Unstall()
	case "failsync":
		p.FailSync()
	case "fill":
		p.disk.Fill()
	case "free":
		p.disk.Free()
	case "tear":
		p.TornPowerLoss(0)
	case "lose":
		p.LoseDisk()
	case "save":
		s.saved[p] = p.disk.Image()
	case "restore":
		if s.saved[p] == nil {
			return errors.New("nothing was saved")
		}
		p.RestoreDisk(s.saved[p])
	}
	return nil
}

// duration passes on the one argument of a command.
func (s *Script) duration(args []string, use func(time.Duration)) error {
	if len(args) != 1 {
		return errors.New("want a duration")
	}
	d, err := time.ParseDuration(args[0])
	if err == nil {
		use(d)
	}
	return err
}

// clock is "clock p 1h" and "clock p 500ppm".
func (s *Script) clock(p *Process, args []string) error {
	if len(args) == 1 && strings.HasSuffix(args[0], "ppm") {
		drift, err := strconv.Atoi(strings.TrimSuffix(args[0], "ppm"))
		if err != nil || drift < -maxDrift || drift > maxDrift {
			return fmt.Errorf("want a drift of up to %dppm", maxDrift)
		}
		p.DriftClock(drift)
		return nil
	}
	return s.duration(args, p.JumpClock)
}

// breakConnection is "break a b".
func (s *Script) breakConnection(args []string) error {
	if len(args) != 2 || args[0] == args[1] {
		return errors.New("want two processes")
	}
	a, err := s.process(args[0])
	if err != nil {
		return err
	}
	b, err := s.process(args[1])
	if err != nil {
		return err
	}
	s.World.Break(a, b, 0)
	return nil
}

// flow is "flow 1ms" and "flow 1ms 30%".
func (s *Script) flow(args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return errors.New("want a duration, and perhaps a share that is lost")
	}
	delay, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	s.link = Link{Delay: Constant(delay)}
	if len(args) == 2 {
		percent, err := strconv.ParseUint(strings.TrimSuffix(args[1], "%"), 10, 32)
		if err != nil || percent > 100 {
			return errors.New("want a share in percent")
		}
		s.link.Loss = uint32(percent) * million / 100
	}
	s.flowing = true
	s.setLinks()
	return nil
}

// stopFlow is "hold".
func (s *Script) stopFlow() {
	s.flowing, s.link = false, Link{Delay: Constant(0)}
	s.setLinks()
}

func (s *Script) setLinks() {
	for _, from := range s.World.processes {
		for _, to := range s.World.processes {
			s.World.SetLink(from, to, s.link)
		}
	}
}

// whenDone is "when-done p COMMAND": the command runs at the moment at which
// p's operation ends.
func (s *Script) whenDone(args []string) error {
	if len(args) < 2 {
		return errors.New("want a process and a command")
	}
	p, err := s.process(args[0])
	if err != nil {
		return err
	}
	for _, r := range s.running {
		if r.process == p {
			r.then = append(r.then, args[1:])
			return nil
		}
	}
	return fmt.Errorf("%s has no operation under way", p.id)
}
