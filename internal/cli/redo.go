package cli

import (
	"github.com/spf13/cobra"

	"sallyport/internal/api"
	"sallyport/internal/problem"
)

func (a *app) changeRedo() *cobra.Command {
	var approve string
	var output bool
	cmd := a.cmd("redo CHANGE", "apply a change to its branch as it is now, and ask again",
		`Applies the edits of a change to the branch as it is now. Use it when the branch has moved or a
check failed, for a change that waits for approval or has ended without landing.

If all edits fit, the checks run and a new card follows. If not, or if a check has failed, the agent
goes on there and is told why. A program that reads no messages runs again from the beginning.

If its agent had not begun, because the setup failed or something else stood in its way, it begins
now, the setup included.

Nothing lands without your yes to the new card, and the old card is void. What was there before is
kept: "sallyport checkpoint list CHANGE" shows it. It follows the change, as run does.

Exit status: 0 when it has landed, 3 when it waits for you; else that of where it came to rest.`,
		"  sallyport change redo chg-1a2b3c4d\n  sallyport change redo chg-1a2b3c4d --approve later", oneChange,
		func(cmd *cobra.Command, words []string) error {
			if approve == "yes" {
				return problem.Errorf(problem.Usage, "sallyport change redo --help", "what is done again is shown first: --approve yes is none of ask, later")
			}
			mode, err := a.approveMode(approve)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			w, err := c.WantedBy(ctx, words[0])
			if err != nil {
				return err
			}
			change, err := c.Redo(ctx, words[0], api.Redo{Keys: a.keysFrom(w)})
			if err != nil {
				return err
			}
			a.accepted(change)
			return a.see(ctx, c, change.ID, a.manner(mode, output))
		})
	cmd.Flags().StringVar(&approve, "approve", "", "`MODE`: ask (the default at a terminal) or later")
	cmd.Flags().BoolVar(&output, "output", false, "show the program's output while it works")
	return cmd
}

// mayRedo names the way on for a change that does not fit its branch as it is now.
func (a *app) mayRedo(s sheet, p *api.Proposal) {
	if p == nil || p.Card.Kind != "edit" || p.Card.Moved == nil || len(p.Card.Drift) == 0 && p.Card.ChecksOn == nil {
		return
	}
	s.line("  redo:    %s", a.command("sallyport change redo "+p.Change))
}
