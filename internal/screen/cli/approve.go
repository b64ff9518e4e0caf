package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newApproveCommand(a *app) *cobra.Command {
	var yes bool
	var digest, option string
	with := api.Approve{}
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

A change of the host itself has to be approved in words: type CONFIRM HOST at the prompt, or say
--typed 'CONFIRM HOST'. One person alone can do that a minute after the card was made; the prompt
says how long that is yet, and asks again.
Your yes, if it is the last that is needed, is answered with the code that such a change is
confirmed with. It is shown once.

--message is the commit's message, as with git commit -m, instead of the one on the card. Its first
line is the subject, which is cut at 72 columns. Where two approve, a yes without --message leaves
what the one before said. Trailers that name the change, the agent and who approved it are added.

Where git's own configuration wants commits signed (commit.gpgsign), the commit is signed as the
repository's owner, by their program. What cannot be signed does not land, unless --unsigned says
so.

In a home of another user's (--home), whoever may approve a change of a group does it the same way.
What comes of it is told in the conversation.

A question about a stranger or a place, as "sallyport approval list" names it, is answered at once:
whoever wants to talk is let in. --option says which group is to hear a place. "sallyport approval
show" lists the options.

Exit status: 0 when it has landed, 3 when you left it waiting, 4 when it was refused. A refusal of
yours ends the change. One because of its marks, of another digest, or of where its branch stands
does not: the change still waits for you.`,
		"  sallyport approve chg-1a2b3c4d\n  sallyport approve chg-1a2b3c4d --message 'fix: read the last line too'\n  sallyport approve apr-1a2b3c4d --yes\n  sallyport approve chg-1a2b3c4d --digest 0123456789abcdef0123456789abcdef\n  sallyport approve chg-1a2b3c4d --marked\n  sallyport approve qst-1a2b3c4d --option echo",
		oneQuestion, func(cmd *cobra.Command, words []string) error {
			if admits(words[0]) {
				return admit(cmd, a, words[0], option)
			}
			if option != "" {
				return problem.Errorf(problem.Usage, "sallyport approval list", "--option %q is for a question about a stranger or a place (qst-…)", option)
			}
			return approve(cmd.Context(), a, words[0], yes || with.Marked || with.Typed != "", digest, with)
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "approve what is shown without asking")
	cmd.Flags().BoolVar(&with.Marked, "marked", false, "approve what is marked on the card too, without asking")
	cmd.Flags().StringVar(&with.Typed, "typed", "", "approve, without asking, what wants these `WORDS` typed: CONFIRM HOST")
	cmd.Flags().StringVar(&digest, "digest", "", "approve only if the card still has this `DIGEST`; its first 32 characters are enough")
	cmd.Flags().StringVarP(&with.Message, "message", "m", "", "commit with this message: `TEXT`; its first line is the subject")
	cmd.Flags().StringVar(&option, "option", "", "answer a question about a stranger or a place: `OPTION`, by its number, key or label")
	cmd.Flags().BoolVar(&with.Unsigned, "unsigned", false, "land without a signature where commit.gpgsign wants one")
	return cmd
}

func approve(ctx context.Context, a *app, ref string, yes bool, digest string, with api.Approve) error {
	if digest != "" && len(digest) < digestMin {
		return problem.Errorf(problem.Usage, "sallyport approval show "+ref, "--digest %q is shorter than %d characters", digest, digestMin)
	}
	c, err := a.connectAny(ctx)
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
		return problem.Errorf(problem.Refused, "sallyport approval show "+q.Approval.Change,
			"nothing was approved: %s proposes something else now, with digest %s and not %q", q.Approval.Change, digits(q.Proposal.Digest), digest)
	}
	if !yes && digest == "" && a.interactive() && !a.json {
		again, err := askApproval(ctx, a, c, ref, with)
		if err != nil {
			return err
		}
		if !again {
			return ended(exitWaiting)
		}
		return followThrough(ctx, a, c, q.Approval.Change, manner{trial: trialAsked})
	}
	if !a.json {
		printAsked(a.sheet(a.Err), q)
	}
	with.Of, with.Digest = q.Approval.ID, q.Proposal.Digest
	said, err := client.Call(ctx, c, api.ApprovalApprove, with)
	if err != nil {
		return err
	}
	showCode(a, q.Approval.Change, said.Code)
	return followThrough(ctx, a, c, q.Approval.Change, manner{})
}
