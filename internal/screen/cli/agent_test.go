package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/rule/config"
)

// The person's environment has much that is nobody's business.
func TestRunTakesAlongTheKeyThatIsAskedForAndNoOther(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.accepted = d.detail.Change
	d.wanted = api.Wanted{Agent: "codex", Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, Bases: []string{"OPENAI_BASE_URL"}, Env: []string{"MY_TEAM", "NOT_SET"}}
	d.env = map[string]string{"MY_TEAM": "blue", "OPENAI_API_KEY": "sk-Tulip4711", "ANTHROPIC_API_KEY": "sk-other", "AWS_SECRET_ACCESS_KEY": "x", "OPENAI_BASE_URL": "https://models.example.org/v1/"}
	got := d.cli("run", "make the tests pass", "--check", "go test ./...", "--model", "gpt-5", "--egress", "registries", "--egress", "example.org")
	if got.code != exitDone || d.looked != "dir=%2Fwhere%2Fi%2Fstand" {
		t.Fatalf("exit %d, looked %q\n%s", got.code, d.looked, got.err)
	}
	want := api.Run{
		Dir: "/where/i/stand", Text: "make the tests pass", Agent: "codex", Model: "gpt-5", Egress: []string{"registries", "example.org"},
		Keys: api.Keys{"OPENAI_API_KEY": "sk-Tulip4711"}, Bases: map[string]string{"OPENAI_BASE_URL": "https://models.example.org/v1"},
		Env:    map[string]string{"MY_TEAM": "blue"},
		Checks: []string{"go test ./..."}, Approve: "later", Path: "/bin", Home: "/home/me",
	}
	if !reflect.DeepEqual(d.run, want) {
		t.Errorf("asked for %+v", d.run)
	}
	if strings.Contains(got.out+got.err, "Tulip") {
		t.Errorf("the key is shown:\n%s%s", got.out, got.err)
	}
	d.cli("run", "--agent", "pi", "--repo", "sub", "--branch", "side", "--request", "x")
	if d.looked != "agent=pi&branch=side&dir=%2Fwhere%2Fi%2Fstand%2Fsub" {
		t.Errorf("looked %q", d.looked)
	}
	d.looked, d.run = "", api.Run{}
	if d.cli("run", "--request", "x", "--", "true"); d.looked != "" || d.run.Agent != "command" || d.run.Keys != nil {
		t.Errorf("a command has its keys taken along: %q, %+v", d.looked, d.run)
	}
	d.run = api.Run{}
	if d.cli("run", "x", "--", "true", "--check"); !reflect.DeepEqual(d.run.Argv, []string{"true", "--check"}) || d.run.Text != "x" {
		t.Errorf("%+v", d.run)
	}
}

func TestWhoeverLetsAChangeGoOnHandsItsKeyOverAgain(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.accepted = d.detail.Change
	d.env = map[string]string{"OPENAI_API_KEY": "sk-Tulip4711", "ANTHROPIC_API_KEY": "sk-other"}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"change", "watch", "chg-00000001"}, `keys chg-00000001{"keys":{"OPENAI_API_KEY":"sk-Tulip4711"}}`},
		{[]string{"change", "resume", "chg-00000001"}, `keys chg-00000001{"keys":{"OPENAI_API_KEY":"sk-Tulip4711"}}` + "\nresume chg-00000001"},
		{[]string{"resume", "codex-1a2b3"}, `resume session codex-1a2b3{"keys":{"OPENAI_API_KEY":"sk-Tulip4711"}}`},
	} {
		d.calls, d.wanted = nil, api.Wanted{Change: "chg-00000001", Agent: "codex", Keys: []string{"OPENAI_API_KEY"}}
		if got := d.cli(test.args...); d.told() != test.want || strings.Contains(got.out+got.err, "Tulip") {
			t.Errorf("%v: told %q", test.args, d.told())
		}
		d.calls, d.wanted = nil, api.Wanted{Change: "chg-00000001", Agent: "command"}
		if d.cli(test.args...); strings.Contains(d.told(), "keys") {
			t.Errorf("%v: a command is given keys: %q", test.args, d.told())
		}
	}
	// One that waited for its key goes on as it is given, and is not let go on twice.
	d.calls, d.wanted = nil, api.Wanted{Change: "chg-00000001", Agent: "codex", Keys: []string{"OPENAI_API_KEY"}}
	d.detail.Change.State, d.detail.Change.BlockedReason = api.Blocked, api.CredentialMissing
	d.after = func(call string) {
		if strings.HasPrefix(call, "keys") {
			d.detail.Change.State, d.detail.Change.BlockedReason = api.Working, ""
		}
	}
	if got := d.cli("change", "resume", "chg-00000001"); got.code != exitDone || strings.Contains(d.told(), "resume") {
		t.Errorf("exit %d told %q", got.code, d.told())
	}
}

func TestTheListSaysWhatIsThereWhatIsMissingAndHowToGetIt(t *testing.T) {
	d := newDaemon(t)
	d.env = map[string]string{"GEMINI_API_KEY": "sk-Tulip4711", "C_BASE_URL": "https://elsewhere.example/v1/"}
	d.agents = []api.Agent{
		{Name: "codex", Title: "OpenAI Codex CLI", Installed: true, Path: "/opt/codex", Version: "0.169.0", KeyFrom: "file:/k", Endpoint: "https://api.openai.com/v1", Model: "gpt-5",
			Capabilities: api.Capabilities{InteractiveMode: true, PauseResume: true, MessagePassing: true}, Off: []string{"its own sandbox"}},
		{Name: "gemini", Title: "Google Gemini CLI", Installed: true, Path: "/opt/gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Problem: "its version is not known: \x1b[31mx"},
		{Name: "pi", Title: "pi", Installed: true, Path: "/opt/pi", Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}},
		{Name: "other", Title: "two", Installed: true, Path: "/opt/two", Keys: []string{"A_KEY", "GEMINI_API_KEY"}, Endpoint: "https://a.example", Endpoints: map[string]string{"A_KEY": "https://a.example", "GEMINI_API_KEY": "https://b.example"}},
		{Name: "moved", Title: "three", Installed: true, Path: "/opt/three", Keyless: true, Endpoint: "https://usual.example", Bases: map[string][]string{"https://usual.example": {"NOT_SET", "C_BASE_URL"}}},
		{Name: "qwen", Title: "Qwen", Install: "npm install -g @qwen-code/qwen-code", Keys: []string{"OPENAI_API_KEY"}},
		{Name: "api", Title: "our own", Installed: true, Version: "devel", Keyless: true, Endpoint: "http://127.0.0.1:1/v1"},
	}
	got := d.cli("agent", "list")
	for _, want := range []string{
		"ready   codex      OpenAI Codex CLI, version 0.169.0", "program: /opt/codex", "key: found in file:/k", "model: gpt-5 at https://api.openai.com/v1", "can: be watched, be paused, be told more while it works", "switched off in the sandbox: its own sandbox",
		"ready   gemini", "key: found in $GEMINI_API_KEY", `problem: its version is not known: \x1b[31mx`,
		"no key  pi", "key: not found; set ANTHROPIC_API_KEY or OPENAI_API_KEY", "absent  qwen", "get it: npm install -g @qwen-code/qwen-code", "key: none is needed", "program: part of sallyport", "acp:COMMAND", "model: https://b.example", "model: https://elsewhere.example/v1\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "Tulip") || strings.Contains(got.out, "\x1b") || strings.Contains(got.out, "''") || strings.Contains(got.out, "a.example") || strings.Contains(got.out, "usual.example") || got.code != exitDone || d.told() != "agents dir=%2Fwhere%2Fi%2Fstand&home=%2Fhome%2Fme&path=%2Fbin" {
		t.Errorf("exit %d told %q\n%s", got.code, d.told(), got.out)
	}
	if js := d.cli("agent", "list", "--json"); !strings.Contains(js.out, `"key_from": "$GEMINI_API_KEY"`) || strings.Contains(js.out, "Tulip") {
		t.Errorf("%s", js.out)
	}
}

func TestATryIsSaidInOneLineWithTheWayOut(t *testing.T) {
	d := newDaemon(t)
	d.env = map[string]string{"OPENAI_API_KEY": "sk-Tulip4711", "OTHER_KEY": "x"}
	d.wanted = api.Wanted{Agent: "codex", Keys: []string{"OPENAI_API_KEY"}}
	d.tested = api.AgentTest{Agent: "codex", OK: true, Text: "codex works: its model answered", Says: "ready\x1b[31m", TookMS: 4200}
	got := d.cli("agent", "test", "codex", "--model", "gpt-5")
	if got.code != exitDone || got.out != "codex works: its model answered \"ready\\\\x1b[31m\" in 4.2s\n" || got.err != "" {
		t.Errorf("exit %d %q %q", got.code, got.out, got.err)
	}
	if want := `test {"dir":"/where/i/stand","path":"/bin","home":"/home/me","agent":"codex","model":"gpt-5","keys":{"OPENAI_API_KEY":"sk-Tulip4711"}}`; d.told() != want {
		t.Errorf("told %q", d.told())
	}
	d.tested = api.AgentTest{Agent: "codex", Problem: "key_refused", Text: "codex: its model refuses the key: 401", Next: "sallyport agent list"}
	if got = d.cli("agent", "test", "codex"); got.code != exitError || got.err != "sallyport: codex: its model refuses the key: 401\nnext: sallyport agent list\n" || got.out != "" {
		t.Errorf("exit %d %q %q", got.code, got.out, got.err)
	}
	if got = d.cli("agent", "test", "codex", "--json"); got.code != exitError || !strings.Contains(got.out, `"problem": "key_refused"`) {
		t.Errorf("exit %d %q", got.code, got.out)
	}
	if got = d.cli("agent", "test", "claud"); got.code != exitUsage || !strings.Contains(got.err, `there is no agent "claud"; there are codex,`) {
		t.Errorf("exit %d %q", got.code, got.err)
	}
}

// At a terminal both questions are asked, with what is usual marked; a wrong answer asks again, and nothing is written before the last.
func TestAtATerminalInitAsksAndWritesWhatWasChosen(t *testing.T) {
	d := newDaemon(t)
	repo := t.TempDir()
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(repo, ".sallyport.yaml")
	t.Setenv("PATH", "/nowhere")
	t.Setenv("ANTHROPIC_API_KEY", "sk-Tulip4711")
	s := d.sit(t, "init", "--repo", repo)
	s.see(`which agent shall work on this repository\?`)
	s.see(`\* 8  api .*here, key in \$ANTHROPIC_API_KEY`)
	s.see(`number or name \[api\]: `)
	s.press("claud\n")
	s.see(`there is no claud; answer with a number from 1 to 9`)
	s.see(`number or name`)
	s.press("7\n")
	s.see(`what shall become of files that break a rule`)
	if _, err := os.Stat(file); err == nil {
		t.Error("it is written before the last answer")
	}
	s.see(`number or name`)
	s.press("shadow_workspace\n")
	shown := s.see(`sallyport agent test pi`)
	if code := s.leaves(); code != exitDone {
		t.Errorf("exit %d\n%s", code, shown)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != config.RepositoryText("pi", "shadow_workspace") || strings.Contains(shown, "Tulip") {
		t.Errorf("%v: %s", err, text)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	// Whoever leaves without an answer leaves everything as it is.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s = d.sit(t, "init", "--repo", repo)
	s.see(`number or name \[api\]: `)
	s.press("\x04")
	s.see(`nothing was chosen, so nothing was written`)
	if code := s.leaves(); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if left, _ := os.ReadDir(repo); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADifferenceShowsEveryLineThatGoesOrComesAndNoOther(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"a\nb\nc\n", "a\nx\nc\n", "-b\n+x\n"}, {"a\n", "a\n", ""}, {"", "a\nb\n", "-\n+a\n+b\n"}, {"a\nb\n", "b\n", "-a\n"}, {"a\x1b[31m\n", "a\n", "-a\\x1b[31m\n+a\n"},
		{strings.Repeat("x\n", 3000), "y\n", strings.Repeat("-x\n", 3000) + "+y\n"},
	} {
		var b strings.Builder
		printDifference(sheet{w: &b, width: 100}, test.before, test.after)
		if b.String() != test.want {
			t.Errorf("%.20q to %.20q: %.200q", test.before, test.after, b.String())
		}
	}
}
