package group_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// effect tells what a home's files came to for ada, after what was edited in them.
func (h home) effect(t *testing.T, before, after git.OID) (e group.Effect, lines []string) {
	t.Helper()
	e, err := group.Compare(t.Context(), h.Dir, "ada", before, after, reach)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range e.Lines {
		lines = append(lines, l.String())
	}
	return e, lines
}

// reach is what codex alone gets of the outside.
func reach(agent string, of config.Agent) (hosts, keys []string) {
	if agent != "codex" {
		return nil, nil
	}
	if of.Key == "login" {
		return []string{cmp.Or(string(of.Base), "api.openai.com")}, []string{"its login"}
	}
	return []string{cmp.Or(string(of.Base), "api.openai.com")}, []string{"its key"}
}

func TestWhatAGroupGainsAndLosesIsComputedFromTheTrees(t *testing.T) {
	const runner, own = "groups/ada/runner/runner.yaml", "groups/ada/"
	yaml := func(text string) []git.Write { return []git.Write{put(runner, text)} }
	write := func(name, text string) []git.Write { return []git.Write{put(name, text)} }
	hook := func(text string) []git.Write {
		return []git.Write{{Path: own + "runner/hooks/on-start", Mode: git.Executable, Data: git.Text(text)}}
	}
	w := newWorked(t)
	for name, test := range map[string]struct {
		before, after []git.Write
		want          []string // and the other way round, with gains and losses swapped
	}{
		"nothing": {},
		"the agent and its model": {yaml("agent: echo\n"), yaml("agent: codex\nmodel: gpt-5\n"),
			[]string{"the group ada changes the agent that answers: echo → codex", "the group ada changes the model that it asks: as the home says → gpt-5",
				"the group ada gains the host api.openai.com, where its model may be", "the group ada gains a credential that its host adds: its key"}},
		"where the home has its model": {append(yaml("agent: echo\n"), put("sallyport.yaml", "agents: {codex: {base: 'https://x.example/v1', key: login}}\n")), yaml("agent: codex\n"),
			[]string{"the group ada changes the agent that answers: echo → codex", "the group ada gains the host https://x.example/v1, where its model may be", "the group ada gains a credential that its host adds: its login"}},
		"what the home says of an agent": {nil, write("sallyport.yaml", "agents: {codex: {base: 'https://x.example/v1'}}\n"), []string{"the home changes agents.codex.base of sallyport.yaml: not set → https://x.example/v1",
			"the group cody gains the host https://x.example/v1, where its model may be", "the group cody loses the host api.openai.com, where its model may be"}},
		"another key of an agent": {[]git.Write{put(runner, "agent: codex\n"), put("sallyport.yaml", "agents: {codex: {key: 'file:/a'}}\n")}, write("sallyport.yaml", "agents: {codex: {key: 'file:/b'}}\n"),
			[]string{"the group ada changes the credential that its host adds: file:/a → file:/b", "the home changes agents.codex.key of sallyport.yaml: file:/a → file:/b",
				"the group cody changes the credential that its host adds: file:/a → file:/b"}},
		"what every agent may reach": {write("sallyport.yaml", "egress: [a.example]\n"), write("sallyport.yaml", "egress: [a.example, b.example]\n"), []string{`the home gains egress of sallyport.yaml: {"host":"b.example"}`}},
		"settings that nobody reads": {nil, write("sallyport.yaml", "egress: {\n"), []string{"the home changes sallyport.yaml, in a way that cannot be told: it cannot be read on both sides"}},
		"tools":                      {yaml("agent: echo\ntools_off: [shell, web]\n"), yaml("agent: echo\ntools_off: [web]\n"), []string{"the group ada gains the tool shell"}},
		"tools of another agent": {yaml("agent: claude\ntools_off: [Bash, send_message]\n"), yaml("agent: gemini\ntools_off: [Bash, send_message]\n"),
			[]string{"the group ada changes the agent that answers: claude → gemini", "the group ada gains what claude called the tool Bash, unless gemini calls it so, too"}},
		"a limit that is raised": {yaml("agent: echo\nbudgets: {tokens_per_hour: 1000}\n"), yaml("agent: echo\nbudgets: {tokens_per_hour: 2000}\n"),
			[]string{"the group ada gains more tokens an hour: 1000 → 2000"}},
		"limits that go": {yaml("agent: echo\nbudgets: {tokens_per_day: 1000, cost_per_hour: 1.5, cost_per_day: 3}\n"), yaml("agent: echo\nbudgets: {cost_per_day: 3}\n"),
			[]string{"the group ada gains more tokens a day: 1000 → no limit", "the group ada gains more cost an hour: 1.5 → no limit"}},
		"the rounds": {yaml("agent: echo\n"), yaml("agent: echo\nrounds: 9\n"),
			[]string{"the group ada changes how often a change of its own files may be tried: the default → 9"}},
		"only a comment":      {yaml("agent: echo\n"), yaml("# x\nagent: echo\n"), nil},
		"a hook":              {nil, hook("#!/bin/sh\n"), []string{"the group ada gains the hook on-start, a program that runs in its sandbox"}},
		"another hook":        {hook("#!/bin/sh\n"), hook("#!/bin/sh\nx\n"), []string{"the group ada changes the hook on-start, a program that runs in its sandbox"}},
		"what a hook may use": {write(own+"runner/lib.py", "x\n"), write(own+"runner/lib.py", "y\n"), []string{"the group ada changes other files of the runner, which hooks may use"}},
		"a folder to read":    {nil, yaml("agent: echo\nmounts: [{path: /srv/n}]\n"), []string{"the group ada gains the right to read, if the home allows it, as /extra/n: /srv/n"}},
		"a folder to write": {yaml("agent: echo\nmounts: [{path: /srv/n}]\n"), yaml("agent: echo\nmounts: [{path: /srv/n, readonly: false}]\n"),
			[]string{"the group ada gains the right to write, if the home allows it, in /extra/n: /srv/n"}},
		"a folder less":                     {yaml("agent: echo\nmounts: [{path: /srv/n, readonly: false}]\n"), yaml("agent: echo\n"), []string{"the group ada loses the right to read, as /extra/n: /srv/n"}},
		"what it is told":                   {nil, write(own+"AGENTS.md", "be rude\n"), []string{"the group ada changes what its agent is told in AGENTS.md"}},
		"a prompt":                          {nil, write(own+"runner/prompts/x.md", "be rude\n"), []string{"the group ada gains what its agent is told in prompts/x.md"}},
		"a skill":                           {nil, write(own+"skills/swim/SKILL.md", "x\n"), []string{"the group ada gains the skill swim"}},
		"another skill":                     {nil, write(own+"skills/cook/more.md", "x\n"), []string{"the group ada changes the skill cook"}},
		"beside the skills":                 {nil, write(own+"skills/x", "x\n"), []string{"the group ada gains files beside the skills"}},
		"something else":                    {nil, write(own+"data/x", "x\n"), []string{"the group ada gains other files"}},
		"the rules, which every card names": {nil, []git.Write{put("policy.yaml", "# x\n"), put("sallyport.yaml", "# x\n")}, nil},
		"another group":                     {nil, write("groups/cody/AGENTS.md", "x\n"), []string{"the home changes files of another group: groups/cody", "the group cody changes what its agent is told in AGENTS.md"}},
		"what another group may": {write("groups/dan/runner/runner.yaml", "agent: echo\n"), write("groups/dan/runner/runner.yaml", "agent: codex\nmounts: [{path: /srv/n}]\n"),
			[]string{"the home changes files of another group: groups/dan", "the group dan changes the agent that answers: echo → codex", "the group dan gains the right to read, if the home allows it, as /extra/n: /srv/n",
				"the group dan gains the host api.openai.com, where its model may be", "the group dan gains a credential that its host adds: its key"}},
		"what the home says of the agent of others": {append(yaml("agent: codex\n"), put("groups/dan/runner/runner.yaml", "agent: codex\n")),
			write("sallyport.yaml", "agents: {codex: {base: 'https://x.example'}}\n"),
			[]string{"the group ada gains the host https://x.example, where its model may be", "the group ada loses the host api.openai.com, where its model may be",
				"the home changes agents.codex.base of sallyport.yaml: not set → https://x.example",
				"each of the groups cody and dan gains the host https://x.example, where its model may be", "each of the groups cody and dan loses the host api.openai.com, where its model may be"}},
		"a new group": {nil, write("groups/eve/AGENTS.md", "x\n"), []string{"the home gains the group eve", "the group eve gains what its agent is told in AGENTS.md"}},
		"a new group with rights": {nil, write("groups/eve/runner/runner.yaml", "agent: codex\nmounts: [{path: /srv/n, readonly: false}]\n"),
			[]string{"the home gains the group eve, whose agent is codex", "the group eve gains the right to write, if the home allows it, in /extra/n: /srv/n",
				"the group eve gains the host api.openai.com, where its model may be", "the group eve gains a credential that its host adds: its key"}},
		"what is beside the groups": {nil, write("groups/README.md", "x\n"), []string{"the home gains files of another group: groups/README.md"}},
		"what new groups are":       {nil, write("template/AGENTS.md", "x\n"), []string{"the home changes what new groups begin with"}},
		"the group":                 {[]git.Write{gone("groups/ada")}, yaml("agent: echo\n"), []string{"the home gains the group ada, whose agent is echo"}},
		"the loudest is first": {nil, []git.Write{put(own+"data/x", "x\n"), put("policy.yaml", "# x\n"), put(runner, "agent: pi\n")},
			[]string{"the group ada changes the agent that answers: echo → pi", "the group ada gains other files"}},
	} {
		before := w.head
		if test.before != nil {
			before = w.commitUpon(t, w.head, test.before)
		}
		after := before
		if test.after != nil {
			after = w.commitUpon(t, before, test.after)
		}
		_, got := w.effect(t, before, after)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%s\nwanted\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}

		if name == "tools of another agent" {
			continue // whichever of the two comes has others
		}
		e, _ := w.effect(t, after, before)
		swapped := map[group.Turn]string{group.Gained: " loses ", group.Lost: " gains ", group.Altered: " changes "}
		for turn, verb := range swapped {
			var undone, done int
			for _, l := range e.Lines {
				if l.Turn == turn {
					undone++
				}
			}
			for _, l := range test.want {
				if strings.Contains(l, verb) {
					done++
				}
			}
			if undone != done {
				t.Errorf("%s, undone: %+v", name, e.Lines)
			}
		}
	}
}

func TestAGroupThatCouldNotRunAfterwardsIsToldAndRefusedByItsPlace(t *testing.T) {
	w := newWorked(t)
	for name, test := range map[string]struct {
		writes []git.Write
		want   string
	}{
		"a key that is none":         {[]git.Write{put("template/runner/runner.yaml", "agent: echo\nhosts: [x]\n")}, "groups/ada/runner/runner.yaml:2:1: hosts: there is no such key"},
		"no runner":                  {[]git.Write{gone("template/runner/runner.yaml")}, "groups/ada/runner/runner.yaml: it is missing"},
		"a hook that cannot be run":  {[]git.Write{put("template/runner/hooks/on-start", "#!/bin/sh\n")}, "groups/ada/runner/hooks/on-start: a hook is"},
		"a link where a prompt is":   {[]git.Write{link("template/runner/prompts/x.md", "system.md")}, "groups/ada/runner/prompts/x.md: a prompt is"},
		"an escape sequence in it":   {[]git.Write{put("template/runner/runner.yaml", "agent: \"\\e[31m\"\n")}, "groups/ada/runner/runner.yaml:1:8"},
		"the whole group goes":       {[]git.Write{gone("template/runner"), gone("template/skills"), gone("groups/ada/AGENTS.md")}, "the change would remove it"},
		"another group is spoilt":    {[]git.Write{put("groups/cody/runner/runner.yaml", "agent: x\n")}, "groups/cody/runner/runner.yaml:1:8"},
		"another group goes":         {[]git.Write{gone("groups/cody")}, ""},
		"what is no group and stays": {[]git.Write{put("groups/README.md", "x\n")}, ""},
		"nothing is wrong":           {[]git.Write{put("template/runner/prompts/x.md", "x\n")}, ""},
	} {
		m, err := w.mapped(t, w.work(t, test.writes...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = group.Check(t.Context(), w.Dir, "ada", m)
		if k := problem.KindOf(err); (err == nil) != (test.want == "") || err != nil && (k != problem.Refused && k != problem.Usage || !strings.Contains(err.Error(), test.want) || problem.Of(err).Next == "") {
			t.Errorf("%s: %v; must say %q", name, err, test.want)
		}
		e, _ := w.effect(t, w.head, m.Commit)
		if broken := strings.Contains(test.want, "groups/ada/") || strings.Contains(test.want, "remove it"); broken != (e.Broken != "") || strings.ContainsAny(e.Broken, "\x1b\n") {
			t.Errorf("%s: told as %q", name, e.Broken)
		}
	}
}

// TestNoNumberOfLossesKeepsAGainFromTheCard is SM-908: what is too much is cut off where the group gains nothing.
func TestNoNumberOfLossesKeepsAGainFromTheCard(t *testing.T) {
	w := newWorked(t)
	var junk []string
	for i := range 150 {
		junk = append(junk, fmt.Sprint("junk", i))
	}
	before := w.commitUpon(t, w.head, []git.Write{put("groups/ada/runner/runner.yaml", "agent: claude\ntools_off: [Bash]\nbudgets: {tokens_per_hour: 1000}\n")})
	after := w.commitUpon(t, before, []git.Write{
		put("groups/ada/runner/runner.yaml", "agent: claude\ntools_off: ["+strings.Join(junk, ", ")+"]\nmounts: [{path: /srv/notes, readonly: false}]\n"),
		{Path: "groups/ada/runner/hooks/on-start", Mode: git.Executable, Data: git.Text("#!/bin/sh\n")},
	})
	e, lines := w.effect(t, before, after)
	all := strings.Join(lines, "\n")
	for _, want := range []string{"gains the tool Bash", "gains the right to write", "gains more tokens an hour", "gains the hook on-start"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not tell %q", want)
		}
	}
	if len(lines) != 100 || e.More == 0 {
		t.Errorf("%d lines, and %d more", len(lines), e.More)
	}
}

func TestWhatACardIsToldOfAGroupIsBoundedAndHarmless(t *testing.T) {
	w := newWorked(t)
	var writes []git.Write
	for i := range 150 {
		writes = append(writes, put("template/skills/"+strings.Repeat("\x1b[31m", 20)+strings.Repeat("x", i)+"/SKILL.md", "x\n"))
	}
	_, lines := w.effect(t, w.head, w.work(t, writes...))
	if len(lines) != 1 || lines[0] != "the home changes what new groups begin with" {
		t.Errorf("the workspace is not the home: %q", lines)
	}
	m, err := w.mapped(t, w.work(t, writes...))
	if err != nil {
		t.Fatal(err)
	}
	e, told := w.effect(t, w.head, m.Commit)
	if len(told) != 100 || e.More != 50 {
		t.Errorf("%d lines, and %d more", len(told), e.More)
	}
	for _, l := range told {
		if len(l) > 700 || strings.ContainsAny(l, "\x1b\n") {
			t.Errorf("it shows %q", l)
		}
	}
}
