package control_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// counted are rules that say how often they were read.
type counted struct {
	drivetest.Rules
	read atomic.Int64
}

func (c *counted) At(ctx context.Context, project git.Project, dir git.Dir, commit git.OID) (grounds.Judging, error) {
	c.read.Add(1)
	return c.Rules.At(ctx, project, dir, commit)
}

func TestAStepReadsTheRulesOnceAndOnceMoreForEachCheckpoint(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		book := &counted{}
		h.Parts.Rules = book
		var begun, working atomic.Int64
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			begun.Store(book.read.Load())
			s.Write("page.txt", "one, and more\n")
			after(40 * time.Second) // one checkpoint
			working.Store(book.read.Load())
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(2 * time.Minute)
		d := h.Is(c, chg, change.AwaitingApproval)
		if want := []string{"interval valid", "end valid"}; !slices.Equal(drivetest.Statuses(d), want) {
			t.Fatalf("%q, want %q", drivetest.Statuses(d), want)
		}
		got := []int64{begun.Load(), working.Load() - begun.Load(), book.read.Load() - working.Load()}
		// The request, its workspace and its session; a checkpoint; the session's end and the card.
		if want := []int64{3, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("the rules were read %d times before, while and after the agent worked, want %d", got, want)
		}
	})
}

func TestRulesThatAPersonMakesStricterWhileAnAgentWorksJudgeWhatItLeaves(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		now := &drivetest.Laws{}
		now.Rules.Store(&drivetest.Rules{})
		h.Parts.Rules = now
		h.Acts(func(s *drivetest.Scene, _ func(time.Duration) bool) {
			s.Write("docs/new.md", "bad by then\n")
			strict := drivetest.Forbidding(session.Supervision{})
			now.Rules.Store(&strict)
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Minute)
		d := h.Is(c, chg, change.Failed)
		if want := []string{"end invalid"}; !slices.Equal(drivetest.Statuses(d), want) {
			t.Errorf("%q, want %q", drivetest.Statuses(d), want)
		}
	})
}
