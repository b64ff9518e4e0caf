package bwrap

import (
	"runtime"
	"sync"
)

// starter runs functions one after the other on one operating system thread that
// lives as long as the process. The death signal of a child follows the thread
// that made it, not the process; a thread of the runtime's choice may end any time.
type starter struct {
	once sync.Once
	work chan func()
}

func (s *starter) do(f func()) {
	s.once.Do(func() {
		s.work = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range s.work {
				f()
			}
		}()
	})
	done := make(chan struct{})
	s.work <- func() { defer close(done); f() }
	<-done
}
