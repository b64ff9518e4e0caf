package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeReworkCommand(a *app) *cobra.Command {
	cmd := a.remote("rework CHANGE TEXT…", "have a group's change done differently before it lands",
		`Says what is to be different in a change of what a group runs, while it waits for approval. Its card
cannot be answered any more. The agent that made the change hears TEXT, goes on from what it has
proposed, and proposes again. Then a new card is asked about.

Whoever may refuse the change may say it, also in the conversation: "change: TEXT". Flags of this
command come before CHANGE.`,
		`  sallyport change rework chg-1a2b3c4d greet people by their first name
  sallyport change rework --json chg-1a2b3c4d 'Leave the hooks alone'`,
		changeWithText("rework", "what is to be different in %s"), func(ctx context.Context, c *client.Client, words []string) error {
			q, err := client.Call(ctx, c, api.ApprovalShow, words[0])
			if err == nil {
				err = decidable(q)
			}
			if err != nil {
				return err
			}
			text := strings.TrimSpace(strings.Join(words[1:], " "))
			if err := client.Do(ctx, c, api.ApprovalRework, api.Reason{Of: q.Approval.ID, Reason: text}); err != nil {
				return err
			}
			if !a.json {
				a.sheet(a.Out).line("%s goes on, and is proposed again: %s", words[0], inert.Line(text))
				return nil
			}
			if q, err = client.Call(ctx, c, api.ApprovalShow, q.Approval.ID); err == nil {
				a.document(q)
			}
			return err
		})
	cmd.Flags().SetInterspersed(false) // TEXT may begin with a dash
	return cmd
}
