package supervise

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

// Terminal is the far side of an interactive shell. Whoever made the pty holds its
// master, sets its size there, and closes both ends.
type Terminal struct {
	Slave sandbox.Terminal
	Raw   bool // whoever reads the master passes on what drives a terminal; else nothing but text is shown
}

// shells are what a person gets to type into: the first that is there. The home's image need not have more than sh.
var shells = [][]string{{"/bin/bash", "--noprofile", "--norc", "-i"}, {"/bin/sh", "-i"}}

// Shell runs an interactive shell in the change's sandbox and returns its exit status.
//
// While an agent works it stands beside the agent, in the same sandbox. At any other
// time it gets a sandbox of the same kind on a throw-away copy of what the change holds,
// because what was checked, shown or landed does not change any more.
func (ss *Supervisors) Shell(ctx context.Context, changeID id.Change, by audit.Actor, t Terminal) (int, error) {
	if err := ss.Owner.MayDecide(by); err != nil {
		return 0, err
	}
	row, err := ss.Row(ctx, changeID)
	if err != nil {
		return 0, err
	}
	if row.Base == "" {
		return 0, problem.Errorf(problem.Conflict, "sallyport change watch "+string(changeID), "%s has no workspace yet: it is %s", changeID, row.State.Words())
	}
	live := ss.watching(changeID)
	if at := row.State; live != nil && (at == change.Paused || at == change.Blocked) {
		return 0, problem.Errorf(problem.Conflict, "sallyport change resume "+string(changeID),
			"%s is %s: everything in its sandbox stands still, and so would a shell", changeID, at)
	}
	said := row
	said.Reason = "" // it is about what the row came to
	if err := ss.DB.InTx(ctx, func(tx store.Tx) error {
		return ss.Append(ctx, tx, &said, ledger.Move{By: by}, "opened a shell", ledger.Now())
	}); err != nil {
		return 0, err
	}
	env := t.env(changeID)
	if live != nil && !keeps(ctx, live.process, t) {
		t.say("this shell is on a throw-away copy, because this machine cannot protect your terminal from the agent (sallyport doctor); what you change here is not part of the change")
		return ss.shellOnCopy(ctx, row, env, t)
	}
	if live != nil {
		t.say("this shell runs beside the agent: what you change in the workspace becomes part of " + string(changeID))
		code, err := attach(ctx, live.process, env, t)
		if errors.Is(err, sandbox.ErrEnded) {
			err = problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID),
				"the agent of %s ended, and this shell with it; what both wrote until then is in the change", changeID)
		}
		return code, err
	}
	t.say("this shell is on a throw-away copy, because no agent of " + string(changeID) + " works now; what you change here is not part of the change")
	return ss.shellOnCopy(ctx, row, env, t)
}

// env is what a shell gets beside what its sandbox has. What it reads by itself before a person has typed anything must
// not be a file of the agent's, and what is typed is kept in none.
func (t Terminal) env(change id.Change) []string {
	term := "TERM=dumb"
	if t.Raw {
		term = "TERM=xterm-256color"
	}
	return []string{term, "PS1=" + string(change) + ":\\w\\$ ", "INPUTRC=/dev/null", "ENV=/dev/null", "HISTFILE=/dev/null"}
}

// keeps reports whether a sandbox's own program is kept from a terminal beside it.
func keeps(ctx context.Context, p sandbox.Process, t Terminal) bool {
	tried, err := p.Attach(ctx, []string{"true"}, nil, "", t.Slave)
	if err != nil {
		return !errors.Is(err, sandbox.ErrShared) // what else is wrong, the shell says
	}
	_, _ = tried.Wait() // that it began is all there is to know
	return true
}

// say writes a line of the host's before anything in the sandbox can.
func (t Terminal) say(line string) {
	if t.Slave != nil {
		_, _ = t.Slave.WriteString("sallyport: " + line + "\n") // who has left the terminal misses nothing else
	}
}

// shellOnCopy starts a sandbox that does nothing but hold the shell.
func (ss *Supervisors) shellOnCopy(ctx context.Context, row change.Row, env []string, t Terminal) (int, error) {
	w, err := ss.Opener.Open(ctx, row)
	if err != nil {
		return 0, err
	}
	commit := git.OID(row.Base)
	if all, err := ss.Checkpoints(ctx, row.ID); err != nil {
		return 0, err
	} else if n := len(all); n > 0 {
		commit = all[n-1].Commit
	}
	shown, err := ss.showSetUp(ctx, w, commit)
	if err != nil {
		return 0, err
	}
	defer ss.Opener.Discard(ctx, shown)
	spec, err := ss.Runtime.Environment(ctx, w.Subject(), live.Way{}, false)
	if err != nil {
		return 0, err
	}
	spec.ID = string(id.NewSession("shell"))
	spec.Tree, spec.Argv = shown.Tree, []string{"sleep", "infinity"}
	process, err := ss.Runtime.Sandbox.Start(ctx, spec)
	if err != nil {
		return 0, err
	}
	defer func() {
		process.Kill()
		if _, err := process.Wait(); err != nil {
			ss.Log.Warn("a shell's sandbox did not end cleanly", "change", row.ID, "error", err)
		}
	}()
	return attach(ctx, process, append(spec.Env, env...), t)
}

// showSetUp shows a commit, with what the setup left where the workspace of the change shows it too and it fits.
func (ss *Supervisors) showSetUp(ctx context.Context, w work.Work, commit git.OID) (workspace.Workspace, error) {
	setup := layer.Stock{}
	if ws, err := ss.Workspaces.Open(ctx, w.Spec); err == nil && ws.Spec.Setup != "" {
		left, err := ss.Workspaces.StockOf(ws)
		if err != nil {
			return ws, err
		}
		tree, err := w.Host.Tree(ctx, commit)
		if err != nil {
			return ws, err
		}
		fits, err := layer.Fits(ctx, w.Host, left, tree)
		if err != nil {
			return ws, err
		}
		if fits {
			setup = left
		}
	}
	return ss.Opener.Show(ctx, w, setup, commit)
}

// attach runs a shell beside what a sandbox runs already.
func attach(ctx context.Context, p sandbox.Process, env []string, t Terminal) (int, error) {
	var shell sandbox.Attached
	var err error
	for _, argv := range shells {
		if shell, err = p.Attach(ctx, argv, env, sandbox.Mountpoint, t.Slave); problem.KindOf(err) != problem.NotFound {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("open a shell in the sandbox: %w", err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-ctx.Done():
			shell.Kill()
		case <-done:
		}
	}()
	exit, err := shell.Wait()
	return exit.Code, err
}
