package envtest

import (
	"fmt"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// Patience is how long an operation that must end may take.
const Patience = 20 * time.Second

// A Case is one thing that an Env must do. Run returns nil if the Envs of the
// cluster's processes do it. It takes a cluster that nothing has used yet, and
// leaves no operation of its own unfinished.
type Case struct {
	Name string
	Run  func(Cluster) error
}

// Cases returns all cases.
func Cases() []Case {
	return []Case{
		{"register", register},
		{"combiner", combiner},
		{"watch", watch},
		{"late answers are not passed on", lateAnswers},
		{"what is lost is sent again", lostIsResent},
		{"all are asked", allAreAsked},
		{"who has answered is left", answeredIsLeft},
		{"a broken connection concerns nobody else", othersAreLeft},
		{"a node that comes back is asked", healedIsAsked},
		{"a watch survives a restart", watchRestart},
		{"a watch survives broken connections", watchBroken},
		{"each is called one at a time until it is done", eachInOrder},
		{"add and redirect", addAndRedirect},
		{"a redirect that is lost is sent again", redirectIsLost},
		{"spares are left alone", sparesAreLeft},
		{"spares are asked for who is silent", sparesAreAsked},
		{"spares are asked at once for who is out of reach", sparesAtOnce},
		{"a spare is added", spareIsAdded},
		{"a spare is redirected", spareIsRedirected},
		{"spares that weren't asked are named", sparesAreNamed},
		{"nearest is an order", nearest},
		{"tell", tell},
		{"a canceled ask says what is known", canceled},
		{"a scope ends at its deadline", deadline},
		{"a stopped process ends its scopes", stopped},
		{"tasks", taskTree},
		{"a task is canceled", taskCanceled},
		{"a task gives up its mailbox", mailboxOwners},
		{"sleep and now", sleeping},
		{"ids and random numbers differ", identities},
	}
}

// Stepper is what a node does with a message: the replica's half of a
// protocol. Step appends to out and returns it. from is where an answer goes.
// A cluster calls it for one message at a time, and doesn't keep out.
//
// These steppers have no journal: every After is zero, and every message may
// leave at once.
type Stepper interface {
	Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error)
}

// Cluster is a world in which cases run: nodes, clients and a network between
// them that loses nothing but what a case asks for. A case calls its methods
// from its own code and from its callers, but never from a function given to
// Ask or to Faults.
type Cluster interface {
	// Node starts a node.
	Node(id quorum.NodeID, s Stepper)

	// Scope returns a new scope on a process: on the node of that name, or
	// else on the client of that name, which then begins to exist. A limit
	// above zero is the time after which the scope ends with ErrDeadline,
	// counted from Start.
	Scope(process quorum.NodeID, limit time.Duration) Scope

	// Stop ends a process in good order: its scopes end with ErrStopped. The
	// next Scope on a client of this name begins another life of it.
	Stop(process quorum.NodeID)

	// Restart kills a node, whose scopes end with ErrStopped, and begins its
	// next life, in which nothing of it is left but the name.
	Restart(node quorum.NodeID, s Stepper)

	// Cut takes a process off the network, which breaks its connections, and
	// Heal puts it back. Whoever sends to it meanwhile is told by the
	// transport that it can't be reached, and what it sends itself is lost.
	Cut(process quorum.NodeID)
	Heal(process quorum.NodeID)

	// Faults makes f decide the fate of each message that passes from one
	// process to another, under the names given to Node and Scope. It is
	// called for one message at a time. What a node sends to itself is not
	// its business. Nil means that all are delivered; once Faults has
	// returned, the function before isn't called any more.
	Faults(f func(from, to quorum.NodeID, m env.Message) Fate)
}

// Scope is an operation on a process.
type Scope interface {
	// Start runs f in the scope. It returns at once.
	Start(f func(env.Env) error)
	// Cancel ends the scope with ErrCanceled. Unlike the methods of Cluster
	// and of Env it may be called from anywhere, from each too.
	Cancel()
	// Wait waits until f has returned, and returns its error. Only a case's
	// own code calls it, never a caller.
	Wait() error
}

// Fate is what becomes of a message.
type Fate uint8

// The fates of a message.
const (
	Deliver Fate = iota
	// Lose: the transport took it, and nobody will know that it got lost.
	Lose
	// Twice: it arrives twice.
	Twice
	// Late: it arrives just ahead of the next message that is delivered from
	// the same sender to the same receiver.
	Late
)

// run runs f on a process and waits for it.
func run(c Cluster, process quorum.NodeID, f func(env.Env) error) error {
	s := c.Scope(process, Patience)
	s.Start(f)
	return s.Wait()
}

// until runs f on a process again and again, with a pause between, until it
// returns true.
func until(c Cluster, process quorum.NodeID, f func(env.Env) (bool, error)) error {
	return run(c, process, func(e env.Env) error {
		for {
			if done, err := f(e); done || err != nil {
				return err
			}
			if err := e.Sleep(time.Millisecond); err != nil {
				return err
			}
		}
	})
}

// first returns the first error, with the place where it came from.
func first(errs ...error) error {
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

// majority returns the configuration that the cases use.
func majority(members ...quorum.NodeID) quorum.Configurations {
	c, err := quorum.NewConfiguration(0, members, quorum.System{})
	if err != nil {
		panic(err) // the members are constants of this package
	}
	return quorum.Configurations{c}
}
