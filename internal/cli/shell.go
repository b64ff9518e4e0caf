package cli

import (
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sallyport/internal/client"
)

func (a *app) changeShell() *cobra.Command {
	return a.cmd("shell CHANGE", "open a shell in a change's own sandbox and workspace",
		`Opens a shell beside the program while it works, in the same sandbox; at any other time on a
throw-away copy of what the change holds. What it prints is not escaped: it is a terminal of the
sandbox. Exit status: the shell's own.`,
		"  sallyport change shell chg-1a2b3c4d", oneChange, func(cmd *cobra.Command, words []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			t := client.Terminal{In: &endOfInput{in: a.In}, Out: a.Out, Size: client.Size{Rows: 24, Cols: 80}}
			if fd, ok := terminal(a.In); ok && foreground(fd) {
				restore, err := raw(fd, &t)
				if err != nil {
					return err
				}
				defer restore()
				t.In = a.In
			}
			code, err := c.Shell(cmd.Context(), words[0], t)
			if err != nil {
				return err
			}
			return ended(code)
		})
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

// endOfInput says the end of a pipe as a terminal says it: with Ctrl-D.
type endOfInput struct {
	in   io.Reader
	said bool
}

func (e *endOfInput) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if n == 0 && err == io.EOF && !e.said && len(p) > 0 {
		e.said = true
		p[0] = 4
		return 1, nil
	}
	if n > 0 && err == io.EOF {
		err = nil // said next time
	}
	return n, err
}
