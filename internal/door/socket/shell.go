package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/supervise"
)

// drainTime is how long output that was written before the shell's end may still take to arrive.
const drainTime = 5 * time.Second

var errReaderGone = errors.New("the terminal went away")

// shells answers who wants a shell in the sandbox of a change.
type shells struct {
	part Sessions
	open *sync.WaitGroup // the server waits for them at its end
}

// shell upgrades the connection to frames and runs a shell on a pty whose master stays here.
func (n shells) shell(d *door, w http.ResponseWriter, r *http.Request, in api.Shell) {
	if r.Header.Get("Upgrade") != api.ShellProtocol {
		d.refuseWith(w, r, problem.Errorf(problem.Usage, "sallyport change shell "+in.Of, "a shell needs the upgrade to %s", api.ShellProtocol))
		return
	}
	master, slave, err := pty.Open()
	if err != nil {
		d.refuseWith(w, r, fmt.Errorf("open a pty: %w", err))
		return
	}
	defer master.Close() // a pty holds no data that could be lost
	defer slave.Close()
	setSize(master, uint16(min(in.Rows, 1000)), uint16(min(in.Cols, 1000)))

	n.open.Add(1)
	defer n.open.Done()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		d.refuseWith(w, r, fmt.Errorf("take over the connection: %w", err))
		return
	}
	defer conn.Close()
	// A hijacked connection keeps its old deadlines.
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %d\r\n%s: %s\r\n\r\n",
		api.ShellProtocol, api.HeaderVersion, api.Version, api.HeaderBuild, api.Build())
	if err := buffered.Flush(); err != nil {
		return
	}
	n.run(r.Context(), id.Change(in.Of), by(r), &frames{door: d, conn: conn}, buffered.Reader, master, supervise.Terminal{Slave: slave, Raw: in.Raw})
}

// setSize tells the terminal its size; a size of nothing is left as it is.
func setSize(master *os.File, rows, cols uint16) {
	if rows > 0 && cols > 0 {
		_ = pty.Setsize(master, &pty.Winsize{Rows: rows, Cols: cols}) // a program that draws badly is all that can come of it
	}
}

// frames serializes writers of one connection.
type frames struct {
	*door
	mu   sync.Mutex
	conn net.Conn
}

func (f *frames) send(t api.FrameType, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	return api.WriteFrame(f.conn, t, payload)
}

// end says how the shell has ended: with its exit status, or with a problem.
func (f *frames) end(code int, err error) {
	if err != nil {
		body, _ := f.problemOf(err)
		raw, _ := json.Marshal(body)
		err = f.send(api.FrameProblem, raw)
	} else {
		err = f.send(api.FrameExit, api.ExitStatus(code))
	}
	if err != nil {
		f.log.Debug("shell's end was not read", slog.Any("error", err))
	}
}

// run blocks until the shell has ended and its output was sent, or the reader is gone.
func (n shells) run(ctx context.Context, ref id.Change, who audit.Actor, out *frames, in *bufio.Reader, master *os.File, t supervise.Terminal) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var pumps sync.WaitGroup
	pumps.Go(func() { cancel(readFrames(in, master)) })
	outputSent := make(chan struct{})
	pumps.Go(func() {
		defer close(outputSent)
		if err := sendOutput(out, master); err != nil {
			cancel(errReaderGone)
		}
	})

	code, err := n.part.Shell(ctx, ref, who, t)
	t.Slave.Close() // now the master reads to its end
	drain := time.NewTimer(drainTime)
	defer drain.Stop()
	select {
	case <-outputSent:
	case <-drain.C: // something that was left behind still holds the terminal
	}
	out.end(code, err)
	master.Close()
	out.conn.Close() // ends the reading pump
	pumps.Wait()
}

// readFrames moves what the person types to the terminal; it returns why it ended.
func readFrames(in io.Reader, master *os.File) error {
	for {
		t, payload, err := api.ReadFrame(in)
		if err != nil {
			return errReaderGone
		}
		switch t {
		case api.FrameData:
			if _, err := master.Write(payload); err != nil {
				return errReaderGone
			}
		case api.FrameResize:
			rows, cols, err := api.ReadResize(payload)
			if err != nil {
				return err
			}
			setSize(master, rows, cols)
		default:
			return fmt.Errorf("frame of type %d is not a client's: %w", t, errReaderGone)
		}
	}
}

// sendOutput moves the terminal's output to the person until the last slave is closed.
func sendOutput(out *frames, master *os.File) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := master.Read(buf)
		if n > 0 {
			if err := out.send(api.FrameData, buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // EIO: nobody holds the other end any more
		}
	}
}
