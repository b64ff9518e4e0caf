package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangePauseCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.remote("pause CHANGE", `let a working agent stand still until "change resume"`,
		`Stops every process of a change's agent where it stands, until "sallyport change resume CHANGE".
Nothing is lost. The agent's time limit goes on while it stands still.

Meanwhile you can look at its work ("change diff", "checkpoint list"), record it ("checkpoint now")
or take files back ("sallyport rollback CHANGE --file PATH").`,
		`  sallyport change pause chg-1a2b3c4d --reason "let me look first"`, oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			if err := client.Do(ctx, c, api.ChangePause, api.Reason{Of: words[0], Reason: reason}); err != nil {
				return err
			}
			return reportState(a, words[0], api.Paused, "paused; it goes on with: "+a.command("sallyport change resume "+words[0]))
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit: `TEXT`")
	return cmd
}

func newChangeResumeCommand(a *app) *cobra.Command {
	return a.remote("resume CHANGE", "let the agent of a paused or blocked change go on",
		`Lets the agent of a paused or blocked change go on where it stands. If it was lost with its daemon,
a new session begins. The key of its model is read from your environment again.

It does not wait for the end; "sallyport change watch CHANGE" follows the change. A change that has
ended goes on with "sallyport resume IDENTITY".`,
		"  sallyport change resume chg-1a2b3c4d", oneChange, func(ctx context.Context, c *client.Client, words []string) error {
			if err := letGoOn(ctx, a.Getenv, c, words[0]); err != nil {
				return err
			}
			return reportState(a, words[0], api.Working, "goes on; follow it with: "+a.command("sallyport change watch "+words[0]))
		})
}

// letGoOn lets a change go on, with its agent's key if this environment has it. One that waited for just that goes on as it is given.
func letGoOn(ctx context.Context, getenv func(string) string, c *client.Client, change string) error {
	d, err := client.Call(ctx, c, api.ChangeShow, change)
	if err != nil {
		return err
	}
	if err := giveKeys(ctx, getenv, c, change); err != nil {
		return err
	}
	if d.Change.BlockedReason == api.CredentialMissing {
		if d, err = client.Call(ctx, c, api.ChangeShow, change); err != nil || d.Change.BlockedReason != api.CredentialMissing {
			return err
		}
	}
	return client.Do(ctx, c, api.ChangeResume, change)
}

// reportState tells, in a line or a document, what became of a change.
func reportState(a *app, change, state, text string) error {
	if a.document(map[string]string{"id": change, "state": state}) {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "%s %s\n", change, text)
	return err
}
