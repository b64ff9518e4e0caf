package confirm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

const greets = "Greet people."

// swapping runs a test in a home whose group asks for a prompt that greets.
func swapping(t *testing.T, test func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, s *drivetest.Service)) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, g, s := h.Swapping(greets + "\n")
		test(t, a, g, s)
	})
}

func lines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// back fails unless a group has gone back for a reason: its files, its commit, what it runs and what is said of it.
func back(t *testing.T, a *drivetest.Assistants, c *control.Controller, chg id.Change, old, reason, said string) {
	t.Helper()
	d := a.Is(c, chg, change.RolledBack)
	if a.Git("rev-parse", "HEAD^{tree}") != a.Git("rev-parse", "HEAD~2^{tree}") || a.Git("status", "--porcelain") != "" {
		t.Errorf("it is not as it was: %s", a.Git("status", "--porcelain"))
	}
	if subject := a.Git("log", "-1", "--format=%s"); subject != "rollback "+string(chg)+": "+reason {
		t.Errorf("the commit says %q", subject)
	}
	if all := a.Said(); all[len(all)-1] != "notice: "+said {
		t.Errorf("it is said %q", all)
	}
	if d.Trial.Reason != reason || !d.Trial.Restored || d.Change.Reason != said {
		t.Errorf("the trial is %+v, the change says %q", d.Trial, d.Change.Reason)
	}
	if armed, _ := a.Keeper.Still(); len(armed) != 0 {
		t.Errorf("still armed: %v", armed)
	}
	if a.Git("show", "HEAD:"+drivetest.SwapPrompt) != old {
		t.Error("the prompt is not the old one")
	}
}

// TestAGroupThatAnswersAsksInItsConversationAndStaysOnceConfirmed is SM-106, SM-109, SM-121 and SM-917.
func TestAGroupThatAnswersAsksInItsConversationAndStaysOnceConfirmed(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, s *drivetest.Service) {
		none := time.Duration(0)
		s.Words.Trial = none // what the repository's target says of trials counts for none of its groups
		c, _ := a.Begin()
		chg := a.Swap(c)
		tried := a.Asked(c, chg)
		renewed, begun := g.Ran()
		lines(t, "it began anew on", renewed, greets, greets)
		lines(t, "it began on", begun)
		if n := len(s.Started()); n != 0 || tried.Restarts != 2 || tried.Target.Group != "echo" {
			t.Errorf("the home's own target restarted %d times; the trial is %+v", n, tried)
		}
		lines(t, "it is said", a.Said(), "talk trial: "+trial.Message1)
		if armed, _ := a.Keeper.Still(); len(armed) != 1 || armed[tried.Landing].Until.In != tried.Expires.In+3*time.Second {
			t.Errorf("armed is %+v", armed)
		}
		if seen, err := c.Groups.Show(t.Context(), group.First, ""); err != nil || seen.Swap == nil || seen.Swap.Row.ID != chg || seen.Swap.Trial == nil || seen.Swap.Trial.Handshake != trial.Message1Sent {
			t.Errorf("its group is shown with %+v, %v", seen.Swap, err)
		}
		card := a.Show(c, chg).Proposal.Card
		if card.Title != "Change what the group echo runs" || card.Wish != "Greet people" {
			t.Errorf("its headline is %q, the agent's words %q", card.Title, card.Wish)
		}
		if !slices.Equal(card.Then, []string{"sallyport restarts the agent of echo on its new files, and it must answer", "it is on trial for 2m0s: confirm it, or sallyport rolls it back"}) {
			t.Errorf("the card foretold %q", card.Then)
		}

		time.Sleep(110 * time.Second)
		if err := c.Confirm(gittest.Context(t), chg, a.By(), ""); err != nil {
			t.Fatal(err)
		}
		a.Is(c, chg, change.Finalized)
		if seen, err := c.Groups.Show(t.Context(), group.First, ""); err != nil || seen.Swap != nil {
			t.Errorf("afterwards its group is shown with %+v, %v", seen.Swap, err)
		}
		said := a.Said()
		if len(said) != 3 || !strings.HasPrefix(said[2], "notice promote: The runner/skills changes are currently applied only to the echo group.") ||
			!strings.HasSuffix(said[2], "\n1. Apply to template\n2. Keep local to echo") {
			t.Fatalf("what is said afterwards: %q", said)
		}
		lines(t, "then it is said", said[:2], "talk trial: "+trial.Message1, "notice: "+string(chg)+" is landed and kept: confirmed by ann")
		if armed, _ := a.Keeper.Still(); len(armed) != 0 {
			t.Errorf("still armed: %v", armed)
		}
		time.Sleep(time.Hour)
		if a.Git("show", "HEAD:"+drivetest.SwapPrompt) != greets {
			t.Error("it is gone after all")
		}

		// Undone later, it begins on its old files; no model is asked for that (SM-922).
		undo := a.Undo(c, chg, request.Yes)
		a.Is(c, undo, change.Finalized)
		renewed, begun = g.Ran()
		if len(renewed) != 2 || len(begun) != 1 || begun[0] == greets {
			t.Errorf("it began anew on %q, and then on %q", renewed, begun)
		}
	})
}

// TestWhatAGroupKeepsTheTemplateGetsWhenItsOwnerSaysSo holds SM-152 and SM-155; saying it twice changes nothing.
func TestWhatAGroupKeepsTheTemplateGetsWhenItsOwnerSaysSo(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, _ *drivetest.Chats, s *drivetest.Service) {
		s.Words.Trial = 0 // of what is no group's
		c, _ := a.Begin()
		chg := a.Swap(c)
		a.Asked(c, chg)
		if err := c.Promote(gittest.Context(t), chg, a.By()); problem.KindOf(err) != problem.Conflict {
			t.Errorf("before it is kept: %v", err)
		}
		if err := c.Confirm(gittest.Context(t), chg, a.By(), ""); err != nil {
			t.Fatal(err)
		}
		stranger := a.By()
		stranger.Person = "psn-stranger"
		if err := c.Promote(gittest.Context(t), chg, stranger); problem.KindOf(err) != problem.Denied {
			t.Errorf("by who may not: %v", err)
		}
		for range 2 {
			if err := c.Promote(gittest.Context(t), chg, a.By()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if subject := a.Git("log", "-1", "--format=%s"); subject != "promote "+string(chg)+": runner/prompts/system.md → template" {
			t.Errorf("it landed as %q", subject)
		}
		if a.Git("show", "HEAD:template/runner/prompts/system.md") != greets || a.Git("rev-list", "--count", "HEAD~2..HEAD") != "2" {
			t.Errorf("git log: %s", a.Git("log", "--oneline"))
		}
		if said := a.Said(); !strings.HasPrefix(said[len(said)-1], "notice: The template has what "+string(chg)+" landed, by chg-") || strings.HasPrefix(said[len(said)-2], "notice: The template has") {
			t.Errorf("it is said %q", said)
		}
	})
}

// TestWhatAGroupKeepsTheTemplateGetsWhenItsApproverSaysSo holds SM-150 and SM-152 of an approver who does not own the home: what is in the
// way of it is told where the change was asked for, and so is its end.
func TestWhatAGroupKeepsTheTemplateGetsWhenItsApproverSaysSo(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, _ *drivetest.Chats, s *drivetest.Service) {
		s.Words.Trial = 0 // of what is no group's
		c, _ := a.Begin()
		ada, gil := a.Admin("ada", "echo"), a.Admin("gil", "echo")
		chg := a.Offer(c)
		a.YesBy(c, chg, ada)
		a.Asked(c, chg)
		if err := c.Confirm(gittest.Context(t), chg, ada, ""); err != nil {
			t.Fatal(err)
		}
		if err := c.Promote(gittest.Context(t), chg, gil); problem.KindOf(err) != problem.Denied {
			t.Errorf("by an admin who has not approved it: %v", err)
		}

		prompt := filepath.Join(a.Repo, "template/runner/prompts/system.md")
		before, err := os.ReadFile(prompt)
		if err := errors.Join(err, os.WriteFile(prompt, []byte("by hand\n"), 0o644), c.Promote(gittest.Context(t), chg, ada)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var waits id.Change
		a.Tx(func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.Changes(ctx, change.Filter{States: []change.State{change.AwaitingApproval}, Limit: 2})
			if err == nil && len(rows) == 1 {
				waits = rows[0].ID
			}
			return err
		})
		said := a.Said()
		if !strings.HasPrefix(said[len(said)-1], "notice approval: May "+string(waits)+" land?") {
			t.Fatalf("what is in its way is said as %q", said)
		}
		disktest.Put(t, prompt, before, 0o644)
		a.YesBy(c, waits, ada)
		a.Is(c, waits, change.Finalized)
		if a.Git("show", "HEAD:template/runner/prompts/system.md") != greets {
			t.Errorf("git log: %s", a.Git("log", "--oneline"))
		}
		said = a.Said()
		lines(t, "its end", said[len(said)-1:], "notice: The template has what "+string(chg)+" landed, by "+string(waits)+"; new groups begin with it")
	})
}

// TestAPromotionShowsWhatItWouldTakeFromTheTemplate: the card of the change has shown what it did to the group's file, and not to another.
func TestAPromotionShowsWhatItWouldTakeFromTheTemplate(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, _ *drivetest.Chats, s *drivetest.Service) {
		s.Words.Trial = 0 // of what is no group's
		c, _ := a.Begin()
		chg := a.Swap(c)
		a.Asked(c, chg)
		if err := c.Confirm(gittest.Context(t), chg, a.By(), ""); err != nil {
			t.Fatal(err)
		}
		const mended = "Never tell a password."
		a.Commits("template/runner/prompts/system.md", mended+"\n", "Mend the template")
		if err := c.Promote(gittest.Context(t), chg, a.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if text := a.Git("show", "HEAD:template/runner/prompts/system.md"); text != mended {
			t.Fatalf("before anybody has seen that, the template has %q", text)
		}
		said := a.Said()
		var waits string
		_, err := fmt.Sscanf(said[len(said)-1], "notice approval: May %s land?", &waits)
		if shown := strings.Join(said, "\n"); err != nil || !strings.Contains(shown, "\n-"+mended+"\n+"+greets) {
			t.Fatalf("it is said %q, %v", said, err)
		}
		a.Yes(c, id.Change(waits))
		a.Is(c, id.Change(waits), change.Finalized)
		if text := a.Git("show", "HEAD:template/runner/prompts/system.md"); text != greets {
			t.Errorf("the template has %q", text)
		}
	})
}

// TestAGroupThatIsNotConfirmedGoesBackAndSaysWhy holds each way: SM-123, SM-127, SM-130, SM-139, SM-904, SM-906.
func TestAGroupThatIsNotConfirmedGoesBackAndSaysWhy(t *testing.T) {
	mute := problem.Of(problem.Errorf(problem.AgentFailed, "", "the agent of echo does not answer: it said nothing"))
	for name, c := range map[string]struct {
		plays        func(g *drivetest.Chats)
		then         func(t *testing.T, a *drivetest.Assistants, c *control.Controller, g *drivetest.Chats, chg id.Change)
		asked        bool
		starts       int // that it had to answer on; 0 = 2
		reason, said string
	}{
		"silence": {
			then: func(*testing.T, *drivetest.Assistants, *control.Controller, *drivetest.Chats, id.Change) {
				time.Sleep(2*time.Minute + time.Second)
			},
			asked: true, reason: trial.Timeout, said: trial.TimeoutSay,
		},
		"a word": {
			then: func(t *testing.T, a *drivetest.Assistants, c *control.Controller, _ *drivetest.Chats, chg id.Change) {
				if _, err := c.Rollback(gittest.Context(t), chg, a.By(), "too friendly", request.Later); err != nil {
					t.Error(err)
				}
			},
			asked: true, reason: "too friendly", said: "Rolled back to previous version — too friendly",
		},
		"it does not answer": {
			plays:  func(g *drivetest.Chats) { g.OnRenew = func(context.Context, string) error { return &mute } },
			starts: 1, reason: mute.Text, said: "Rolled back to previous version — " + mute.Text,
		},
		"it does not answer a second time": {
			plays: func(g *drivetest.Chats) {
				starts := 0
				g.OnRenew = func(context.Context, string) error {
					if starts++; starts == 2 {
						return &mute
					}
					return nil
				}
			},
			reason: mute.Text, said: "Rolled back to previous version — " + mute.Text,
		},
		"it begins anew for too long": {
			plays: func(g *drivetest.Chats) {
				g.OnRenew = func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) }
			},
			then: func(*testing.T, *drivetest.Assistants, *control.Controller, *drivetest.Chats, id.Change) {
				time.Sleep(trust.GroupAllows + time.Second)
			},
			starts: 1, reason: trial.Timeout, said: trial.TimeoutSay,
		},
		"it dies, and cannot begin again": {
			then: func(_ *testing.T, _ *drivetest.Assistants, _ *control.Controller, g *drivetest.Chats, _ id.Change) {
				time.Sleep(10 * time.Second)
				g.Set(func(g *drivetest.Chats) { g.OnAsk = func() error { return &mute } })
				time.Sleep(10 * time.Second)
			},
			asked: true, reason: "the target answered at first, then stopped answering: " + mute.Text,
			said: "Rolled back to previous version — the target answered at first, then stopped answering: " + mute.Text,
		},
	} {
		t.Run(name, func(t *testing.T) {
			swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, _ *drivetest.Service) {
				if c.plays != nil {
					g.Set(c.plays)
				}
				old := a.Git("show", "HEAD:"+drivetest.SwapPrompt)
				ctl, _ := a.Begin()
				chg := a.Swap(ctl)
				if c.then != nil {
					c.then(t, a, ctl, g, chg)
				}
				back(t, a, ctl, chg, old, c.reason, c.said)
				if asked := slices.Contains(a.Said(), "talk trial: "+trial.Message1); asked != c.asked {
					t.Errorf("it is said %q", a.Said())
				}
				renewed, begun := g.Ran()
				lines(t, "it had to answer on", renewed, []string{greets, greets}[:cmp.Or(c.starts, 2)]...)
				lines(t, "it began on its old files before they lay there, and after", begun, greets, old)
			})
		})
	}
}

// TestAStartFindsTheTrialOfAGroupWhereItWas is SM-131 to SM-134 of a group.
func TestAStartFindsTheTrialOfAGroupWhereItWas(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, _ *drivetest.Service) {
		old := a.Git("show", "HEAD:"+drivetest.SwapPrompt)
		g.OnRenew = func(ctx context.Context, _ string) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(20 * time.Second):
				return nil
			}
		}
		c, end := a.Begin()
		chg := a.Swap(c)
		time.Sleep(10 * time.Second)
		end()
		if d, _ := c.Show(gittest.Context(t), chg); d.Trial.Handshake != trial.PendingRestart || len(a.Said()) != 0 {
			t.Fatalf("%+v, said %q", d.Trial, a.Said())
		}
		c, end = a.Begin() // SM-131
		time.Sleep(41 * time.Second)
		tried := a.Asked(c, chg)
		lines(t, "it is said", a.Said(), "talk trial: "+trial.Message1)
		end()
		time.Sleep(20 * time.Second)
		c, end = a.Begin() // SM-132
		if again := a.Asked(c, chg); again.Expires != tried.Expires {
			t.Errorf("the end has moved: %+v", again)
		}
		lines(t, "it is said once", a.Said(), "talk trial: "+trial.Message1)
		if renewed, _ := g.Ran(); len(renewed) != 3 {
			t.Errorf("it had to answer %d times", len(renewed))
		}
		end()
		time.Sleep(tried.Expires.In)
		c, _ = a.Begin() // SM-133
		synctest.Wait()
		back(t, a, c, chg, old, trial.Timeout, trial.TimeoutSay)
	})
}

// TestAGroupWhoseFilesCannotGoBackRunsTheOldOnesAndSaysWhichPath is rollback_failed of a group, and its end.
func TestAGroupWhoseFilesCannotGoBackRunsTheOldOnesAndSaysWhichPath(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, _ *drivetest.Service) {
		old := a.Git("show", "HEAD:"+drivetest.SwapPrompt)
		c, _ := a.Begin()
		chg := a.Swap(c)
		a.Asked(c, chg)
		file := filepath.Join(a.Repo, drivetest.SwapPrompt)
		disktest.Put(t, file, "mine\n", 0o644)
		if _, err := c.Rollback(gittest.Context(t), chg, a.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d := a.Is(c, chg, change.RollbackFailed)
		if _, begun := g.Ran(); len(begun) == 0 || d.Trial.Restored || !d.Trial.Leaves("echo") {
			t.Errorf("it began %d times on its old files; %+v", len(begun), d.Trial)
		}
		said := a.Said()
		if last := said[len(said)-1]; len(said) != 2 || !strings.Contains(last, drivetest.SwapPrompt) || !strings.Contains(last, "could not roll the change back") {
			t.Errorf("it is said %q", said)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != "mine\n" {
			t.Errorf("a person's work is %q %v", raw, err)
		}

		a.Git("checkout", "--", drivetest.SwapPrompt)
		time.Sleep(10 * time.Minute)
		back(t, a, c, chg, old, "no", "Rolled back to previous version — no")
	})
}

// TestBesideTheTrialOfAGroupOthersLand holds SM-916 with its scope: what lands meanwhile stays when the group goes back.
func TestBesideTheTrialOfAGroupOthersLand(t *testing.T) {
	swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, s *drivetest.Service) {
		s.Words.Restart, s.Words.Trial = "", 0
		c, _ := a.Begin()
		chg := a.Swap(c)
		a.Asked(c, chg)
		beside, inside := a.Write(c, "page.txt"), a.Write(c, "groups/echo/runner/prompts/other.md")
		a.Is(c, beside, change.Finalized)
		a.Is(c, inside, change.Landing)
		if _, err := c.Rollback(gittest.Context(t), chg, a.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		a.Is(c, chg, change.RolledBack)
		a.Is(c, inside, change.Finalized)
		if a.Git("show", "HEAD:page.txt") != "by hand" || a.Git("show", "HEAD:groups/echo/runner/prompts/other.md") != "by hand" || a.Git("show", "HEAD:"+drivetest.SwapPrompt) == greets {
			t.Errorf("the home is %s", a.Git("log", "-4", "--stat"))
		}
	})
}

// TestWhoAskedForAChangeEndsItsTrialAndStrangersDoNot holds SM-140: the approver, the owner and who asked for it, and nobody else.
func TestWhoAskedForAChangeEndsItsTrialAndStrangersDoNot(t *testing.T) {
	stranger := func(account string) audit.Actor {
		return audit.Actor{Kind: "person", Name: "eve", UID: 7, Identity: "terminal:" + account}
	}
	swapping(t, func(t *testing.T, a *drivetest.Assistants, _ *drivetest.Chats, _ *drivetest.Service) {
		old := a.Git("show", "HEAD:"+drivetest.SwapPrompt)
		a.Wisher = "msg-abcdefgh"
		a.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PutIn(ctx, message.In{
				ID: a.Wisher, Chat: drivetest.SwapChat, Kind: prompt.Chat, Identity: "terminal:7", Sender: "eve", Text: "greet", At: time.Now().UTC(), Status: message.Completed, Due: time.Now().UTC(),
			})
			return err
		})
		c, _ := a.Begin()
		chg := a.Swap(c)
		a.Asked(c, chg)

		agent := stranger("7")
		agent.Kind = "agent"
		for what, who := range map[string]audit.Actor{"another stranger": stranger("8"), "an agent by that account": agent, "the host": audit.Host, "nobody": {Kind: "person"}} {
			for verb, err := range map[string]error{"confirm": c.Confirm(gittest.Context(t), chg, who, ""), "rollback": c.RollBack(gittest.Context(t), chg, who, "")} {
				if !errors.Is(err, person.ErrNotOwner) || !strings.Contains(err.Error(), "who asked for it") {
					t.Errorf("%s, %s: %v", verb, what, err)
				}
			}
		}
		a.Is(c, chg, change.InTrial)
		if err := c.RollBack(gittest.Context(t), chg, stranger("7"), ""); err != nil {
			t.Fatal(err)
		}
		back(t, a, c, chg, old, "asked for by eve", "Rolled back to previous version — asked for by eve")
	})
}

// TestWhatAPersonDoesBesideTheTrialOfAGroupIsKeptAndNamed: whatever they edit, commit or amend meanwhile is not overwritten. Where it is in
// the way, its path is named, and the group runs its old files all the same; else the group goes back and it stays.
func TestWhatAPersonDoesBesideTheTrialOfAGroupIsKeptAndNamed(t *testing.T) {
	const other = "groups/echo/runner/prompts/other.md"
	for name, c := range map[string]struct {
		does  func(a *drivetest.Assistants)
		in    string            // the path that is in the way; "" = none is
		stays map[string]string // what they wrote, by path
	}{
		"edits another file of the group": {
			does:  func(a *drivetest.Assistants) { drivetest.Put(a.Repo, "groups/echo/AGENTS.md", "mine\n") },
			stays: map[string]string{"groups/echo/AGENTS.md": "mine\n"},
		},
		"commits elsewhere": {
			does: func(a *drivetest.Assistants) {
				a.Commits("page.txt", "mine\n", "mine")
				a.Commits(other, "mine\n", "mine")
			},
			stays: map[string]string{"page.txt": "mine\n", other: "mine\n"},
		},
		"commits the file": {
			does:  func(a *drivetest.Assistants) { a.Commits(drivetest.SwapPrompt, "mine\n", "mine") },
			in:    drivetest.SwapPrompt,
			stays: map[string]string{drivetest.SwapPrompt: "mine\n"},
		},
		"amends the commit with another file": {
			does: func(a *drivetest.Assistants) {
				a.Commits("page.txt", "mine\n", "mine")
				a.Git("reset", "-q", "--soft", "HEAD~2")
				a.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "amended")
			},
			stays: map[string]string{"page.txt": "mine\n"},
		},
		"amends the file": {
			does: func(a *drivetest.Assistants) {
				drivetest.Put(a.Repo, drivetest.SwapPrompt, "mine\n")
				a.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qa", "--amend", "-m", "amended")
			},
			in:    drivetest.SwapPrompt,
			stays: map[string]string{drivetest.SwapPrompt: "mine\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			swapping(t, func(t *testing.T, a *drivetest.Assistants, g *drivetest.Chats, s *drivetest.Service) {
				s.Words.Restart, s.Words.Trial = "", 0
				old := a.Git("show", "HEAD:"+drivetest.SwapPrompt)
				ctl, _ := a.Begin()
				chg := a.Swap(ctl)
				a.Asked(ctl, chg)
				c.does(a)
				before := a.Git("rev-parse", "HEAD")
				if _, err := ctl.Rollback(t.Context(), chg, a.By(), "no", request.Later); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if c.in == "" {
					a.Is(ctl, chg, change.RolledBack)
					if a.Git("show", "HEAD:"+drivetest.SwapPrompt) != old || a.Git("rev-parse", "HEAD~1") != before {
						t.Errorf("the home is %s", a.Git("log", "-4", "--stat"))
					}
				} else {
					d := a.Is(ctl, chg, change.RollbackFailed)
					said := a.Said()
					if _, begun := g.Ran(); len(begun) == 0 || !d.Trial.Leaves("echo") || a.Git("rev-parse", "HEAD") != before || !strings.Contains(said[len(said)-1], c.in) {
						t.Errorf("it began %d times on its old files, HEAD is %s, and it is said %q", len(begun), a.Git("rev-parse", "HEAD"), said)
					}
				}
				for path, text := range c.stays {
					if raw, err := os.ReadFile(filepath.Join(a.Repo, path)); err != nil || string(raw) != text {
						t.Errorf("%s is %q %v", path, raw, err)
					}
				}
			})
		})
	}
}
