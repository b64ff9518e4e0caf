package submit_test

import (
	"slices"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// A checkpoint was valid by the rules of its time. Where the rules have become stricter since, it is not offered.
func TestWhatIsOfferedIsJudgedByTheRulesAsTheyAre(t *testing.T) {
	const forbidden = "docs/new.md"

	t.Run("in the place of a later one that is not valid", func(t *testing.T) {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			now := &drivetest.Laws{}
			loose := drivetest.Rules{}
			loose.Judging.Supervision.Strategy = session.Shadow
			now.Rules.Store(&loose)
			h.Parts.Rules = now
			h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
				s.Write(forbidden, "allowed when it was written\n")
				after(40 * time.Second)
				strict := drivetest.Forbidding(session.Supervision{Strategy: session.Shadow})
				now.Rules.Store(&strict)
				s.Write("page.txt", "more\n")
			})
			c, _ := h.Daemon()
			chg := h.Ask(c)
			time.Sleep(2 * time.Minute)
			if d := h.Is(c, chg, change.Failed); !slices.Contains(drivetest.Statuses(d), "interval valid") {
				t.Errorf("no checkpoint was valid: %q", drivetest.Statuses(d))
			}
		})
	})

	t.Run("when a person goes back to it", func(t *testing.T) {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			now := &drivetest.Laws{}
			now.Rules.Store(&drivetest.Rules{})
			h.Parts.Rules = now
			h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
				s.Write(forbidden, "allowed when it was written\n")
				after(40 * time.Second)
				s.Write("page.txt", "more\n")
			})
			c, _ := h.Daemon()
			chg := h.Ask(c)
			time.Sleep(2 * time.Minute)
			d := h.Is(c, chg, change.AwaitingApproval)
			strict := drivetest.Forbidding(session.Supervision{})
			now.Rules.Store(&strict)
			if _, err := c.RestoreTo(gittest.Context(t), d.Checkpoints[0].ID, h.By()); err == nil {
				t.Error("it is offered")
			}
		})
	})
}
