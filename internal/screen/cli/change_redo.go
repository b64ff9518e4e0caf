package cli

import (
	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeRedoCommand(a *app) *cobra.Command {
	var approve string
	var output bool
	cmd := a.cmd("redo CHANGE", "apply a change to its branch as it is now, and ask again",
		`Applies the edits of a change to the branch as it is now. Use it when the branch has moved or a
check failed, for a change that waits for approval, or that had a card and ended without landing.
If a rule stopped it before it had a card, "sallyport resume IDENTITY" lets its agent go on instead.

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
			mode, err := approveMode(a, approve)
			if err != nil {
				return err
			}
			return takeUp(cmd.Context(), a, words[0], mode, output, func(c *client.Client, keys api.Keys) (api.Change, error) {
				return client.Call(cmd.Context(), c, api.ChangeRedo, api.Redo{Of: words[0], Keys: keys})
			})
		})
	cmd.Flags().StringVar(&approve, "approve", "", "`MODE`: ask (the default at a terminal) or later")
	cmd.Flags().BoolVar(&output, "output", false, "show the program's output while it works")
	return cmd
}
