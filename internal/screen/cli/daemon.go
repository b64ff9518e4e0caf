package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newDaemonStartCommand(a *app) *cobra.Command {
	return a.remote("start", "start the home's daemon now, if none runs",
		`Starts the daemon of the home in the background, if none runs, and says its process and its socket.
You hardly need it: any command that needs the daemon starts it.

The daemon ends by itself after 15 minutes in which nothing was to be done and no command asked it
anything. Nothing is lost by that, and what waits for you goes on waiting. A change that is worked
on, lands, is on trial or could not be rolled back yet keeps the daemon running; so do a message
that waits for its answer, a task that is scheduled, an open "change watch" and a scraper of its
metrics.`,
		"  sallyport daemon start", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			return printDaemon(ctx, a, c)
		})
}

func printDaemon(ctx context.Context, a *app, c *client.Client) error {
	return tell(ctx, a, c, api.DaemonShow, api.Nothing{}, func(s sheet, d api.Daemon) {
		s.line("daemon of %s: pid %d, build %s, up %s", inert.Path(d.Home), d.PID, d.Build, duration(s.now.Sub(d.Started).Truncate(time.Second)))
		s.line("  socket %s", inert.Path(c.Socket()))
		if k := d.Keeper; k != nil {
			s.line("  keeper pid %d, release %.12s%s", k.PID, k.Release, restarted(s, k))
			s.line("  a change of the host is guarded against %s", holds(k))
			s.line("  %s", k.Limits())
		}
		printHostChange(a, s, d.Host)
		s.line("  %s being worked on, %d waiting for a person", count(d.Working, "change"), d.Waiting)
	})
}

func newDaemonStatusCommand(a *app) *cobra.Command {
	return a.cmd("status", "say whether the home's daemon runs, and start none",
		`Says whether the home's daemon runs: its process, build and socket, how many changes are worked on,
and how many wait for you. It starts none. That none runs is no fault: a daemon with nothing to do
ends by itself after 15 minutes, and the next command starts another.

Exit status: 0 if one runs, 1 if none does.`,
		`  sallyport daemon status
  sallyport daemon status --json`, exactly(), func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			if err := a.mistyped(home); err != nil {
				return err
			}
			c, err := a.Connect(cmd.Context(), home, false)
			if errors.Is(err, client.ErrNoDaemon) {
				return problem.Errorf(problem.Unavailable, "sallyport daemon start", "no daemon of home %q runs", home)
			}
			if err := errors.Join(err, theirs(c, home)); err != nil {
				return err
			}
			return printDaemon(cmd.Context(), a, c)
		})
}

// theirs refuses the daemon of another user's home: it tells a guest that it runs, and nothing else. Errors: problem.Denied.
func theirs(c *client.Client, home string) error {
	if c == nil || !c.Guest() {
		return nil
	}
	return problem.Errorf(problem.Denied, "sallyport chat --help",
		"a daemon of the home %q runs, which is another user's: only they may see more of it, or stop it", home)
}

// stopTime is how long a daemon may take to end.
const stopTime = 30 * time.Second

func newDaemonStopCommand(a *app) *cobra.Command {
	var wait bool
	cmd := a.cmd("stop", "stop the home's daemon", `Stops the home's daemon and waits until it has ended. Nothing is lost: the next command starts a
daemon that goes on from there. What waits for you goes on waiting.

An agent that is working is interrupted, and what it had done is kept in a checkpoint. Then a named
agent goes on where it was; a command begins anew on a fresh copy. With --wait all work comes to its
end first, the turn of an assistant too. A change that waits for a person is not waited for.

While a change of the host is on trial it is refused: confirm that or roll it back first.`,
		"  sallyport daemon stop\n  sallyport daemon stop --wait", exactly(), func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			home, err := a.home()
			if err != nil {
				return err
			}
			c, err := a.Connect(ctx, home, false)
			if errors.Is(err, client.ErrNoDaemon) {
				if !a.document(map[string]any{"stopped": false, "home": home}) {
					fmt.Fprintf(a.Out, "no daemon of %s runs\n", inert.Path(home))
				}
				return nil
			}
			if err := errors.Join(err, theirs(c, home)); err != nil {
				return err
			}
			d, err := waitForRest(ctx, a.Err, c, wait)
			if err != nil {
				return err
			}
			if err := stopDaemon(ctx, c, d); err != nil {
				return err
			}
			if !a.document(map[string]any{"stopped": true, "home": home, "pid": d.PID, "interrupted": d.Working}) {
				fmt.Fprintf(a.Out, "daemon of %s stopped\n", inert.Path(home))
				if d.Working > 0 {
					fmt.Fprintf(a.Out, "interrupted: %s; the next command goes on with it\n", client.Doing(d))
				}
			}
			return nil
		})
	cmd.Flags().BoolVar(&wait, "wait", false, "first let all work come to its end")
	return cmd
}

// restPoll is how often a daemon is asked whether it rests.
const restPoll = 300 * time.Millisecond

// waitForRest returns what the daemon says of itself; if wait is set, once it does nothing. What is
// waited for is said when it changes.
func waitForRest(ctx context.Context, w io.Writer, c *client.Client, wait bool) (api.Daemon, error) {
	said, idle := "", 0
	tick := time.NewTicker(restPoll)
	defer tick.Stop()
	for {
		d, err := client.Call(ctx, c, api.DaemonShow, api.Nothing{})
		if err != nil || !wait {
			return d, err
		}
		doing, err := underWay(ctx, c, d)
		if doing == "" {
			idle++
		} else {
			idle = 0
		}
		if err != nil || idle > 1 { // once may be between two steps
			return d, err
		}
		if doing != said && doing != "" {
			said = doing
			fmt.Fprintf(w, "waiting for %s\n", doing)
		}
		select {
		case <-ctx.Done():
			return d, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// underWay says in words what a daemon does, for changes or else in conversations; "" = nothing.
func underWay(ctx context.Context, c *client.Client, d api.Daemon) (string, error) {
	if d.Working > 0 {
		return client.Doing(d), nil
	}
	turns, err := inTurn(ctx, c)
	switch {
	case err != nil && d.API != api.Version: // of another version no more is known than that
		return "", nil
	case err != nil || len(turns) == 0:
		return "", err
	case len(turns) == 1:
		return fmt.Sprintf("the turn of %s in %s", inert.Line(turns[0].Group), inert.Line(turns[0].ID)), nil
	}
	return fmt.Sprintf("the turn of %s in %s and %d more", inert.Line(turns[0].Group), inert.Line(turns[0].ID), len(turns)-1), nil
}

// inTurn are the chats of which the assistant is in the middle of a turn.
func inTurn(ctx context.Context, c *client.Client) ([]api.Chat, error) {
	all, err := client.Call(ctx, c, api.ChatList, api.InGroup{})
	return slices.DeleteFunc(all, func(t api.Chat) bool { return !t.Working }), err
}

// stopDaemon asks a daemon to end and waits until its process has. A descriptor of the
// process, unlike its number, never comes to mean another.
func stopDaemon(ctx context.Context, c *client.Client, d api.Daemon) error {
	fd, err := unix.PidfdOpen(d.PID, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("look at the daemon's process %d: %w", d.PID, err)
	}
	if err := client.Do(ctx, c, api.DaemonStop, api.Nothing{}); err != nil {
		return err
	}
	if fd < 0 {
		return nil
	}
	defer unix.Close(fd) // nothing was written
	deadline := time.Now().Add(stopTime)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return problem.Errorf(problem.Unavailable, fmt.Sprintf("kill %d", d.PID), "the daemon %d did not end within %s", d.PID, stopTime)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the daemon's end: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}

func newDaemonRunCommand(a *app) *cobra.Command {
	var kept bool
	cmd := a.cmd("run", "run the daemon in the foreground, to see what it logs",
		`Serves the home in the foreground until it is stopped, by a signal or by "sallyport daemon stop". It
is there to see what the daemon logs. You hardly need it: any command that needs the daemon starts
one in the background, and a service manager runs "sallyport serve".

Like every daemon that a command starts, it ends by itself after 15 minutes without work and without
a command. While "sallyport serve" keeps the home, it is refused.

Exit status: 0 when it was stopped or had nothing to do, 75 if another daemon serves the home.`,
		"  sallyport daemon run --home /srv/sallyport", exactly(), func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			return a.Daemon(ctx, home, kept)
		})
	cmd.Flags().BoolVar(&kept, "kept", false, "a keeper has started it")
	_ = cmd.Flags().MarkHidden("kept") // it is no person's to say
	return cmd
}

// newDaemonRevertCommand is what a keeper runs; no person needs it.
func newDaemonRevertCommand(a *app) *cobra.Command {
	cmd := a.cmd("revert", "bring back what a failed change of the host has changed",
		`Brings the database and the files of the home back to how they were before a change of the host that
did not hold. The keeper runs it by the old programs, before the old host serves again.

Exit status: 0 when the old host can serve, 1 if the keeper is to try again, 5 if nothing goes back.`,
		"  sallyport daemon revert --home /srv/sallyport", exactly(), func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			return a.GoBack(ctx, home)
		})
	cmd.Hidden = true
	return cmd
}

func newServeCommand(a *app) *cobra.Command {
	return a.cmd("serve [HOME]", "keep a home up in the foreground",
		`Serves a home in the foreground and logs to the terminal. It becomes sallyport-keeper, a small
program whose one business is the daemon of the home: it starts it, starts it again if it dies, and
ends one that hangs. While it runs no other daemon is started for the home, and the daemon stays
while there is nothing to do. Ctrl-C, a signal of a service manager and "sallyport daemon stop" end
both in good order, and what was accepted goes on with the next daemon. Without HOME it serves the
home that every command uses. A daemon that a command has started ends for it; while an agent is at
work there, for a change or in a conversation, serve is refused.

The daemon runs from a copy of this program in the home, a release: see "sallyport release". A
sallyport of another build than the one that served the home last becomes the current release. The
same one leaves the home at the release that it was brought to since.

Exit status: 0 when it was stopped, 75 if another daemon serves the home.`,
		"  sallyport serve\n  sallyport serve ~/assistants", atMost("HOME"), func(cmd *cobra.Command, words []string) error {
			home, err := a.namedHome(words)
			if err != nil {
				return err
			}
			a.about(home)
			if err := a.mistyped(home); err != nil {
				return err
			}
			return a.Keep(cmd.Context(), home, func() error { return makeWay(cmd.Context(), a, home) })
		})
}

// makeWay ends a daemon that a command has started and that does nothing: the keeper starts the next one. Of any other who serves the home the
// keeper says so.
func makeWay(ctx context.Context, a *app, home string) error {
	c, err := a.Connect(ctx, home, false)
	if err != nil { // none runs, or one that does not answer this program
		return nil
	}
	d, err := client.Call(ctx, c, api.DaemonShow, api.Nothing{})
	if err != nil || d.Keeper != nil || d.Working > 0 {
		return nil
	}
	if turns, err := inTurn(ctx, c); err != nil || len(turns) > 0 {
		return nil
	}
	fmt.Fprintln(a.Err, "the daemon that a command has started ends; sallyport serve starts the next one")
	return stopDaemon(ctx, c, d)
}
