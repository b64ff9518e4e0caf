package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// oneIdentity takes the identity of a session as the only word.
func oneIdentity(words []string) error {
	if err := exactly("IDENTITY")(words); err != nil {
		return err
	}
	_, err := id.ParseSession(words[0])
	if err != nil && id.KindOf(words[0]) == "change" {
		return problem.Errorf(problem.Usage, "sallyport change resume "+inert.Path(words[0]),
			"%q is a change; resume takes the identity of a session (sh-1a2b3)", words[0])
	}
	return err
}

// executionMode checks --execution-mode for a command, a script or an agent (SV-001).
func executionMode(mode, next string) error {
	switch mode {
	case "", api.Interactive:
		return nil
	case api.Deterministic:
		return problem.Errorf(problem.Usage, next,
			"--execution-mode deterministic is refused: an agent or a command edits files as it works, and only the interactive mode can watch that")
	}
	return problem.Errorf(problem.Usage, next, "--execution-mode %q is none of %s, %s", mode, api.Deterministic, api.Interactive)
}

func newResumeCommand(a *app) *cobra.Command {
	var mode string
	var output bool
	cmd := a.cmd("resume IDENTITY", "let the agent of a change that has ended or stands still go on",
		`Lets the agent of a session go on, also when its change has failed, was cancelled or was refused. If
it was paused or blocked, it goes on from there. Otherwise a new run begins with the session's
identity, its transcript and its last tree. The key of the agent's model is read from your
environment. A change of what a group runs is asked for anew in its conversation once it has ended.

Then it follows the change, as run does, and a new card follows. A change of "run --approve yes"
that has had no card yet lands without one, once rules and checks pass. To decide on it first, run
the request again with --approve later instead. "sallyport change show CHANGE"
names the identity, and so does "run" at its end.

Exit status: 0 when it has landed, 3 when it waits for you; else that of where it came to rest.`,
		"  sallyport resume sh-1a2b3\n  sallyport resume sh-1a2b3 --output", oneIdentity,
		func(cmd *cobra.Command, words []string) error {
			if err := executionMode(mode, "sallyport resume --help"); err != nil {
				return err
			}
			return takeUp(cmd.Context(), a, words[0], "", output, func(c *client.Client, keys api.Keys) (api.Change, error) {
				return client.Call(cmd.Context(), c, api.SessionResume, api.Resume{Of: words[0], ExecutionMode: mode, Keys: keys})
			})
		})
	cmd.Flags().StringVar(&mode, "execution-mode", "", "`MODE`: interactive is the only one for an agent or a COMMAND; deterministic is refused")
	cmd.Flags().BoolVar(&output, "output", false, "show the program's output while it works")
	return cmd
}

// takeUp has a change taken up again, with the key of its agent if this environment has it, and follows it. Without a mode what was
// approved beforehand stays so.
func takeUp(ctx context.Context, a *app, ref, mode string, output bool, take func(*client.Client, api.Keys) (api.Change, error)) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	w, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: ref})
	if err != nil {
		return err
	}
	change, err := take(c, keysFrom(a.Getenv, w))
	if err != nil {
		return err
	}
	reportAccepted(a, change)
	if mode == "" && change.Approve == "yes" {
		mode = "yes"
	}
	if mode, err = approveMode(a, mode); err != nil {
		return err
	}
	return followThrough(ctx, a, c, change.ID, mannerOf(a.Program, mode, output))
}
