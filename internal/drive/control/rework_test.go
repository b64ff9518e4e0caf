package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// proposesAgain has the dev agent of a change that works propose what stands, and waits until that is checked.
func proposesAgain(a *drivetest.Assistants, of change.Row, all []string) {
	a.T.Helper()
	swap := tool.Swap{PerFileSummaries: map[string]string{"template/runner/prompts/system.md": "greets"}, OverallSummary: "Greet people", CommitSHA: "0123456"}
	if _, err := a.Call(a.T.Context(), tool.RequestSwap, swap, all[len(all)-1]); err != nil {
		a.T.Fatal(of.ID, err)
	}
	time.Sleep(time.Minute)
}

// TestAPersonWantsSomethingElseAndTheDevAgentGoesOnWithTheirWords holds SM-087 and SM-110: the card is withdrawn, the agent that made the
// change hears the words, whenever the host ends meanwhile, and proposes again.
func TestAPersonWantsSomethingElseAndTheDevAgentGoesOnWithTheirWords(t *testing.T) {
	for name, kill := range map[string]func(end func(), wait func()){
		"at once": func(_, wait func()) { wait() },
		"the host ends before it goes on": func(end, wait func()) {
			end()
			wait()
		},
		"the host ends while it goes on": func(end, wait func()) {
			wait()
			end()
			wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, words string) (string, error) {
					text := "Greet people.\n"
					if strings.Contains(words, "ann has read what you proposed, and wants something else in it before it lands:\n\nsay Hi") {
						text = s.Read("template/runner/prompts/system.md") + "Say Hi.\n"
					}
					s.Write("template/runner/prompts/system.md", text)
					return "", nil
				})
				a.Converse(drivetest.SwapChat)
				c, end := a.Begin()
				chg := a.Offer(c)
				first := a.Show(c, chg)
				bob := audit.Actor{Kind: "person", Name: "bob", UID: 4711, Person: "psn-0000bob0"}
				if err := c.Rework(gittest.Context(t), first.Approval.ID, bob, approval.ViaChat, "insult people"); !errors.Is(err, person.ErrNotOwner) {
					t.Errorf("somebody else's words: %v", err)
				}
				if err := c.Rework(gittest.Context(t), first.Approval.ID, h.By(), approval.ViaChat, " \n"); problem.KindOf(err) != problem.Usage {
					t.Errorf("no words: %v", err)
				}
				a.Is(c, chg, change.AwaitingApproval)
				for range 2 { // the host may have ended before it knew that it is done
					if err := c.Rework(gittest.Context(t), first.Approval.ID, h.By(), approval.ViaChat, " say Hi"); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Approve(gittest.Context(t), first.Approval.ID, first.Proposal.Digest, h.By(), approve.Words{Via: approval.ViaChat}); !errors.Is(err, approval.ErrDecided) {
					t.Errorf("the old card is approved: %v", err)
				}
				if d := a.Show(c, chg); d.Approval.Decision != approval.Reworked || d.Approval.Reason != "say Hi" || d.Change.Swap != nil || len(a.Questions(chg.Subject())) != 0 {
					t.Errorf("it stands as %+v, with %+v", d.Change, d.Approval)
				}
				wait := func() { time.Sleep(time.Minute) }
				kill(func() {
					end()
					c, end = a.Begin()
				}, wait)

				d := a.Is(c, chg, change.Working)
				if d.Change.Identity != first.Sessions[0].ID || !troupe.WentOn() {
					t.Errorf("it is gone on with by %q, after %+v", d.Change.Identity, d.Sessions)
				}
				var trees []string
				for _, cp := range d.Checkpoints {
					trees = append(trees, string(cp.Tree))
				}
				proposesAgain(a, d.Change, trees)
				d = a.Is(c, chg, change.AwaitingApproval)
				if d.Proposal.Number != 2 || d.Proposal.Digest == first.Proposal.Digest || !strings.Contains(strings.Join(d.Proposal.Card.Spoken.Diff, "\n")+"\n", "\n+Greet people.\n+Say Hi.\n") {
					t.Errorf("its second card is %+v", d.Proposal)
				}
				h.Tx(func(ctx context.Context, tx store.Tx) error {
					outs, err := tx.Outs(ctx, drivetest.SwapChat, 0, 0, 100)
					var told []string
					for _, o := range outs {
						told = append(told, o.Text)
					}
					if want := "ann wants " + string(chg) + " changed before it lands: say Hi; dev-greets goes on with it, and proposes it again"; drivetest.Count(told, want) != 1 {
						t.Errorf("the conversation is told %q", told)
					}
					return err
				})
			})
		})
	}
}

// TestWhatAPersonWantsIsNoTryThatAChecksRefusalCounts holds CW-053: rounds are those of an agent in a row.
func TestWhatAPersonWantsIsNoTryThatAChecksRefusalCounts(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"make greeting"}}}
		a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, words string) (string, error) {
			text := "Greet people.\n"
			if strings.Contains(words, "say Hi") {
				text = "Greet.\n"
			}
			if strings.Contains(words, "The check ") {
				text = "Say Hi.\n"
			}
			s.Write("template/runner/prompts/system.md", text)
			return "", nil
		})
		troupe.Check = func(s *drivetest.Scene) (string, bool) { return "", s.Read(drivetest.SwapPrompt) != "Greet.\n" }
		h.Commits("groups/echo/runner/runner.yaml", "agent: echo\nrounds: 2\n", "Two")
		c, _ := a.Begin()
		chg := a.Offer(c)
		if err := c.Rework(gittest.Context(t), a.Show(c, chg).Approval.ID, h.By(), approval.ViaChat, "say Hi"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			time.Sleep(time.Minute)
			d := a.Is(c, chg, change.Working)
			proposesAgain(a, d.Change, []string{string(d.Checkpoints[len(d.Checkpoints)-1].Tree)})
		}
		if d := a.Is(c, chg, change.AwaitingApproval); d.Proposal.Number != 3 {
			t.Errorf("it is asked about as card %d", d.Proposal.Number)
		}
	})
}

// TestWhoWouldApproveWhatTheyAskedForHasItAskedForAnew holds SM-912: where nobody approves what they asked for, words about what is to be
// different are no way around that.
func TestWhoWouldApproveWhatTheyAskedForHasItAskedForAnew(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("template/runner/prompts/system.md", "Greet people.\n")
			return "", nil
		})
		laws := &drivetest.Laws{}
		laws.Rules.Store(&drivetest.Rules{})
		h.Parts.Rules = laws
		c, _ := a.Begin()
		chg := a.Offer(c)
		laws.Rules.Store(&drivetest.Rules{Judging: grounds.Judging{Approvals: right.Rules{NoSelf: true}}})
		ask := a.Show(c, chg).Approval.ID
		if err := c.Rework(gittest.Context(t), ask, h.By(), approval.ViaChat, "say Hi"); !errors.Is(err, approval.ErrOwn) {
			t.Errorf("%v", err)
		}
		a.Is(c, chg, change.AwaitingApproval)
		laws.Rules.Store(&drivetest.Rules{})
		if err := c.Rework(gittest.Context(t), ask, h.By(), approval.ViaChat, "say Hi"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatNoGroupRunsIsNotReworkedAndTheWayOutIsTold(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		d := h.Is(c, h.Ask(c), change.AwaitingApproval)
		err := c.Rework(gittest.Context(t), d.Approval.ID, h.By(), approval.ViaChat, "say Hi")
		if p := problem.Of(err); p.Kind != problem.Conflict || !strings.Contains(p.Text, "rework is for a change of what a group runs") || !strings.HasPrefix(p.Next, "sallyport refuse "+string(d.Change.ID)) {
			t.Errorf("%+v", p)
		}
		h.Is(c, d.Change.ID, change.AwaitingApproval)
	})
}
