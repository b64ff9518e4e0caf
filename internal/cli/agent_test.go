package cli

import (
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/api"
)

// The person's environment has much that is nobody's business.
func TestRunTakesAlongTheKeyThatIsAskedForAndNoOther(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.accepted = d.detail.Change
	d.wanted = api.Wanted{Agent: "codex", Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, Bases: []string{"OPENAI_BASE_URL"}}
	d.env = map[string]string{"OPENAI_API_KEY": "sk-Tulip4711", "ANTHROPIC_API_KEY": "sk-other", "AWS_SECRET_ACCESS_KEY": "x", "OPENAI_BASE_URL": "https://models.example.org/v1/"}
	got := d.cli("run", "make the tests pass", "--check", "go test ./...", "--model", "gpt-5", "--egress", "registries", "--egress", "example.org")
	if got.code != exitDone || d.looked != "dir=%2Fwhere%2Fi%2Fstand" {
		t.Fatalf("exit %d, looked %q\n%s", got.code, d.looked, got.err)
	}
	want := api.Run{
		Dir: "/where/i/stand", Text: "make the tests pass", Agent: "codex", Model: "gpt-5", Egress: []string{"registries", "example.org"},
		Keys: api.Keys{"OPENAI_API_KEY": "sk-Tulip4711"}, Bases: map[string]string{"OPENAI_BASE_URL": "https://models.example.org/v1"},
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
