package landing_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// The files are read many at a time. What was asked for and is not wanted any more must not be taken for the answer to what is asked next.
func TestALandingWhoseDiskFillsWhileItLaysOutIsUndone(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1"), "b": text("1"), "c": text("1"), "d": text("1")})
	o := r.order(t, map[string]blob{"a": text("2"), "b": text("3"), "c": text("4"), "d": text("5")})
	written := 0
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "desk:write" {
			if written++; written == 2 {
				return unix.ENOSPC
			}
		}
		return do()
	}}}
	computed := compute(t, l, o)
	j := &journal{}
	done, err := l.Land(gittest.Context(t), computed, j.steps())
	if done.State != landing.Undone {
		t.Errorf("%s: %s, %v", done.State, done.Reason, err)
	}
	if written != 2 {
		t.Errorf("%d files were laid out, of which the second should have failed", written)
	}
}
