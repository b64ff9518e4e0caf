package land_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// TestASwapLandsWithTheDatabaseFromBeforeItKeptUntilItHasEnded is SM-101: what is kept is from before the landing's own row.
func TestASwapLandsWithTheDatabaseFromBeforeItKeptUntilItHasEnded(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, _ := h.Swapping("Greet people.\n")
		c, _ := a.Begin()
		chg := a.Swap(c)
		tried := a.Asked(c, chg)

		at := store.SnapshotPath(h.Parts.Settings.Backups, chg)
		text, err := os.ReadFile(at)
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := errors.Join(err, os.WriteFile(copied, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		before, err := sqlite.Open(t.Context(), copied, disk.Ops{})
		if err != nil {
			t.Fatal(err)
		}
		var row change.Row
		var l landing.Landing
		begun := false
		err = before.Read(t.Context(), func(tx store.Tx) error {
			var missing error
			row, missing = tx.Change(t.Context(), chg)
			l, begun, err = tx.Landing(t.Context(), tried.Landing)
			return errors.Join(missing, err)
		})
		if err := errors.Join(err, before.Close()); err != nil || row.State != change.Landing || begun {
			t.Errorf("it holds %s, landing %+v, %v", row.State, l, err)
		}
		if err := c.Confirm(gittest.Context(t), chg, a.By(), ""); err != nil {
			t.Fatal(err)
		}
		a.Is(c, chg, change.Finalized)
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it stays: %v", err)
		}
	})
}

// TestASwapDoesNotLandWithoutACopyOfTheDatabase is SM-101: no snapshot, no swap. An edit of a project needs none.
func TestASwapDoesNotLandWithoutACopyOfTheDatabase(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, _ := h.Swapping("Greet people.\n")
		c, _ := a.Begin()
		disktest.Put(t, h.Parts.Settings.Backups, "", 0o600)
		head := h.Git("rev-parse", "main")
		chg := a.Swap(c)
		time.Sleep(time.Hour) // it is tried a few times
		d := a.Is(c, chg, change.AwaitingApproval)
		if d.Landing != nil || h.Git("rev-parse", "main") != head || !strings.Contains(d.Change.Reason, "copy of the database") || !strings.Contains(d.Change.Reason, h.Parts.Settings.Backups) {
			t.Errorf("landing %+v, it says %q", d.Landing, d.Change.Reason)
		}
		if err := os.Remove(h.Parts.Settings.Backups); err != nil {
			t.Fatal(err)
		}
		a.Yes(c, chg)
		a.Asked(c, chg)
	})
}
