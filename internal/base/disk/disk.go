// Package disk names every operation that changes something outside memory.
//
// Product code wraps each write to a file system, a git repository or a database in
// Ops.Do under a stable name. Tests hand in an Ops that loses power before or
// after any one of them, so an operation is covered the day it is written.
package disk

import "runtime"

// Ops runs named operations. The zero value just runs them.
type Ops struct {
	// Around runs do, or stands in for a crash; nil runs do.
	Around func(op string, do func() error) error
}

// Do runs one named operation: `noun:verb`, stable over releases.
//
// Under an Around the operation keeps its OS thread, so that a tracer can tell
// which system calls belong to it.
func (o Ops) Do(op string, do func() error) error {
	if o.Around == nil {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return o.Around(op, do)
}
