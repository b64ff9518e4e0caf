package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// oneQuestion takes the id of an approval, of a change that has one, or of a question about a stranger or a place.
func oneQuestion(words []string) (err error) {
	if err := exactly("APPROVAL or CHANGE")(words); err != nil {
		return err
	}
	switch {
	case id.KindOf(words[0]) == "change":
		_, err = id.ParseChange(words[0])
	case admits(words[0]):
		_, err = id.ParseQuestion(words[0])
	default:
		_, err = id.ParseApproval(words[0])
	}
	return err
}

func newApprovalListCommand(a *app) *cobra.Command {
	var all bool
	var limit int
	cmd := a.remote("list", "list what waits for your yes or no", `Lists what waits for an answer, newest first: changes that have not landed, and strangers and
places on a platform. With --all those that were answered are listed too, with who answered and why.
Of changes, and of what was answered, the newest 100 are listed unless --limit says otherwise.

Next: "sallyport approval show APPROVAL" shows what one is about, and how it is answered. "sallyport
approve" and "sallyport refuse" answer it. What is about a stranger or a place is also answered in
the chat where its card stands; yours is "sallyport chat host".`,
		"  sallyport approval list\n  sallyport approval list --all --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Call(ctx, c, api.ApprovalList, api.Waiting{Pending: !all, Limit: limit})
			if err != nil || a.document(rows) {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.Out, "nothing waits for your answer")
				return nil
			}
			now, place := time.Now(), ""
			by := ""
			if all {
				by = "\tBY"
			}
			err = table(a.Out, "APPROVAL\tCHANGE\tDECISION\tASKED"+by+"\tREPOSITORY\tABOUT", rows, func(t io.Writer, r api.Approval) {
				if r.Change == "" && r.Decision == api.Pending {
					place = r.ID
				}
				printApprovalRow(t, r, all, now)
			})
			if err != nil || place == "" {
				return err
			}
			fmt.Fprintf(a.Out, "\nhow one about a stranger or a place is answered: %s\n", a.command("sallyport approval show "+place))
			return nil
		})
	cmd.Flags().BoolVar(&all, "all", false, "list those that were answered too")
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most `N` (default 100 of each kind)")
	return cmd
}

// printApprovalRow writes the row of an approval: what it is about, and of one that was answered why it was answered so.
func printApprovalRow(t io.Writer, r api.Approval, answered bool, now time.Time) {
	of, about, by := r.Change, clip(inert.Line(firstLine(r.Wish)), 60), ""
	if of == "" { // what tells one place from another stands at the end
		of, about = "("+r.Kind+")", clip(inert.Line(r.Wish), 200)
	}
	if r.Reason != "" && r.Reason != r.Wish {
		about = strings.TrimPrefix(about+" — "+clip(inert.Line(r.Reason), 60), " — ")
	}
	if answered && r.By != nil {
		by = inert.Line(r.By.Name)
	}
	if answered {
		by += "\t"
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s%s\t%s\n", r.ID, of, r.Decision, ago(r.Asked, now), by, dash(r.Repo), about)
}

func newApprovalShowCommand(a *app) *cobra.Command {
	return a.remote("show APPROVAL|CHANGE", "show exactly what an approval is about",
		`Shows the card of an approval: the files that would change, the checks and the tree that they ran
on, what is marked, the commit's message and the digest. That is exactly what "sallyport approve"
would approve. Here every path is named, also where the prompt joins those of a folder.

Of a question about a stranger or a place, it shows what its card asks, and the answers.

Looking decides nothing. While an answer is wanted, the last lines name the commands that give it.`,
		`  sallyport approval show
  sallyport approval show chg-1a2b3c4d
  sallyport approval show qst-1a2b3c4d
  sallyport approval show apr-1a2b3c4d --json`, oneQuestion, func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.ApprovalShow, words[0], func(s sheet, q api.Question) {
				if q.Admission != nil {
					printAdmission(a, s, q)
					return
				}
				printAsked(s, q)
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
			})
		})
}
