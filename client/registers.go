package client

import (
	"bytes"
	"context"
	"iter"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/transport"
	"atoll/tags"
)

// Value is what a register holds.
type Value struct {
	// Tag orders the values of one key: a later write has a larger one.
	Tag tags.Tag
	// Bytes is the value. It must not be changed.
	Bytes []byte
}

// Entry is a key that has a value.
type Entry struct {
	Key string
	Tag tags.Tag
}

// Get returns the value of a key, or ErrNotFound.
func (c *Client) Get(ctx context.Context, key string) (Value, error) {
	s, err := c.scope(ctx)
	if err != nil {
		return Value{}, err
	}
	defer s.end()
	rec, err := c.registers().Read(s, abd.Key(key))
	switch {
	case err != nil:
		return Value{}, c.readFailure(s, err)
	case rec.Absent():
		return Value{}, ErrNotFound
	}
	return Value{Tag: rec.Tag, Bytes: rec.Value}, nil
}

// Put writes a value, and returns the tag that it got. The caller may change
// value again when Put returns.
func (c *Client) Put(ctx context.Context, key string, value []byte) (tags.Tag, error) {
	return c.write(ctx, abd.Operation{Key: abd.Key(key), Value: value})
}

// Delete makes a key absent, whether or not it has a value, and returns the
// tag of the deletion.
func (c *Client) Delete(ctx context.Context, key string) (tags.Tag, error) {
	return c.write(ctx, abd.Operation{Key: abd.Key(key), Delete: true})
}

// Resume tries an operation of unknown outcome again: the same operation,
// with its id and tag, and not a second one. It takes the Operation of an
// UnknownError, of this client or of another one of the same cluster. Unless
// it returns nil, the outcome is as unknown as before.
func (c *Client) Resume(ctx context.Context, op abd.Operation) (tags.Tag, error) {
	return c.write(ctx, op)
}

func (c *Client) write(ctx context.Context, op abd.Operation) (tags.Tag, error) {
	s, err := c.scope(ctx)
	if err != nil {
		if op.Sent { // by an earlier try
			err = &UnknownError{Operation: op, Cause: err}
		}
		return tags.Tag{}, err
	}
	defer s.end()
	registers := c.registers()
	if err := abd.CheckValue(op.Value, registers.MaxValue); err != nil {
		return tags.Tag{}, err
	}
	defer c.takeTurn(s.ctx, len(op.Value))()
	// One operation writes one value. A copy of the request may still be on
	// its way to the network when Write returns, and whoever resumes the
	// operation may do so much later.
	op.Value = bytes.Clone(op.Value)
	op, err = registers.Write(s, op)
	if err != nil {
		return tags.Tag{}, c.writeFailure(s, op, err)
	}
	return op.Tag, nil
}

// takeTurn waits until a value of that size may be sent, and returns what is to
// be called when it was. When ctx ends first, nothing is held: the operation
// finds out by itself, and says of whom it had asked nothing yet.
func (c *Client) takeTurn(ctx context.Context, size int) (done func()) {
	if size <= transport.BulkAbove {
		return func() {}
	}
	held := min(int64(size), maxLargeBytes)
	if c.large.Acquire(ctx, held) != nil {
		return func() {}
	}
	return func() { c.large.Release(held) }
}

// List yields the keys that begin with prefix and have a value, in order. It
// reads page by page, each under its own timeout if ctx has no deadline. An
// error is the last thing that it yields.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		after := abd.Key("")
		for more := true; more; {
			var keys []abd.Listed
			var err error
			keys, after, more, err = c.page(ctx, abd.Key(prefix), after)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, k := range keys {
				if !yield(Entry{Key: string(k.Key), Tag: k.Tag}, nil) {
					return
				}
			}
		}
	}
}

func (c *Client) page(ctx context.Context, prefix, after abd.Key) (keys []abd.Listed, next abd.Key, more bool, err error) {
	s, err := c.scope(ctx)
	if err != nil {
		return nil, "", false, err
	}
	defer s.end()
	keys, next, more, err = c.registers().List(s, prefix, after, abd.MaxPage)
	return keys, next, more, c.readFailure(s, err)
}

// scope is that of one operation.
type scope struct {
	env.Env
	ctx    context.Context
	within time.Duration // how long it has, from its beginning
	end    func()        // to be called after it
}

func (c *Client) scope(ctx context.Context) (scope, error) {
	if c.closed.Load() {
		return scope{}, ErrClosed
	}
	deadline, ok := ctx.Deadline()
	if ok {
		return scope{c.runtime.Scope(ctx), ctx, time.Until(deadline), func() {}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	return scope{c.runtime.Scope(ctx), ctx, c.cfg.Timeout, cancel}, nil
}
