package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// Size is a terminal's.
type Size struct{ Rows, Cols uint16 }

// Terminal is the near side of a shell.
type Terminal struct {
	In     io.Reader // what the person types; read until the shell ends
	Out    io.Writer
	Size   Size
	Resize <-chan Size // may be nil
	Raw    bool        // Out takes what drives a terminal; else programs are told to send text alone
}

// Shell runs a shell in a change's sandbox until it ends, and returns its exit status.
// Reading t.In may go on after it returned: who owns it ends that.
func (c *Client) Shell(ctx context.Context, change string, t Terminal) (int, error) {
	req, err := c.request(ctx, api.ChangeShell.Spec, api.Shell{Of: change, Rows: int(t.Size.Rows), Cols: int(t.Size.Cols), Raw: t.Raw})
	if err != nil {
		return 0, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", api.ShellProtocol)
	conn, err := c.dial(ctx)
	if err != nil {
		return 0, c.broken(ctx, err)
	}
	defer conn.Close() // ends both pumps
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := req.Write(conn); err != nil {
		return 0, c.broken(ctx, err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return 0, c.broken(ctx, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return 0, problemOf(resp)
	}
	out := &frameWriter{w: conn}
	go out.pump(t)
	code, err := readShell(in, t.Out)
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, ErrCut):
		return 0, c.gone(change, ErrCut)
	}
	return code, err
}

// frameWriter serializes the frames of typing and of resizing.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) send(t api.FrameType, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return api.WriteFrame(f.w, t, payload)
}

// pump sends what is typed until there is no more or the connection is closed.
func (f *frameWriter) pump(t Terminal) {
	if t.Resize != nil {
		go func() {
			for size := range t.Resize {
				if f.send(api.FrameResize, api.Resize(size.Rows, size.Cols)) != nil {
					return
				}
			}
		}()
	}
	buf := make([]byte, 4096)
	for {
		n, err := t.In.Read(buf)
		if n > 0 && f.send(api.FrameData, buf[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// readShell writes the shell's output until its last frame, which says how it ended.
func readShell(in io.Reader, out io.Writer) (int, error) {
	for {
		t, payload, err := api.ReadFrame(in)
		if err != nil {
			return 0, fmt.Errorf("shell: %w", errors.Join(ErrCut, err))
		}
		switch t {
		case api.FrameData:
			if _, err := out.Write(payload); err != nil {
				return 0, err
			}
		case api.FrameExit:
			return api.ReadExitStatus(payload)
		case api.FrameProblem:
			var body api.Problem
			if err := json.Unmarshal(payload, &body); err != nil {
				return 0, problem.Errorf(problem.Internal, "sallyport daemon status", "the shell's end cannot be read: %w", err)
			}
			return 0, body.Err()
		default:
			return 0, problem.Errorf(problem.Internal, "sallyport daemon stop", "the daemon sent a frame of type %d", t)
		}
	}
}
