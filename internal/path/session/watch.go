package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/stamp"
	"sallyport/internal/path/layer"
	"sallyport/internal/rule/secret"
)

const (
	foldersMax = 8192
	// changedBytesMax bounds the memory of the changed paths, and that of the known entries (SV-102); a count beyond it is "at least".
	changedBytesMax = 16 << 20
	// checkMax is how long a watch may take to hear of its own file.
	checkMax = 2 * time.Second
)

// Watched says what to watch.
type Watched struct {
	Change      id.Change
	Side        string          // absolute: the folder that the agent's files are in (overlay: the upper directory, else the copy)
	Base        []string        // absolute: the base's layers, lowest first, only read, to tell an add from a change; none = every file is an add
	Overlay     bool            // Side is an overlay's upper directory: a whiteout is a deletion
	Log         string          // absolute: file-changes.jsonl, appended to (SV-062)
	LogBytesMax int64           // 0 = 64 MiB
	FoldersMax  int             // most folders that are followed, 0 = 8192; what changes in others is found by the walk alone
	Threshold   int             // changed paths that send on Watch.Threshold; 0 = never
	Secrets     *secret.Scanner // takes secrets out of the names that are logged; nil = by the built-in rules
	Ops         disk.Ops
	Handled     func(events int, took time.Duration) // after each reading; may be nil; must not call the Watch
}

// Watch tells when to look at a workspace, and what has changed since the last look as
// far as events say (SV-060). The tree decides, never a Watch: an event that is missed,
// by an overflow or in a folder that cannot be watched, does no harm (SV-069).
//
// An event is believed in nothing but where to look: it marks a name of a folder. At a
// pace, each marked name is looked at on both sides and compared with what it showed
// before, and the difference is counted. So it does not matter in which order events come, or how often.
//
// It is inotify, for root too: a watch is on a folder of the one workspace, so that no
// event of another change can reach it (SV-061). The one mark that fanotify could use
// instead is on the whole file system, whose every write, by every change and by the
// database, would then wake every Watch to be told apart by name.
//
// All methods may be called at once from everywhere.
type Watch struct {
	watched   Watched
	side      int         // the top of the writable side
	base      *layer.Base // the top of the base, or nil
	threshold chan struct{}
	quit      chan struct{} // closed when it is to end
	done      chan struct{} // closed when its goroutine has ended
	unhook    func() bool

	mu      sync.Mutex
	closed  bool
	queue   queue
	log     watchLog
	began   int64 // the file system's time at the start, in ns
	opened  bool  // what was there at the start has been seen
	root    *folder
	folders map[int32]*folder           // those that are watched, by watch descriptor
	marked  map[*folder]map[string]bool // names that events spoke of
	visits  []visit                     // folders to be looked at whole, the last one first
	probe   int32                       // the watch descriptor of the log
	heard   chan struct{}               // closed by the next event of the log; nil = nobody waits
	changed map[string]struct{}
	bytes   int // that the changed paths take
	known   int // bytes that what folders showed takes
	crossed bool
	notes   [ailments]note
}

// StartWatch begins to watch, after it has seen the kernel deliver an event of the log
// (SV-092). Files that are there already count as not changed. It ends with ctx or with Close.
//
// Errors: problem.Unavailable when this machine has no watch to give or does not
// deliver; else what is wrong with a folder or the log.
func StartWatch(ctx context.Context, watched Watched) (*Watch, error) {
	w := &Watch{
		watched: watched, side: -1,
		threshold: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		folders: map[int32]*folder{}, marked: map[*folder]map[string]bool{}, changed: map[string]struct{}{},
	}
	if err := w.open(); err != nil {
		w.release()
		return nil, fmt.Errorf("watch the workspace of %s: %w", watched.Change, err)
	}

	go w.run()
	w.unhook = context.AfterFunc(ctx, w.stop)
	if err := w.Check(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Watch) open() (err error) {
	if w.watched.FoldersMax <= 0 {
		w.watched.FoldersMax = foldersMax
	}
	if w.side, err = beneath.Top(w.watched.Side, unix.O_PATH); err != nil {
		return err
	}
	if len(w.watched.Base) > 0 {
		if w.base, err = layer.OpenBase(w.watched.Base); err != nil {
			return err
		}
	}
	if w.queue, err = openQueue(); err != nil {
		return err
	}
	if w.log, err = openWatchLog(w.watched); err != nil {
		return err
	}
	if w.probe, err = w.queue.add(int(w.log.file.Fd()), unix.IN_ATTRIB); err != nil {
		return noWatch(err)
	}

	w.began = stamp.Now().UnixNano()
	w.root = &folder{wd: -1}
	if err := w.follow(w.root, w.side); err != nil {
		return fmt.Errorf("%s: %w", w.watched.Side, err)
	}
	w.visits = append(w.visits, visit{folder: w.root})
	w.settle()
	w.opened = true
	return nil
}

// Threshold is sent on once each time that the count reaches the threshold; Reset re-arms it.
// It is never closed.
func (w *Watch) Threshold() <-chan struct{} { return w.threshold }

// Count is the number of paths that changed since the last Reset.
func (w *Watch) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.changed)
}

// Reset begins to count anew after a checkpoint. It first takes in every event that the
// kernel has: called while the agent is frozen, none of what the checkpoint holds is
// counted later. Lines of the log name this checkpoint from here on; "" leaves the last one.
func (w *Watch) Reset(checkpoint id.Checkpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.drain() // what was lost was before the checkpoint too
	}
	if checkpoint != "" {
		w.log.checkpoint = &checkpoint
	}

	clear(w.changed)
	w.bytes, w.crossed = 0, false
	w.notes[lost], w.notes[tooMany] = note{}, note{}
	select {
	case <-w.threshold:
	default:
	}
}

// Close ends the watch and writes what is left of the log; it says if that could not be written.
// Closing twice is closing once.
func (w *Watch) Close() error {
	w.unhook()
	w.stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.err
}

// stop takes in what the kernel has and lets everything go.
func (w *Watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.drain()
	w.closed = true
	close(w.quit)
	w.release()
}

// release closes what is open.
func (w *Watch) release() {
	w.log.close()
	w.queue.close()
	if w.side >= 0 {
		unix.Close(w.side)
	}
	w.base.Close()
}
