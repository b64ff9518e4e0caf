package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// Program is what the command line stands on.
type Program struct {
	In     io.Reader
	Out    io.Writer // results
	Err    io.Writer // progress and errors
	Getenv func(string) string
	Dir    func() (string, error) // where the person stands
	// Connect returns a client of the home's daemon; start says whether to start one where none runs.
	Connect func(ctx context.Context, home string, start bool) (*client.Client, error)
	Host
	// Uninstall removes what a home's sallyport has left in a repository, or with "" everywhere, if agree says so of what it found.
	Uninstall func(ctx context.Context, home, repo string, agree func(api.Uninstall) (bool, error)) (api.Uninstall, error)
	// Systemd is what services are installed with.
	Systemd func() (Systemd, error)
}

// Host is how a home is served by this process.
type Host struct {
	// Daemon serves a home until ctx ends or there is nothing to do. A daemon that is kept stays: its keeper has started it.
	Daemon func(ctx context.Context, home string, kept bool) error
	// GoBack brings a home back to before a change of the host that did not hold; nil where its old host can serve.
	GoBack func(ctx context.Context, home string) error
	// Schema is the one of the database that this program has.
	Schema int
	// Keep becomes the keeper of a home; it returns only where that cannot be done. It calls makeWay last: who serves the home until then ends
	// for a keeper that is there, and nobody starts another meanwhile if that takes no time.
	Keep func(ctx context.Context, home string, makeWay func() error) error
}

// System is the program as the shell starts it.
func System(host Host) Program {
	return Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Dir: os.Getwd, Host: host, Systemd: systemdHere,
		Connect: func(ctx context.Context, home string, start bool) (*client.Client, error) {
			if !start {
				return client.Me().Find(ctx, home)
			}
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			return client.Starter{Person: client.Me(), Self: self}.Ensure(ctx, home)
		},
	}
}

// terminal returns the descriptor of a stream that is a terminal.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return -1, false
	}
	fd := int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// foreground reports whether this process may read from the terminal: a job in the background would be stopped.
func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// interactive reports whether a person can be asked: they see what is said and can answer.
func (p Program) interactive() bool { return p.whyNotAsked() == "" }

// whyNotAsked says why nobody can be asked here; "" if somebody can.
func (p Program) whyNotAsked() string {
	in, ok := terminal(p.In)
	switch {
	case !ok:
		return "standard input is not a terminal"
	case !foreground(in):
		return "this command runs in the background of its terminal"
	}
	if _, ok := terminal(p.Err); !ok {
		return "standard error is not a terminal"
	}
	return ""
}

// width is how many columns a stream has; 100 where it is no terminal.
func width(stream any) int {
	if fd, ok := terminal(stream); ok {
		if cols, _, err := term.GetSize(fd); err == nil && cols > 0 {
			return min(max(cols, 20), 160)
		}
	}
	return 100
}

// systemdHere is this machine's.
func systemdHere() (Systemd, error) {
	self, err := os.Executable()
	s := Systemd{Self: self, System: "/etc/systemd/system", Root: os.Geteuid() == 0}
	if _, wrong := os.Stat("/run/systemd/system"); err != nil || wrong != nil {
		return s, err
	}
	if systemctl, err := exec.LookPath("systemctl"); err == nil {
		s.Tell = func(ctx context.Context, words ...string) error {
			out, err := exec.CommandContext(ctx, systemctl, words...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
			}
			return nil
		}
	}
	return s, nil
}
