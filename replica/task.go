package replica

import (
	"time"

	"atoll/env"
)

// TaskPause is how long after a task has ended it is started again. A task that
// fails at once, always, costs its node that little.
const TaskPause = time.Second

// Task is what a node does besides answering: a caller that lives on it.
//
// The node's driver runs each of the node's tasks with Keep, on an Env of the
// node, from when the node serves until it stops. A task that returns before
// that, with an error or without, is started again after TaskPause.
//
// The node's state belongs to Step alone, which runs at the same time as the
// tasks do. So a task reaches its own node as it reaches any other, by asking
// it: what it sends to e.Self() is stepped like a message of anybody else, is
// answered when it is durable, and takes its turn. A step reaches a task by its
// mailbox (env.Out).
//
// What a task panics with ends the node, as an error of Step does.
type Task struct {
	// Name tells the node's tasks apart, in logs and metrics: a word that
	// stays the same.
	Name string
	// Run is the task. It ends when its scope does.
	Run func(env.Env) error
}

// Keep runs the task in a scope within e, and again after a pause whenever it
// has returned, until e's scope ends; it returns why that did. again is told
// before each further start with what the run before had ended.
//
// Each run has a scope of its own, so that with it end the mailboxes that it
// received from.
func (t Task) Keep(e env.Env, again func(ended error)) error {
	for {
		err := e.Go(t.Name, t.Run).Join()
		if stopped := e.Sleep(TaskPause); stopped != nil {
			return stopped
		}
		again(err)
	}
}
