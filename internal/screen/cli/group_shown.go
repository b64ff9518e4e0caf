package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/mount"
)

// shownHelp is what a command that may newly show a group a folder of this machine says of it.
const shownHelp = `

A folder of this machine that the group would newly see is asked about at a terminal: it can be
read, unless you say otherwise. Elsewhere one that its agent could write in is refused without
--yes.`

// templateAsCommitted is where a new group's folders stand.
const templateAsCommitted = "template/runner/runner.yaml, as it is committed,"

func shownFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "ask nothing: folders of this machine are shown as its runner.yaml says")
}

// sayShown asks for a change of a group, and first has a person say how each folder of this machine is shown that the group would newly see
// (CH-026). file is where that stands, and next what leads on where it does not stand there as they want it. Errors: problem.Conflict then.
func sayShown(a *app, yes bool, file, next string, ask func(api.Shown) (api.Begun, error)) (api.Begun, error) {
	said := api.Shown{Yes: yes, Ask: !yes && a.canAsk()}
	for {
		begun, err := ask(said)
		if err != nil || len(begun.Folders) == 0 {
			return begun, err
		}
		if said.Said == nil {
			said.Said = map[string]string{}
		}
		for _, f := range begun.Folders {
			read, write := mount.Mode(false), mount.Mode(true)
			mode, err := pickOption(a, fmt.Sprintf("its agent is newly to be shown %s of this machine; may it read there, or write too?",
				inert.Path(f.Path)), read, []option{
				{read, "as it is unless you say otherwise"}, {write, "its agent can change and delete what is there"},
			})
			if err != nil {
				return begun, problem.Errorf(problem.Usage, next, "nothing was chosen, so nothing is done")
			}
			if mode != f.Asked {
				how := "leave readonly: false out of its entry"
				if mode == write {
					how = "write readonly: false in its entry"
				}
				return begun, problem.Errorf(problem.Conflict, next, "nothing is done yet, for %s asks for %s: to have %s %s, %s there",
					file, f.Asked, inert.Path(f.Path), mode, how)
			}
			said.Said[f.Path] = mode
		}
	}
}
