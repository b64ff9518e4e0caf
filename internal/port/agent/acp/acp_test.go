package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/acp"
	"sallyport/internal/port/agent/agenttest"
)

// person has every agent of the table installed as npm does below a prefix, and a program of their own.
func person(t *testing.T) (task agent.Task, modules string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	task = agent.Task{Text: "do it", Home: filepath.Join(root, "people", "ann"), Path: filepath.Join(root, "npm/bin") + ":/usr/bin:/bin"}
	task.Top = filepath.Join(task.Home, "repo")
	modules = filepath.Join(root, "npm/node_modules")
	for _, dir := range []string{task.Top, filepath.Join(root, "npm/bin"), filepath.Join(modules, "agents")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"claude-agent-acp", "gemini", "qwen", "codex-acp", "opencode", "mine"} {
		program := filepath.Join(modules, "agents", name+".js")
		disktest.Put(t, program, "#!/bin/sh\n", 0o755)
		if err := os.Symlink("../node_modules/agents/"+name+".js", filepath.Join(root, "npm/bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return task, modules
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	task, _ := person(t)
	for _, name := range []string{"claude", "gemini", "codex-acp", "opencode", "acp:mine --acp"} {
		task.Agent = name
		agenttest.Run(t, acp.New(), task)
	}
}

func TestAnAgentIsTheAdaptersToStart(t *testing.T) {
	task, modules := person(t)
	for _, row := range []struct {
		name     string
		settings agent.Settings
		argv     []string // after the program
		wire     agent.Wire
		short    string
	}{
		{"gemini", agent.Settings{}, []string{"--acp"}, agent.Gemini, "gemini"},
		{"gemini", agent.Settings{Args: []string{"--debug"}}, []string{"--acp", "--debug"}, agent.Gemini, "gemini"},
		{"codex-acp", agent.Settings{Model: "gpt-x"}, nil, agent.Responses, "codex-acp"},
		{"qwen", agent.Settings{Model: "m"}, []string{"--acp"}, agent.Chat, "qwen"},
		{"opencode", agent.Settings{}, []string{"acp"}, agent.Messages, "opencode"},
		{"opencode", agent.Settings{Wire: agent.Chat, Model: "m"}, []string{"acp"}, agent.Chat, "opencode"},
		{`acp:mine "two words" --acp; 'rm -rf'`, agent.Settings{}, []string{"two words", "--acp;", "rm -rf"}, "", "mine"},
	} {
		task.Agent, task.Settings = row.name, row.settings
		p, err := acp.New().Program(task)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		var o agent.Order
		if err := json.Unmarshal(p.Stdin, &o); err != nil {
			t.Fatal(err)
		}
		if o.Engine != acp.Name || o.Agent != row.name || o.Wire != row.wire || !slices.Equal(o.Argv[1:], row.argv) && len(o.Argv) > 1 || p.Name != row.short {
			t.Errorf("%s: %q is ordered %+v", row.name, p.Name, o)
		}
		if !strings.HasSuffix(o.Argv[0], "/"+row.short) && !strings.HasSuffix(o.Argv[0], "/"+row.short+".js") {
			t.Errorf("%s is started as %q", row.name, o.Argv[0])
		}
		if (p.Model == nil) != (row.wire == "") || !p.Turns || !p.Keeps || !p.Messages {
			t.Errorf("%s: %+v", row.name, p)
		}
		shown := ""
		for _, b := range p.Binds {
			shown += b.Target + " "
		}
		if !strings.Contains(shown, filepath.Dir(modules)) {
			t.Errorf("%s: its modules are not among %s", row.name, shown)
		}
	}
}

func TestWhatCannotBeIsRefusedBeforeItStarts(t *testing.T) {
	task, _ := person(t)
	for name, row := range map[string]struct {
		agent    string
		settings agent.Settings
		kind     problem.Kind
		says     string
	}{
		"a kind that there is not":          {"gemini", agent.Settings{Permissions: map[string]bool{"exec": false}}, problem.Usage, `"exec"`},
		"qwen without a model":              {"qwen", agent.Settings{}, problem.Usage, "--model"},
		"opencode on a wire without choice": {"opencode", agent.Settings{Wire: agent.Chat}, problem.Usage, "--model"},
		"an agent of another driver":        {"codex", agent.Settings{}, problem.Usage, "codex"},
		"a program that is not there":       {"acp:no-such-agent", agent.Settings{}, problem.NotFound, "no-such-agent"},
	} {
		task.Agent, task.Settings = row.agent, row.settings
		_, err := acp.New().Program(task)
		if p := problem.Of(err); problem.KindOf(err) != row.kind || p.Next == "" || !strings.Contains(p.Text, row.says) {
			t.Errorf("%s: %v (%+v)", name, err, p)
		}
	}
}
