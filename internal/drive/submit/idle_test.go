package submit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

func TestAnAgentThatChangedNothingIsNotGreen(t *testing.T) {
	for name, test := range map[string]struct {
		checked bool
		check   int // exit status
		state   change.State
		outcome string
		reason  string
		ran     int32
	}{
		"without checks":           {false, 0, change.Finalized, change.NothingToDo, "nothing to do: the agent changed nothing", 0},
		"on a base that passes":    {true, 0, change.Finalized, change.NothingToDo, "nothing to do: the agent changed nothing", 1},
		"on a base that is broken": {true, 1, change.Failed, change.BaseFailsChecks, `the base fails its own checks: the check "make test" failed`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				ran := h.CheckedBy(func(string) int { return 0 }, func(string) int { return test.check })
				c, _ := h.Daemon()
				ask := h.Ask
				if test.checked {
					ask = func(c *control.Controller) id.Change { return h.AskWithCheck(c, request.Yes) }
				}
				d := h.Is(c, ask(c), test.state)
				if d.Change.Outcome != test.outcome || !strings.Contains(d.Change.Reason, test.reason) || ran.Load() != test.ran {
					t.Errorf("after %d checks it is %q: %s", ran.Load(), d.Change.Outcome, d.Change.Reason)
				}
				if d.Landing != nil || d.Approval != nil {
					t.Errorf("somebody was asked, or it landed: %+v %+v", d.Approval, d.Landing)
				}
				if all, err := c.Checkpoints(gittest.Context(t), d.Change.ID); err != nil || len(all) != 1 || h.HasWorkspace(d.Change.ID) {
					t.Errorf("its checkpoints are %v, %v", all, err)
				}
				if verbs := h.Verbs(c, d.Change.ID); slices.Contains(verbs, "proposed") || slices.Contains(verbs, "passed a check") {
					t.Errorf("the audit log says %q", verbs)
				}
			})
		})
	}
}

// A session that goes on after that is not called idle any more.
func TestAnIdleChangeThatIsTakenUpAgainForgetsIt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		runs := 0
		h.CheckedBy(func(tree string) int {
			if runs++; runs == 1 {
				return 0
			}
			return drivetest.Put(tree, "mended", "x\n")
		}, func(tree string) int { return 1 - drivetest.Both("mended")(tree) })
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		d := h.Is(c, chg, change.Failed)
		time.Sleep(time.Second) // the next session begins later
		if _, err := c.ResumeSession(gittest.Context(t), d.Sessions[0].ID, h.By(), nil); err != nil {
			t.Fatal(err)
		}
		if d := h.Is(c, chg, change.AwaitingApproval); d.Change.Outcome != "" {
			t.Errorf("it is still %q", d.Change.Outcome)
		}
	})
}
