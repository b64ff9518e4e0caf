package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeShowCommand(a *app) *cobra.Command {
	return a.remote("show CHANGE", "tell the story of a change, from the request to where it stands",
		`Tells the story of a change: what was asked and by whom, what it does to the files, its checks, what
happened when, what it asked of the network, what its models used, and where it stands. The last
lines name the commands to run next, and the identity of its agent's session.

Without an id it shows the one change that is open, or else the only one of them that is under way.`,
		`  sallyport change show
  sallyport change show chg-1a2b3c4d
  sallyport change show chg-1a2b3c4d --json`, oneChange,
		func(ctx context.Context, c *client.Client, words []string) error {
			d, err := client.Call(ctx, c, api.ChangeShow, words[0])
			if err != nil || a.document(d) {
				return err
			}
			entries, err := client.Call(ctx, c, api.AuditList, api.Entries{Change: words[0]})
			if err != nil {
				return err
			}
			printStory(a, a.sheet(a.Out), d, entries)
			return nil
		})
}

// printStory tells a change from its request to where it stands.
func printStory(a *app, s sheet, d api.Detail, entries []api.Entry) {
	c := d.Change
	s.line("%s  %s  %s", s.bold(c.ID), s.state(c.State), s.dim("moved "+ago(c.Moved, s.now)))
	printRequest(s, c, d.Proposal)
	if p := d.Proposal; p != nil {
		s.line("")
		s.line("what it does:")
		printBanner(s, p.Card)
		printEffect(s, p.Card)
		if c.State == api.AwaitingApproval {
			printAhead(s, p.Card)
			printWords(s, "the agent says, in its own words, which nobody checked:", p.Card.AgentSays)
		}
	} else if n := len(d.Checkpoints); n > 0 {
		s.line("")
		s.line("what its last checkpoint holds:")
		printCheckpoint(s, d.Checkpoints[n-1])
	}
	printHistory(s, d, entries)
	printNetwork(s, d.Asked)
	printUsage(s, d.Usage)
	printTrial(s, c)
	printStanding(a, s, d)
}

// printRequest shows the request; p is what has come of it, nil = nothing yet.
func printRequest(s sheet, c api.Change, p *api.Proposal) {
	words := inert.Block(strings.TrimSpace(c.Text), 2<<10)
	if c.Dev != "" { // no person's
		s.line("the agent of the group %s asks, in its own words, which nobody checked:", inert.Line(c.Group))
		s.rows("  > ", "  > ", words)
	} else {
		for line := range strings.Lines(words) {
			s.line("  %s", strings.TrimRight(line, "\n"))
		}
	}
	s.line("")
	s.line("asked by %s, for %s in %s", inert.Line(c.By.Name), inert.Path(c.Branch), inert.Path(c.Repo))
	switch {
	case c.Release != "":
		s.line("it has the host run by release %s; no agent makes it", short(c.Release))
	case c.Kind == "swap" && c.Dev == "":
		s.line("it brings to the group %s what has moved in the template; no agent makes it", inert.Line(c.Group))
	case c.Dev != "" && p == nil: // what it reaches is not known yet
		s.line("%s makes it for the group %s", inert.Line(c.Dev), inert.Line(c.Group))
	case c.Dev != "":
		what := map[string]string{"host": "the host", "combined": "the host, and what the group " + c.Group + " runs"}[p.Card.Class]
		s.line("it changes %s; %s makes it", inert.Line(cmp.Or(what, "what the group "+c.Group+" runs")), inert.Line(c.Dev))
	}
	if c.Base != "" {
		s.line("from commit %s", short(c.Base))
	}
	if len(c.Argv) > 0 {
		s.line("program: %s", clip(inert.Command(c.Argv), 400))
	}
	if c.Reverts != "" {
		s.line("undoes %s", c.Reverts)
	}
	for _, l := range []struct {
		name  string
		words []string
	}{{"may change", c.Allow}, {"may not change", c.Forbid}, {"set up by", c.Setup}, {"must pass", c.Checks}, {"may reach", c.Egress}} {
		for _, w := range l.words {
			s.line("%s: %s", l.name, inert.Line(w))
		}
	}
}

// printHistory shows the change's audit with how each session ended, in the order it happened.
func printHistory(s sheet, d api.Detail, entries []api.Entry) {
	type moment struct {
		at   time.Time
		text string
	}
	moments := make([]moment, 0, len(entries)+len(d.Sessions))
	for _, e := range entries {
		text := inert.Line(e.Verb)
		if e.Subject != "" && e.Subject != e.Change {
			text += " " + inert.Line(e.Subject)
		}
		if e.Actor.Kind != "host" {
			text += " by " + inert.Line(e.Actor.Name)
		}
		if e.Reason != "" {
			text += ": " + clip(inert.Line(e.Reason), 200)
		}
		moments = append(moments, moment{e.At, text})
	}
	slices.SortStableFunc(moments, func(x, y moment) int { return x.at.Compare(y.at) })
	if len(moments) == 0 {
		return
	}
	s.line("")
	s.line("what happened:")
	day := ""
	for _, m := range moments {
		local := m.at.Local()
		if today := local.Format("2006-01-02"); today != day {
			day = today
			s.line("  %s", s.dim(day))
		}
		s.line("  %s  %s", local.Format("15:04:05"), m.text)
	}
	for _, run := range d.Sessions {
		s.line("  session %s: %s", inert.Line(run.ID), exitText(run, d.Change.State, s.now))
	}
}

// exitText says how a session ended.
func exitText(run api.Session, state string, now time.Time) string {
	switch {
	case run.Ended == nil && !api.Final(state):
		return "working since " + duration(now.Sub(run.Started))
	case run.Exit == nil && run.Reason != "":
		return clip(inert.Line(run.Reason), 200)
	case run.Exit == nil || run.Ended == nil:
		return "interrupted: nobody saw its end"
	}
	took := " after " + duration(run.Ended.Sub(run.Started))
	if run.Reason != "" { // of its last turn
		took += ": " + clip(inert.Line(run.Reason), 200)
	}
	switch e := run.Exit; {
	case run.Proposed:
		return "ended" + took
	case e.Limit != nil:
		return fmt.Sprintf("ended by the limit %s of %s (%s)%s", inert.Line(e.Limit.Name), inert.Line(e.Limit.Value), inert.Line(e.Limit.Observed), took)
	case e.Signal != "":
		return "ended by " + inert.Line(e.Signal) + took
	default:
		return fmt.Sprintf("exit status %d%s", e.Code, took)
	}
}

// printStanding says where the change is now and what can be done about it.
func printStanding(a *app, s sheet, d api.Detail) {
	c := d.Change
	s.line("")
	switch c.State {
	case api.Finalized:
		printLanded(a, s, d)
		return
	case api.AwaitingApproval:
		if c.Problem != "" {
			s.line("%s %s", s.red("not landed:"), inert.Line(c.Reason))
		}
		printWaiting(a, s, c.ID, d.Proposal)
		return
	case api.RolledBack:
		printRolledBack(s, c)
		return
	case api.InTrial:
		if c.Trial.Asks() {
			s.line("%s", inert.Line(c.Trial.Say))
			printTrialQuestion(a, s, c)
			return
		}
	}
	if c.Reason != "" {
		s.line("%s: %s", s.state(c.State), inert.Line(c.Reason))
	}
	if p := d.Progress; p != nil {
		s.line("so far: %s changed, %s of output", count(p.FilesChanged, "file"), size(p.OutputBytes))
	}
	switch {
	case c.Next == "sallyport change show "+c.ID: // this is what it shows
	case c.Next != "":
		s.line("next: %s", inert.Line(a.command(c.Next)))
	case !api.Final(c.State):
		s.line("next: %s", a.command("sallyport change watch "+c.ID))
	}
	if label, command := wayToTakeUp(a, d); command != "" {
		s.line("%s: %s", label, inert.Line(command))
	}
}
