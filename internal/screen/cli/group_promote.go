package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newGroupPromoteCommand(a *app) *cobra.Command {
	return a.remote("promote CHANGE", "give the template what a change of a group has landed",
		`Copies what the change has landed in the runner and the skills of its group into template/, so that
new groups begin with it. Groups that are there keep what they have. You are asked this in the
conversation once such a change is kept; this command is for what could not be done then, or was not
wanted yet.

The files land in the home as one commit, as any change does. Where the template has another file
than the group had before the change, more would change than you were shown: then its card waits for
you first. "sallyport rollback CHANGE" takes them back.`,
		"  sallyport group promote chg-1a2b3c4d", oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			begun, err := client.Call(ctx, c, api.GroupPromote, words[0])
			if err != nil {
				return err
			}
			if begun.Change == nil {
				return answer(a, begun, "the template has what %s has landed: there is nothing to do", words[0])
			}
			if c.Guest() {
				return answer(a, begun, "%s gives the template what %s has landed; what comes of it is told in the conversation", begun.Change.ID, words[0])
			}
			d, err := settled(ctx, a, c, begun.Change.ID)
			if err == nil && !a.document(api.Begun{Change: &d.Change}) {
				printLanded(a, a.sheet(a.Out), d)
			}
			return err
		})
}
