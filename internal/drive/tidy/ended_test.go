package tidy_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
)

func TestTheRefsOfAnEndedChangeGoAndNoOthers(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, _ := h.Daemon()
		chg := h.Refused(c).Change.ID
		h.Git("update-ref", "refs/sallyport-notes/mine", "HEAD")
		h.Git("update-ref", "refs/sallyport/"+string(chg)+"x/base", "HEAD")
		n, err := c.ForgetRefs(gittest.Context(t), chg, h.By())
		if err != nil || n < 2 {
			t.Errorf("%d refs were removed: %v", n, err)
		}
		if left := h.Refs(c, chg); left != "" {
			t.Errorf("the host has %q", left)
		}
		if left := strings.Fields(h.Git("for-each-ref", "--format=%(refname)", "refs/sallyport/", "refs/sallyport-notes/")); !slices.Equal(left, []string{"refs/sallyport-notes/mine", "refs/sallyport/" + string(chg) + "x/base"}) {
			t.Errorf("the project has %q", left)
		}
		if drivetest.Count(h.Verbs(c, chg), "forgotten") != 1 {
			t.Errorf("the audit log says %q", h.Verbs(c, chg))
		}
		if n, err := c.ForgetRefs(gittest.Context(t), chg, h.By()); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
	})
}

func TestAChangeThatIsTakenUpWhileItsRefsGoKeepsThem(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		var c *control.Controller
		var once sync.Once
		resume := func() {}
		h.Parts.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "release:ref" {
				once.Do(resume)
			}
			return do()
		}}
		c, _ = h.Daemon()
		d := h.Refused(c)
		h.Git("update-ref", "refs/sallyport/"+string(d.Change.ID)+"/base", "HEAD") // as an older sallyport left it
		before, theirs := h.Refs(c, d.Change.ID), h.Git("for-each-ref", "refs/sallyport/")
		resume = func() {
			if _, err := c.ResumeSession(gittest.Context(t), d.Sessions[0].ID, h.By(), nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.ForgetRefs(gittest.Context(t), d.Change.ID, h.By()); !errors.Is(err, change.ErrMoved) {
			t.Errorf("it was taken up meanwhile: %v", err)
		}
		if now := h.Git("for-each-ref", "refs/sallyport/"); !strings.Contains(now, theirs) {
			t.Errorf("the project had\n%s\nand has\n%s", theirs, now)
		}
		for _, ref := range strings.Fields(before) {
			if !strings.Contains(h.Refs(c, d.Change.ID), ref) {
				t.Errorf("the host has lost %s", ref)
			}
		}
	})
}
