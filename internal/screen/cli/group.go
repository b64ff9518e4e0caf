package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

const groupLong = `A group is one assistant: its instructions, its runner and its skills, in the folder groups/NAME of
the home. What runs is what is committed there. A file that you edit counts once it is committed,
and "sallyport group commit NAME" does that.`

func newGroupListCommand(a *app) *cobra.Command {
	return a.remote("list", "list the groups of the home, and what of each does not run as it stands",
		`Lists the groups of the home: the agent of each, how many of its files differ from the template
that new groups are copied from, and how many you have edited and not committed. A group that
cannot run is named with the place of what is wrong.`,
		"  sallyport group list\n  sallyport group list --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := client.Call(ctx, c, api.GroupList, api.OfUser{User: a.userHome()})
			if err != nil || a.document(append([]api.Group{}, all.Groups...)) { // an array, as every list
				return err
			}
			s := a.sheet(a.Out)
			for _, g := range all.Groups {
				printGroup(s, g)
			}
			if all.Asked {
				s.line("what sallyport itself asks you: %s", a.command("sallyport chat "+api.HostChat))
			}
			if len(all.Groups) == 0 && !all.Asked {
				home, err := a.home()
				if err != nil {
					return err
				}
				s.line("there is no group; what the home lacks is added by: %s", a.command("sallyport init "+inert.Path(home)))
			}
			if len(all.Odd) > 0 {
				s.line("%s %s in groups/ that can be no group: %s", s.yellow("note:"), count(len(all.Odd), "name"), inert.Line(strings.Join(all.Odd, ", ")))
			}
			return nil
		})
}

func newGroupShowCommand(a *app) *cobra.Command {
	return a.remote("show GROUP", "show what a group runs, and what of its files does not",
		`Shows a group as it runs: its agent and model, the tools that are off, its hooks, prompts and
skills, and the tree of files that its sessions are given. Mounts are the folders of this machine
that its runner.yaml asks for, as the next session sees them; one that runs has those that it began
with. It also says how much the group's agent remembers, how the group differs from the template,
and what you have edited and not committed. A change of itself that it has asked for, and that is
open, is named with what you can say to it.`,
		"  sallyport group show echo\n  sallyport group show echo --json", oneGroup, func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.GroupShow, api.OfGroup{Group: words[0], User: a.userHome()}, func(s sheet, g api.Group) {
				printGroupWhole(a, s, g)
			})
		})
}

func newGroupCreateCommand(a *app) *cobra.Command {
	var agent string
	var yes bool
	cmd := a.cmd("create NAME [--agent AGENT]", "make a group, as a copy of the home's template",
		`Makes the group NAME: a copy of template/ as it is committed in the home, in the folder groups/NAME.
From then on the copy is the group's own, and a change of the template does not reach it. --agent
says which agent answers; without it the template does.

The new files land in the home as one commit, as any change does. "sallyport rollback CHANGE" takes
them back.`+shownHelp,
		"  sallyport group create helper\n  sallyport group create helper --agent codex", exactly("NAME"), func(cmd *cobra.Command, words []string) error {
			if err := knownRunner(agent); err != nil {
				return err
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			g, d, err := createGroup(cmd.Context(), a, c, words[0], agent, yes)
			if err != nil || a.document(map[string]any{"group": g, "change": d.Change}) {
				return err
			}
			s := a.sheet(a.Out)
			s.line("group %s %s: agent %s, in %s", g.Name, s.green("made"), g.Agent, inert.Path(filepath.Join(d.Change.Repo, "groups", g.Name)))
			printMounts(s, g)
			s.line("  its own words: %s", inert.Path(filepath.Join(d.Change.Repo, "groups", g.Name, "AGENTS.md")))
			s.line("  once edited:   %s", a.command("sallyport group commit "+g.Name))
			if lack := lackOf(cmd.Context(), a.Program, c, g.Agent); lack != "" {
				s.line("  %s %s", s.yellow("note:"), lack)
			}
			return nil
		})
	shownFlag(cmd, &yes)
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that answers: `AGENT`, echo or one of sallyport agent list")
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(config.RunnerAgents(),
		cobra.ShellCompDirectiveNoFileComp)) // the first that is registered counts
	return cmd
}

func newGroupCommitCommand(a *app) *cobra.Command {
	var message string
	var yes bool
	cmd := a.remote("commit GROUP", "commit what you have edited in a group, so that it counts",
		`Commits what you have edited below groups/GROUP, and nothing else of the home. The home's rules and
checks judge it, as they judge every change, and a group that could not run afterwards is refused
with the place of what is wrong. Sessions that begin from then on run it.`+shownHelp,
		"  sallyport group commit echo\n  sallyport group commit echo -m 'Answer in German'", oneGroup,
		func(ctx context.Context, c *client.Client, words []string) error {
			begun, err := sayShown(a, yes, "groups/"+words[0]+"/runner/runner.yaml", "sallyport group drift "+words[0], func(s api.Shown) (api.Begun, error) {
				return client.Call(ctx, c, api.GroupCommit, api.CommitGroup{Group: words[0], Message: message, User: a.userHome(), Shown: s})
			})
			if err != nil {
				return err
			}
			if begun.Change == nil {
				return answer(a, begun, "the group %s runs as it stands in your files: there is nothing to commit", words[0])
			}
			d, err := settled(ctx, a, c, begun.Change.ID)
			if err != nil || a.document(api.Begun{Change: &d.Change}) {
				return err
			}
			s := a.sheet(a.Out)
			printLanded(a, s, d)
			g, _ := client.Call(ctx, c, api.GroupShow, api.OfGroup{Group: words[0], User: a.userHome()}) // what has landed has landed
			printMounts(s, g)
			return nil
		})
	shownFlag(cmd, &yes)
	cmd.Flags().StringVarP(&message, "message", "m", "", "commit with this message: `TEXT`; its first line is the subject")
	return cmd
}

func newGroupDriftCommand(a *app) *cobra.Command {
	return a.remote("drift [GROUP]", "show how groups differ from the template, and what of your edits is not committed",
		`Shows, file by file, how a group differs from the template as it is committed, and what you have
edited below the group's folder and not committed. Without GROUP it looks at every group. Neither is
wrong: a group is a copy of its own, and a hand edit waits for "sallyport group commit". What has
moved in the template since then is brought by "sallyport group refresh".`,
		"  sallyport group drift\n  sallyport group drift echo --json", func(words []string) error {
			if len(words) == 0 {
				return nil
			}
			return oneGroup(words)
		}, func(ctx context.Context, c *client.Client, words []string) error {
			var all []api.Group
			if len(words) == 1 {
				g, err := client.Call(ctx, c, api.GroupShow, api.OfGroup{Group: words[0], User: a.userHome()})
				if err != nil {
					return err
				}
				all = append(all, g)
			} else {
				every, err := client.Call(ctx, c, api.GroupList, api.OfUser{User: a.userHome()})
				if err != nil {
					return err
				}
				all = every.Groups
			}
			if a.document(all) {
				return nil
			}
			for _, g := range all {
				printDrift(a, a.sheet(a.Out), g)
			}
			return nil
		})
}

// knownRunner refuses an agent that no group can have; "" is the template's.
func knownRunner(agent string) error {
	if agent == "" {
		return nil
	}
	_, err := config.ParseRunnerAgent(agent)
	return err
}

// lackOf is what the agent of a group lacks here, so that it answers nobody; "" if that is nothing, or is not known.
func lackOf(ctx context.Context, p Program, c *client.Client, name string) string {
	at, err := placeOf(p)
	if name == config.Echo || err != nil {
		return ""
	}
	all, _ := client.Call(ctx, c, api.AgentList, at)
	for _, one := range all {
		switch {
		case one.Name != name:
		case uninstalled(one):
			return one.Name + " is not installed on this machine, and the group answers nobody without it: " + inert.Line(one.Install)
		case unseen(one) != "":
			return unseen(one) + " (sallyport daemon stop)"
		default:
			return keyLack(one)
		}
	}
	return ""
}

// uninstalled reports whether neither this person nor the daemon finds an agent.
func uninstalled(one api.Agent) bool { return !one.Installed && one.InGroups != api.AgentFound }

// unseen says that the daemon does not find an agent that this person has: it may have been installed after the daemon began, or in a
// folder that only a login shell has in its PATH. "" if it finds it, or does not say.
func unseen(one api.Agent) string {
	if one.InGroups != api.AgentAbsent {
		return ""
	}
	return fmt.Sprintf("%s is not in the PATH that the daemon was started with, and the group answers nobody without it; it has to be started anew where PATH has %s",
		one.Name, inert.Path(filepath.Dir(one.Path)))
}

// keyLack says that an agent has no key in a group, as the daemon sees it: nobody's shell is there when a group is woken. "" if it has one.
func keyLack(one api.Agent) string {
	if uninstalled(one) || one.Keyless || one.KeyFrom != "" || one.Problem != "" {
		return ""
	}
	text := fmt.Sprintf("%[1]s has no key in a group, and the group answers nobody without it; a key of your shell reaches no group: "+
		"write agents: {%[1]s: {key: file:PATH}} into the home's sallyport.yaml", one.Name)
	if one.Login != "" {
		text += ", or key: login in place of that, for it is logged in"
	}
	return text
}

// userHome is the folder whose git configuration counts; "" where the environment names none.
func (a *app) userHome() string {
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	return ""
}

// createGroup makes a group and waits until it has landed.
func createGroup(ctx context.Context, a *app, c *client.Client, name, agent string, yes bool) (g api.Group, d api.Detail, err error) {
	begun, err := sayShown(a, yes, templateAsCommitted, "sallyport group create --help", func(s api.Shown) (api.Begun, error) {
		return client.Call(ctx, c, api.GroupCreate, api.NewGroup{Name: name, Agent: agent, User: a.userHome(), Shown: s})
	})
	if err != nil {
		return g, d, err
	}
	if d, err = settled(ctx, a, c, begun.Change.ID); err != nil {
		return g, d, err
	}
	g, err = client.Call(ctx, c, api.GroupShow, api.OfGroup{Group: name, User: a.userHome()})
	return g, d, err
}

// settled waits until a change that nobody is asked about has landed, and shows nothing of its way but what it waits for. Errors: why it
// has not.
func settled(ctx context.Context, a *app, c *client.Client, change string) (api.Detail, error) {
	told := ""
	err := watchOn(ctx, a, c, change, func(n api.Notice) error {
		if n.Kind == api.NoticeState && n.State == api.Landing && n.Text != "" && n.Text != told && !a.json {
			told = n.Text
			a.sheet(a.Err).line("%s waits: %s", change, inert.Line(told))
		}
		if n.Kind == api.NoticeState && (n.State == api.RollbackFailed || n.State == api.InTrial) { // more comes, and this command waits for none of it
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return api.Detail{}, err
	}
	d, err := client.Call(ctx, c, api.ChangeShow, change)
	if err != nil || d.Change.State == api.Finalized {
		return d, err
	}
	kind, next := problem.Kind(d.Change.Problem), d.Change.Next
	if kind == "" {
		kind = problem.Refused
	}
	if next == "" {
		next = "sallyport change show " + change
	}
	if d.Change.State == api.Failed {
		return d, problem.Errorf(kind, next, "%s did not land: %s", change, d.Change.Reason)
	}
	return d, problem.Errorf(kind, next, "%s has not landed and is %s: %s", change, api.Words(d.Change.State), d.Change.Reason)
}
