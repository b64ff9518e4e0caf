package tidy_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// What an ended change left behind may take long to look at and to remove.
func TestClearingUpAfterTheLastDaemonHoldsNobodyUp(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, end := h.Daemon()
		old := h.Ask(c)
		d := h.Is(c, old, change.AwaitingApproval)
		if err := c.Refuse(gittest.Context(t), d.Approval.ID, h.By(), "no"); err != nil {
			t.Fatal(err)
		}
		h.Is(c, old, change.Rejected)
		end()
		if _, err := h.Parts.Workspaces.Prepare(t.Context(), workspace.Spec{
			Change: old, Project: d.Change.Request.Project, Base: git.OID(d.Change.Base), Branch: d.Change.Request.Branch, Owner: sandbox.Owner(h.Parts.Settings.Self),
		}); err != nil {
			t.Fatal(err)
		}
		free := make(chan struct{})
		release := sync.OnceFunc(func() { close(free) })
		t.Cleanup(release)
		h.Parts.Workspaces = workspace.New(workspace.Config{
			Root: filepath.Join(h.Parts.Home, "state"), Strategy: workspace.Copy,
			Ops: disk.Ops{Around: func(name string, do func() error) error {
				if name == "workspace:retire" {
					<-free
				}
				return do()
			}},
		})
		c, _ = h.Daemon()
		h.Is(c, h.Ask(c), change.AwaitingApproval)
		if !h.HasWorkspace(old) {
			t.Error("it was not in the way at all")
		}
		release()
		h.Is(c, old, change.Rejected)
		if h.HasWorkspace(old) {
			t.Error("it was never removed")
		}
	})
}

// A power cut while a ref was moved must not fail the change whose ref it was.
func TestADaemonThatBeginsFreesTheRefsOfOpenChanges(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, end := h.Daemon()
		asked := h.Ask(c)
		d := h.Is(c, asked, change.AwaitingApproval)
		end()
		lock := filepath.Join(h.Parts.Workspaces.Host(d.Change.Request.Project).Path, repository.RefRoot(asked), "valid.lock")
		disktest.Put(t, lock, "", 0o600)
		c, _ = h.Daemon()
		next := h.Ask(c)
		time.Sleep(time.Minute) // a git that outlived the last daemon had its time
		h.Is(c, next, change.AwaitingApproval)
		if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the ref of %s is locked: %v", asked, err)
		}
	})
}
