package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/metric"
)

// byLogin is a home that has chosen the login of every agent's own program.
type byLogin struct{}

func (byLogin) Chosen(string) live.Choice { return live.Choice{Key: credential.Login} }

func (byLogin) Budgets() budget.Limits { return budget.Limits{} }

func TestAChangeWhoseLoginHasEndedWaitsForAnother(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		folder := t.TempDir()
		logIn := func(until time.Time) {
			text := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"access-token-0","expiresAt":%d}}`, until.UnixMilli())
			disktest.Put(t, filepath.Join(folder, ".credentials.json"), text, 0o600)
		}
		h.Parts.Agents["acp"], h.Parts.Agency, h.Parts.Meter = drivetest.Played{}, byLogin{}, metric.New(metric.Options{})
		h.Parts.Logins = login.New(login.Options{UID: os.Getuid(), Getenv: func(string) string { return folder }})
		h.Acts(func(s *drivetest.Scene, _ func(time.Duration) bool) { s.Write("page.txt", "two\n") })
		ask := request.Request{By: h.By(), Text: "x", Agent: "claude", Project: git.Project{Top: h.Repo}, Approve: request.Later}

		c, end := h.Daemon()
		if _, err := c.TakeRequest(gittest.Context(t), ask, nil); !errors.Is(err, credential.ErrMissing) || problem.Of(err).Next != "claude /login" {
			t.Errorf("it is taken without a login: %v", err)
		}
		end()
		logIn(time.Now().Add(time.Hour))
		r, err := control.New(h.Parts).TakeRequest(t.Context(), ask, nil)
		if err != nil {
			t.Fatal(err)
		}

		logIn(time.Now().Add(-time.Hour)) // before a daemon takes it up
		c, _ = h.Daemon()
		time.Sleep(10 * time.Second)
		at := h.Is(c, r.Change.ID, change.Blocked)
		if at.Change.Blocked != change.CredentialMissing || len(at.Sessions) != 0 || !strings.Contains(at.Change.Reason, "the login of claude has ended") || !strings.Contains(at.Change.Reason, "log in again with claude /login") {
			t.Errorf("%s, %d sessions: %s", at.Change.Blocked, len(at.Sessions), at.Change.Reason)
		}
		if err := c.Resume(gittest.Context(t), r.Change.ID, h.By()); !errors.Is(err, credential.ErrMissing) {
			t.Errorf("it goes on with the old one: %v", err)
		}
		logIn(time.Now().Add(time.Hour))
		if err := c.Resume(gittest.Context(t), r.Change.ID, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		h.Is(c, r.Change.ID, change.AwaitingApproval)
	})
}

func TestALoginThatEndsInTheMiddleOfATurnStopsTheAgentUntilThereIsAnother(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		p := b.employs(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", "half\n")
				b.last().Lost(problem.Case(credential.ErrMissing, "codex login", "the login of codex has ended; log in again with codex login"))
				return "", errors.New("401")
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", "whole\n")
				return "done", nil
			})
		d, _ := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(10 * time.Second)
		at := h.Is(d, chg, change.Blocked)
		resume := "sallyport change resume " + string(chg)
		if at.Change.Blocked != change.CredentialMissing || at.Change.Next != resume || !strings.Contains(at.Change.Reason, "log in again with codex login; then: "+resume) {
			t.Errorf("%s: %s (%s)", at.Change.Blocked, at.Change.Reason, at.Change.Next)
		}
		if err := d.Resume(t.Context(), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); len(told) != 2 || !strings.Contains(told[1], "Go on where you stopped") {
			t.Errorf("it was told %q", told)
		}
	})
}
