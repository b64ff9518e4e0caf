package supervise_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// TestTheSameAgentOnAnotherProjectInheritsNothing holds RM-028 for changes: an agent that works in one repository finds nothing there of what
// it kept, cached, wrote or was told in another, and has another name (RM-024).
func TestTheSameAgentOnAnotherProjectInheritsNothing(t *testing.T) {
	const secret = "the secret of the first"
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		var specs []sandbox.Spec
		var ran []session.Session
		troupe := h.Converses(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			spec := specs[len(specs)-1]
			for _, place := range []string{spec.Tree.Dir, spec.Tree.GitDir, spec.Home, spec.Cache.Upper} {
				if place == "" {
					continue
				}
				notes := filepath.Join(place, "notes.txt")
				if _, err := os.Lstat(notes); err == nil {
					t.Errorf("%s was written elsewhere", notes)
				}
				if err := os.WriteFile(notes, []byte(secret), 0o600); err != nil {
					t.Error(err)
				}
			}
			s.Write("page.txt", "two\n")
			return secret, nil
		})
		plays := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			specs = append(specs, spec)
			return plays(spec, killed)
		}
		c, _ := h.Daemon()
		other := filepath.Join(h.Parts.Home, "other")
		h.Git("clone", "--quiet", h.Repo, other)

		for i, top := range []string{h.Repo, other} {
			r, err := c.TakeRequest(gittest.Context(t), request.Request{
				By: h.By(), Text: []string{secret, "look around"}[i], Project: git.Project{Top: top}, Agent: "played", Argv: []string{"true"}, Approve: request.Later,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			ran = append(ran, h.Is(c, r.Change.ID, change.AwaitingApproval).Sessions...)
		}
		if len(ran) != 2 || len(specs) != 2 || ran[0].ID == ran[1].ID || ran[0].Dir == ran[1].Dir || specs[0].Home == "" || specs[0].Home == specs[1].Home {
			t.Fatalf("%+v in %q and %q", ran, specs[0].Home, specs[1].Home)
		}
		if told := troupe.Told(); len(told) != 2 || !strings.Contains(told[0], secret) || strings.Contains(told[1], secret) {
			t.Errorf("they were told %q", told)
		}
		if troupe.WentOn() {
			t.Error("the second goes on with what the first has kept")
		}
	})
}
