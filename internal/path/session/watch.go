package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/secret"
)

const (
	foldersMax = 8192
	// changedBytesMax bounds the memory of the changed paths, and of the names that are known (SV-102); a count beyond it is "at least".
	changedBytesMax = 16 << 20
	// pace is the least time between two readings of the queue, so that a flood costs a bounded number of wake-ups.
	pace = 4 * time.Millisecond
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
// It is inotify, for root too: a watch is on a folder of the one workspace, so that no
// event of another change can reach it (SV-061). The one mark that fanotify could use
// instead is on the whole file system, whose every write, by every change and by the
// database, would then wake every Watch to be told apart by name.
//
// All methods may be called at once from everywhere.
type Watch struct {
	watched Watched
	file    *os.File        // the inotify descriptor, for waiting
	fd      int             // the same one, for reading; under mu
	side    int             // the top of the writable side
	base    *workspace.Base // the top of the base, or nil

	threshold chan struct{}
	touched   chan struct{}
	quit      chan struct{} // closed when it is to end
	done      chan struct{} // closed when its goroutine has ended
	unhook    func() bool

	mu         sync.Mutex
	closed     bool
	log        watchLog
	root       *folder
	folders    map[int32]*folder // by watch descriptor
	round      int               // of looking at the whole tree
	moving     map[uint32]moved
	visits     []visit
	looks      map[string]*look
	buffer     []byte
	stale      bool      // events were lost: the whole tree is to be looked at again
	rescanAt   time.Time // not before
	began      time.Time
	opened     bool      // what was there at the start has been seen
	synced     time.Time // when the queue was last seen empty
	probes     map[int32]chan struct{}
	changed    map[string]struct{}
	left       map[string]bool // files of folders that have moved away, to be looked for
	hid        map[hidden]bool // folders of the base to be counted as gone
	known      int             // bytes that folders' fresh names take
	bytes      int
	crossed    bool
	overflowed bool
	news       bool // something to tell on touched
	notes      map[ailment]*note
	stats      WatchStats
	latencies  [1024]time.Duration
}

// StartWatch begins to watch, after it has seen the kernel deliver an event (SV-092): it
// makes a folder beside the log for that, and nothing in the workspace. Files that are
// there already count as not changed. It ends with ctx or with Close.
//
// Errors: problem.Unavailable when this machine has no watch to give or does not
// deliver; else what is wrong with a folder or the log.
func StartWatch(ctx context.Context, watched Watched) (*Watch, error) {
	w := &Watch{
		watched: watched, side: -1, fd: -1,
		threshold: make(chan struct{}, 1), touched: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		folders: map[int32]*folder{}, moving: map[uint32]moved{}, looks: map[string]*look{}, probes: map[int32]chan struct{}{},
		changed: map[string]struct{}{}, hid: map[hidden]bool{}, left: map[string]bool{}, notes: map[ailment]*note{}, buffer: make([]byte, 64<<10),
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

func (w *Watch) open() error {
	var err error
	if w.side, err = beneath.Top(w.watched.Side, unix.O_PATH); err != nil {
		return err
	}
	if len(w.watched.Base) > 0 {
		if w.base, err = workspace.OpenBase(w.watched.Base); err != nil {
			return err
		}
	}
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return problem.Errorf(problem.Unavailable, "sysctl fs.inotify", "the kernel allows no more watches of files (inotify): %w", err)
	}
	w.file = os.NewFile(uintptr(w.fd), "inotify")
	if w.log, err = openWatchLog(w.watched); err != nil {
		return err
	}
	if w.watched.FoldersMax <= 0 {
		w.watched.FoldersMax = foldersMax
	}
	w.began = time.Now()
	w.synced = w.began
	wd, err := w.follow(w.side)
	if err != nil {
		return fmt.Errorf("%s: %w", w.watched.Side, err)
	}
	w.root = &folder{wd: wd}
	w.folders[wd] = w.root
	w.scan(w.root, visit{since: w.began})
	w.settle()
	w.opened = true
	return nil
}

// Kind names the mechanism, for doctor and measurements.
func (w *Watch) Kind() string { return "inotify" }

// Threshold is sent on once each time that the count reaches the threshold; Reset re-arms it.
// Neither it nor Touched is ever closed.
func (w *Watch) Threshold() <-chan struct{} { return w.threshold }

// Touched is sent on when something happened since it was last received from.
func (w *Watch) Touched() <-chan struct{} { return w.touched }

// Changed returns the paths that changed since the last Reset, sorted; they are bytes as
// the file system has them.
func (w *Watch) Changed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := make([]string, 0, len(w.changed))
	for p := range w.changed {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

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
		w.drain()
		if w.stale { // what was lost was before the checkpoint too
			w.rescan()
		}
		w.arm()
	}
	if checkpoint != "" {
		w.log.checkpoint = &checkpoint
	}
	clear(w.changed)
	w.bytes, w.crossed, w.overflowed = 0, false, false
	delete(w.notes, lost)
	delete(w.notes, tooMany)
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
	if w.file != nil {
		w.file.Close()
	}
	closeFolder(w.side)
	w.base.Close()
}
