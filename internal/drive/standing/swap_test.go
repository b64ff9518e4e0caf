package standing_test

import (
	"fmt"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

// TestWhatWasOffStaysOffForADevAgentWhoseGroupHasAnotherAgent holds SM-025: tools have the names of their agent, so the names for another one
// keep nothing from the one that works.
func TestWhatWasOffStaysOffForADevAgentWhoseGroupHasAnotherAgent(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		const runner = "groups/echo/runner/runner.yaml"
		h.Commits(runner, "agent: claude\ntools_off: [Bash]\n", "as it was asked for")
		p, err := git.Open(t.Context(), h.Repo)
		if err != nil {
			t.Fatal(err)
		}
		row := change.Row{ID: "chg-aaaaaaaa", Request: request.Request{Kind: request.Swap, Group: "echo", Agent: "claude", Project: p, Head: git.OID(h.Git("rev-parse", "HEAD"))}}
		for _, test := range []struct{ now, want string }{
			{"agent: claude\n", "[]"},
			{"agent: claude\ntools_off: [Edit]\n", "[Edit]"},
			{"agent: gemini\n", "[Bash]"},
			{"agent: gemini\ntools_off: [run_shell_command, send_message]\n", "[run_shell_command send_message Bash]"},
		} {
			h.Commits(runner, test.now, "as it is")
			binds, err := c.Groups.Binds(t.Context(), row)
			if got := fmt.Sprint(binds.Off()); err != nil || got != test.want {
				t.Errorf("%q: %s are off, not %s: %v", test.now, got, test.want, err)
			}
		}
	})
}
