package landing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
)

// Lander lands on repositories, one landing at a time on each.
type Lander struct {
	Ops disk.Ops
	// Host returns the host's repository of a project, with what the commits reach: there the commit that lands is made.
	Host func(ctx context.Context, p git.Project, commits ...git.OID) (git.Dir, error)
	Wait time.Duration // for another landing, and for a person's git; 0 = 1 s and 2 s
}

// Steps is what the caller does for a landing in its own transactions.
type Steps struct {
	// Journal stores the row. Nothing has moved before it returns nil, and nothing will if it does not.
	Journal func(Landing) error
	// Close stores the row's end: Landed, Undone or Stranded. If it fails the row
	// stays open, and Recover comes to the same end.
	Close func(Landing) error
	// Again stores the end of a row that is Undone for no fault of what was approved, and left all as it was: the branch moved before
	// its first step, or sallyport stopped in the middle of it. What was approved is to be computed anew, as another landing.
	Again func(Landing) error
}

const (
	waitForLanding = time.Second // then the caller says what it waits for, and tries again
	waitForGit     = 2 * time.Second
	waitStep       = 15 * time.Millisecond
)

// poll calls try until it is done or has failed, limit has passed (false) or ctx ends.
func poll(ctx context.Context, limit time.Duration, try func() (done bool, err error)) (bool, error) {
	end := time.Now().Add(limit)
	for {
		if done, err := try(); done || err != nil {
			return done, err
		}
		if time.Now().After(end) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(waitStep):
		}
	}
}

// wait returns l.Wait, or usual if there is none.
func (l *Lander) wait(usual time.Duration) time.Duration {
	if l.Wait > 0 {
		return l.Wait
	}
	return usual
}

// lock takes the kernel's lock on the common git directory: two homes may share a
// repository. Closing the file gives it back.
func (l *Lander) lock(ctx context.Context, p git.Project) (*os.File, error) {
	folder, err := os.Open(p.CommonDir)
	if err != nil {
		return nil, fmt.Errorf("open the git directory: %w", err)
	}
	took, err := poll(ctx, l.wait(waitForLanding), func() (bool, error) {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil && !took {
		err = locked(folder)
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("lock the repository: %w", err)
	}
	return folder, nil
}
