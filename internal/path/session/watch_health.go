package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
)

// ailment is a way in which a watch tells less than happens. None does harm (SV-069).
type ailment int

const (
	broken    ailment = iota // the watch itself: nothing is told any more
	lost                     // events
	unwatched                // folders
	tooMany                  // changed paths, or known entries
	unlogged                 // lines
	ailments
)

var ailmentNames = [ailments]string{"nothing is watched any more", "events were lost", "not watched", "not counted", "not logged"}

// note is what is known of one ailment.
type note struct {
	first string
	times int // 0 = well
}

func (w *Watch) unwell(a ailment, why string) {
	n := &w.notes[a]
	if n.times == 0 {
		n.first = why
	}
	n.times++
}

func (w *Watch) unwatched(path string, err error) {
	w.unwell(unwatched, fmt.Sprintf("%q: %v", path, err))
}

// Health returns in what the watch tells less than happens; nil when in nothing. Events
// that were lost are told until the next Reset.
func (w *Watch) Health() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for a, n := range w.notes {
		if n.times == 0 {
			continue
		}
		err := fmt.Errorf("watch the workspace of %s: %s: %s", w.watched.Change, ailmentNames[a], n.first)
		if n.times > 1 {
			err = fmt.Errorf("%w (%d times)", err, n.times)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Check sees that the folder is still there, sets the mode of the log to what it is and waits until the watch has
// heard of that: the kernel delivers and somebody reads (SV-092).
//
// Errors: problem.Unavailable when it did not hear.
func (w *Watch) Check(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("test the watch of %s: %w", w.watched.Change, err)
	}
	return nil
}

func (w *Watch) check(ctx context.Context) error {
	heard, err := w.touch()
	if err != nil {
		return err
	}
	deadline := time.NewTimer(checkMax)
	defer deadline.Stop()
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.done:
		return errors.New("the watch has ended")
	case <-deadline.C:
		return problem.Errorf(problem.Unavailable, "sallyport doctor",
			"the kernel did not report a change of the watch's own log within %s (inotify)", checkMax)
	}
}

// touch makes an event, and returns what is closed once it is heard.
func (w *Watch) touch() (heard chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, os.ErrClosed
	}
	var st unix.Stat_t
	if err := unix.Fstat(w.side, &st); err != nil || st.Nlink == 0 { // the kernel tells nobody, as it is held open
		w.unwell(broken, "the folder itself was removed")
		return nil, errors.Join(errors.New("the folder itself was removed"), err)
	}
	if w.heard == nil {
		w.heard = make(chan struct{})
	}
	return w.heard, w.watched.Ops.Do("watchtest:touch", func() error { return w.log.file.Chmod(0o600) })
}

// WatchStats measures a watch (SV-103). What readings find, and how long they take, is told to Watched.Handled.
type WatchStats struct {
	Folders   int   // watched now
	HeldBytes int64 // of memory, by what is noted of changes and folders; about
}

// folderBytes is about what following one folder takes.
const folderBytes = 256

// Stats returns the measurements.
func (w *Watch) Stats() WatchStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WatchStats{Folders: len(w.folders), HeldBytes: int64(w.bytes + w.known + len(w.folders)*folderBytes)}
}

// What happened to a path, seen from the base: the same file written twice is added
// twice if the base does not have it.
const (
	fileAdded   = "add"
	fileChanged = "change"
	fileGone    = "unlink"
)

// count takes a change of a path into the count and the log.
func (w *Watch) count(path, kind string, size int64) {
	if !w.opened {
		return
	}
	w.log.add(path, kind, size)
	if _, ok := w.changed[path]; !ok {
		if w.full() {
			w.unwell(tooMany, fmt.Sprintf("more than %d paths", len(w.changed)))
			return
		}
		w.changed[path] = struct{}{}
		w.bytes += len(path) + 64 // with what a map needs
	}
	if t := w.watched.Threshold; t > 0 && !w.crossed && len(w.changed) >= t {
		w.crossed = true
		select {
		case w.threshold <- struct{}{}:
		default:
		}
	}
}

func (w *Watch) full() bool { return w.bytes >= changedBytesMax }

func (w *Watch) flush() {
	w.log.flush()
	w.notes[unlogged] = note{}
	if err := w.log.err; err != nil {
		w.unwell(unlogged, err.Error())
	}
}
