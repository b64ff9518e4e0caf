package drivetest

import (
	"os"
	"path/filepath"
	"testing/synctest"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/request"
)

// Envrc is an agent that leaves a file that a tool runs when a person enters the folder.
func (h *Home) Envrc(c *control.Controller, approve request.Approve) id.Change {
	h.T.Helper()
	h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int { return Put(tree, ".envrc", "echo hello\n") }
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{By: h.By(), Text: "Set up", Project: git.Project{Top: h.Repo}, Agent: "played",
		Argv: []string{"true"}, Approve: approve}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	return r.Change.ID
}

// Halves asks about a change that brings one half of a repository, while the branch gets the other.
func (h *Home) Halves(c *control.Controller, approve request.Approve, checks ...string) id.Change {
	h.T.Helper()
	h.CheckedBy(func(tree string) int {
		for _, folder := range []string{"lib/x/objects", "lib/x/refs"} {
			if os.MkdirAll(filepath.Join(tree, folder), 0o755) != nil || Put(tree, folder+"/a", "x\n") != 0 {
				return 1
			}
		}
		if err := os.MkdirAll(filepath.Join(h.Repo, "lib/x"), 0o755); err != nil {
			h.T.Error(err)
		}
		h.Commits("lib/x/HEAD", "of the table\n", "The other half")
		return 0
	}, func(string) int { return 0 })
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{
		By: h.By(), Text: "Add a half", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: approve, Checks: checks,
	}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}
