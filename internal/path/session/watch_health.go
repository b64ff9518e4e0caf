package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
)

// ailment is a way in which a watch tells less than happens. None does harm (SV-069).
type ailment int

const (
	lost      ailment = iota // events
	unwatched                // folders
	tooMany                  // changed paths
	unlogged                 // lines
	broken                   // the watch itself: nothing is told any more
)

// note is what is known of one ailment.
type note struct {
	first string
	times int
}

func (w *Watch) unwell(a ailment, why string) {
	n := w.notes[a]
	if n == nil {
		n = &note{first: why}
		w.notes[a] = n
		w.news = true
	}
	n.times++
}

func (w *Watch) unwatched(path string, err error) {
	w.unwell(unwatched, fmt.Sprintf("%q: %v", path, err))
}

// Overflowed reports whether events were lost since the last Reset: then Changed is what
// a look at the whole tree found, and deletions may be missing from it.
func (w *Watch) Overflowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.overflowed
}

// Health returns in what the watch tells less than happens; nil when in nothing.
func (w *Watch) Health() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, a := range []struct {
		ailment ailment
		what    string
	}{
		{broken, "nothing is watched any more"}, {lost, "events were lost"}, {unwatched, "not watched"},
		{tooMany, "not counted"}, {unlogged, "not logged"},
	} {
		n := w.notes[a.ailment]
		if n == nil {
			continue
		}
		err := fmt.Errorf("watch the workspace of %s: %s: %s", w.watched.Change, a.what, n.first)
		if n.times > 1 {
			err = fmt.Errorf("%w (%d times)", err, n.times)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Check sees that the folder is still there, makes a file in a folder of its own beside the log and waits until the watch has
// heard of it: the kernel delivers and somebody reads (SV-092).
//
// Errors: problem.Unavailable when it did not hear.
func (w *Watch) Check(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("test the watch of %s: %w", w.watched.Change, err)
	}
	return nil
}

func (w *Watch) check(ctx context.Context) (err error) {
	ops, scratch := w.watched.Ops, ""
	err = ops.Do("watchtest:make", func() error {
		scratch, err = os.MkdirTemp(filepath.Dir(w.watched.Log), ".watch-test-")
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, ops.Do("watchtest:remove", func() error { return os.RemoveAll(scratch) }))
	}()
	heard := make(chan struct{})
	wd, err := w.listen(scratch, heard)
	if err != nil {
		return err
	}
	defer w.unlisten(wd)
	err = ops.Do("watchtest:touch", func() error { return os.WriteFile(filepath.Join(scratch, "touched"), nil, 0o600) })
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
		return problem.Errorf(problem.Unavailable, "sallyport doctor", "the kernel did not report a new test file within %s (%s)", checkMax, w.Kind())
	}
}

func (w *Watch) listen(folder string, heard chan struct{}) (int32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, os.ErrClosed
	}
	var st unix.Stat_t
	if err := unix.Fstat(w.side, &st); err != nil || st.Nlink == 0 { // the kernel tells nobody, as it is held open
		w.unwell(broken, "the folder itself was removed")
		return 0, errors.Join(errors.New("the folder itself was removed"), err)
	}
	wd, err := unix.InotifyAddWatch(w.fd, folder, unix.IN_CREATE|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
	if err != nil {
		return 0, problem.Errorf(problem.Unavailable, "sysctl fs.inotify", "the kernel allows no more watches of files (inotify): %w", err)
	}
	w.probes[int32(wd)] = heard
	return int32(wd), nil
}

func (w *Watch) unlisten(wd int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.probes, wd)
	if !w.closed {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // its folder may be gone
	}
}

// WatchStats measures a watch since its start (SV-103).
type WatchStats struct {
	Events     int64         // messages of the kernel
	Lines      int64         // that were logged, or would have been
	Readings   int64         // of the queue, with something in it
	Queue      int           // events found in the queue by the last reading
	QueuePeak  int           // the most found in it
	Folders    int           // watched now
	Overflows  int64         // times that the queue was full
	LatencyP99 time.Duration // from reading to handled, of the last 1,024 readings
	LatencyMax time.Duration
	HeldBytes  int64         // of memory, by what is noted of changes; about
	Busy       time.Duration // in all
}

// folderBytes is about what following one folder takes.
const folderBytes = 256

// Stats returns the measurements so far.
func (w *Watch) Stats() WatchStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Folders = len(w.folders)
	s.HeldBytes = int64(w.bytes) + int64(len(w.folders))*folderBytes
	if n := min(s.Readings, int64(len(w.latencies))); n > 0 {
		last := slices.Sorted(slices.Values(w.latencies[:n]))
		s.LatencyP99 = last[(n*99-1)/100]
	}
	return s
}

func (w *Watch) measured(events int, took time.Duration) {
	w.latencies[w.stats.Readings%int64(len(w.latencies))] = took
	w.stats.Readings++
	w.stats.Events += int64(events)
	w.stats.Busy += took
	w.stats.Queue = events
	w.stats.QueuePeak = max(w.stats.QueuePeak, events)
	w.stats.LatencyMax = max(w.stats.LatencyMax, took)
}

// count takes a change of a path into the count and the log.
func (w *Watch) count(path, kind string, size int64) {
	w.news = true
	w.stats.Lines++
	w.log.add(path, kind, size)
	if w.log.buffer.Len() >= flushBytes {
		w.flush()
	}
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
	if err := w.log.err; err != nil {
		w.unwell(unlogged, err.Error())
	} else if w.notes[unlogged] != nil {
		delete(w.notes, unlogged)
	}
}
