// Command sallyport lets coding agents work on copies of repositories: command line, daemon
// and sandbox runner in one static binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/daemon"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/door/socket"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/inside/rehearser"
	"sallyport/internal/inside/runner"
	"sallyport/internal/screen/cli"
	"sallyport/internal/store/sqlite"
)

func main() { os.Exit(run()) }

func run() int {
	// Inside and around a sandbox nothing of the command line may take part.
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		if len(os.Args) == 3 && os.Args[2] == "adapt" {
			return adapter.Main(adapter.Engines())
		}
		if len(os.Args) == 4 && os.Args[2] == "rehearse" {
			return rehearser.Main(os.Args[3:], daemon.RehearseBack)
		}
		if len(os.Args) == 4 && os.Args[2] == "keep" {
			return rehearser.Keep(os.Args[3:])
		}
		return runner.Main(os.Args[2:])
	}
	program := cli.System(cli.Host{Daemon: serve, GoBack: goBack, Keep: keep, Schema: sqlite.Schema()})
	program.Uninstall = func(ctx context.Context, home, repo string, agree func(api.Uninstall) (bool, error)) (api.Uninstall, error) {
		return daemon.Uninstall(ctx, daemon.Options{Home: home}, repo, agree)
	}
	return cli.Main(program, os.Args[1:])
}

// goBack brings a home back to before a change of the host that did not hold.
func goBack(ctx context.Context, home string) error {
	return daemon.GoBack(ctx, daemon.Options{Home: home})
}

// keep becomes the keeper of a home.
func keep(ctx context.Context, home string, makeWay func() error) error {
	if _, err := git.Version(ctx); err != nil {
		return err
	}
	program, err := daemon.PutRelease(daemon.Options{Home: home})
	if err != nil {
		return err
	}
	if err := makeWay(); err != nil {
		return err
	}
	if err := unix.Exec(program, []string{keeper.Program, "serve", home}, os.Environ()); err != nil {
		return problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(program), "start %q: %w", program, err)
	}
	return nil
}

func serve(ctx context.Context, home string, kept bool) error {
	var line *keeper.Line
	if kept {
		var err error
		if line, err = keeper.Answer(); err != nil {
			return err
		}
	}
	// A home begins with git's help; one that is too old is named before anything is made.
	if _, err := git.Version(ctx); err != nil {
		return err
	}
	err := daemon.Run(ctx, daemon.Options{Home: home, Line: line})
	if errors.Is(err, lock.ErrHeld) || errors.Is(err, socket.ErrAnswered) {
		p := problem.Of(err)
		next := "sallyport daemon status --home " + inert.Path(home)
		if kept { // the other may end by itself, and is in the way
			next = "sallyport daemon stop --home " + inert.Path(home)
		}
		why := strings.TrimPrefix(p.Text, fmt.Sprintf("serve the home %q: ", home)) // it is named already
		return problem.Errorf(problem.Conflict, next, "%w %q: %s", client.ErrTaken, home, why)
	}
	return err
}
