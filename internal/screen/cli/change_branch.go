package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newChangeBranchCommand(a *app) *cobra.Command {
	return a.remote("branch CHANGE [NAME]", "make an ordinary branch of a change, to look at or to merge",
		`Makes an ordinary branch in your repository, sallyport/CHANGE unless NAME says otherwise. It has one
commit upon the change's base: what was offered last. Nothing lands by it: no other branch moves,
and no file of your work tree changes.

Use it to look at a change with your own tools, or to merge it by hand where the branch has moved.
Delete it when you like. A name that is taken is refused.`,
		"  sallyport change branch chg-1a2b3c4d && git diff main...sallyport/chg-1a2b3c4d\n  sallyport change branch chg-1a2b3c4d review/parser",
		func(words []string) error {
			if len(words) > 2 {
				return exactly("CHANGE", "NAME")(words)
			}
			return oneChange(words[:min(len(words), 1)])
		}, func(ctx context.Context, c *client.Client, words []string) error {
			in := api.Branch{Of: words[0]}
			if len(words) == 2 {
				in.Name = words[1]
			}
			out, err := client.Call(ctx, c, api.ChangeBranch, in)
			if err != nil || a.document(out) {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is on branch %s now, as commit %.12s; no other branch has moved\n", words[0], inert.Path(out.Name), out.Commit)
			return err
		})
}
