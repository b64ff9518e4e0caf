package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
)

// page shows text as it is made: on a terminal coloured as a diff and in a pager, elsewhere
// plain. Either way it is harmless to show. A reader who leaves early is no error.
func (a *app) page(ctx context.Context, write func(io.Writer) error) error {
	fd, ok := terminal(a.Out)
	if !ok || !foreground(fd) {
		return writeInert(a.Out, false, write)
	}
	colour := bool(a.colours(a.Out))
	pager := a.Getenv("PAGER")
	if pager == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return writeInert(a.Out, colour, write)
		}
		pager = "less -R"
	}
	if pager == "cat" {
		return writeInert(a.Out, colour, write)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Env = os.Environ()
	if a.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	cmd.Stdout, cmd.Stderr = a.Out, a.Err
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return writeInert(a.Out, colour, write) // a pager that is not there keeps nobody from reading
	}
	wrote := writeInert(in, colour, write)
	if left(wrote) {
		wrote = nil
	}
	return errors.Join(wrote, closed(in.Close()), ignoreStatus(cmd.Wait()))
}

// writeInert writes through the escapes that make text harmless.
func writeInert(to io.Writer, colour bool, write func(io.Writer) error) error {
	w := inert.NewWriter(to, colour)
	err := write(w)
	if cerr := w.Close(); err == nil && !left(cerr) {
		err = cerr
	}
	return err
}

// left reports whether the reader of a pipe went away: it has seen enough.
func left(err error) bool { return errors.Is(err, unix.EPIPE) }

func closed(err error) error {
	if err != nil && (left(err) || errors.Is(err, os.ErrClosed)) {
		return nil
	}
	return err
}

// ignoreStatus drops a pager's exit status: what it says of itself is not about the change.
func ignoreStatus(err error) error {
	var status *exec.ExitError
	if errors.As(err, &status) {
		return nil
	}
	return err
}

// text pages what is written; with --json it is one document with the text in a field.
func (a *app) text(ctx context.Context, field string, write func(io.Writer) error) error {
	if !a.json {
		return a.page(ctx, write)
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	a.document(map[string]string{field: b.String()})
	return nil
}
