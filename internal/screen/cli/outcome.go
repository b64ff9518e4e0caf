package cli

import (
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// reportOutcome tells where a change came to rest, and returns the exit status for it.
func reportOutcome(a *app, d api.Detail, how manner) error {
	code := exitOf(d.Change)
	late := how.wanted == api.RolledBack && d.Change.State == api.Finalized // whoever confirmed it was quicker
	switch {
	case d.Change.State == how.wanted:
		code = exitDone
	case late:
		code = exitError
	}
	if a.json {
		a.line(event{Event: "result", Detail: &d, Exit: &code})
		return ended(code)
	}
	c, s := d.Change, a.sheet(a.Out)
	switch c.State {
	case api.Finalized:
		printLanded(a, s, d)
		if late {
			a.say(c.ID+" was not rolled back: it had been confirmed when you asked", "sallyport change show "+c.ID)
		}
	case api.InTrial:
		if c.Trial.Asks() {
			printTrialQuestion(a, s, c)
		} else {
			reportEnd(a, c)
		}
	case api.RolledBack:
		printRolledBack(s, c)
	case api.AwaitingApproval:
		if c.Problem != "" { // landing was refused; it waits again
			if p := d.Proposal; p != nil && p.Card.ChecksOn != nil {
				printChecks(s, p.Card)
			}
			if p := d.Proposal; p != nil && p.Card.MarksOn != nil {
				printMarks(s, p.Card)
			}
			a.say(fmt.Sprintf("%s was not landed: %s", c.ID, c.Reason), c.Next)
		} else if d.Proposal != nil {
			printCard(s, c.ID, *d.Proposal)
		}
		printWaiting(a, s, c.ID, d.Proposal)
		if how.silent != "" {
			s.line("  you are not asked here: %s", how.silent)
		}
		if p := d.Proposal; how.approve == "yes" && c.Problem == "" && p != nil && (p.Card.MarksWord || p.Card.Typed != "") {
			s.line("  --approve yes was said before anybody saw the card, and does not cover what asks for a word of its own")
		}
	default:
		if d.Proposal != nil && c.State == api.Failed {
			printChecks(s, d.Proposal.Card) // with the last words of the one that said no
		}
		reportEnd(a, c)
		if c.State == api.Blocked {
			printBlocked(a, c.ID)
		}
	}
	printWayToTakeUp(a, d)
	return ended(code)
}

// printRolledBack says what took a change back.
func printRolledBack(s sheet, c api.Change) {
	by := ""
	if c.RevertedBy != "" {
		by = " by " + c.RevertedBy
	}
	s.line("%s %s%s", c.ID, s.yellow("rolled back"), by)
	if t := c.Trial; t != nil && t.Say != "" && by == "" {
		s.line("%s", inert.Line(t.Say))
	}
}

// printLanded names branch and commit, and the way back.
func printLanded(a *app, s sheet, d api.Detail) {
	c := d.Change
	if d.Landing == nil || d.Landing.Commit == "" {
		reason := c.Reason
		if reason == "" {
			reason = "nothing was changed"
		}
		s.line("%s %s: %s", c.ID, s.green("ended"), inert.Line(reason))
		return
	}
	what := ""
	if p := d.Proposal; p != nil && p.Card.FilesTotal == 0 {
		s.line("%s %s: no file changed", c.ID, s.green("landed"))
		if c.Reason != "" {
			s.rows("  "+s.yellow("note:")+" ", "        ", inert.Line(c.Reason))
		}
		if h := p.Card.Host; h != nil && h.Release != "" {
			s.line("  the host runs by release %s; the one before: %s", short(h.Release), a.command("sallyport upgrade previous"))
		}
		return
	} else if p != nil && uncounted(p.Card) {
		what = ": " + count(p.Card.FilesTotal, "file")
	} else if p != nil {
		what = fmt.Sprintf(": %s, +%d -%d", count(p.Card.FilesTotal, "file"), p.Card.Added, p.Card.Removed)
	}
	if l := d.Landing; l.Commit == l.Head { // the same was landed meanwhile, or committed
		s.line("%s %s: %s has all of it already, as of %s, and nothing was landed", c.ID, s.green("ended"), inert.Path(l.Branch), short(l.Commit))
		return
	}
	s.line("%s %s on %s as %s%s", c.ID, s.green("landed"), inert.Path(d.Landing.Branch), short(d.Landing.Commit), what)
	if l := d.Landing; l.Checked != "" && d.Proposal != nil && l.Tree != d.Proposal.Tree {
		s.line("  %s had moved: the checks ran again, and passed, on what landed (tree %s)", inert.Path(l.Branch), short(l.Checked))
	}
	if c.Reason != "" {
		s.rows("  "+s.yellow("note:")+" ", "        ", inert.Line(c.Reason))
	}
	if c.Reverts != "" {
		s.line("  %s is rolled back", c.Reverts)
		return
	}
	s.line("  roll back: %s", a.command("sallyport rollback "+c.ID))
}

// printWaiting says how to answer.
func printWaiting(a *app, s sheet, change string, p *api.Proposal) {
	s.line("%s %s for a person", change, s.yellow("waits"))
	approve := "sallyport approve " + change
	if p != nil && p.Card.MarksWord {
		approve += " --marked"
	}
	if p != nil && p.Card.Typed != "" {
		approve += " --typed '" + p.Card.Typed + "'"
	}
	redo := p != nil && p.Card.Kind == "edit" && p.Card.Moved != nil
	if redo && len(p.Card.Drift) > 0 { // as it stands it does not land
		s.line("  redo:    %s", a.command("sallyport change redo "+change))
	}
	s.line("  approve: %s", a.command(approve))
	s.line("  refuse:  %s", a.command("sallyport refuse "+change+` --reason "…"`))
	if p != nil && p.Card.Reworks {
		s.line("  change:  %s", a.command("sallyport change rework "+change+` "…"`))
	}
	s.line("  look:    %s", a.command("sallyport change diff "+change))
	if redo && len(p.Card.Drift) == 0 && p.Card.ChecksOn != nil {
		s.line("  redo:    %s", a.command("sallyport change redo "+change))
	}
}

// printBlocked says what a person can do for an agent that the host stopped (SV-091).
func printBlocked(a *app, change string) {
	s := a.sheet(a.Err)
	s.line("  review state:     %s", a.command("sallyport checkpoint list "+change))
	s.line("  force checkpoint: %s", a.command("sallyport checkpoint now "+change))
	s.line("  terminate agent:  %s", a.command("sallyport change cancel "+change))
}

// reportEnd says why a change came to nothing.
func reportEnd(a *app, c api.Change) {
	text := c.ID + " " + c.State
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	next := c.Next
	if next == "" {
		next = "sallyport change show " + c.ID
	}
	a.say(text, next)
}

// wayToTakeUp is the command that takes up a change that has ended, or stands, and what that is called; "" if none does (RM-026).
func wayToTakeUp(a *app, d api.Detail) (label, command string) {
	c := d.Change
	if c.Kind == "revert" || c.Kind == "group" || c.Kind == "swap" && (c.Dev == "" || api.Final(c.State)) { // no agent works on it, or none goes on
		return "", ""
	}
	switch c.State {
	case api.Failed, api.Cancelled, api.Rejected, api.Paused, api.Blocked:
		if n := len(d.Sessions); n > 0 {
			if _, err := id.ParseSession(d.Sessions[n-1].ID); err == nil {
				return "resume", a.command("sallyport resume " + d.Sessions[n-1].ID)
			}
		} else if redo := "sallyport change redo " + c.ID; api.Final(c.State) && c.Next != redo { // its agent has not begun
			return "begin again", a.command(redo)
		}
	}
	return "", ""
}

// printWayToTakeUp says how a change can go on, if it can.
func printWayToTakeUp(a *app, d api.Detail) {
	if label, command := wayToTakeUp(a, d); command != "" && !a.json {
		fmt.Fprintf(a.Err, "%s: %s\n", label, inert.Line(command))
	}
}
