package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newCheckpointListCommand(a *app) *cobra.Command {
	return a.remote("list CHANGE", "list the recorded states of a change's work, oldest first",
		`Lists the checkpoints of a change, oldest first. A checkpoint is the agent's work as it was recorded
and judged at one moment. For each it says when it was taken and why, whether it is valid, how many
files differ from the checkpoint before it and from the base, and the rules that it breaks.

Next: "checkpoint diff" shows what is in one. "sallyport rollback --checkpoint ID" returns the
change's work to one.`,
		"  sallyport checkpoint list chg-1a2b3c4d\n  sallyport checkpoint list chg-1a2b3c4d --json", oneChange,
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.CheckpointList, words[0], func(s sheet, rows []api.Checkpoint) {
				if len(rows) == 0 {
					fmt.Fprintf(a.Out, "%s has no checkpoint yet\n", words[0])
					return
				}
				printTimeline(s, rows)
			})
		})
}

// printTimeline shows checkpoints down a line of time, a day named once.
func printTimeline(s sheet, rows []api.Checkpoint) {
	day := ""
	for _, r := range rows {
		at := r.At.Local()
		if today := at.Format("2006-01-02"); today != day {
			day = today
			s.line("%s", s.dim(day))
		}
		severity := ""
		if r.Severity != "" {
			severity = " (" + inert.Line(r.Severity) + ")"
		}
		s.line("%s  %s  %s%s, %s since the last, %d in all, %s", at.Format("15:04:05"), inert.Line(r.ID), s.mark(r.Status), severity,
			count(r.SinceLast, "file"), max(r.Total, len(r.Files)), why(r.Trigger))
		printViolations(s, r, violationsShown)
	}
}

// why says in words what made a checkpoint due.
func why(trigger string) string {
	switch trigger {
	case "end":
		return "at the end"
	case "demand":
		return "on demand"
	case "interval":
		return "as time passed"
	case "changes":
		return "after many changes"
	case "restored":
		return "after files were restored"
	}
	return inert.Line(trigger)
}

func newCheckpointShowCommand(a *app) *cobra.Command {
	return a.remote("show CHECKPOINT", "show the files of one checkpoint, and the rules that it breaks",
		`Shows the files that a checkpoint changes, whether it is valid, the rules that it breaks and what to
do about each, what was left out of it, and the commit that keeps it in the home's own copy of the
repository. "sallyport checkpoint list CHANGE" names the checkpoints of a change.`,
		`  sallyport checkpoint show ckpt-001-0123abcd
  sallyport checkpoint show ckpt-001-0123abcd --json`, oneCheckpoint, func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.CheckpointShow, words[0], func(s sheet, r api.Checkpoint) {
				printCheckpoint(s, r)
				s.line("")
				s.line("of %s, %s, taken %s (%s)", r.Change, inert.Line(r.Session), ago(r.At, s.now), inert.Line(r.Trigger))
				s.line("commit %s, tree %s, from %s", short(r.Commit), short(r.Tree), short(r.Base))
				if r.Previous != "" {
					s.line("after %s: %s since", inert.Line(r.Previous), count(r.SinceLast, "file")+" changed")
				}
			})
		})
}

func newCheckpointDiffCommand(a *app) *cobra.Command {
	return a.remote("diff [FROM] CHECKPOINT", "show what a checkpoint changes, as a diff",
		`Shows a unified diff. With one checkpoint it shows all that differs from the change's base. With two
it shows what differs between them: with the previous one as FROM, what the agent did since.

Control characters are shown escaped, and secrets by their kind. For a patch that applies, use
"sallyport checkpoint export".`,
		"  sallyport checkpoint diff ckpt-002-0123abcd\n  sallyport checkpoint diff ckpt-001-89abcdef ckpt-002-0123abcd",
		func(words []string) error {
			if len(words) != 1 && len(words) != 2 {
				return errors.New("name one checkpoint, or two")
			}
			for _, w := range words {
				if _, err := id.ParseCheckpoint(w); err != nil {
					return err
				}
			}
			return nil
		}, func(ctx context.Context, c *client.Client, words []string) error {
			from, to := "", words[len(words)-1]
			if len(words) == 2 {
				from = words[0]
			}
			return a.text(ctx, "diff", func(w io.Writer) error {
				return client.Copy(ctx, c, api.CheckpointDiff, api.Between{Of: to, From: from}, w)
			})
		})
}

func newCheckpointExportCommand(a *app) *cobra.Command {
	return a.remote("export CHECKPOINT", "keep a checkpoint as a patch in a file of the home",
		`Writes all that a checkpoint changes as a patch that "git apply" takes, with binary data, and prints
where: .state/changes/CHANGE/checkpoints/CHECKPOINT.diff in the home. Doing it again writes the
same file again. No file of your repository changes.

The file goes with the change's other exports, 30 days after the change has ended unless retention:
in the home's sallyport.yaml says otherwise.`,
		`  sallyport checkpoint export ckpt-002-0123abcd
  git apply --index "$(sallyport checkpoint export ckpt-002-0123abcd)"`, oneCheckpoint, func(ctx context.Context, c *client.Client, words []string) error {
			out, err := client.Call(ctx, c, api.CheckpointExport, words[0])
			if err != nil || a.document(out) {
				return err
			}
			_, err = fmt.Fprintln(a.Out, strings.TrimSpace(inert.Path(out.Path)))
			return err
		})
}

func newCheckpointNowCommand(a *app) *cobra.Command {
	return a.remote("now CHANGE", "record and judge an agent's work now",
		`Stops the agent of a change for a moment, records and judges what it has changed so far, and lets it
go on. It prints the files, the verdict and the rules that are broken. No file of yours changes.

You need it only to look between two checkpoints: they come every half minute by themselves.`,
		"  sallyport checkpoint now chg-1a2b3c4d", oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.CheckpointTake, words[0], printCheckpoint)
		})
}
