package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeShellCommand(a *app) *cobra.Command {
	var rawOut bool
	cmd := a.remote("shell CHANGE", "open a shell in a change's sandbox, to look around or to try something",
		`Opens a shell in the sandbox of a change. While its agent works, the shell stands beside it, in the
same sandbox and on the same files. At any other time it has a throw-away copy of what the change
holds, and nothing that you do there becomes part of the change. Its first line says which of the
two it is. Your own files are not in it.

The agent cannot read what you type or see: the shell's terminal, memory and descriptors are closed
to it. It sees the command lines that run, as you see its own. What you start from the shell reads
your terminal, so be as careful with a script of the workspace as anywhere else.

What is printed is shown as text. What would drive your terminal (colours, moving about, titles, the
clipboard) is escaped. Programs that fill the screen need --raw, which passes everything on.

Without a terminal it reads commands until its input ends. With --json what is printed comes as
notices.

Exit status: the shell's own.`,
		`  sallyport change shell chg-1a2b3c4d
  sallyport change shell chg-1a2b3c4d --raw
  echo 'go test ./...' | sallyport change shell chg-1a2b3c4d`, oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			t := client.Terminal{In: &endOfInput{in: a.In}, Out: a.Out, Size: client.Size{Rows: 24, Cols: 80}, Raw: rawOut}
			switch {
			case a.json:
				t.Out = &heard{app: a, change: words[0]}
			case !rawOut:
				screen := inert.NewScreen(a.Out)
				defer func() { _ = screen.Close() }()
				t.Out = screen
			}
			if fd, ok := terminal(a.In); ok && foreground(fd) {
				restore, err := raw(fd, &t)
				if err != nil {
					return err
				}
				defer restore()
				t.In = a.In
			}
			code, err := c.Shell(ctx, words[0], t)
			if err != nil {
				return err
			}
			if a.json {
				a.line(event{Event: "result", Exit: &code})
			}
			return ended(code)
		})
	cmd.Flags().BoolVar(&rawOut, "raw", false, "pass on what drives a terminal, for programs that fill the screen; the agent may have written it")
	return cmd
}

// raw hands every key to the shell, and follows the window's size.
func raw(fd int, t *client.Terminal) (restore func(), err error) {
	was, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	if cols, rows, err := term.GetSize(fd); err == nil {
		t.Size = client.Size{Rows: uint16(rows), Cols: uint16(cols)}
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	sizes := make(chan client.Size, 1)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-changed:
				if cols, rows, err := term.GetSize(fd); err == nil {
					select {
					case sizes <- client.Size{Rows: uint16(rows), Cols: uint16(cols)}:
					case <-done:
					}
				}
			}
		}
	}()
	t.Resize = sizes
	return func() {
		signal.Stop(changed)
		close(done)
		_ = term.Restore(fd, was) // a terminal that is gone needs no restoring
	}, nil
}

// endOfInput says the end of a pipe as a terminal says it: with Ctrl-D at the start of a line. One
// may be taken by a program that the shell runs, or come before the shell reads keys: it is
// said again until nobody reads any more. One that came too early may stand in the shell's line as
// a character (busybox ash), and in a line that has one Ctrl-D ends nothing: Ctrl-U clears it.
type endOfInput struct {
	in    io.Reader
	last  byte // what was read last; 0 = nothing yet
	ended bool
	said  bool
}

// endAgain is how long a shell has to hear the end of its input before it is said again.
const endAgain = 250 * time.Millisecond

func (e *endOfInput) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !e.ended {
		n, err := e.in.Read(p)
		if n > 0 {
			e.last = p[n-1]
		}
		if e.ended = errors.Is(err, io.EOF); e.ended {
			err = nil // it is said next time
		}
		if n > 0 || !e.ended {
			return n, err
		}
	}
	if e.last != 0 && e.last != '\n' {
		e.last, p[0] = '\n', '\n'
		return 1, nil
	}
	if e.said {
		<-time.After(endAgain)
	}
	e.said = true
	return copy(p, "\x04\x15"), nil
}

// heard is the shell's output as JSON lines; a character that comes in two parts is one.
type heard struct {
	*app
	change string
	part   []byte
}

func (h *heard) Write(p []byte) (int, error) {
	all := append(h.part, p...)
	whole := inert.Whole(all)
	h.part = append([]byte(nil), all[len(whole):]...)
	if len(whole) > 0 {
		h.line(event{Event: "notice", Notice: &api.Notice{Change: h.change, At: time.Now(), Kind: api.NoticeOutput, Text: string(whole)}})
	}
	return len(p), nil
}
