package revert_test

import (
	"strings"
	"testing"

	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

func TestARollbackThatWouldLoseALaterCommitNamesItAndWhatGoesBackFirst(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, _ := h.Daemon()
		h.Cage.Play = drivetest.Writes("two\n")
		first := h.Ask(c)
		h.Yes(c, first)
		h.Cage.Play = drivetest.Writes("three\n")
		second := h.Ask(c)
		h.Yes(c, second)
		commit := h.Git("rev-parse", "main")

		held := h.Undo(c, first, request.Yes)
		d := h.Is(c, held, change.Failed)
		if says := d.Change.Reason; !strings.Contains(says, "roll back "+string(second)+" (commit "+commit[:12]+") first") || d.Change.Next != "sallyport rollback "+string(second) {
			t.Errorf("it says %q, next %q", says, d.Change.Next)
		}
		h.Is(c, h.Undo(c, second, request.Yes), change.Finalized)
		h.Is(c, h.Undo(c, first, request.Yes), change.Finalized)
	})
}

func TestARollbackThatWouldLoseAPersonsCommitShowsIt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, _ := h.Daemon()
		h.Cage.Play = drivetest.Writes("two\n")
		first := h.Ask(c)
		h.Yes(c, first)
		h.Commits("page.txt", "mine\n", "mine")
		commit := h.Git("rev-parse", "main")
		d := h.Is(c, h.Undo(c, first, request.Yes), change.Failed)
		if says := d.Change.Reason; !strings.Contains(says, "roll back commit "+commit[:12]+" first (git revert "+commit[:12]+")") || !strings.HasSuffix(d.Change.Next, " show "+commit) {
			t.Errorf("it says %q, next %q", says, d.Change.Next)
		}
	})
}
