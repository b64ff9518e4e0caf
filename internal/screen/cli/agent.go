package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent"
)

func newAgentListCommand(a *app) *cobra.Command {
	return a.remote("list", "list the agents that run takes, and what each of them lacks here",
		`Lists the agents that "run --agent" takes by name. For each it says whether it is installed and in
which version, whether the key of its model was found, what it can do, and how to get what is
missing.

A version is what the program says of itself, asked in a sandbox without a network. Nothing of an
agent is started outside of a sandbox, no model is asked, and nothing is used up.

Any other agent that speaks the Agent Client Protocol is named by its command:
run --agent 'acp:my-agent --acp'. Next, "sallyport agent test NAME" tries one with its model.`,
		"  sallyport agent list\n  sallyport agent list --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			at, err := placeOf(a.Program)
			if err != nil {
				return err
			}
			all, err := client.Call(ctx, c, api.AgentList, at)
			if err != nil {
				return err
			}
			for i := range all {
				findKey(a.Getenv, &all[i])
			}
			if !a.document(all) {
				printAgents(a, a.sheet(a.Out), all)
			}
			return nil
		})
}

// placeOf is where this person stands and finds programs.
func placeOf(p Program) (api.Place, error) {
	dir, err := p.Dir()
	if err != nil {
		return api.Place{}, fmt.Errorf("find where you stand: %w", err)
	}
	return api.Place{Dir: dir, Path: p.Getenv("PATH"), Home: p.Getenv("HOME")}, nil
}

// findKey looks into this environment for a key that the daemon does not have, and for where its model is.
func findKey(getenv func(string) string, one *api.Agent) {
	for _, name := range one.Keys {
		if one.KeyFrom == "" && getenv(name) != "" {
			one.KeyFrom = "$" + name
		}
	}
	if at := one.Endpoints[strings.TrimPrefix(one.KeyFrom, "$")]; at != "" {
		one.Endpoint = at
	}
	for _, name := range one.Bases[one.Endpoint] {
		if v := strings.TrimRight(getenv(name), "/"); v != "" && !strings.Contains(v, "@") { // a password may stand before it, and run refuses that
			one.Endpoint = v
			break
		}
	}
}

// printAgents shows each with what it has and lacks.
func printAgents(a *app, s sheet, all []api.Agent) {
	for _, one := range all {
		mark, state := s.green("ready  "), ""
		switch {
		case !one.Installed:
			mark = s.yellow("absent ")
		case one.KeyFrom == "" && !one.Keyless:
			mark = s.yellow("no key ")
		}
		if one.Installed && one.Version != "" {
			state = ", version " + inert.Line(one.Version)
		}
		s.line("%s %s  %s%s", mark, s.bold(fmt.Sprintf("%-9s", inert.Line(one.Name))), inert.Line(one.Title), state)
		said := func(what, text string) {
			if text != "" {
				s.line("          %s: %s", what, text)
			}
		}
		switch {
		case one.Path != "":
			said("program", inert.Path(one.Path))
		case one.Installed:
			said("program", "part of sallyport")
		}
		said("problem", inert.Line(one.Problem))
		if !one.Installed {
			said("get it", inert.Line(one.Install))
		}
		switch names := strings.Join(one.Keys, " or "); {
		case one.KeyFrom != "":
			said("key", "found in "+inert.Line(one.KeyFrom))
		case one.Keyless:
			said("key", "none is needed")
		default:
			if names == "" { // the home names a file
				said("key", "not found in the place that agents: in the home's sallyport.yaml names")
				break
			}
			said("key", "not found; set "+inert.Line(names)+", or name it under agents: in the home's sallyport.yaml")
		}
		if one.Login != "" {
			said("login", "found in "+inert.Path(one.Login)+"; key: login below agents: "+inert.Line(one.Name)+": in the home's sallyport.yaml uses it")
		}
		model := inert.Line(one.Endpoint)
		if one.Model != "" {
			model = inert.Line(one.Model) + " at " + model
		}
		said("model", model)
		said("can", can(one.Capabilities))
		if len(one.Hosts) > 0 {
			said("also asks for", inert.Line(strings.Join(one.Hosts, ", "))+"; it works without")
		}
		if len(one.Off) > 0 {
			said("switched off in the sandbox", inert.Line(strings.Join(one.Off, ", ")))
		}
	}
	s.line("")
	s.line("any other agent that speaks ACP: sallyport run --agent 'acp:COMMAND' …; to try one: %s", a.command("sallyport agent test NAME"))
}

// can says what an agent can do, in words.
func can(c api.Capabilities) string {
	var words []string
	for _, w := range []struct {
		has  bool
		word string
	}{{c.InteractiveMode, "be watched"}, {c.PauseResume, "be paused"}, {c.MessagePassing, "be told more while it works"}, {c.Acknowledgment, "answer"}} {
		if w.has {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

func newAgentTestCommand(a *app) *cobra.Command {
	var model string
	cmd := a.cmd("test NAME", "try one agent with its model, and say in one line what is wrong",
		`Starts the agent NAME as run does, in a sandbox on an empty folder that is thrown away, and asks it
for one word. That uses a few tokens. The key of its model is added outside of the sandbox. No
repository is touched.

One line says whether it works, or why it does not: it is not installed, has no key, its key is
refused, its model is not known, its model cannot be reached, or it cannot start.

Exit status: 0 if it works, 1 if it does not.`,
		"  sallyport agent test codex\n  sallyport agent test api --model claude-sonnet-4-5\n  sallyport agent test 'acp:my-agent --acp'",
		exactly("NAME"), func(cmd *cobra.Command, words []string) error {
			ctx := cmd.Context()
			if _, err := agent.Lookup(words[0]); err != nil {
				return err
			}
			at, err := placeOf(a.Program)
			if err != nil {
				return err
			}
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			w, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Agent: words[0], Dir: at.Dir})
			if err != nil {
				return err
			}
			if !a.json && onTerminal(a.Err) {
				fmt.Fprintln(a.Err, "asking its model for one word; this may take a minute")
			}
			t, err := client.Call(ctx, c, api.AgentTry,
				api.TestAgent{Place: at, Agent: words[0], Model: model, Keys: keysFrom(a.Getenv, w), Bases: basesFrom(a.Getenv, w), Env: envFrom(a.Getenv, w)})
			if err != nil {
				return err
			}
			return reportAgentTest(a, t)
		})
	cmd.Flags().StringVar(&model, "model", "", "ask this model instead of the one that run would take: `NAME`")
	return cmd
}

// reportAgentTest says how a try went, in one line, the last.
func reportAgentTest(a *app, t api.AgentTest) error {
	code := exitDone
	if !t.OK {
		code = exitError
	}
	if a.document(t) {
		return ended(code)
	}
	s := a.sheet(a.Out)
	if t.OK {
		says := ""
		if t.Says != "" {
			says = fmt.Sprintf(" %q", clip(inert.Line(t.Says), 40))
		}
		s.line("%s%s in %s", inert.Line(t.Text), says, duration(time.Duration(t.TookMS)*time.Millisecond))
		return nil
	}
	return problem.Errorf(problem.Unavailable, t.Next, "%s", t.Text)
}
