package explore

import (
	"fmt"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/sim"
	"atoll/sim/history"
)

// start begins all operations that may begin. That they do so at once is no
// restriction: what they send arrives whenever a move says so.
func (x *world) start() {
	for i := range x.operations {
		o := &x.operations[i]
		if o.scope != nil || slices.ContainsFunc(x.operations[:o.After], func(o operation) bool { return !o.over() }) {
			continue
		}
		o.scope = o.p.Scope(0)
		o.scope.Start(func(e env.Env) error { return x.operate(o, e) })
	}
}

// over reports whether an operation has ended, or has died with its process and
// doesn't begin again.
func (o *operation) over() bool {
	return o.ended || o.Do != Upgrade && o.scope != nil && o.scope.Done()
}

// over reports whether all operations are.
func (x *world) over() bool {
	return !slices.ContainsFunc(x.operations, func(o operation) bool { return !o.over() })
}

// begun is called when something that a process has sent arrives. It is then
// that an operation begins, for the history: until then nobody could have told
// whether it had. So it begins behind as many others as it can.
func (x *world) begun(p *sim.Process) {
	for i := range x.operations {
		o := &x.operations[i]
		if o.p != p || o.begun || o.Do == Upgrade {
			continue
		}
		o.begun = true
		x.effect.seen = true
		for j := range x.operations {
			if x.operations[j].ended && x.operations[j].Do != Upgrade {
				o.before |= 1 << j
			}
		}
		kind := history.Read
		if o.Do == Write {
			kind = history.Write
		}
		o.at = x.recorder.Began(x.w.Now(), history.Operation{Client: string(o.On), Key: string(theKey), Kind: kind, Value: o.Value})
	}
}

func (x *world) operate(o *operation, e env.Env) error {
	switch o.Do {
	case Write:
		return x.write(o, e)
	case Read:
		return x.read(o, e)
	}
	return x.upgrade(o, e)
}

// registers are those of a client that knows the first configuration.
func (x *world) registers() *abd.Registers {
	m, err := quorum.NewMap(x.parts.configurations[0])
	if err != nil {
		panic(err) // it is one configuration
	}
	return &abd.Registers{Known: rambo.NewCMap(m), MaxValue: abd.DefaultMaxValue, Rules: x.rules.Replica.ABD}
}

func (x *world) write(o *operation, e env.Env) error {
	op, err := x.registers().Write(e, abd.Operation{Key: theKey, Value: []byte(o.Value)})
	if err != nil {
		x.failed(o, err)
		return err
	}
	x.recorder.Ended(x.w.Now(), o.at, history.OK)
	x.end(o, abd.Record{Tag: op.Tag})
	return nil
}

func (x *world) read(o *operation, e env.Env) error {
	r, err := x.registers().Read(e, theKey)
	switch {
	case err != nil:
		x.failed(o, err)
		return err
	case r.Absent():
		x.recorder.Ended(x.w.Now(), o.at, history.OK)
	default:
		x.recorder.Found(x.w.Now(), o.at, string(r.Value))
	}
	x.end(o, r)
	return nil
}

// failed: nothing limits the time of an operation.
func (x *world) failed(o *operation, err error) {
	x.violate("operation-failed", fmt.Sprintf("%s: %v", o, err))
}

// end holds what an operation on the register has ended with against what is on
// the disks, and all that clients have seen against what registers do.
func (x *world) end(o *operation, r abd.Record) {
	o.ended, o.result = true, uint64(r.Tag.Seq)
	x.effect.seen = true
	if x.tell != nil {
		x.tell(fmt.Sprintf("    done %v: %s", o, x.w.RecordText(r)))
	}
	x.watch.Ended(o.String(), 0, r.Tag)
	v, err := history.Check(x.recorder.History())
	switch {
	case err != nil:
		panic(err) // there are no such histories here
	case v != nil:
		x.violate("linearizable", string(v.Rule)+"\n"+v.String())
	}
}

// upgrade is one step from a configuration to the next, as the node's task
// drives it: again, after a while, if too many have refused.
func (x *world) upgrade(o *operation, e env.Env) error {
	for !x.upgraded(e) {
		if err := e.Sleep(rambo.DefaultAgain); err != nil {
			return err
		}
	}
	o.ended = true
	x.effect.seen = true
	if x.tell != nil {
		x.tell(fmt.Sprintf("    done %v", o))
	}
	return nil
}

// upgraded tries once, and reports whether the last configuration that the node
// knows is the only one.
func (x *world) upgraded(e env.Env) bool {
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
func (o *operation) String() string {
	switch o.Do {
	case Write:
		return fmt.Sprintf("%s's write of %s", o.On, o.Value)
	case Read:
		return fmt.Sprintf("%s's read", o.On)
	}
	return fmt.Sprintf("%s's upgrade", o.On)
}
