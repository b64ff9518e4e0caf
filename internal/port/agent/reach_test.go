package agent_test

import (
	"strings"
	"testing"

	"sallyport/internal/port/agent"
)

// TestWhatAnAgentReachesIsSaidBeforeAnyKeyIsFound holds SM-908: hosts and credentials follow from the table and the settings alone.
func TestWhatAnAgentReachesIsSaidBeforeAnyKeyIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		agent string
		of    agent.Settings
		named bool
		want  string // hosts; keys
	}{
		"its company":       {"codex", agent.Settings{}, false, "api.openai.com; the key that people keep in CODEX_API_KEY or OPENAI_API_KEY"},
		"its login":         {"codex", agent.Settings{Login: true}, true, "chatgpt.com; the login of codex"},
		"elsewhere":         {"codex", agent.Settings{Base: "https://x.example:8443/v1"}, true, "x.example:8443; the key that sallyport.yaml names for codex"},
		"any of several":    {"pi", agent.Settings{}, false, "api.anthropic.com api.openai.com; the key that people keep in ANTHROPIC_API_KEY, the key that people keep in OPENAI_API_KEY"},
		"the one of a wire": {"pi", agent.Settings{Wire: "chat"}, false, "api.openai.com; the key that people keep in OPENAI_API_KEY"},
		"no model":          {"echo", agent.Settings{}, false, "; "},
	} {
		k, err := agent.Lookup(test.agent)
		if err != nil {
			t.Fatal(err)
		}
		hosts, keys := k.Reach(test.of, test.named)
		if got := strings.Join(hosts, " ") + "; " + strings.Join(keys, ", "); got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
