package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newConfirmCommand(a *app) *cobra.Command {
	return a.remote("confirm CHANGE", "keep a change that has landed and is on trial", `Keeps a change that has landed and is on trial (run --trial, or a target with a trial). No file
changes. If nobody confirms in time, sallyport rolls the change back: the old files return, and the
old version runs again. What was confirmed can still be rolled back, like any change that has
landed.

Exit status: 0 when it stays, 5 if it was rolled back before you confirmed.`,
		"  sallyport confirm chg-1a2b3c4d\n  sallyport rollback chg-1a2b3c4d     # the other answer", oneChange,
		func(ctx context.Context, c *client.Client, words []string) error {
			if err := client.Do(ctx, c, api.ChangeConfirm, words[0]); err != nil {
				return err
			}
			return followThrough(ctx, a, c, words[0], manner{trial: trialStay, wanted: api.Finalized})
		})
}
