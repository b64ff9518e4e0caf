package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newConfirmCommand(a *app) *cobra.Command {
	var code string
	cmd := a.remoteBy(a.connectAny, "confirm CHANGE", "keep a change that has landed and is on trial",
		`Keeps a change that has landed and is on trial (run --trial, or a target with a trial). No file
changes. If nobody confirms in time, sallyport rolls the change back: the old files return, and the
old version runs again. What was confirmed can still be rolled back, like any change that has
landed.

A change of the host itself is confirmed with its code: twelve letters and digits that sallyport
gave, once, to whoever approved it. At a terminal it is asked for. Case, blanks and dashes do not
matter. The fifth wrong code rolls the change back.

Exit status: 0 when it stays, 5 if it was rolled back before you confirmed.`,
		"  sallyport confirm chg-1a2b3c4d\n  sallyport confirm chg-1a2b3c4d --code ABCD-EFGH-JKLM\n  sallyport rollback chg-1a2b3c4d     # the other answer", oneChange,
		func(ctx context.Context, c *client.Client, words []string) error {
			code, err := codeTo(ctx, a, c, words[0], code)
			if err != nil {
				return err
			}
			if err := client.Do(ctx, c, api.ChangeConfirm, api.Confirm{Of: words[0], Code: code}); err != nil {
				return err
			}
			return followThrough(ctx, a, c, words[0], manner{trial: trialStay, wanted: api.Finalized})
		})
	cmd.Flags().StringVar(&code, "code", "", "of a change of the host: the `CODE` that was given to whoever approved it")
	return cmd
}

// codeTo is the code to confirm a change with: what was given, or what is typed when it is asked for; "" where it takes none.
func codeTo(ctx context.Context, a *app, c *client.Client, change, given string) (string, error) {
	if c.Guest() || c.Other() != nil && given != "" {
		return given, nil
	}
	d, err := client.Call(ctx, c, api.ChangeShow, change)
	if given != "" {
		if err == nil && d.Change.Trial.Asks() && !d.Change.Trial.Host {
			return "", problem.Errorf(problem.Usage, "sallyport confirm "+change, "%s does not change the host: it is confirmed without a code", change)
		}
		return given, nil
	}
	if err != nil || !d.Change.Trial.Asks() || !d.Change.Trial.Host {
		return "", err
	}
	if !a.interactive() || a.json {
		return "", problem.Errorf(problem.Usage, "sallyport confirm "+change+" --code CODE",
			"%s changes the host: it is confirmed with the code that was given to whoever approved it", change)
	}
	code, err := a.prompt("the code of "+change+": ", nil)
	if err != nil {
		return "", fmt.Errorf("read the code: %w", err)
	}
	return code, nil
}

// showCode shows the code that a yes was answered with: it is shown once.
func showCode(a *app, change, code string) {
	if code == "" {
		return
	}
	if a.json {
		a.line(event{Event: "code", Code: code})
		return
	}
	s := a.sheet(a.Out)
	s.line("the code of %s: %s", change, s.bold(inert.Line(code)))
	s.rows("  ", "  ", "It keeps the change once the host has started again and asks. It is shown once. Without it sallyport goes back by itself.")
}
