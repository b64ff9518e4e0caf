package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// eventsMax is how many events one reading takes; the kernel queues half as many by default.
const eventsMax = 32 << 10

const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_CLOSE_WRITE |
	unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// event is one message of the kernel.
type event struct {
	wd     int32
	mask   uint32
	cookie uint32 // the same in both halves of a rename
	name   string // of the entry; "" = the watched folder itself
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
		to = append(to, event{
			wd:   int32(binary.NativeEndian.Uint32(data)),
			mask: binary.NativeEndian.Uint32(data[4:]), cookie: binary.NativeEndian.Uint32(data[8:]), name: string(name),
		})
		data = data[end:]
	}
	return to
}

// run reads until the watch ends. Without events and without lines to flush it sleeps.
func (w *Watch) run() {
	defer close(w.done)
	conn, err := w.file.SyscallConn()
	for err == nil {
		err = conn.Read(func(fd uintptr) bool {
			queued, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			return err != nil || queued > 0
		})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		if err != nil {
			break
		}
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return
		}
		began := time.Now()
		w.drain()
		w.due(time.Now())
		w.arm()
		w.mu.Unlock()
		wait := time.NewTimer(max(pace, min(4*time.Since(began), time.Second)))
		select {
		case <-w.quit:
		case <-wait.C:
		}
		wait.Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.unwell(broken, err.Error())
		w.tell()
	}
}

// arm sets when run wakes without an event.
func (w *Watch) arm() {
	var at time.Time
	if w.log.buffered() {
		at = w.log.flushAt
	}
	if w.stale && (at.IsZero() || w.rescanAt.Before(at)) {
		at = w.rescanAt
	}
	if err := w.file.SetReadDeadline(at); err != nil {
		w.unwell(broken, err.Error())
	}
}

// due does what arm set the time for.
func (w *Watch) due(now time.Time) {
	if w.log.buffered() && !now.Before(w.log.flushAt) {
		w.flush()
	}
	if w.stale && !now.Before(w.rescanAt) {
		w.rescan()
		w.tell()
	}
}

// drain takes in every event that the kernel has now.
func (w *Watch) drain() {
	started := time.Now()
	var events []event
	for len(events) < eventsMax {
		n, err := unix.Read(w.fd, w.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			if err != nil && err != unix.EAGAIN {
				w.unwell(broken, err.Error())
			}
			break
		}
		events = decodeEvents(events, w.buffer[:n])
	}
	if len(events) == 0 {
		w.synced = started
		return
	}
	for _, e := range events {
		w.take(e)
	}
	w.settle()
	if !w.stale && len(events) < eventsMax {
		w.synced = started
	}
	w.tell()
	took := time.Since(started)
	w.measured(len(events), took)
	if w.watched.Handled != nil {
		w.watched.Handled(len(events), took)
	}
}

// take sorts one event: folders come into place, in order, and names are noted for a look.
func (w *Watch) take(e event) {
	if e.mask&unix.IN_Q_OVERFLOW != 0 {
		w.overflowed, w.stale = true, true
		w.stats.Overflows++
		w.unwell(lost, "the kernel's queue was full")
		return
	}
	if heard := w.probes[e.wd]; heard != nil {
		if e.mask&unix.IN_CREATE != 0 {
			close(heard)
			delete(w.probes, e.wd)
		}
		return
	}
	f := w.folders[e.wd]
	if f == nil {
		return
	}
	if e.name == "" {
		w.self(f, e.mask)
		return
	}
	at, inside := f.path()
	if !inside || at == "" && e.name == ".git" && e.mask&unix.IN_ISDIR != 0 { // the mount of the agent's own git
		return
	}
	path := join(at, e.name)
	if e.mask&unix.IN_ISDIR == 0 {
		w.note(f, at, e.name, false)
		return
	}
	switch {
	case e.mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0:
		child := f.folders[e.name]
		child.detach()
		w.leave(child, path)
		if e.mask&unix.IN_MOVED_FROM != 0 {
			w.moving[e.cookie] = moved{child, w.stats.Readings}
		}
		w.note(f, at, e.name, true)
	case e.mask&(unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ATTRIB) != 0:
		v := visit{parent: f, name: e.name}
		if e.mask&unix.IN_ATTRIB != 0 { // it may have been opened to us
			v.since = w.began
		}
		if from, ok := w.moving[e.cookie]; ok && e.mask&unix.IN_MOVED_TO != 0 {
			delete(w.moving, e.cookie)
			v.again = true
			if from.folder != nil {
				w.attach(from.folder, f, e.name)
			}
		}
		w.visits = append(w.visits, v)
	}
}

// self takes an event of a watched folder itself.
func (w *Watch) self(f *folder, mask uint32) {
	switch {
	case mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		if at, inside := f.path(); inside && f != w.root { // its parent may tell later
			w.leave(f, at)
		}
		f.detach()
		w.drop(f)
		if f == w.root {
			w.unwell(broken, "the folder itself was removed")
		}
	case f == w.root && mask&unix.IN_MOVE_SELF != 0:
		w.unwell(broken, "the folder itself was moved")
	case f == w.root && mask&unix.IN_ATTRIB != 0 && f.closed: // it may have been opened again
		w.visits = append(w.visits, visit{since: w.began})
	}
}

// tell sends on touched if something happened.
func (w *Watch) tell() {
	if !w.news {
		return
	}
	w.news = false
	select {
	case w.touched <- struct{}{}:
	default:
	}
}
