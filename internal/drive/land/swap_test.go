package land_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
)

// TestASwapThatDoesNotFitItsBranchAnyMoreIsAskedForAnew is SM-162: what refuses its landing names no command that refuses it, too, and the
// command that it names leads on.
func TestASwapThatDoesNotFitItsBranchAnyMoreIsAskedForAnew(t *testing.T) {
	for name, s := range map[string]struct{ file, text, why string }{
		"a person has committed its file":  {drivetest.SwapPrompt, "Answer in rhymes.\n", drivetest.SwapPrompt},
		"a check fails beside what is new": {"closed", "x\n", "nobody is to be greeted"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"make greeting"}}}
				a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
					s.Write("template/runner/prompts/system.md", "Greet people.\n")
					return "", nil
				})
				troupe.Check = func(s *drivetest.Scene) (string, bool) {
					return "nobody is to be greeted\n", s.Read("closed") != "x\n" || s.Read(drivetest.SwapPrompt) != "Greet people.\n"
				}
				c, _ := a.Begin()
				chg := a.Offer(c)
				h.Commits(s.file, s.text, "By hand")
				a.Yes(c, chg)
				d := a.Is(c, chg, change.AwaitingApproval)
				if card := d.Proposal.Card; card.Note != "it did not land: "+d.Change.Reason || d.Change.Next != "sallyport chat echo" || strings.Contains(card.Note, "redo") || strings.Contains(card.Note, "change branch") ||
					!strings.HasSuffix(card.Note, "; refuse it, and ask for it anew in a conversation of the group echo") {
					t.Errorf("its card says %q, next %q", card.Note, d.Change.Next)
				}
				if told := d.Proposal.Card.Note + d.Proposal.Card.Checks[0].Tail; !strings.Contains(told, s.why) {
					t.Errorf("its card does not say %q: %q", s.why, told)
				}
				if _, err := c.Redo(gittest.Context(t), chg, h.By(), nil); problem.KindOf(err) != problem.Conflict {
					t.Errorf("it is redone: %v", err)
				}
				if _, err := a.Wish(c, "chg-bbbbbbbb", "Greet people"); err != nil {
					t.Fatal(err)
				}
				a.Is(c, chg, change.Cancelled)
			})
		})
	}
}

// TestTheCardOfASwapSaysInItsConversationWhatAPersonCommittedMeanwhile is SM-162: nobody has to approve it to find out.
func TestTheCardOfASwapSaysInItsConversationWhatAPersonCommittedMeanwhile(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, _ := h.Swapping("Greet people.\n")
		c, _ := a.Begin()
		chg := a.Offer(c, func() { h.Commits(drivetest.SwapPrompt, "Answer in rhymes.\n", "By hand") })
		var about string
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			outs, err := tx.Outs(ctx, drivetest.SwapChat, 0, 0, 100)
			for _, o := range outs {
				if o.Card == message.CardDiff && about == "" {
					about = o.Text
				}
			}
			return err
		})
		const want = "\nmain has moved by 1 commit since the change began\n  ! what differs there now: " + drivetest.SwapPrompt +
			"\nwhy it cannot land as it stands:\n  ! " + drivetest.SwapPrompt + " changed on main since the change began\n"
		if !strings.Contains(about, want) {
			t.Errorf("its card says\n%s", about)
		}

		// Looked at again, it says what is so then.
		if card := a.Is(c, chg, change.AwaitingApproval).Proposal.Card; len(card.Drift) != 1 || card.Moved == nil || card.Moved.Commits != 1 {
			t.Errorf("it is shown with %q, %+v", card.Drift, card.Moved)
		}
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "revert", "--no-edit", "HEAD")
		if card := a.Show(c, chg).Proposal.Card; len(card.Drift) != 0 || card.Moved == nil || card.Moved.Commits != 2 {
			t.Errorf("once that is undone it is shown with %q, %+v", card.Drift, card.Moved)
		}
	})
}

// TestTheAgentsOfASwapHearWhyItsLandingWasRefused is SM-110: the group's agent reads it with its next turn, and the dev agent is woken by it.
func TestTheAgentsOfASwapHearWhyItsLandingWasRefused(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, _ := h.Swapping("Greet people.\n")
		c, _ := a.Begin()
		chg := a.Offer(c)
		heard := func() (group, dev []string) {
			h.Tx(func(ctx context.Context, tx store.Tx) error {
				group, dev = nil, nil
				row, err1 := tx.Change(ctx, chg)
				of, err2 := ledger.DevChat(ctx, tx, row)
				all, err3 := tx.Ins(ctx, message.Filter{})
				for _, m := range all {
					if said := fmt.Sprintf("%t %s", m.Trigger, m.Text); m.Kind == prompt.System && m.Chat == of.ID {
						dev = append(dev, said)
					} else if m.Kind == prompt.System && m.Chat == drivetest.SwapChat {
						group = append(group, said)
					}
				}
				return errors.Join(err1, err2, err3)
			})
			return group, dev
		}
		h.Commits(drivetest.SwapPrompt, "Answer in rhymes.\n", "By hand")
		a.Yes(c, chg)
		d := a.Is(c, chg, change.AwaitingApproval)
		want := string(chg) + " was not landed, and waits for a person again: " + d.Change.Reason
		if group, dev := heard(); !slices.Equal(group, []string{"false " + want}) || !slices.Equal(dev, []string{"true " + want}) {
			t.Errorf("the group's agent heard %q, the dev agent %q; want %q", group, dev, want)
		}
		if said := a.Said(); len(said) == 0 || slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "waits for a person again") }) {
			t.Errorf("people are told beside the new card: %q", said)
		}
	})
}

// TestTheCommitOfASwapSaysWhatItsCardShows is SM-103: the subject has room for a part of what was approved, and the commit says no more than that.
func TestTheCommitOfASwapSaysWhatItsCardShows(t *testing.T) {
	const long = "Greet everybody by the name that they gave when they came here first, and ask whoever gave none"
	wishes := map[string]string{"Greet people": "Be kind " + strings.Repeat("and kinder ", 200)}
	for summary, body := range map[string]string{
		"Greet people by name":                "Be kinder\n\nCo-authored-by:",
		"Greet people":                        wishes["Greet people"][:1999] + "…\n\nCo-authored-by:",
		long:                                  long + "\n\nWhat the group echo asked for:\n\nBe kinder\n\nCo-authored-by:",
		"Greet people\nby their first name":   "Greet people\nby their first name\n\nWhat the group echo asked for:\n\nBe kinder\n\nCo-authored-by:",
		"Greet people\n\nApproved-by: nobody": "Greet people\n\n  Approved-by: nobody\n\nWhat the group echo asked for:\n\nBe kinder\n\nCo-authored-by:",
		"Greet " + strings.Repeat("kindly ", 270) + "all": "Greet kindly ",
	} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			a, _, _ := h.Swapping("Greet people.\n")
			c, _ := a.Begin()
			row := a.Wished(c, "chg-aaaaaaaa", cmp.Or(wishes[summary], "Be kinder"))
			time.Sleep(time.Minute)
			swap := tool.Swap{PerFileSummaries: map[string]string{"template/runner/prompts/system.md": strings.Repeat("greets ", 60)}, OverallSummary: summary, CommitSHA: "0123456"}
			if _, err := a.Call(t.Context(), tool.RequestSwap, swap, string(a.Show(c, row.ID).Checkpoints[0].Tree)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if says := a.Show(c, row.ID).Proposal.Card.AgentSays; !strings.HasPrefix(says, summary) {
				t.Errorf("the card does not show what the commit says, but %q", says)
			}
			a.Yes(c, row.ID)
			a.Is(c, row.ID, change.InTrial)
			subject, said, _ := strings.Cut(h.Git("log", "-1", "--format=%B"), "\n\n")
			if !strings.HasPrefix(subject, "swap chg-aaaaaaaa: Greet ") || strings.Contains(subject, "\n") || !strings.HasPrefix(said, body) {
				t.Errorf("%q lands as %q with\n%s", summary, subject, said)
			}
		})
	}
}
