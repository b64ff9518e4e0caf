package egress

import (
	"bufio"
	"errors"
	"io"
	"net/http/httputil"
	"sync"
	"time"
)

var (
	errTooMuch = errors.New(whyBody)
	errSent    = errors.New(whySent)
	errStopped = errors.New("nobody reads any more")
	errTrailer = errors.New("its trailers are too long")
)

// trailerBytesMax bounds what stands behind a chunked body; it is dropped.
const trailerBytesMax = 8 << 10

// upload is a request's body on its way up. It is read by another goroutine than the one that answers, and is taken from it by stop.
type upload struct {
	c    *client
	src  io.Reader
	live func()        // something moved
	done chan struct{} // closed at its end
	note func([]byte)  // sees what goes up
	ask  *asking       // says whether it may; may be nil
	free bool          // it counts towards no limit of the session

	reading sync.Mutex // held while the connection is read
	n       int64
	ended   bool
	broken  error // why it was cut off

	mu      sync.Mutex // orders deadlines: one that stop sets is the last
	stopped bool
}

func newUpload(c *client, length int64, live func(), note func([]byte)) *upload {
	u := &upload{c: c, live: live, note: note, done: make(chan struct{})}
	switch {
	case length == chunked:
		u.src = httputil.NewChunkedReader(c.r)
	case length > 0:
		u.src = &exactly{c.r, length}
	default:
		u.ended = true
		close(u.done)
	}
	return u
}

// exactly reads n bytes; an end before them is unexpected. Their end comes with the last of them: it may be answered before anybody reads on.
type exactly struct {
	r io.Reader
	n int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.n)])
	switch e.n -= int64(n); {
	case e.n == 0 && err == nil:
		err = io.EOF
	case e.n > 0 && errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Read gives the next bytes and bounds them.
func (u *upload) Read(p []byte) (int, error) {
	select {
	case <-u.done: // gone has the connection by now
		return 0, io.EOF
	default:
	}
	u.reading.Lock()
	defer u.reading.Unlock()
	switch {
	case u.broken != nil:
		return 0, u.broken
	case u.ended:
		return 0, io.EOF
	case !u.wait(time.Now().Add(u.c.cfg.Limits.Idle)):
		return 0, errStopped
	}
	n, err := u.src.Read(p)
	u.live()
	u.n += int64(n)
	switch {
	case u.n > u.c.cfg.Limits.RequestBytes:
		u.broken = errTooMuch
	case !u.free && !u.c.spend(n):
		u.broken = errSent
	case u.ask != nil && u.ask.Write(p[:n]) != "":
		u.broken = errAsked(u.ask.why)
	case errors.Is(err, io.EOF):
		if _, isChunked := u.src.(*exactly); !isChunked {
			if err = dropTrailers(u.c.r); err != nil {
				u.broken = err
				return 0, err
			}
		}
		u.ended = true
		close(u.done)
		err = io.EOF
	case err != nil:
		u.broken = err
	}
	if u.broken != nil {
		return 0, u.broken
	}
	u.note(p[:n])
	return n, err
}

// dropTrailers reads what stands behind the last chunk up to its empty line.
func dropTrailers(r *bufio.Reader) error {
	for n := 0; n < trailerBytesMax; {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if string(line) == "\r\n" {
			return nil
		}
		n += len(line)
	}
	return errTrailer
}

// wait sets until when the connection is read, unless nobody reads any more.
func (u *upload) wait(until time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.stopped {
		u.c.conn.SetReadDeadline(until)
	}
	return !u.stopped
}

// Close is called by who sends the body once nothing more is wanted of it.
func (u *upload) Close() error { return nil }

// gone reads on after the body and calls left once the client has gone away. It returns once a byte of the next request is there, or after stop.
func (u *upload) gone(stop <-chan struct{}, left func()) {
	select {
	case <-u.done:
	case <-stop:
		return
	}
	u.reading.Lock()
	defer u.reading.Unlock()
	if !u.wait(time.Time{}) {
		return
	}
	_, err := u.c.r.Peek(1)
	u.mu.Lock()
	stopped := u.stopped
	u.mu.Unlock()
	if err != nil && !stopped {
		left()
	}
}

// stop takes the connection back, whoever reads it, and reports whether the body was read to its end.
func (u *upload) stop() (whole bool) {
	u.mu.Lock()
	u.stopped = true
	u.c.conn.SetReadDeadline(time.Unix(1, 0))
	u.mu.Unlock()
	u.reading.Lock()
	defer u.reading.Unlock()
	u.c.conn.SetReadDeadline(time.Time{})
	return u.ended && u.broken == nil
}

// why returns what broke the body off, if it was a limit or the client's fault. It waits for who reads: call stop before.
func (u *upload) why() error {
	u.reading.Lock()
	defer u.reading.Unlock()
	return u.broken
}

const (
	whySent = "this session has reached its limit of bytes sent"
	whyBody = "its body is larger than the limit of one request"
)
