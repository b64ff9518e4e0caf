package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

func newAuditListCommand(a *app) *cobra.Command {
	var change string
	var after int64
	var limit int
	var verify bool
	cmd := a.cmd("list", "list who did what and when, oldest first",
		`Lists the audit, oldest first: the number of each entry, when, who, what, the change and the reason.
Entries are only ever added, and each is bound to the one before by its hash.

The first 1000 entries are listed. --after and --limit show others, --change those of one change.
--verify does the same as "sallyport audit verify" instead of listing.`,
		"  sallyport audit list --change chg-1a2b3c4d\n  sallyport audit list --verify\n  sallyport audit list --after 100 --json",
		exactly(), func(cmd *cobra.Command, _ []string) error {
			if change != "" {
				whole, err := wholeChange(cmd.Context(), a, change)
				if err != nil {
					return err
				}
				change = whole
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if verify {
				return reportVerification(cmd.Context(), a, c, "")
			}
			return tell(cmd.Context(), a, c, api.AuditList, api.Entries{Change: change, After: after, Limit: limit}, func(s sheet, rows []api.Entry) {
				for _, e := range rows {
					printEntry(s, e)
				}
				if len(rows) == 0 {
					s.line("nothing happened")
				}
				if n := len(rows); n > 0 && n == cmp.Or(limit, auditListMax) {
					fmt.Fprintf(a.Err, "the list ends at its limit, at entry %d\nnext: %s\n", rows[n-1].Seq, a.command(auditAfter(rows[n-1].Seq, change)))
				}
			})
		})
	cmd.Flags().StringVar(&change, "change", "", "only entries about `CHANGE`")
	cmd.Flags().Int64Var(&after, "after", 0, "only entries after number `N`")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most `N` (default 1000)")
	cmd.Flags().BoolVar(&verify, "verify", false, "check the whole audit instead of listing it")
	return cmd
}

// auditListMax is how many entries are listed if nothing else is said.
const auditListMax = 1000

// auditAfter is the command that lists what follows an entry.
func auditAfter(seq int64, change string) string {
	next := fmt.Sprintf("sallyport audit list --after %d", seq)
	if change != "" {
		next += " --change " + change
	}
	return next
}

func printEntry(s sheet, e api.Entry) {
	text := fmt.Sprintf("%5d  %s  %-12s %s", e.Seq, e.At.Local().Format("2006-01-02 15:04:05"), clip(inert.Line(e.Actor.Name), 24), inert.Line(e.Verb))
	if e.Subject != "" && e.Subject != e.Change {
		text += " " + inert.Line(e.Subject)
	}
	if e.Change != "" {
		text += "  " + s.dim(e.Change)
	}
	if e.Reason != "" {
		text += "  " + clip(inert.Line(e.Reason), 100)
	}
	s.line("%s", text)
}
