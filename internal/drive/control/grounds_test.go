package control_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// counted are rules that say how often they were read.
type counted struct {
	rules
	read atomic.Int64
}

func (c *counted) At(ctx context.Context, project git.Project, dir git.Dir, commit git.OID) (grounds.Judging, error) {
	c.read.Add(1)
	return c.rules.At(ctx, project, dir, commit)
}

func TestAStepReadsTheRulesOnceAndOnceMoreForEachCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		book := &counted{}
		h.parts.Rules = book
		var begun, working atomic.Int64
		h.acts(func(s *scene, after func(time.Duration) bool) {
			begun.Store(book.read.Load())
			s.write("page.txt", "one, and more\n")
			after(40 * time.Second) // one checkpoint
			working.Store(book.read.Load())
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(2 * time.Minute)
		d := h.is(c, chg, change.AwaitingApproval)
		if want := []string{"interval valid", "end valid"}; !slices.Equal(statuses(d), want) {
			t.Fatalf("%q, want %q", statuses(d), want)
		}
		got := []int64{begun.Load(), working.Load() - begun.Load(), book.read.Load() - working.Load()}
		// The request, its workspace and its session; a checkpoint; the session's end and the card.
		if want := []int64{3, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("the rules were read %d times before, while and after the agent worked, want %d", got, want)
		}
	})
}

func TestRulesThatAPersonMakesStricterWhileAnAgentWorksJudgeWhatItLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		now := &laws{}
		now.rules.Store(&rules{})
		h.parts.Rules = now
		h.acts(func(s *scene, _ func(time.Duration) bool) {
			s.write("docs/new.md", "bad by then\n")
			strict := forbidding(session.Supervision{})
			now.rules.Store(&strict)
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(time.Minute)
		d := h.is(c, chg, change.Failed)
		if want := []string{"end invalid"}; !slices.Equal(statuses(d), want) {
			t.Errorf("%q, want %q", statuses(d), want)
		}
	})
}
