package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

// What stands in a group may be written by anybody who can have it changed.
func TestWhatAGroupHoldsIsShownHarmlessAndWhole(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{
		Name: "ada", Tree: "89abcdef", Agent: "codex", Model: hostile, Off: []string{"fetch"}, Hooks: []string{"on-start"}, Prompts: []string{hostile}, Skills: []string{hostile},
		Mounts: []api.GroupMount{{Path: hostile, At: "/extra/x", Mode: "read-only", Asked: "read-write", Problem: hostile}, {Path: "/a", At: "/extra/a", Problem: hostile}},
		Memory: new(int64(4096)), DriftTotal: 300, Drift: []api.GroupFile{{Path: hostile, Kind: "changed"}}, EditsTotal: 1, Edits: []api.GroupFile{{Path: "x", Kind: "added", Why: hostile}},
	}, {Name: "bad", Tree: "89abcdef", Problem: "runner.yaml:2:1: " + hostile}}
	shown := ""
	for words, wants := range map[string][]string{
		"group list":      {"agent codex, 300 files unlike the template", "1 hand edit not committed", "cannot run", "runner.yaml:2:1"},
		"group show ada":  {"tree 89abcdef", "tools off fetch", "on-start", "4 KiB", "/extra/x is ", "read-only, although its runner.yaml asks for read-write:"},
		"group drift ada": {"… and 299 more", "cannot be committed: ", "sallyport group commit ada"},
		"status":          {"groups  ada, bad", "bad cannot run: runner.yaml:2:1", "ada: 1 hand edit not committed"},
	} {
		got := d.cli(strings.Fields(words)...)
		for _, want := range wants {
			if !strings.Contains(got.out, want) {
				t.Errorf("%s does not say %q:\n%s", words, want, got.out)
			}
		}
		if got.code != exitDone || got.err != "" {
			t.Errorf("%s: exit %d, %s", words, got.code, got.err)
		}
		shown += got.out
	}
	if strings.ContainsAny(shown, "\x1b\u009b\u202e\a\x7f") {
		t.Errorf("it is not harmless: %q", shown)
	}
}

// Who decides about a group, and talks with none, is told where they are asked.
func TestWhoIsAskedByTheHostIsToldWhere(t *testing.T) {
	d := newDaemon(t)
	d.asked = true
	if got := d.cli("group", "list"); got.code != exitDone || got.out != "what sallyport itself asks you: sallyport chat host\n" {
		t.Errorf("%+v", got)
	}
}

func TestTheListOfGroupsIsAnArrayAsEveryList(t *testing.T) {
	d := newDaemon(t)
	if got := d.cli("group", "list", "--json"); got.out != "[]\n" {
		t.Errorf("no group: %+v", got)
	}
	d.groups = []api.Group{{Name: "ada"}}
	if got := d.cli("group", "list", "--json"); !strings.HasPrefix(got.out, "[\n  {\n    \"name\": \"ada\"") {
		t.Errorf("one: %+v", got)
	}
}

// A change of itself that a group has asked for is shown with what a person says to it.
func TestAGroupIsShownWithTheOpenChangeOfItself(t *testing.T) {
	d := newDaemon(t)
	trial := onTrial().Change
	for _, test := range []struct {
		change api.Change
		wants  []string
	}{
		{api.Change{State: api.Working, Text: "Greet people\nby name"}, []string{"change    chg-00000009  working: Greet people\n", "watch:    sallyport change watch chg-00000009\n"}},
		{api.Change{State: api.AwaitingApproval, Text: hostile}, []string{"chg-00000009  awaiting_approval:", "say:      approve or refuse, in sallyport chat ada\n  next:     sallyport approve chg-00000009\n"}},
		{api.Change{State: api.InTrial, Trial: trial.Trial}, []string{"confirm or rollback? 1m30s left, then sallyport rolls it back\n", "say:      confirm or rollback, in sallyport chat ada\n  next:     sallyport confirm chg-00000009\n"}},
		{api.Change{State: api.RollbackFailed}, []string{"next:     sallyport change show chg-00000009\n"}},
	} {
		test.change.ID, test.change.Group = "chg-00000009", "ada"
		d.groups = []api.Group{{Name: "ada", Tree: "89abcdef", Agent: "echo", Swap: &test.change}}
		got := d.cli("group", "show", "ada")
		for _, want := range test.wants {
			if !strings.Contains(got.out, want) {
				t.Errorf("%s does not say %q:\n%s", test.change.State, want, got.out)
			}
		}
		if strings.ContainsAny(got.out, "\x1b\u009b\u202e\a\x7f") {
			t.Errorf("it is not harmless: %q", got.out)
		}
	}
}

func TestAGroupsChangeIsWaitedForAndItsOutcomeTold(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "helper", Tree: "89abcdef", Agent: "codex", Mounts: []api.GroupMount{
		{Path: "/srv/box", At: "/extra/box", Mode: "read-write", Asked: "read-write"}, {Path: "/srv/n", At: "/extra/n", Asked: "read-only", Problem: "it is not there"},
	}}}
	d.detail = finalized()
	d.detail.Change.Kind = "group"
	lands := api.Notice{Kind: api.NoticeState, State: api.Landing}
	waits := lands
	waits.Text = "chg-00000002 has the host itself on trial"
	d.notices = []api.Notice{lands, waits, waits, lands}
	if got := d.cli("group", "create", "helper", "--agent", "codex"); got.code != exitDone || !strings.Contains(got.out, "group helper made: agent codex") ||
		got.err != "chg-00000001 waits: chg-00000002 has the host itself on trial\n" {
		t.Errorf("%+v", got)
	}
	d.notices = nil
	if got := d.cli("group", "commit", "helper", "-m", "Call it Ada"); got.code != exitDone || !strings.Contains(got.out, "landed on main") || !strings.Contains(d.told(), "\n"+`commit helper{"message":"Call it Ada","user":"/home/me"}`) ||
		!strings.Contains(got.out, "/extra/box is /srv/box, read-write: its agent can change") || !strings.Contains(got.out, "/extra/n is /srv/n, not shown: it is not there") {
		t.Errorf("told %q: %+v", d.told(), got)
	}
	d.detail.Change.State, d.detail.Change.Problem, d.detail.Change.Reason, d.detail.Change.Next = api.Failed, "refused", "a rule says no", "sallyport change diff chg-00000001"
	if got := d.cli("group", "commit", "helper"); got.code != exitRefused || !strings.Contains(got.err, "did not land: a rule says no\nnext: sallyport change diff chg-00000001") {
		t.Errorf("%+v", got)
	}
	for _, words := range [][]string{{"group", "show", "No/Name"}, {"group", "create", "x", "--agent", "sh -c id"}, {"serve", "a", "b"}} {
		if got := d.cli(words...); got.code != exitUsage {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

// A refresh is followed like any change of a group, and one that finds nothing says so.
func TestARefreshIsFollowedToWhereItRests(t *testing.T) {
	d := newDaemon(t)
	if got := d.cli("group", "refresh", "ada"); got.code != exitDone || !strings.Contains(got.out, "the group ada has all that has moved in the template") {
		t.Errorf("%+v", got)
	}
	d.groups = []api.Group{{Name: "ada", Tree: "89abcdef", Agent: "echo"}}
	d.detail = finalized()
	d.detail.Change.State, d.detail.Change.Kind, d.detail.Change.Group = api.AwaitingApproval, "swap", "ada"
	got := d.cli("group", "refresh", "ada", "--keep", "AGENTS.md")
	if got.code != exitWaiting || !strings.Contains(d.told(), "\n"+`refresh ada{"keep":["AGENTS.md"],"approve":"later","user":"/home/me"}`) {
		t.Errorf("told %q: %+v", d.told(), got)
	}
	if got := d.cli("change", "show", "chg-00000001"); !strings.Contains(got.out, "it brings to the group ada what has moved in the template; no agent makes it") || strings.Contains(got.out, "resume") {
		t.Errorf("%s", got.out)
	}
	d.detail.Change.Release = strings.Repeat("ab", 32) // an upgrade has no agent, either
	if got := d.cli("change", "show", "chg-00000001"); !strings.Contains(got.out, "it has the host run by release abababababab; no agent makes it") || strings.Contains(got.out, "template") {
		t.Errorf("%s", got.out)
	}
	if got := d.cli("group", "refresh", "ada", "--approve", "maybe"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

// TestAGroupWhoseAgentHasNoKeyIsNamedWithTheWayToGiveIt holds that a key of a shell, which reaches no group, is not taken for one.
func TestAGroupWhoseAgentHasNoKeyIsNamedWithTheWayToGiveIt(t *testing.T) {
	t.Setenv("SALLYPORT_TEST_KEY", "x")
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "helper", Tree: "89abcdef", Agent: "codex"}}
	d.agents = []api.Agent{{Name: "codex", Installed: true, Version: "1", Keys: []string{"SALLYPORT_TEST_KEY"}, Login: "/l"}}
	d.detail = finalized()
	const lack = "codex has no key in a group, and the group answers nobody without it; a key of your shell reaches no group: " +
		"write agents: {codex: {key: file:PATH}} into the home's sallyport.yaml, or key: login in place of that, for it is logged in"
	if got := d.cli("group", "create", "helper", "--agent", "codex"); got.code != exitDone || !strings.Contains(got.out, "note: "+lack+"\n") {
		t.Errorf("%+v", got)
	}
	got := d.doctor(t.TempDir(), nil)
	for _, want := range []string{"REFUSED group helper: its agent " + lack, "ok      agent codex: version 1, its key is there for changes, in $SALLYPORT_TEST_KEY, and reaches no group"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}

	d.agents[0].KeyFrom = "file:/k"
	if got := d.cli("group", "create", "helper", "--agent", "codex"); got.code != exitDone || strings.Contains(got.out, "note:") {
		t.Errorf("%+v", got)
	}
	if got := d.doctor(t.TempDir(), nil); strings.Contains(got.out, "group helper") || !strings.Contains(got.out, "ok      agent codex: version 1, its key is there\n") {
		t.Errorf("%s", got.out)
	}
}

// An agent that is named and not installed answers nobody, and nothing else would say so before the first message.
func TestAGroupWhoseAgentIsNotInstalledIsNamedWithTheWayToGetIt(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "helper", Tree: "89abcdef", Agent: "codex"}, {Name: "pia", Tree: "89abcdef", Agent: "pi"}}
	d.agents = []api.Agent{{Name: "codex", Install: "npm install -g codex"}, {Name: "pi", Installed: true, KeyFrom: "file:/k"}}
	d.detail = finalized()
	if got := d.cli("group", "create", "helper", "--agent", "codex"); got.code != exitDone || !strings.Contains(got.out, "note: codex is not installed on this machine") || !strings.Contains(got.out, "npm install -g codex") {
		t.Errorf("%+v", got)
	}
	if got := d.cli("group", "create", "pia", "--agent", "pi"); strings.Contains(got.out, "pi is not installed") {
		t.Errorf("%+v", got)
	}
	got := d.doctor(t.TempDir(), nil)
	if !strings.Contains(got.out, "REFUSED group helper: its agent codex is not installed here") || !strings.Contains(got.out, "fix: npm install -g codex") || strings.Contains(got.out, "its agent pi") {
		t.Errorf("%s", got.out)
	}
}

// A group is woken with the PATH that the daemon was started with, which may lack what a shell finds, and have what it lacks.
func TestAGroupWhoseAgentTheDaemonDoesNotFindIsNamedWithTheWayOn(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "helper", Tree: "89abcdef", Agent: "codex"}, {Name: "pia", Tree: "89abcdef", Agent: "pi"}}
	d.agents = []api.Agent{
		{Name: "codex", Installed: true, InGroups: api.AgentAbsent, Path: "/opt/new/codex", KeyFrom: "file:/k", Install: "npm install -g codex"},
		{Name: "pi", InGroups: api.AgentFound, KeyFrom: "file:/k", Install: "npm install -g pi"},
	}
	d.detail = finalized()
	const lack = "codex is not in the PATH that the daemon was started with, and the group answers nobody without it; it has to be started anew where PATH has /opt/new"
	if got := d.cli("group", "create", "helper", "--agent", "codex"); got.code != exitDone || !strings.Contains(got.out, "note: "+lack+" (sallyport daemon stop)\n") {
		t.Errorf("%+v", got)
	}
	got := d.doctor(t.TempDir(), nil)
	if !strings.Contains(got.out, "REFUSED group helper: its agent "+lack+"\n") || !strings.Contains(got.out, " daemon stop\n") || strings.Contains(got.out, "its agent pi") {
		t.Errorf("%s", got.out)
	}
	d.groups = d.groups[1:]
	if got := d.cli("group", "create", "pia", "--agent", "pi"); got.code != exitDone || strings.Contains(got.out, "note:") {
		t.Errorf("%+v", got)
	}
	d.agents[1].KeyFrom = ""
	if got := d.doctor(t.TempDir(), nil); !strings.Contains(got.out, "REFUSED group pia: its agent pi has no key in a group") {
		t.Errorf("%s", got.out)
	}
}

// At a terminal a person chooses, of the agents that are here, the one of a second group; a home that is there asks nothing.
func TestAtATerminalInitOfAHomeAsksForAnAgent(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "echo", Tree: "89abcdef", Agent: "echo"}}
	d.agents = []api.Agent{{Name: "api", Installed: true, Keys: []string{"ANTHROPIC_API_KEY"}}}
	d.detail = finalized()
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("PATH", "/nowhere")
	t.Setenv("ANTHROPIC_API_KEY", "sk-Tulip4711")
	s := d.sit(t, "init", home)
	s.see(`which agent shall answer in a second group\?`)
	s.see(`\* 1  api .*here, with a key from a file that sallyport\.yaml names`) // not that of the shell, which reaches no group
	s.see(`  2  none .*only the group echo`)
	s.see(`number or name \[api\]: `)
	s.press("\n")
	shown := s.see(`(?s)api has no key in a group.*next: sallyport --home .*home chat api`)
	if code := s.leaves(); code != exitDone || strings.Contains(shown, "Tulip") {
		t.Errorf("exit %d\n%s", code, shown)
	}
	d.mu.Lock()
	calls := strings.Join(d.calls, "\n")
	d.mu.Unlock()
	if !strings.Contains(calls, `create {"name":"api","agent":"api"`) {
		t.Errorf("it asked:\n%s", calls)
	}

	if err := os.MkdirAll(filepath.Join(home, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".state"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = d.sit(t, "init", home)
	s.see(`is a home and lacks nothing`)
	s.see(`next: sallyport --home .*home chat echo`)
	if code := s.leaves(); code != exitDone {
		t.Errorf("exit %d", code)
	}
}

// TestWhatAnAgentAsksForIsQuotedWhereverItIsShown holds SM-908: no line of it can be taken for the host's.
func TestWhatAnAgentAsksForIsQuotedWhereverItIsShown(t *testing.T) {
	d := newDaemon(t)
	const words = `Ada has approved this already: a "typo"`
	d.detail, d.question = waiting()
	d.detail.Change.Kind, d.detail.Change.Group, d.detail.Change.Dev, d.detail.Change.Text = "swap", "ada", "dev-greets", words+"\nMay it land? yes"
	for _, c := range []*api.Card{&d.detail.Proposal.Card, &d.question.Proposal.Card} {
		c.Title, c.Wish = "Change what the group ada runs", d.detail.Change.Text
	}
	listed := `ada asks: "Ada has approved this already: a `
	for line, want := range map[string]string{
		"status": listed, "change list": listed, "change show chg-00000001": "\n  > " + words + "\n  > May it land? yes\n",
		"approval show chg-00000001": "Change what the group ada runs", "rollback --list": "",
	} {
		got := d.cli(strings.Fields(line)...)
		if !strings.Contains(got.out, want) {
			t.Errorf("%s lacks %q:\n%s", line, want, got.out)
		}
		for l := range strings.Lines(got.out + got.err) {
			if at := strings.Index(l, "Ada has approved"); at >= 0 && !strings.HasSuffix(l[:at], "> ") && !strings.HasSuffix(l[:at], `ada asks: "`) {
				t.Errorf("%s says it as the host's own: %q", line, l)
			}
		}
	}
}

// TestAPromotionIsAskedForAgainByACommand holds SM-152.
func TestAPromotionIsAskedForAgainByACommand(t *testing.T) {
	d := newDaemon(t)
	if got := d.cli("group", "promote", "chg-00000001"); got.code != exitDone || !strings.Contains(got.out, "the template has what chg-00000001 has landed: there is nothing to do") {
		t.Errorf("%+v", got)
	}
	d.groups = []api.Group{{Name: "ada", Tree: "89abcdef", Agent: "echo"}}
	d.detail = finalized()
	d.detail.Change.Kind = "group"
	if got := d.cli("group", "promote", "chg-00000001"); got.code != exitDone || !strings.Contains(got.out, "landed on main") || !strings.Contains(d.told(), "\npromote chg-00000001") {
		t.Errorf("told %q: %+v", d.told(), got)
	}
	if got := d.cli("group", "promote"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

// TestWhoShowsAGroupAFolderIsAskedHow holds CH-026 where a person's own hand asks for it: it is read, unless they say otherwise.
func TestWhoShowsAGroupAFolderIsAskedHow(t *testing.T) {
	d := newDaemon(t)
	d.groups = []api.Group{{Name: "ada", Tree: "89abcdef", Agent: "echo"}}
	d.detail = finalized()
	d.detail.Change.Kind = "group"
	d.folders = []api.GroupMount{{Path: "/srv/n", At: "/extra/n", Asked: "read-only"}, {Path: "/srv/box", At: "/extra/box", Asked: "read-write"}}

	s := d.sit(t, "group", "commit", "ada")
	s.see(`shown /srv/n of this machine; may it read there, or write too\?`)
	s.see(`\* 1  read-only .*`)
	s.see(`  2  read-write .*its agent can change and delete what is there`)
	s.see(`number or name \[read-only\]: `)
	s.press("\n")
	s.see(`shown /srv/box of this machine`)
	s.see(`number or name \[read-only\]: `)
	s.press("read-write\n")
	s.see(`landed.* on main`)
	if code := s.leaves(); code != exitDone || !strings.Contains(d.told(), `"shown":{"ask":true,"said":{"/srv/box":"read-write","/srv/n":"read-only"}}`) {
		t.Errorf("exit %d, told %s", code, d.told())
	}

	for _, test := range []struct{ words, file, next string }{
		{"group commit ada", "groups/ada/runner/runner.yaml asks for read-write", "sallyport .*group drift ada"},
		{"group create bob", "template/runner/runner.yaml, as it is committed, asks for read-write", "sallyport .*group create --help"},
		{"group refresh ada", "template/runner/runner.yaml asks for read-write", "sallyport .*group refresh ada --keep runner/runner.yaml"},
	} {
		d.folders = d.folders[len(d.folders)-1:]
		s := d.sit(t, strings.Fields(test.words)...)
		s.see(`number or name \[read-only\]: `)
		s.press("\n")
		shown := s.see(`(?s)nothing is done yet.*next: ` + test.next)
		if words := strings.Join(strings.Fields(shown), " "); !strings.Contains(words, test.file+": to have /srv/box read-only, leave readonly: false out of its entry there") {
			t.Errorf("%s: %s", test.words, words)
		}
		if code := s.leaves(); code != exitError {
			t.Errorf("%s: exit %d", test.words, code)
		}
	}
	if got := d.cli("group", "commit", "ada"); got.code != exitDone || !strings.Contains(d.told(), "\ncommit ada"+`{"user":"/home/me"}`+"\n") {
		t.Errorf("nobody can be asked here, told %s: %+v", d.told(), got)
	}
	if got := d.cli("group", "create", "bob", "--yes"); got.code != exitDone || !strings.Contains(d.told(), `"shown":{"yes":true}`) {
		t.Errorf("told %s: %+v", d.told(), got)
	}
}
