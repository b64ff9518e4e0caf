package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const rollbackLong = `Undoes a change that has landed, or returns files of one that has not landed to an earlier state.

A change that has landed is undone by a new change, of kind revert, with a card of its own. It
returns exactly the paths that CHANGE touched to what they were, as one more commit; no commit is
removed. Nothing is undone before you approve it. A change on trial is rolled back at once, without
a card: the old files return, and the old version runs again.

The other forms are for a change that has not landed. They change the copy that its agent works on,
never your files, so they need no approval. --checkpoint returns the copy to one of its checkpoints,
byte for byte. --file returns files, or folders with all below, to the last valid checkpoint.
--smart returns the files that break a rule. A checkpoint first keeps what was there. An agent that
works goes on, with the restored files.

--list undoes nothing. It lists what has landed last and can be undone.

Exit status: 0 when it is undone, 3 when the rollback waits for you, 4 when it was refused.`

// rollbackFlags are the words of rollback.
type rollbackFlags struct {
	reason, mode, checkpoint string
	files                    []string
	smart                    bool
	list                     bool
	repo                     string
}

func newRollbackCommand(a *app) *cobra.Command {
	var f rollbackFlags
	var cmd *cobra.Command
	cmd = a.cmd("rollback CHANGE [--file PATH… | --smart] | --checkpoint ID | --list",
		"undo what has landed, or return files of a change to an earlier state", rollbackLong,
		`  sallyport rollback chg-1a2b3c4d
  sallyport rollback chg-1a2b3c4d --approve yes --reason "breaks the build"
  sallyport rollback --checkpoint ckpt-002-0123abcd
  sallyport rollback chg-1a2b3c4d --file src/main.go --file docs
  sallyport rollback chg-1a2b3c4d --smart
  sallyport rollback --list --repo .`,
		func(words []string) error { return f.check(cmd, words) },
		func(cmd *cobra.Command, words []string) error {
			c, err := a.connectAny(cmd.Context())
			if err != nil {
				return err
			}
			if len(words) == 0 && !f.list && f.checkpoint == "" {
				one, err := a.only(cmd.Context(), c, "rollback", f.restsOn())
				if err != nil {
					return err
				}
				words = []string{one}
			}
			switch {
			case f.list:
				return printPoints(a, cmd, c, f.repo)
			case f.checkpoint != "":
				return restore(cmd.Context(), a, c, f.checkpoint)
			case f.smart || len(f.files) > 0:
				return putBack(cmd.Context(), a, c, api.PutBack{Of: words[0], Paths: f.files, Violating: f.smart})
			}
			return undo(cmd.Context(), a, c, words[0], f)
		})
	cmd.Flags().StringVar(&f.mode, "approve", "", "ask (show the card and ask), yes (undo it without asking) or later (leave it waiting): `MODE`; for a change that has landed")
	cmd.Flags().StringVar(&f.reason, "reason", "asked for on the command line", "why, for the commit and the audit: `TEXT`; for a change that has landed")
	cmd.Flags().StringVar(&f.checkpoint, "checkpoint", "", "return the work to the checkpoint with this `ID`")
	cmd.Flags().StringArrayVar(&f.files, "file", nil, "return this `PATH`, from the top of the repository, to the last valid checkpoint; repeatable")
	cmd.Flags().BoolVar(&f.smart, "smart", false, "return the files that break a rule to the last valid checkpoint")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the last 20 landings that can be undone")
	cmd.Flags().StringVar(&f.repo, "repo", "", "with --list: only those of the repository that holds `DIR`")
	return cmd
}

// restsOn are the states of the change that is meant when none is named. What has landed and is kept is never guessed.
func (f *rollbackFlags) restsOn() []string {
	if f.smart || len(f.files) > 0 {
		return restsOn["now CHANGE"]
	}
	return []string{api.InTrial}
}

// check refuses words that mean two things at once.
func (f *rollbackFlags) check(cmd *cobra.Command, words []string) error {
	var given []string
	for _, name := range []string{"list", "checkpoint", "file", "smart"} {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	const next = "sallyport rollback --help"
	if len(given) > 1 {
		return problem.Errorf(problem.Usage, next, "%s and %s cannot be used together; give one of them", given[0], given[1])
	}
	if cmd.Flags().Changed("repo") && !f.list {
		return problem.Errorf(problem.Usage, next, "--repo is for --list; CHANGE says which repository is meant")
	}
	for _, name := range []string{"approve", "reason"} {
		if len(given) == 1 && cmd.Flags().Changed(name) {
			return problem.Errorf(problem.Usage, next, "--%s is only for a change that has landed; %s is for one that has not", name, given[0])
		}
	}
	if f.list {
		return exactly()(words)
	}
	if !slices.Contains(given, "--checkpoint") && len(words) == 0 {
		return nil // the one that can be meant
	}
	if !slices.Contains(given, "--checkpoint") {
		return oneChange(words)
	}
	if len(words) > 0 {
		return problem.Errorf(problem.Usage, next, "--checkpoint %q says which change is meant; %q is one word too many", f.checkpoint, words[0])
	}
	_, err := id.ParseCheckpoint(f.checkpoint)
	return err
}

// undo asks for the undoing of a change that has landed, and follows that: of one that is on trial the change itself.
func undo(ctx context.Context, a *app, c *client.Client, change string, f rollbackFlags) error {
	approve, err := approveMode(a, f.mode)
	if err != nil {
		return err
	}
	row, err := client.Call(ctx, c, api.ChangeRollback, api.Rollback{Of: change, Reason: f.reason, Approve: approve})
	if err != nil && problem.KindOf(err) == problem.Unavailable && c.Tries(change) { // the host on trial ended before it had answered: it goes back
		return followThrough(ctx, a, c, change, manner{trial: trialStay, wanted: api.RolledBack})
	}
	if err != nil {
		return err
	}
	reportAccepted(a, row)
	if row.ID == change { // it is on trial, and goes back itself
		return followThrough(ctx, a, c, change, manner{trial: trialStay, wanted: api.RolledBack})
	}
	return followThrough(ctx, a, c, row.ID, mannerOf(a.Program, approve, false))
}

// restore makes a tree that of a checkpoint.
func restore(ctx context.Context, a *app, c *client.Client, checkpoint string) error {
	return tell(ctx, a, c, api.CheckpointRestore, checkpoint, func(s sheet, taken api.Checkpoint) {
		s.line("the work of %s is again what it was at %s", taken.Change, checkpoint)
		printVerdict(s, taken)
		printViolations(s, taken, violationsShown)
		s.line("next: %s", a.command("sallyport change watch "+taken.Change))
	})
}

// putBack returns files to the last valid checkpoint.
func putBack(ctx context.Context, a *app, c *client.Client, request api.PutBack) error {
	return tell(ctx, a, c, api.ChangePutBack, request, func(s sheet, done api.Returned) {
		if request.Violating {
			s.line("Reverted %d files with violations", len(done.Reverted)) // SV-049 says these words
			printPaths(s, done.Reverted, len(done.Reverted))
			s.line("Kept %d valid changes", done.Kept)
		} else {
			s.line("Reverted %s", count(len(done.Reverted), "file"))
			printPaths(s, done.Reverted, len(done.Reverted))
			s.line("Kept %s", count(done.Kept, "other change"))
		}
		if done.Checkpoint.ID != "" {
			printVerdict(s, done.Checkpoint)
			printViolations(s, done.Checkpoint, violationsShown)
		}
	})
}
