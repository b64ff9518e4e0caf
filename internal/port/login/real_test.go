package login_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/port/agent/agenttest"
)

// The programs themselves still take for a login what a renewal has written.
func TestTheRealProgramsTakeARenewedLoginForTheirs(t *testing.T) {
	for kind, ask := range map[string]struct {
		args []string
		says string
	}{
		"codex":  {[]string{"login", "status"}, "Logged in using ChatGPT"},
		"claude": {[]string{"--cli", "auth", "status"}, `"loggedIn": true`},
	} {
		t.Run(kind, func(t *testing.T) {
			program, path := agenttest.Real(t, kind)
			p := settle(t, kind)
			p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
			run := func() string {
				cmd := exec.CommandContext(t.Context(), program, ask.args...)
				cmd.Env = []string{"PATH=" + path, "HOME=" + p.home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
				cmd.Dir = p.home
				said, _ := cmd.CombinedOutput() // who is not logged in ends with an error
				return string(said)
			}
			if _, err := p.open().Present(t.Context()); err != nil {
				t.Fatal(err)
			}
			if said := run(); !strings.Contains(said, ask.says) {
				t.Errorf("it says %s of\n%s", said, p.kept())
			}
			if err := os.Remove(filepath.Join(p.home, p.kind.Folder, p.kind.File)); err != nil {
				t.Fatal(err)
			}
			if said := run(); strings.Contains(said, ask.says) {
				t.Errorf("without any it says %s", said)
			}
		})
	}
}
