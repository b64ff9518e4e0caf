package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/api"
	"sallyport/internal/id"
	"sallyport/internal/inert"
	"sallyport/internal/problem"
)

// oneIdentity takes the identity of a session as the only word.
func oneIdentity(words []string) error {
	if err := exactly("IDENTITY")(words); err != nil {
		return err
	}
	_, err := id.ParseSession(words[0])
	if err != nil && id.KindOf(words[0]) == "change" {
		return problem.Errorf(problem.Usage, "sallyport change resume "+inert.Path(words[0]), "%q is a change; resume takes the identity of a session (sh-1a2b3)", words[0])
	}
	return err
}

// executionMode checks --execution-mode for a command, a script or an agent (SV-001).
func executionMode(mode, next string) error {
	switch mode {
	case "", api.Interactive:
		return nil
	case api.Deterministic:
		return problem.Errorf(problem.Usage, next, "--execution-mode deterministic is refused: an agent or a command edits files as it works, and only the interactive mode can watch that")
	}
	return problem.Errorf(problem.Usage, next, "--execution-mode %q is none of %s, %s", mode, api.Deterministic, api.Interactive)
}

func (a *app) resumeCommand() *cobra.Command {
	var mode string
	var output bool
	cmd := a.cmd("resume IDENTITY", "let the agent of a change that has ended or stands still go on", `Lets the agent of a session go on, also when its change has failed, was cancelled or was refused. If
it was paused or blocked, it goes on from there. Otherwise a new run begins with the session's
identity, its transcript and its last tree. The key of the agent's model is read from your
environment.

Then it follows the change, as run does, and a new card follows. "sallyport change show CHANGE"
names the identity, and so does "run" at its end.

Exit status: 0 when it has landed, 3 when it waits for you; else that of where it came to rest.`,
		"  sallyport resume sh-1a2b3\n  sallyport resume sh-1a2b3 --output", oneIdentity,
		func(cmd *cobra.Command, words []string) error {
			if err := executionMode(mode, "sallyport resume --help"); err != nil {
				return err
			}
			ctx := cmd.Context()
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			w, err := c.WantedBy(ctx, words[0])
			if err != nil {
				return err
			}
			change, err := c.ResumeSession(ctx, words[0], api.Resume{ExecutionMode: mode, Keys: a.keysFrom(w)})
			if err != nil {
				return err
			}
			a.accepted(change)
			approve := change.Approve // what was approved beforehand stays so
			if approve != "yes" {
				if approve, err = a.approveMode(""); err != nil {
					return err
				}
			}
			return a.see(ctx, c, change.ID, a.manner(approve, output))
		})
	cmd.Flags().StringVar(&mode, "execution-mode", "", "`MODE`: interactive is the only one for an agent or a COMMAND; deterministic is refused")
	cmd.Flags().BoolVar(&output, "output", false, "show the program's output while it works")
	return cmd
}

// again is the command that takes up a change that has ended, or stands, and what that is called; "" if none does (RM-026).
func (a *app) again(d api.Detail) (label, command string) {
	c := d.Change
	if c.Kind == "revert" {
		return "", ""
	}
	switch c.State {
	case api.Failed, api.Cancelled, api.Rejected, api.Paused, api.Blocked:
		if n := len(d.Sessions); n > 0 {
			if _, err := id.ParseSession(d.Sessions[n-1].ID); err == nil {
				return "resume", a.command("sallyport resume " + d.Sessions[n-1].ID)
			}
		} else if redo := "sallyport change redo " + c.ID; api.Final(c.State) && c.Next != redo { // its agent has not begun
			return "begin again", a.command(redo)
		}
	}
	return "", ""
}

// hint says how a change can go on, if it can.
func (a *app) hint(d api.Detail) {
	if label, command := a.again(d); command != "" && !a.json {
		fmt.Fprintf(a.Err, "%s: %s\n", label, inert.Line(command))
	}
}

func (a *app) changeTell() *cobra.Command {
	cmd := a.cmd("tell CHANGE TEXT…", "tell a working agent something, in the middle of its work",
		`Sends TEXT to the agent of a change while it works. An agent with a name hears it in the middle of
its work or when its turn ends; docs/agents.md says which. A command hears it only if it was
started with run --messages, on its standard input.

It waits a few seconds, and says whether TEXT arrived, whether it was acknowledged and what was
answered. Flags of this command come before CHANGE.

Exit status: 0 if TEXT arrived, 1 if it did not.`,
		`  sallyport change tell chg-1a2b3c4d use the new API, not the old one
  sallyport change tell --json chg-1a2b3c4d 'Leave the parser alone'`,
		func(words []string) error {
			if len(words) == 0 {
				return exactly("CHANGE", "TEXT…")(words)
			}
			if _, err := id.ParseChange(words[0]); err != nil {
				return err
			}
			if strings.TrimSpace(strings.Join(words[1:], " ")) == "" {
				return problem.Errorf(problem.Usage, "sallyport change tell --help", "TEXT is missing: it is what the agent of %s is told", words[0])
			}
			return nil
		}, func(cmd *cobra.Command, words []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if !a.json && onTerminal(a.Err) {
				fmt.Fprintln(a.Err, "waiting a few seconds for an answer")
			}
			d, err := c.Tell(cmd.Context(), words[0], strings.Join(words[1:], " "))
			if err != nil {
				return err
			}
			if !d.Delivered {
				return problem.Errorf(problem.Conflict, "sallyport change log "+words[0],
					"the message did not reach the agent of %s: its program does not read its standard input", words[0])
			}
			if !a.document(d) {
				a.delivered(words[0], d)
			}
			return nil
		})
	cmd.Flags().SetInterspersed(false) // TEXT may begin with a dash
	return cmd
}

func (a *app) delivered(change string, d api.Delivery) {
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
