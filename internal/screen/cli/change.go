package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeListCommand(a *app) *cobra.Command {
	var repo string
	var only []string
	var limit int
	cmd := a.cmd("list", "list the changes of this home, newest first",
		`Lists the changes of this home, newest first: id, state, when the state was reached, branch,
repository and request. At most 100 are listed unless --limit says otherwise.

The states:
  requested, preparing, working, submitted   under way; nothing is asked of you
  paused, blocked                            the agent stands still until "change resume"
  awaiting_approval                          waits for your "approve" or "refuse"
  landing                                    approved, and about to be on the branch
  in_trial                                   landed, and waits for your "confirm" or "rollback"
  finalized                                  landed and kept, or ended with nothing to land
  rolled_back                                landed, and was rolled back
  rollback_failed                            landed, and cannot be rolled back yet; tried again
  rejected, cancelled                        ended by a person, without landing
  failed                                     ended with a reason that "change show" tells

Next: "sallyport change show CHANGE" tells the story of one.`,
		`  sallyport change list
  sallyport change list --repo . --state awaiting_approval
  sallyport change list --json`,
		exactly(), func(cmd *cobra.Command, _ []string) error {
			if err := knownStates(only); err != nil {
				return err
			}
			f := api.Filter{States: only, Limit: limit}
			if err := filterByRepo(a.Program, cmd, repo, &f); err != nil {
				return err
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			return tell(cmd.Context(), a, c, api.ChangeList, f, func(_ sheet, rows []api.Change) {
				printChanges(a.Out, rows)
			})
		})
	cmd.Flags().StringVar(&repo, "repo", "", "only changes of the repository that holds `DIR`")
	cmd.Flags().StringArrayVar(&only, "state", nil, "only changes in this `STATE`; repeatable")
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N` (default 100)")
	return cmd
}

// printChanges writes rows as a table.
func printChanges(w io.Writer, rows []api.Change) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no changes")
		return
	}
	now := time.Now()
	_ = table(w, "CHANGE\tSTATE\tMOVED\tBRANCH\tREPOSITORY\tREQUEST", rows, func(t io.Writer, c api.Change) { // a reader who left has seen enough
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, stands(c), ago(c.Moved, now), clip(inert.Path(c.Branch), 24),
			clip(inert.Path(c.Repo), 40), clip(wish(c), 60))
	})
}

// watchManner is how a person watches: to the end.
func watchManner(a *app, output bool) manner {
	how := manner{output: output, patient: true, trial: trialStay}
	if a.interactive() && !a.json {
		how.trial = trialAsked
	}
	return how
}

func newChangeWatchCommand(a *app) *cobra.Command {
	var output bool
	cmd := a.remote("watch CHANGE", "follow a change until it has ended or waits for you",
		`Shows a change from where it stands now until nothing more happens by itself: it has ended, or it
waits for you. At a terminal, o shows or hides the agent's output, and Ctrl-C asks whether to leave
the change running or to cancel it. A change that you leave goes on without you.

If the daemon has died, it is started again. The key of the agent's model is read from your
environment and handed to it.

When the change is on trial, you are asked to confirm at a terminal. Elsewhere you are told how long
it waits and what ends that, and it is shown until the trial is decided.

Exit status: that of where the change came to rest; 130 if you left it running.`,
		"  sallyport change watch chg-1a2b3c4d\n  sallyport change watch chg-1a2b3c4d --output",
		oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			if err := giveKeys(ctx, a.Getenv, c, words[0]); err != nil {
				return err
			}
			return followThrough(ctx, a, c, words[0], watchManner(a, output))
		})
	cmd.Flags().BoolVar(&output, "output", false, "show what the program prints, too")
	return cmd
}

func newChangeDiffCommand(a *app) *cobra.Command {
	return a.remote("diff CHANGE", "show what a change does to the files, as a diff",
		`Shows what a change does to the files, as a unified diff against the commit that it started from:
what is proposed, or was landed. Before there is a proposal it shows the last checkpoint. Nothing is
decided by it.

At a terminal it opens in your pager ($PAGER, else less). Control characters are shown escaped, and
secrets by their kind. For a patch that applies, use "sallyport change export".`,
		`  sallyport change diff
  sallyport change diff chg-1a2b3c4d`, oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			return a.text(ctx, "diff", func(w io.Writer) error { return client.Copy(ctx, c, api.ChangeDiff, words[0], w) })
		})
}

func newChangeExportCommand(a *app) *cobra.Command {
	return a.remote("export CHANGE", "write a change as a patch that git apply takes",
		`Writes to standard output what a change does, as a patch that "git apply" takes: byte for byte, with
binary data. Send it to a file; at a terminal control characters are escaped, and it would not
apply. Nothing lands by it.

Use it to keep the work of a change that did not land, or to apply it by hand elsewhere.`,
		"  sallyport change export chg-1a2b3c4d > change.patch && git apply --index change.patch", oneChange,
		func(ctx context.Context, c *client.Client, words []string) error {
			write := func(w io.Writer) error { return client.Copy(ctx, c, api.ChangeExport, words[0], w) }
			if _, ok := terminal(a.Out); ok || a.json {
				return a.text(ctx, "patch", write)
			}
			n := counting{w: a.Out}
			err := write(&n)
			if err == nil && n.bytes == 0 {
				fmt.Fprintf(a.Err, "%s changes no file: the patch is empty\n", words[0])
			}
			return err
		})
}

// counting counts what is written.
type counting struct {
	w     io.Writer
	bytes int
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += n
	return n, err
}

func newChangeLogCommand(a *app) *cobra.Command {
	var session string
	cmd := a.remote("log CHANGE", "show what the agent or program printed while it worked",
		`Shows the transcript of a change: what its agent or program printed while it worked, without
secrets. A row of the program's begins with |, one of sallyport's own with [sallyport]. At a
terminal it opens in your pager.

If the change has had several sessions, the last one is shown. "sallyport change show CHANGE" lists
them, and --session names another. If its setup failed before any session began, what the setup
printed is shown. With --json each recorded line is one JSON object.`,
		`  sallyport change log
  sallyport change log chg-1a2b3c4d
  sallyport change log chg-1a2b3c4d --session sh-1a2b3 --json`,
		oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			return a.transcript(ctx, func(w io.Writer) error {
				return client.Copy(ctx, c, api.ChangeTranscript, api.Transcript{Of: words[0], Session: session}, w)
			})
		})
	cmd.Flags().StringVar(&session, "session", "", "show the session with this `ID` (default: the last)")
	return cmd
}

func newChangeCancelCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.remote("cancel CHANGE", "stop a change and end it; nothing more of it lands",
		`Stops the work on a change and ends it. Nothing of it lands, and no file of yours changes. A
checkpoint keeps what the agent had done: "sallyport resume IDENTITY" lets it go on later.

What has landed is not undone by this; "sallyport rollback" does that. A change that landed and
could not be rolled back (rollback_failed) ends too: sallyport stops trying to roll it back, and
its files remain as they are then, which the message names: the new ones, or the old ones.

Exit status: 0 when it has ended so. If the change came to rest first, the status of that.`,
		`  sallyport change cancel chg-1a2b3c4d --reason "no longer needed"`, oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			if err := client.Do(ctx, c, api.ChangeCancel, api.Reason{Of: words[0], Reason: reason}); err != nil {
				return err
			}
			d, err := follow(ctx, a, c, words[0], manner{})
			if errors.Is(err, errLeft) {
				return reportLeft(a, words[0])
			}
			if err != nil {
				return err
			}
			given := d.Change.State == api.Failed && d.Change.Trial != nil
			if d.Change.State != api.Cancelled && !given { // it came to rest before it was heard
				return reportOutcome(a, d, manner{})
			}
			code := exitDone
			if a.json {
				a.line(event{Event: "result", Detail: &d, Exit: &code})
				return nil
			}
			if given {
				a.sheet(a.Out).line("%s: %s", words[0], d.Change.Reason)
				return nil
			}
			a.sheet(a.Out).line("%s cancelled", words[0])
			printWayToTakeUp(a, d)
			return nil
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit: `TEXT`")
	return cmd
}
