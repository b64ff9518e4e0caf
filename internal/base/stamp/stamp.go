// Package stamp tells that a file is the one that it was, without reading it.
package stamp

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp is one state of a file: whoever writes to it, or puts another in its place, changes it. A write through a shared mapping does so late,
// or never: the kernel sees only that a page is to be written back. The zero Stamp is of a file that is not there, or that nothing is known of.
type Stamp struct {
	device, inode     uint64
	size              int64
	modified, changed syscall.Timespec // changed is the kernel's: nobody sets it
}

// Of looks at a file; a link is followed.
func Of(path string) Stamp {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return Stamp{}
	}
	return of(&st)
}

// From returns the stamp of a file that was looked at.
func From(info os.FileInfo) Stamp {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return of(st)
	}
	return Stamp{}
}

func of(st *syscall.Stat_t) Stamp { return Stamp{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim} }

// None reports whether it is of no file.
func (s Stamp) None() bool { return s == Stamp{} }

const (
	coarse = 2 * time.Second  // how long a step is of the coarsest file system's clock
	cut    = time.Millisecond // what a finer one takes off at most: some count in tenths of a microsecond, or in whole ones
)

// Since returns the stamp of a file that is read from begun on, a moment of Now's. It is none if what is written from then on may have the same.
func (s Stamp) Since(begun time.Time) Stamp {
	if s.Before(begun) {
		return s
	}
	return Stamp{}
}

// Before reports whether a file that is written at a moment of Now's, or later, has another stamp than this one.
func (s Stamp) Before(moment time.Time) bool {
	if s.None() {
		return true
	}
	written := time.Unix(s.changed.Unix())
	if written.Nanosecond()%int(time.Millisecond) == 0 { // its file system counts in seconds, it seems
		return moment.Sub(written) >= coarse
	}
	return moment.Sub(written) >= cut
}

// Now is the time with which the kernel stamps files at this moment. It moves in steps of some milliseconds.
func Now() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Unix(0, 0) // before all files: each counts as written since
	}
	return time.Unix(now.Unix())
}
