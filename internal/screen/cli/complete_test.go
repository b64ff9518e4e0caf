package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func TestAShellIsOfferedIdsAndWordsOfOurs(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.detail.Change.Text = hostile
	d.groups = []api.Group{{Name: "echo", Agent: "echo", Problem: hostile}, {Name: "helper", Agent: "codex"}}
	d.detail.Checkpoints = []api.Checkpoint{{ID: "ckpt-001-0123abcd", Change: "chg-00000001", Status: "valid"}}
	d.messages = []api.Message{{ID: "msg-00000001", Status: api.MessageCompleted}, {ID: "msg-00000002", Status: api.MessageDead}}
	for words, want := range map[string]string{
		"message show ":                "msg-00000002\tdead,msg-00000001\tcompleted",
		"message retry ":               "msg-00000002\tdead",
		"group memory clear ":          "echo\techo,helper\tcodex",
		"change show ":                 "chg-00000001\tawaiting_approval",
		"change show chg-00000001 ":    "",
		"approve ":                     "chg-00000001\tpending,apr-00000001\tpending",
		"rollback ":                    "chg-00000001\tawaiting_approval",
		"checkpoint show ":             "ckpt-001-0123abcd\tvalid of chg-00000001",
		"audit list --change ":         "chg-00000001\tawaiting_approval",
		"run --approve ":               "ask,yes,later",
		"agent test ":                  "codex,claude,codex-acp,gemini,opencode,qwen,pi,api",
		"agent test codex ":            "",
		"run --agent ":                 "codex,claude,codex-acp,gemini,opencode,qwen,pi,api",
		"run --egress ":                "registries",
		"run --strategy ":              "direct_worktree,shadow_workspace",
		"rollback --checkpoint ":       "ckpt-001-0123abcd\tvalid of chg-00000001",
		"--home /h checkpoint list ":   "chg-00000001\tawaiting_approval",
		"checkpoint diff ckpt-001-00 ": "ckpt-001-0123abcd\tvalid of chg-00000001",
		"status ":                      "",
		"group show ":                  "echo\techo,helper\tcodex",
		"group commit ":                "echo\techo,helper\tcodex",
		"group drift echo ":            "",
		"group create ":                "",
		"group create ada --agent ":    "echo,codex,claude,codex-acp,gemini,opencode,qwen,pi,api",
	} {
		got := d.cli(append([]string{"__complete"}, strings.Split(words, " ")...)...)
		lines, _, _ := strings.Cut(got.out, ":")
		offered := strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", ",")
		if got.code != exitDone || offered != want {
			t.Errorf("%q is offered %q, want %q", words, offered, want)
		}
	}
}

func TestAKeyThatIsPressedStartsNoDaemon(t *testing.T) {
	var out bytes.Buffer
	p := Program{Out: &out, Err: &out, Getenv: func(string) string { return "/h" }, Connect: func(_ context.Context, _ string, start bool) (*client.Client, error) {
		if start {
			t.Error("one was started")
		}
		return nil, client.ErrNoDaemon
	}}
	if code := Main(p, []string{"__complete", "approve", ""}); code != exitDone || strings.Contains(out.String(), "apr-") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	d := newDaemon(t)
	if flag, word := d.cli("--version"), d.cli("version"); flag != word || flag.code != exitDone || !strings.HasPrefix(flag.out, "sallyport ") {
		t.Errorf("%+v and %+v", flag, word)
	}
}
