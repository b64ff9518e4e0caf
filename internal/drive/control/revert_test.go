package control_test

import (
	"strings"
	"testing"

	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

func TestARollbackThatWouldLoseALaterCommitNamesItAndWhatGoesBackFirst(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, _ := h.daemon()
		h.cage.play = writes("two\n")
		first := h.ask(c)
		h.yes(c, first)
		h.cage.play = writes("three\n")
		second := h.ask(c)
		h.yes(c, second)
		commit := h.git("rev-parse", "main")

		held := h.undo(c, first, request.Yes)
		d := h.is(c, held, change.Failed)
		if says := d.Change.Reason; !strings.Contains(says, "roll back "+string(second)+" (commit "+commit[:12]+") first") || d.Change.Next != "sallyport rollback "+string(second) {
			t.Errorf("it says %q, next %q", says, d.Change.Next)
		}
		h.is(c, h.undo(c, second, request.Yes), change.Finalized)
		h.is(c, h.undo(c, first, request.Yes), change.Finalized)
	})
}

func TestARollbackThatWouldLoseAPersonsCommitShowsIt(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, _ := h.daemon()
		h.cage.play = writes("two\n")
		first := h.ask(c)
		h.yes(c, first)
		h.commits("page.txt", "mine\n", "mine")
		commit := h.git("rev-parse", "main")
		d := h.is(c, h.undo(c, first, request.Yes), change.Failed)
		if says := d.Change.Reason; !strings.Contains(says, "roll back commit "+commit[:12]+" first") || !strings.HasSuffix(d.Change.Next, " show "+commit) {
			t.Errorf("it says %q, next %q", says, d.Change.Next)
		}
	})
}
