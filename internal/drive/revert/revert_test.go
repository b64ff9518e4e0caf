package revert_test

import (
	"fmt"
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

// TestALandingThatIsNotThereAnyMoreIsNotRolledBackAndNobodyElsesCommitIsBlamed: a person has taken it back by themselves.
func TestALandingThatIsNotThereAnyMoreIsNotRolledBackAndNobodyElsesCommitIsBlamed(t *testing.T) {
	for how, c := range map[string]struct{ git, says string }{
		"reset":     {"reset -q --hard HEAD~1", "what commit %.12s of %s changed is on main as it was before"},
		"reverted":  {"revert --no-edit HEAD", "what commit %.12s of %s changed is on main as it was before"},
		"replaced":  {"reset -q --hard HEAD~1", "commit %.12s of %s is not on main any more"},
		"forgotten": {"reset -q --hard HEAD~1", "commit %.12s of %s is not on main any more"},
	} {
		t.Run(how, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				d, _ := h.Daemon()
				h.Cage.Play = drivetest.Writes("two\n")
				first := h.Ask(d)
				h.Yes(d, first)
				commit := h.Git("rev-parse", "main")
				h.Git(append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, strings.Fields(c.git)...)...)
				if how == "replaced" || how == "forgotten" {
					h.Commits("page.txt", "mine\n", "mine")
				}
				if how == "forgotten" {
					h.Git("reflog", "expire", "--expire=now", "--all")
					h.Git("gc", "-q", "--prune=now")
				}
				undo := h.Is(d, h.Undo(d, first, request.Yes), change.Failed)
				want := "there is nothing to roll back: " + fmt.Sprintf(c.says, commit, first)
				if says := undo.Change.Reason; says != want || !strings.HasSuffix(undo.Change.Next, " log main") {
					t.Errorf("it says %q, next %q, not %q", says, undo.Change.Next, want)
				}
			})
		})
	}
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
