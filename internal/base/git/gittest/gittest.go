// Package gittest has tests read repositories as a daemon does.
package gittest

import (
	"context"
	"sync"

	"sallyport/internal/base/git"
)

// TB is what a test or a property's check offers.
type TB interface {
	Context() context.Context
	Cleanup(do func())
}

// daemon is a context, and the end of what waits in it.
type daemon struct {
	ctx context.Context
	end func()
}

var daemons sync.Map // TB → daemon, until the test ends

// Context is a test's own context, in which repositories are read through processes that stay for the next question, as a
// daemon's do. They end with the test. It is the same one for each call of a test until Restart; a subtest has its own.
func Context(t TB) context.Context {
	if d, ok := daemons.Load(t); ok {
		return d.(daemon).ctx
	}
	t.Cleanup(func() { stop(t) })
	return begin(t)
}

// Restart returns a context in which nothing waits yet, as in a daemon that has just begun, and ends the one before.
func Restart(t TB) context.Context {
	if !stop(t) {
		return Context(t)
	}
	return begin(t)
}

func begin(t TB) context.Context {
	readers := &git.Readers{}
	ctx, cancel := context.WithCancel(readers.In(t.Context()))
	daemons.Store(t, daemon{ctx, func() {
		cancel()
		_ = readers.Run(ctx) // it ends what waits
	}})
	return ctx
}

func stop(t TB) bool {
	d, ok := daemons.LoadAndDelete(t)
	if ok {
		d.(daemon).end()
	}
	return ok
}
