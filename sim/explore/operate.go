package explore

import (
	"fmt"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/sim"
)

// begin begins an operation. That it does so as soon as it may is no restriction:
// what it sends arrives whenever a move says so.
func (x *stage) begin(i int) {
	o := &x.operations[i]
	o.scope = o.p.Scope(0)
	o.scope.Start(func(e env.Env) error { return x.operate(i, e) })
}

// over reports whether an operation has ended, or has died with its process and
// doesn't begin again.
func (o *operation) over() bool {
	return o.ended || o.Do != Upgrade && o.scope != nil && o.scope.Done()
}

// die ends a life of a process, with what isn't on its disk, and begins the
// next. An upgrade is to begin again then.
func (x *stage) die(p *sim.Process) {
	p.PowerLoss(0)
	if p.Disk() != nil {
		p.Unstall()
	}
	for i := range x.operations {
		if o := &x.operations[i]; o.p == p && o.Do == Upgrade && !o.ended {
			o.scope = nil
		}
	}
	if err := p.Restart(); err != nil {
		x.violate("boot", err.Error())
	}
}

// hang keeps a node's disk from ending any commit until the node dies.
func (b *beginning) hang(p *sim.Process) {
	if b.plain {
		p.Stall()
		return
	}
	p.Hang()
}

func (x *stage) operate(i int, e env.Env) error {
	o := &x.operations[i]
	var found abd.Record
	var err error
	switch o.Do {
	case Write:
		var op abd.Operation
		op, err = x.registers().Write(e, abd.Operation{Key: theKey, Value: []byte(o.Value)})
		found = abd.Record{Tag: op.Tag, Value: op.Value}
	case Read:
		found, err = x.registers().Read(e, theKey)
	case Upgrade:
		err = x.upgrade(e)
	}
	switch {
	case err == nil:
		o.ended = true
		x.sayf("    done %v: %s", o, x.w.RecordText(found))
		if o.Do != Upgrade {
			x.happens(event{what: ends, by: i, found: found})
		}
	case o.Do != Upgrade: // nothing limits its time
		x.violate("operation-failed", fmt.Sprintf("%s: %v", o, err))
	}
	return err
}

// registers are those of a client that knows the first configuration.
func (x *stage) registers() *abd.Registers {
	m, err := quorum.NewMap(x.parts.configurations[0])
	if err != nil {
		panic(err) // it is one configuration
	}
	return &abd.Registers{Known: rambo.NewCMap(m), MaxValue: abd.DefaultMaxValue, Rules: x.rules.Replica.ABD}
}

// upgrade is one step from a configuration to the next, as the node's task
// drives it: again, after a while, if too many have refused.
func (x *stage) upgrade(e env.Env) error {
	for !x.upgraded(e) {
		if err := e.Sleep(rambo.DefaultAgain); err != nil {
			return err
		}
	}
	return nil
}

// upgraded tries once, and reports whether the last configuration that the node
// knows is the only one.
func (x *stage) upgraded(e env.Env) bool {
	m, err := rambo.Known(e)
	if err != nil {
		return false
	}
	if len(m.Active()) == 1 {
		return true
	}
	t := rambo.Tasks{Pace: x.pace(), Rules: x.rules.Replica.Rambo}
	lives, err := t.Fence(e)
	if err == nil {
		err = t.Carry(e)
	}
	return err == nil && t.Retire(e, lives) == nil
}

// String names an operation.
func (o *Operation) String() string {
	switch o.Do {
	case Write:
		return fmt.Sprintf("%s's write of %s", o.On, o.Value)
	case Read:
		return fmt.Sprintf("%s's read", o.On)
	}
	return fmt.Sprintf("%s's upgrade", o.On)
}
