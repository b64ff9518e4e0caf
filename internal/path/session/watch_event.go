package session

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
)

const (
	// eventsMax is how many events one reading takes; the kernel queues half as many by default.
	eventsMax = 32 << 10
	// pace is the least time between two readings of the queue, so that a flood costs a bounded number of wake-ups.
	pace = 4 * time.Millisecond
	// mask is what is asked of a folder. A folder is asked for again at each look: without IN_MASK_ADD the kernel takes back what was asked
	// before it notes what is asked now, and an event of that moment is lost, and nobody told.
	mask = unix.IN_MASK_ADD | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_CLOSE_WRITE |
		unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
)

// event is one message of the kernel.
type event struct {
	wd   int32
	mask uint32
	name string // of the entry; "" = what is watched itself
}

// decodeEvents reads what a read of an inotify descriptor returned. A half event at the
// end, which the kernel never gives, is left out.
func decodeEvents(to []event, data []byte) []event {
	for len(data) >= unix.SizeofInotifyEvent {
		size := int64(binary.NativeEndian.Uint32(data[12:]))
		if size > int64(len(data)-unix.SizeofInotifyEvent) {
			return to
		}
		end := unix.SizeofInotifyEvent + int(size)
		name, _, _ := bytes.Cut(data[unix.SizeofInotifyEvent:end], []byte{0})
		to = append(to, event{wd: int32(binary.NativeEndian.Uint32(data)), mask: binary.NativeEndian.Uint32(data[4:]), name: string(name)})
		data = data[end:]
	}
	return to
}

// queue is the kernel's, of one watch.
type queue struct {
	file   *os.File // nil = not open
	fd     int      // of file, which stays non-blocking
	buffer []byte
}

// noWatch says that the kernel gives no watch at all.
func noWatch(err error) error {
	return problem.Errorf(problem.Unavailable, "sysctl fs.inotify", "the kernel allows no more watches of files (inotify): %w", err)
}

func openQueue() (queue, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return queue{}, noWatch(err)
	}
	return queue{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, buffer: make([]byte, 64<<10)}, nil
}

func (q queue) close() {
	if q.file != nil {
		q.file.Close()
	}
}

// add watches what is open; what is watched already keeps its descriptor.
func (q queue) add(fd int, mask uint32) (int32, error) {
	wd, err := unix.InotifyAddWatch(q.fd, "/proc/self/fd/"+strconv.Itoa(fd), mask)
	return int32(wd), err
}

// remove ends a watch, which may have ended with its folder.
func (q queue) remove(wd int32) { _, _ = unix.InotifyRmWatch(q.fd, uint32(wd)) }

// read returns what the kernel has now.
func (q queue) read() (events []event, err error) {
	for len(events) < eventsMax {
		n, err := unix.Read(q.fd, q.buffer)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN || err == nil && n <= 0 {
			break
		}
		if err != nil {
			return events, err
		}
		events = decodeEvents(events, q.buffer[:n])
	}
	return events, nil
}

// wait returns once something is in the queue.
func (q queue) wait() error {
	conn, err := q.file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		queued, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		return err != nil || queued > 0
	})
}

// run reads until the watch ends. Without events it sleeps.
func (w *Watch) run() {
	defer close(w.done)
	for {
		err := w.queue.wait()
		w.mu.Lock()
		if err != nil && !w.closed {
			w.unwell(broken, err.Error())
		}
		if err != nil || w.closed {
			w.mu.Unlock()
			return
		}
		rest := w.drain()
		w.mu.Unlock()

		wait := time.NewTimer(rest)
		select {
		case <-w.quit:
		case <-wait.C:
		}
		wait.Stop()
	}
}

// drain takes in every event that the kernel has now, and returns how long to wait until the
// next time: a flood takes a fifth of a processor, and a look at the whole tree a twentieth.
func (w *Watch) drain() (rest time.Duration) {
	began := time.Now()
	events, err := w.queue.read()
	if err != nil {
		w.unwell(broken, err.Error())
	}
	if len(events) == 0 {
		return pace
	}
	overflowed := false
	for _, e := range events {
		overflowed = overflowed || e.mask&unix.IN_Q_OVERFLOW != 0
		w.take(e)
	}
	w.settle()
	w.flush()

	took := time.Since(began)
	if w.watched.Handled != nil {
		w.watched.Handled(len(events), took)
	}
	if overflowed {
		return max(pace, 20*took)
	}
	return max(pace, min(4*took, time.Second))
}

// take marks what one event speaks of.
func (w *Watch) take(e event) {
	f := w.folders[e.wd]
	switch {
	case e.mask&unix.IN_Q_OVERFLOW != 0:
		w.unwell(lost, "the kernel's queue was full")
		w.visits = append(w.visits, visit{folder: w.root, deep: true})
	case e.wd == w.probe:
		if w.heard != nil {
			close(w.heard)
			w.heard = nil
		}
	case f == nil:
	case e.name != "":
		w.mark(f, e.name)
	case e.mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		w.unfollow(f)
		if f == w.root {
			w.unwell(broken, "the folder itself was removed")
		} else { // another one may be in its place
			w.mark(f.parent, f.name)
		}
	case f == w.root && e.mask&unix.IN_MOVE_SELF != 0:
		w.unwell(broken, "the folder itself was moved")
	case f == w.root && f.closed: // it may have been opened again
		w.visits = append(w.visits, visit{folder: f})
	}
}

// mark asks for a look at a name once all events are taken.
func (w *Watch) mark(f *folder, name string) {
	if w.marked[f] == nil {
		w.marked[f] = map[string]bool{}
	}
	w.marked[f][name] = true
}
