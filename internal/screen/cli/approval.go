package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// oneQuestion takes the id of an approval, or of a change that has one.
func oneQuestion(words []string) error {
	if err := exactly("APPROVAL or CHANGE")(words); err != nil {
		return err
	}
	if id.KindOf(words[0]) == "change" {
		_, err := id.ParseChange(words[0])
		return err
	}
	_, err := id.ParseApproval(words[0])
	return err
}

func newApprovalListCommand(a *app) *cobra.Command {
	var all bool
	cmd := a.remote("list", "list the changes that wait for your yes or no", `Lists the approvals that wait for an answer, newest first. Each is about one change that has not
landed. With --all those that were answered are listed too, with who answered and why.

Next: "sallyport approval show CHANGE" shows what one is about. "sallyport approve CHANGE" and
"sallyport refuse CHANGE" answer it.`,
		"  sallyport approval list\n  sallyport approval list --all --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Call(ctx, c, api.ApprovalList, api.Waiting{Pending: !all})
			if err != nil || a.document(rows) {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.Out, "nothing waits for your answer")
				return nil
			}
			now := time.Now()
			t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "APPROVAL\tCHANGE\tDECISION\tASKED\tBY\tREASON")
			for _, r := range rows {
				who := ""
				if r.By != nil {
					who = r.By.Name
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Change, r.Decision, ago(r.Asked, now), inert.Line(who), clip(inert.Line(r.Reason), 60))
			}
			return t.Flush()
		})
	cmd.Flags().BoolVar(&all, "all", false, "list those that were answered too")
	return cmd
}

func newApprovalShowCommand(a *app) *cobra.Command {
	return a.remote("show APPROVAL|CHANGE", "show exactly what an approval is about", `Shows the card of an approval: the files that would change, the checks and the tree that they ran
on, what is marked, the commit's message and the digest. That is exactly what "sallyport approve"
would approve. Here every path is named, also where the prompt joins those of a folder.

Looking decides nothing. While an answer is wanted, the last lines name the commands that give it.`,
		`  sallyport approval show
  sallyport approval show chg-1a2b3c4d
  sallyport approval show apr-1a2b3c4d --json`, oneQuestion, func(ctx context.Context, c *client.Client, words []string) error {
			q, err := client.Call(ctx, c, api.ApprovalShow, words[0])
			if err != nil || a.document(q) {
				return err
			}
			s := a.sheet(a.Out)
			printCard(s, q.Approval.Change, q.Proposal)
			s.line("")
			line := fmt.Sprintf("%s %s", q.Approval.ID, q.Approval.Decision)
			if q.Approval.By != nil {
				line += " by " + inert.Line(q.Approval.By.Name)
			}
			if q.Approval.Reason != "" {
				line += ": " + inert.Line(q.Approval.Reason)
			}
			s.line("%s", line)
			if q.Approval.Decision == api.Pending {
				printWaiting(a, s, q.Approval.Change, &q.Proposal)
			}
			return nil
		})
}

func newApproveCommand(a *app) *cobra.Command {
	var yes bool
	var digest string
	with := api.Approve{Via: viaCommandLine}
	cmd := a.cmd("approve APPROVAL|CHANGE", "approve exactly what is shown, and see it land",
		`Shows the card and, at a terminal, asks. Your yes lands the change: one more commit on its branch.
If that branch is checked out, exactly the approved files change in your work tree. A file of yours
that you have not committed is never overwritten: the landing is refused and names it. Then it
follows the change to its end.

Where nobody can be asked, or with --yes, it approves the card that it has just fetched. With
--digest it approves, without asking, only if the card still has the digest that you have read.

If the branch has moved, the checks first run on the tree that would land there.

A card is marked if something in it makes a tool run by itself, tells an agent what to do, or is not
what it looks like. A marked card needs a word of its own: "approve marked" at the prompt, --marked
elsewhere. An approval given beforehand (run --approve yes) does not cover it.

--message is the commit's message, as with git commit -m, instead of the one on the card. Its first
line is the subject, which is cut at 72 columns. Trailers that name the change, the agent and who
approved it are added.

Where git's own configuration wants commits signed (commit.gpgsign), the commit is signed as the
repository's owner, by their program. What cannot be signed does not land, unless --unsigned says
so.

Exit status: 0 when it has landed, 3 when you left it waiting, 4 when it was refused. A refusal of
yours ends the change. One because of its marks, of another digest, or of where its branch stands
does not: the change still waits for you.`,
		"  sallyport approve chg-1a2b3c4d\n  sallyport approve chg-1a2b3c4d --message 'fix: read the last line too'\n  sallyport approve apr-1a2b3c4d --yes\n  sallyport approve chg-1a2b3c4d --digest 0123456789ab\n  sallyport approve chg-1a2b3c4d --marked",
		oneQuestion, func(cmd *cobra.Command, words []string) error {
			return approve(cmd.Context(), a, words[0], yes || with.Marked, digest, with)
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "approve what is shown without asking")
	cmd.Flags().BoolVar(&with.Marked, "marked", false, "approve what is marked on the card too, without asking")
	cmd.Flags().StringVar(&digest, "digest", "", "approve only if the card still has this `DIGEST`; its first 8 characters are enough")
	cmd.Flags().StringVarP(&with.Message, "message", "m", "", "commit with this message: `TEXT`; its first line is the subject")
	cmd.Flags().BoolVar(&with.Unsigned, "unsigned", false, "land without a signature where commit.gpgsign wants one")
	return cmd
}

func approve(ctx context.Context, a *app, ref string, yes bool, digest string, with api.Approve) error {
	if digest != "" && len(digest) < 8 {
		return problem.Errorf(problem.Usage, "sallyport approval show "+ref, "--digest %q is shorter than 8 characters", digest)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	q, err := client.Call(ctx, c, api.ApprovalShow, ref)
	if err != nil {
		return err
	}
	if err := decidable(q); err != nil {
		return err
	}
	if !strings.HasPrefix(q.Proposal.Digest, digest) {
		return problem.Errorf(problem.Refused, "sallyport approval show "+q.Approval.Change, "nothing was approved: %s proposes something else now, with digest %s and not %q", q.Approval.Change, short(q.Proposal.Digest), digest)
	}
	if !yes && digest == "" && a.interactive() && !a.json {
		again, err := askApproval(ctx, a, c, ref, with)
		if err != nil {
			return err
		}
		if !again {
			return ended(exitWaiting)
		}
		return see(ctx, a, c, q.Approval.Change, manner{trial: trialAsked})
	}
	if !a.json {
		printCard(a.sheet(a.Err), q.Approval.Change, q.Proposal)
	}
	with.Of, with.Digest = q.Approval.ID, q.Proposal.Digest
	if err := client.Do(ctx, c, api.ApprovalApprove, with); err != nil {
		return err
	}
	return see(ctx, a, c, q.Approval.Change, manner{})
}

func newRefuseCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.cmd("refuse APPROVAL|CHANGE --reason TEXT", "refuse a change that waits, and say why", `Ends a change that waits for approval, with the reason that you give. Nothing lands, and no file of
yours changes. The reason is in the audit, and whoever asked for the change reads it.

The work is kept in the home's own copy of the repository. "sallyport resume IDENTITY" lets its
agent go on with it; "sallyport change show CHANGE" names the identity. "sallyport change redo
CHANGE" applies it to the branch as it is now.`,
		`  sallyport refuse chg-1a2b3c4d --reason "wrong file"
  sallyport refuse --reason "not the generated files"`, oneQuestion, func(cmd *cobra.Command, words []string) error {
			ctx := cmd.Context()
			if strings.TrimSpace(reason) == "" {
				return problem.Errorf(problem.Usage, "sallyport refuse "+words[0]+` --reason "…"`, "a refusal of %s needs a reason", words[0])
			}
			c, err := a.connect(ctx)
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
