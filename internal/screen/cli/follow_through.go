package cli

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// followThrough follows a change to where it rests, asks if mode says so, and tells the outcome. What was
// approved beforehand is shown all the same.
func followThrough(ctx context.Context, a *app, c *client.Client, change string, how manner) error {
	if c.Guest() {
		return reportKept(ctx, a, c, change)
	}
	for {
		d, err := follow(ctx, a, c, change, how)
		if errors.Is(err, errLeft) {
			return reportLeft(a, change)
		}
		if err != nil {
			return err
		}
		if how.approve == "yes" && d.Landing != nil && d.Proposal != nil && !a.json {
			printCard(a.sheet(a.Out), change, *d.Proposal)
		}
		if how.approve != "ask" || d.Change.State != api.AwaitingApproval {
			return reportOutcome(a, d, how)
		}
		again, err := askApproval(ctx, a, c, change, api.Approve{})
		if err != nil {
			return err
		}
		if !again {
			return ended(exitWaiting)
		}
	}
}

// reportKept says what an answer about a change in a home of another user's has come to. What follows is told in the conversation.
func reportKept(ctx context.Context, a *app, c *client.Client, change string) error {
	return tell(ctx, a, c, api.ApprovalShow, change, func(s sheet, q api.Question) {
		if q.Approval.Decision == api.Pending {
			s.line("%s has your yes, and waits for another's", change)
		} else {
			s.line("%s %s", change, q.Approval.Decision)
		}
		s.line("  what comes of it is told in the conversation: %s", a.command("sallyport chat host"))
	})
}

// reportLeft says how to see a change again that goes on without this terminal.
func reportLeft(a *app, change string) error {
	if a.json {
		code := exitInterrupted
		a.line(event{Event: "left", Exit: &code})
		return exit(exitInterrupted)
	}
	fmt.Fprintf(a.Err, "%s goes on without this terminal\nnext: %s\n", change, a.command("sallyport change watch "+change))
	return exit(exitInterrupted)
}

// mannerOf is how a new piece of work is followed: who is asked to approve is asked to confirm.
func mannerOf(p Program, approve string, output bool) manner {
	how := manner{approve: approve, output: output}
	if approve == "later" {
		how.silent = p.whyNotAsked()
	}
	if approve == "ask" {
		how.trial = trialAsked
	}
	return how
}

// approveMode reads --approve; without it a person who can be asked is.
func approveMode(a *app, flag string) (string, error) {
	canAsk := a.interactive() && !a.json
	switch flag {
	case "":
		if canAsk {
			return "ask", nil
		}
		return "later", nil
	case "ask":
		if !canAsk {
			return "", problem.Errorf(problem.Usage, "sallyport run --help", "--approve ask needs a terminal to ask at (and no --json); use later or yes")
		}
		return flag, nil
	case "yes", "later":
		return flag, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport run --help", "--approve %q is none of ask, yes, later", flag)
}

// reportAccepted tells what was taken on, and which of the person's work is not in the copy.
func reportAccepted(a *app, c api.Change) {
	if a.json {
		a.line(event{Event: "accepted", Change: &c})
		return
	}
	s := a.sheet(a.Err)
	s.line("%s %s, on %s in %s", s.bold(c.ID), wish(c), inert.Path(c.Branch), inert.Path(c.Repo))
	printUncommitted(s, c.Uncommitted, "not in the copy (--include-dirty would take them)")
	printUncommitted(s, c.Included, "in the copy; what is changed in them lands once you have committed them")
}

// noteUnloaded names the files of the home that do not load: what they say now does not count for the change.
func noteUnloaded(ctx context.Context, a *app, c *client.Client) {
	if a.json {
		return
	}
	d, err := client.Call(ctx, c, api.DaemonShow, api.Nothing{})
	if err != nil {
		return // what the change comes to is said all the same
	}
	s := a.sheet(a.Err)
	for _, u := range d.Settings {
		s.line("%s %s: %s", s.yellow("note:"), inert.Line(u.File), inert.Line(unloadedLine(u.Since, s.now, u.Problem, u.InForce)))
		s.line("  to correct it: %s", inert.Line(u.Next))
	}
}

// printUncommitted names a person's uncommitted paths.
func printUncommitted(s sheet, paths []string, what string) {
	n := len(paths)
	if n == 0 {
		return
	}
	const shown = 10
	s.line("%s %s of yours, uncommitted, %s %s:", s.yellow("note:"), count(n, "path"), isAre(n), what)
	for i, path := range paths {
		if i == shown {
			s.line("  … and %d more", n-shown)
			break
		}
		s.line("  %s", inert.Path(path))
	}
}
