package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/api"
	"sallyport/internal/client"
)

func (a *app) changePause() *cobra.Command {
	var reason string
	cmd := a.cmd("pause CHANGE", "stop an agent where it stands", "Stops every process of the change's agent until \"change resume\". Its time limit goes on.",
		`  sallyport change pause chg-1a2b3c4d --reason "let me look first"`, oneChange, func(cmd *cobra.Command, words []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.Pause(cmd.Context(), words[0], reason); err != nil {
				return err
			}
			return a.said(words[0], api.Paused, "paused; it goes on with: "+a.command("sallyport change resume "+words[0]))
		})
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, for the audit log")
	return cmd
}

func (a *app) changeResume() *cobra.Command {
	return a.cmd("resume CHANGE", "let a paused or blocked change go on", "Lets the agent go on where it stands; if it was lost with its daemon, a new session begins. The key of its model is read from your environment again.",
		"  sallyport change resume chg-1a2b3c4d", oneChange, func(cmd *cobra.Command, words []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.goOn(cmd.Context(), c, words[0]); err != nil {
				return err
			}
			return a.said(words[0], api.Working, "goes on; follow it with: "+a.command("sallyport change watch "+words[0]))
		})
}

// goOn lets a change go on, with its agent's key if this environment has it. One that waited for just that goes on as it is given.
func (a *app) goOn(ctx context.Context, c *client.Client, change string) error {
	d, err := c.Show(ctx, change)
	if err != nil {
		return err
	}
	if err := a.hand(ctx, c, change); err != nil {
		return err
	}
	if d.Change.BlockedReason == api.CredentialMissing {
		if d, err = c.Show(ctx, change); err != nil || d.Change.BlockedReason != api.CredentialMissing {
			return err
		}
	}
	return c.Resume(ctx, change)
}

// said tells, in a line or a document, what became of a change.
func (a *app) said(change, state, text string) error {
	if a.document(map[string]string{"id": change, "state": state}) {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "%s %s\n", change, text)
	return err
}

func (a *app) checkpointNow() *cobra.Command {
	return a.cmd("now CHANGE", "record a working agent's workspace at once", "Stops the agent for a moment, records and judges what it has changed so far, and lets it go on.",
		"  sallyport checkpoint now chg-1a2b3c4d", oneChange, func(cmd *cobra.Command, words []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			taken, err := c.CheckpointNow(cmd.Context(), words[0])
			if err != nil || a.document(taken) {
				return err
			}
			a.sheet(a.Out).files(taken)
			return nil
		})
}
