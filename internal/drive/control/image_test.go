package control_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
)

// TestAgentsAndChecksOfTheHomeStartFromItsImage holds SM-164: the agent of a group's change has what the group's own has.
func TestAgentsAndChecksOfTheHomeStartFromItsImage(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		const image = "/home/.state/images/0123/root"
		a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("template/runner/prompts/system.md", "Greet people.\n")
			s.Write("page.txt", "two\n")
			return "", nil
		})
		troupe.Check = func(*drivetest.Scene) (string, bool) { return "", true }
		h.Parts.Settings.Image = image
		h.Parts.Agents["played"] = drivetest.Turning{}
		var mu sync.Mutex
		started := map[string][]string{} // images by program
		plays := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			mu.Lock()
			started[spec.Argv[0]] = append(started[spec.Argv[0]], spec.Image)
			mu.Unlock()
			return plays(spec, killed)
		}
		all := func(want string, programs ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, program := range programs {
				if len(started[program]) == 0 {
					t.Errorf("no %s was started", program)
				}
			}
			for program, images := range started {
				for _, image := range images {
					if image != want {
						t.Errorf("%s was started from %q, want %q", program, image, want)
					}
				}
			}
			clear(started)
		}

		other := filepath.Join(t.TempDir(), "other")
		h.Git("clone", "--quiet", h.Repo, other)
		c, _ := a.Begin()
		a.Offer(c)
		all(image, "adapt")
		for top, want := range map[string]string{h.Repo: image, other: ""} {
			r, err := c.TakeRequest(gittest.Context(t), request.Request{
				By: h.By(), Text: "Change the page", Project: git.Project{Top: top}, Agent: "played", Argv: []string{"true"}, Checks: []string{"true"}, Approve: request.Later,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			h.Is(c, r.Change.ID, change.AwaitingApproval)
			all(want, "adapt", "/bin/sh")
		}
	})
}
