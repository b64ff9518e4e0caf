package irc

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

// wire carries lines to a server and back.
type wire struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	writes  sync.Mutex
}

// errLong ends a session whose server sends what is no line.
var errLong = problem.New(problem.Unavailable, "the server has sent a line that is too long to be one")

// read returns the next line.
func (w *wire) read() (string, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(silenceMax))
	line, err := w.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errLong
	}
	if err != nil {
		return "", fmt.Errorf("hear from %s: %w", w.address, err)
	}
	return string(line), nil
}

// write sends a line. What would be a second one in it ends it.
func (w *wire) write(line string) error {
	for i := range len(line) {
		if line[i] == '\r' || line[i] == '\n' || line[i] == 0 {
			line = line[:i]
			break
		}
	}
	w.writes.Lock()
	defer w.writes.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(writeMax))
	if _, err := w.conn.Write([]byte(line + "\r\n")); err != nil {
		return fmt.Errorf("%w: send to %s: %w", channel.ErrAway, w.address, err)
	}
	return nil
}

// leave says goodbye, and closes the connection.
func (w *wire) leave() {
	_ = w.conn.SetWriteDeadline(time.Now().Add(time.Second)) // also of a line that is stuck
	w.writes.Lock()
	defer w.writes.Unlock()
	_, _ = w.conn.Write([]byte("QUIT\r\n"))
	_ = w.conn.Close()
}
