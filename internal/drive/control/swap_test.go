package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// TestADevAgentWhoseChangeIsOverIsNotTakenUpAgain holds SM-022 and SM-100: what has ended is asked for anew, and so no two work at once.
func TestADevAgentWhoseChangeIsOverIsNotTakenUpAgain(t *testing.T) {
	works := func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
		s.Write("template/runner/prompts/system.md", "Greet people.\n")
		return "", nil
	}
	for name, s := range map[string]struct {
		turn  drivetest.Deed
		until func(a *drivetest.Assistants, c *control.Controller) error
		state change.State
	}{
		"a person refused it": {works, func(a *drivetest.Assistants, c *control.Controller) error {
			return c.Refuse(a.T.Context(), a.Show(c, a.Offer(c)).Approval.ID, a.By(), "say Hi")
		}, change.Rejected},
		"it waits for a person": {works, func(a *drivetest.Assistants, c *control.Controller) error {
			a.Offer(c)
			return nil
		}, change.AwaitingApproval},
		"its agent gave up": {func(context.Context, *drivetest.Scene, string) (string, error) { return "", errors.New("no model") },
			func(a *drivetest.Assistants, c *control.Controller) error {
				_, err := a.Wish(c, "chg-aaaaaaaa", "Greet people")
				return err
			}, change.Failed},
		"another was asked for": {works, func(a *drivetest.Assistants, c *control.Controller) error {
			if _, err := a.Wish(c, "chg-aaaaaaaa", "Greet people"); err != nil {
				return err
			}
			time.Sleep(time.Minute)
			_, err := a.Wish(c, "chg-bbbbbbbb", "Greet people by name")
			return err
		}, change.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				a, troupe := h.Assist(s.turn)
				c, _ := a.Begin()
				if err := s.until(a, c); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				all, err := c.List(gittest.Context(t), change.Filter{States: []change.State{s.state}})
				if err != nil || len(all) != 1 {
					t.Fatalf("%d are %s: %v", len(all), s.state, err)
				}
				d, told := a.Show(c, all[0].ID), len(troupe.Told())
				_, err = c.ResumeSession(gittest.Context(t), d.Sessions[len(d.Sessions)-1].ID, h.By(), nil)
				if err == nil {
					t.Fatal("it is resumed")
				}
				if p := problem.Of(err); p.Kind != problem.Conflict || p.Next != "sallyport chat echo" || !strings.Contains(p.Text, "ask for it anew in a conversation of that group") {
					t.Errorf("it is resumed: %v", err)
				}
				time.Sleep(time.Minute)
				a.Is(c, all[0].ID, s.state)
				if now := len(troupe.Told()); now != told {
					t.Errorf("agents were told %d things more", now-told)
				}
			})
		})
	}
}

// TestADevAgentThatStandsStillGoesOn holds that its change is resumed as any other while it is the one under way.
func TestADevAgentThatStandsStillGoesOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(context.Context, *drivetest.Scene, string) (string, error) { return "", nil })
		c, end := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		for _, lost := range []bool{false, true} {
			if err := c.Pause(gittest.Context(t), row.ID, h.By(), "let me look"); err != nil {
				t.Fatal(err)
			}
			if lost {
				end()
				c, _ = a.Begin()
			}
			d := a.Is(c, row.ID, change.Paused)
			if _, err := c.ResumeSession(gittest.Context(t), d.Sessions[0].ID, h.By(), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			a.Is(c, row.ID, change.Working)
		}
	})
}

// TestAGroupsChangeWhoseSetupFailsIsAskedForAnew holds that no command is named that refuses it.
func TestAGroupsChangeWhoseSetupFailsIsAskedForAnew(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Setup: []string{"make ready"}}}
		a, troupe := h.Assist(func(context.Context, *drivetest.Scene, string) (string, error) { return "", nil })
		troupe.Check = func(*drivetest.Scene) (string, bool) { return "", false }
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		d := a.Is(c, row.ID, change.Failed)
		if d.Change.Next != "sallyport chat echo" || !strings.HasSuffix(d.Change.Reason, "Mend it and commit, and ask for the change anew in a conversation of the group echo") {
			t.Errorf("%q, next %q", d.Change.Reason, d.Change.Next)
		}
	})
}

// TestNoOtherTreeIsOfferedThanTheOneThatADevAgentProposed holds that its words on a card are about the tree on that card.
func TestNoOtherTreeIsOfferedThanTheOneThatADevAgentProposed(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		turn := func(text string) drivetest.Deed {
			return func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("template/runner/prompts/system.md", text)
				return "", nil
			}
		}
		a, _ := h.Assist(turn("Insult people.\n"), turn("Greet people.\n"))
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		if err := c.TellDev(gittest.Context(t), a.Is(c, row.ID, change.Working).Change, "kindly"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		all := a.Is(c, row.ID, change.Working).Checkpoints
		swap := tool.Swap{PerFileSummaries: map[string]string{"template/runner/prompts/system.md": "greets"}, OverallSummary: "Greet people", CommitSHA: "0123456"}
		if _, err := a.Call(t.Context(), tool.RequestSwap, swap, string(all[len(all)-1].Tree)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d := a.Is(c, row.ID, change.AwaitingApproval)
		_, err := c.RestoreTo(gittest.Context(t), all[0].ID, h.By())
		if err == nil {
			t.Fatal("another checkpoint is offered")
		}
		if p := problem.Of(err); p.Kind != problem.Refused || p.Next != "sallyport chat echo" || !strings.Contains(p.Text, "is not what dev-greets has proposed") {
			t.Errorf("another checkpoint is offered: %v", err)
		}
		if now := a.Is(c, row.ID, change.AwaitingApproval); now.Proposal.Number != 1 || now.Approval.ID != d.Approval.ID || now.Proposal.Tree != d.Proposal.Tree {
			t.Errorf("it waits with card %d of %s", now.Proposal.Number, now.Proposal.Tree)
		}
		if _, err := c.RestoreTo(gittest.Context(t), d.Change.Swap.Checkpoint, h.By()); err != nil {
			t.Fatal(err)
		}
		if now := a.Is(c, row.ID, change.AwaitingApproval); now.Proposal.Number != 2 || now.Proposal.Tree != d.Proposal.Tree {
			t.Errorf("the proposed one again is card %d of %s", now.Proposal.Number, now.Proposal.Tree)
		}
	})
}

// TestAWishIsHeardThoughTheOneBeforeEndsMeanwhile has a person cancel the first change while the second wish is about to.
func TestAWishIsHeardThoughTheOneBeforeEndsMeanwhile(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.DB = slow{h.Parts.DB}
		a, _ := h.Assist(func(ctx context.Context, _ *drivetest.Scene, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		c, _ := a.Begin()
		first := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		h.Is(c, first.ID, change.Working)
		wished := tarries(a, c)
		if err := c.Cancel(gittest.Context(t), first.ID, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		if err := <-wished; err != nil {
			t.Error(err)
		}
		h.Is(c, "chg-bbbbbbbb", change.Working)
	})
}

// tarries has a group wish for another change, and returns when that is about to end the one before. What came of the wish is told.
func tarries(a *drivetest.Assistants, c *control.Controller) (wished <-chan error) {
	told := make(chan error, 1)
	go func() {
		_, err := c.RequestSwap(context.WithValue(a.T.Context(), tarrying{}, true), standing.Wish{
			Change: "chg-bbbbbbbb", Group: group.First, Chat: "cht-abcdefgh", Message: a.Wisher, Heard: a.Spoke, Text: "Greet people by name", Dev: "dev-greets",
			By: audit.Actor{Kind: "agent", Name: "echo-abcde", UID: -1},
		})
		told <- err
	}()
	synctest.Wait()
	return told
}

// TestAWishEndsNothingThatWasApprovedMeanwhile holds SM-022 of a change that was not approved yet when the wish was looked at.
func TestAWishEndsNothingThatWasApprovedMeanwhile(t *testing.T) {
	for _, state := range []change.State{change.Landing, change.RollbackFailed} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			h.Parts.DB = slow{h.Parts.DB}
			a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("template/runner/prompts/system.md", "Greet people.\n")
				return "", nil
			})
			c, _ := a.Begin()
			chg := a.Offer(c)
			wished := tarries(a, c)
			h.Tx(func(ctx context.Context, tx store.Tx) error {
				row, err := tx.Change(ctx, chg)
				was := row.State
				row.State = state
				return errors.Join(err, tx.MoveChange(ctx, was, row))
			})
			if err := <-wished; problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "previous swap still pending") {
				t.Errorf("%s: %v", state, err)
			}
			h.Is(c, chg, state)
		})
	}
}
