package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const memoryLong = `The memory of a group is all that its agent has written in its folder, its notes first of all. It is
kept in the home's .state, beside the group's own files, and no commit holds it. "sallyport group
show GROUP" says how much it is.`

func newGroupMemoryClearCommand(a *app) *cobra.Command {
	var yes bool
	cmd := a.cmd("clear GROUP", "remove all that a group's agent has written, its notes included",
		`Removes all that the agent of GROUP has written in its folder, its notes included, and asks first.
The next message wakes the agent with an empty memory. Use it where the agent cannot start, because
it has written too much or folders that lie too deep in each other, or where its notes are wrong.

What was said stays, and so does what each chat's own session knows: "sallyport session forget"
begins that anew. What the group is, its instructions and its runner, stays as it is committed.
A session of the group that is at rest ends. While one is at work nothing is removed, and the
message names it.

Exit status: 0 also when you said no, and nothing was removed.`,
		"  sallyport group memory clear echo\n  sallyport group memory clear echo --yes", oneGroup, func(cmd *cobra.Command, words []string) error {
			if !yes && !a.canAsk() {
				return problem.Errorf(problem.Usage, "sallyport group memory clear "+words[0]+" --yes",
					"nobody can be asked here whether the memory of %s may go: say --yes", words[0])
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if !yes {
				g, err := client.Call(cmd.Context(), c, api.GroupShow, api.OfGroup{Group: words[0], User: a.userHome()})
				if err != nil {
					return err
				}
				if !a.sure(fmt.Sprintf("remove all that the agent of %s has written (%s)?", words[0], remembered(g))) {
					a.sheet(a.Out).line("nothing was removed")
					return nil
				}
			}
			return tell(cmd.Context(), a, c, api.GroupMemoryClear, words[0], func(s sheet, done api.Cleared) {
				s.line("%s of memory removed; the next message wakes the agent of %s without it", size(done.Bytes), words[0])
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	return cmd
}
