package drivetest

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing/synctest"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// CheckedBy has programs that are no check run agent, and every check look at the tree; it counts the checks.
func (h *Home) CheckedBy(agent func(tree string) int, check func(tree string) int) *atomic.Int32 {
	ran := &atomic.Int32{}
	h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
		if len(spec.Argv) == 3 && spec.Argv[1] == "-c" {
			ran.Add(1)
			return check(spec.Tree.Dir)
		}
		return agent(spec.Tree.Dir)
	}
	return ran
}

// AskWithCheck requests a change with one check, and waits as ask does.
func (h *Home) AskWithCheck(c *control.Controller, approve request.Approve) id.Change {
	h.T.Helper()
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{
		By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"},
		Approve: approve, Checks: []string{"make test"},
	}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

// Commits is a person's own commit of one file.
func (h *Home) Commits(name, text, subject string) {
	h.T.Helper()
	disktest.Put(h.T, filepath.Join(h.Repo, name), text, 0o644)
	h.Git("add", "--", name)
	h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", subject)
}

// Put writes a file of a tree.
func Put(tree, name, text string) int {
	if os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644) != nil {
		return 1
	}
	return 0
}

// together fails where both files are there: each alone is green.
func Both(names ...string) func(tree string) int {
	return func(tree string) int {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(tree, name)); err != nil {
				return 0
			}
		}
		return 1
	}
}

// Laws are rules that change.
type Laws struct{ Rules atomic.Pointer[Rules] }

func (l *Laws) At(ctx context.Context, project git.Project, dir git.Dir, commit git.OID) (grounds.Judging, error) {
	return l.Rules.Load().At(ctx, project, dir, commit)
}

func (l *Laws) Approvals() right.Rules { return l.Rules.Load().Approvals() }

func (l *Laws) Decidable() error { return l.Rules.Load().Decidable() }

func (l *Laws) Load(ctx context.Context, project git.Project, dir git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error) {
	return l.Rules.Load().Load(ctx, project, dir, commit, edits)
}
