package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeTellCommand(a *app) *cobra.Command {
	cmd := a.remote("tell CHANGE TEXT…", "tell a working agent something, in the middle of its work",
		`Sends TEXT to the agent of a change while it works. An agent with a name hears it in the middle of
its work or when its turn ends; docs/agents.md says which. A command hears it only if it was
started with run --messages, on its standard input.

It waits a few seconds, and says whether TEXT arrived, whether it was acknowledged and what was
answered. Flags of this command come before CHANGE.

Exit status: 0 if TEXT arrived, 1 if it did not.`,
		`  sallyport change tell chg-1a2b3c4d use the new API, not the old one
  sallyport change tell --json chg-1a2b3c4d 'Leave the parser alone'`,
		changeWithText("tell", "what the agent of %s is told"), func(ctx context.Context, c *client.Client, words []string) error {
			if !a.json && onTerminal(a.Err) {
				fmt.Fprintln(a.Err, "waiting a few seconds for an answer")
			}
			d, err := client.Call(ctx, c, api.ChangeTell, api.Tell{Of: words[0], Text: strings.Join(words[1:], " ")})
			if err != nil {
				return err
			}
			if !d.Delivered {
				return problem.Errorf(problem.Conflict, "sallyport change log "+words[0],
					"the message did not reach the agent of %s: its program does not read its standard input", words[0])
			}
			if !a.document(d) {
				printDelivery(a, words[0], d)
			}
			return nil
		})
	cmd.Flags().SetInterspersed(false) // TEXT may begin with a dash
	return cmd
}

func printDelivery(a *app, change string, d api.Delivery) {
	s := a.sheet(a.Out)
	if d.Acknowledged {
		s.line("%s delivered, %s", change, s.green("acknowledged"))
	} else {
		s.line("%s delivered, %s", change, s.yellow("not acknowledged"))
	}
	if text := strings.TrimSpace(d.AgentResponse); text != "" {
		s.line("the agent says, in its own words, which nobody checked:")
		for line := range strings.Lines(inert.Block(text, 8<<10)) {
			s.line("  > %s", strings.TrimRight(line, "\n"))
		}
	}
}
