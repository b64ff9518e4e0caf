package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newRefuseCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.cmd("refuse APPROVAL|CHANGE --reason TEXT", "refuse a change that waits, and say why",
		`Ends a change that waits for approval, with the reason that you give. Nothing lands, and no file of
yours changes. The reason is in the audit, and whoever asked for the change reads it.

The work is kept in the home's own copy of the repository. "sallyport resume IDENTITY" lets its
agent go on with it; "sallyport change show CHANGE" names the identity. "sallyport change redo
CHANGE" applies it to the branch as it is now.

A question about a stranger or a place is answered with no, and takes no reason: nobody is told one.
Whoever speaks there again is asked about again.`,
		`  sallyport refuse chg-1a2b3c4d --reason "wrong file"
  sallyport refuse --reason "not the generated files"
  sallyport refuse qst-1a2b3c4d`, oneQuestion, func(cmd *cobra.Command, words []string) error {
			ctx := cmd.Context()
			if admits(words[0]) {
				return turnAway(cmd, a, words[0])
			}
			if strings.TrimSpace(reason) == "" {
				return problem.Errorf(problem.Usage, "sallyport refuse "+words[0]+` --reason "…"`, "a refusal of %s needs a reason", words[0])
			}
			c, err := a.connectAny(ctx)
			if err != nil {
				return err
			}
			q, err := client.Call(ctx, c, api.ApprovalShow, words[0])
			if err != nil {
				return err
			}
			if err := decidable(q); err != nil {
				return err
			}
			if err := client.Do(ctx, c, api.ApprovalRefuse, api.Reason{Of: q.Approval.ID, Reason: reason}); err != nil {
				return err
			}
			if a.json && c.Guest() {
				return reportKept(ctx, a, c, q.Approval.Change)
			}
			if a.json {
				d, err := client.Call(ctx, c, api.ChangeShow, q.Approval.Change)
				if err != nil {
					return err
				}
				a.line(d)
				return nil
			}
			a.sheet(a.Out).line("%s refused: %s", q.Approval.Change, inert.Line(reason))
			return nil
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why you refuse: `TEXT`; whoever asked reads it")
	return cmd
}
