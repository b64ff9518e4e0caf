package cli

import (
	"github.com/spf13/cobra"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newGroupRefreshCommand(a *app) *cobra.Command {
	var mode string
	var yes bool
	var keep []string
	cmd := a.cmd("refresh GROUP [--keep FILE…]", "bring what has moved in the template into a group",
		`Brings to a group what has moved in the template since the group was made, or refreshed last. A
file that the group has as it came is replaced. A file that the group has changed, too, is merged
line by line, so that both changes stay. What the group has of its own, it keeps. Only what is
committed in the home counts.

It is a change of the group like any other: it has a card, it is on trial once it has landed, and
"sallyport rollback" undoes it. The card is also shown in your conversation with the group.

Where the same lines were changed on both sides, nothing is brought at all, and each such file is
named. Leave such a file as the group has it with --keep, and edit it by hand if you want: once the
rest is brought, a later refresh does not bring what had moved in it until now.`+shownHelp+`

Exit status: 0 when it is landed and kept, or nothing has moved; 3 when it waits for you.`,
		"  sallyport group refresh echo\n  sallyport group refresh echo --keep runner/prompts/system.md", oneGroup,
		func(cmd *cobra.Command, words []string) error {
			approve, err := approveMode(a, mode)
			if err != nil {
				return err
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			again := "sallyport group refresh " + words[0] + " --keep runner/runner.yaml"
			begun, err := sayShown(a, yes, "template/runner/runner.yaml", again, func(s api.Shown) (api.Begun, error) {
				return client.Call(cmd.Context(), c, api.GroupRefresh,
					api.RefreshGroup{Group: words[0], Keep: keep, Approve: approve, User: a.userHome(), Shown: s})
			})
			if err != nil {
				return err
			}
			if begun.Change == nil {
				return answer(a, begun, "the group %s has all that has moved in the template: there is nothing to bring", words[0])
			}
			reportAccepted(a, *begun.Change)
			return followThrough(cmd.Context(), a, c, begun.Change.ID, mannerOf(a.Program, approve, false))
		})
	shownFlag(cmd, &yes)
	cmd.Flags().StringArrayVar(&keep, "keep", nil, "leave this `FILE`, from the group's folder, as the group has it; repeatable")
	cmd.Flags().StringVar(&mode, "approve", "", "ask (show the card and ask), yes (land it without asking) or later (leave it waiting): `MODE`")
	return cmd
}
