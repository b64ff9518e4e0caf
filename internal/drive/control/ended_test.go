package control_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
)

// refused brings a change to its end with a checkpoint that did not land.
func (h *home) refused(c *control.Controller) view.Detail {
	h.t.Helper()
	h.cage.play = writes("two\n")
	chg := h.ask(c)
	d := h.is(c, chg, change.AwaitingApproval)
	if n, err := c.ForgetRefs(h.t.Context(), chg, h.by()); n != 0 || err != nil {
		h.t.Errorf("%d refs of an open change were removed: %v", n, err)
	}
	if err := c.Refuse(h.t.Context(), d.Approval.ID, h.by(), "no"); err != nil {
		h.t.Fatal(err)
	}
	return h.is(c, chg, change.Rejected)
}

func TestTheRefsOfAnEndedChangeGoAndNoOthers(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, _ := h.daemon()
		chg := h.refused(c).Change.ID
		h.git("update-ref", "refs/sallyport-notes/mine", "HEAD")
		h.git("update-ref", "refs/sallyport/"+string(chg)+"x/base", "HEAD")
		n, err := c.ForgetRefs(t.Context(), chg, h.by())
		if err != nil || n < 2 {
			t.Errorf("%d refs were removed: %v", n, err)
		}
		if left := h.refs(c, chg); left != "" {
			t.Errorf("the host has %q", left)
		}
		if left := strings.Fields(h.git("for-each-ref", "--format=%(refname)", "refs/sallyport/", "refs/sallyport-notes/")); !slices.Equal(left, []string{"refs/sallyport-notes/mine", "refs/sallyport/" + string(chg) + "x/base"}) {
			t.Errorf("the project has %q", left)
		}
		if count(h.verbs(c, chg), "forgotten") != 1 {
			t.Errorf("the audit log says %q", h.verbs(c, chg))
		}
		if n, err := c.ForgetRefs(t.Context(), chg, h.by()); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
	})
}

func TestAChangeThatIsTakenUpWhileItsRefsGoKeepsThem(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		var c *control.Controller
		var once sync.Once
		resume := func() {}
		h.parts.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "release:ref" {
				once.Do(resume)
			}
			return do()
		}}
		c, _ = h.daemon()
		d := h.refused(c)
		h.git("update-ref", "refs/sallyport/"+string(d.Change.ID)+"/base", "HEAD") // as an older sallyport left it
		before, theirs := h.refs(c, d.Change.ID), h.git("for-each-ref", "refs/sallyport/")
		resume = func() {
			if _, err := c.ResumeSession(t.Context(), d.Sessions[0].ID, h.by(), nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.ForgetRefs(t.Context(), d.Change.ID, h.by()); !errors.Is(err, change.ErrMoved) {
			t.Errorf("it was taken up meanwhile: %v", err)
		}
		if now := h.git("for-each-ref", "refs/sallyport/"); !strings.Contains(now, theirs) {
			t.Errorf("the project had\n%s\nand has\n%s", theirs, now)
		}
		for _, ref := range strings.Fields(before) {
			if !strings.Contains(h.refs(c, d.Change.ID), ref) {
				t.Errorf("the host has lost %s", ref)
			}
		}
	})
}
