package supervise_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

const prompts = "template/runner/prompts/system.md"

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

var swap = tool.Swap{
	PerFileSummaries: map[string]string{prompts: "greets by " + planted, "of " + planted: "no file"}, OverallSummary: "Greet people by name\n\nIt has " + planted, CommitSHA: "0123456",
}

// TestADevAgentProposesExactlyWhatStandsAndNothingAfterwards holds SM-042, SM-044, SM-050, SM-051, SM-062, SM-100 and law 2.
func TestADevAgentProposesExactlyWhatStandsAndNothingAfterwards(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		var a *drivetest.Assistants
		tree := ""
		a, troupe := h.Assist(
			func(_ context.Context, s *drivetest.Scene, words string) (string, error) {
				if !strings.Contains(words, "You are dev-greets. The group echo") || !strings.Contains(words, "\nGreet people\n") {
					t.Errorf("it was told %q", words)
				}
				s.Write(prompts, "Greet people.\n")
				return "Ready to propose these changes: it greets. OK to submit for approval?", nil
			},
			func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
				if _, err := a.Call(ctx, tool.RequestSwap, swap, strings.Repeat("0", 40)); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "exactly the files that stand") {
					t.Errorf("a commit with other files: %v", err)
				}
				if _, err := a.Call(ctx, tool.SendMessage, tool.Message{Text: "x", To: "ann"}, ""); problem.KindOf(err) != problem.Usage {
					t.Errorf("it reaches others than its group's agent: %v", err)
				}
				_, err := a.Call(ctx, tool.RequestSwap, swap, tree)
				s.Write(prompts, "Insult people.\n") // its host has ended it; whatever still runs for a moment changes nothing
				return "done", err
			},
		)
		c, end := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		d := h.Is(c, row.ID, change.Working)
		if heard := a.Heard(); len(heard) != 1 || !strings.HasPrefix(heard[0], "Ready to propose") || len(d.Checkpoints) != 1 {
			t.Fatalf("the group heard %q, with %d checkpoints", heard, len(d.Checkpoints))
		}
		if again, err := a.Wish(c, row.ID, "Greet people"); err != nil || again.ID != row.ID {
			t.Errorf("the same call again began %s: %v", again.ID, err)
		}
		tree = string(d.Checkpoints[0].Tree)
		if err := c.TellDev(gittest.Context(t), change.Row{ID: "chg-bbbbbbbb"}, "yes"); problem.KindOf(err) != problem.Unavailable {
			t.Errorf("words for a dev agent that there is not: %v", err)
		}
		if err := c.TellDev(gittest.Context(t), d.Change, "yes"); err != nil {
			t.Fatal(err)
		}

		time.Sleep(time.Minute)
		d = h.Is(c, row.ID, change.AwaitingApproval)
		edits := d.Proposal.Edits
		if len(edits) != 1 || edits[0].Path != "groups/echo/runner/prompts/system.md" || string(d.Proposal.Base) != h.Git("rev-parse", "main") {
			t.Errorf("it offers %+v upon %s", edits, d.Proposal.Base)
		}
		if s := d.Change.Swap; s.Summary != "Greet people by name\n\nIt has [secret: github-token]" || s.Files[prompts] != "greets by [secret: github-token]" ||
			len(s.Files) != 2 || s.Files["of [secret: github-token]"] != "no file" {
			t.Errorf("it says of it %+v", s)
		}
		if subject := d.Proposal.Card.Subject; subject != "swap chg-aaaaaaaa: Greet people by name" {
			t.Errorf("it lands as %q", subject)
		}
		end()
		c, _ = a.Begin()
		h.Is(c, row.ID, change.AwaitingApproval)
		if told := troupe.Told(); len(told) != 2 {
			t.Errorf("its agent was started again: %q", told)
		}
		if host := h.Git("status", "--porcelain"); host != "" {
			t.Errorf("its work reached the home: %s", host)
		}
	})
}

// TestADevAgentThatEndsWithoutAProposalHasFailed holds that nothing is offered that was not proposed.
func TestADevAgentThatEndsWithoutAProposalHasFailed(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write(prompts, "Greet people.\n")
			return "", context.DeadlineExceeded
		})
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		d := h.Is(c, row.ID, change.Failed)
		if d.Proposal != nil || !strings.Contains(d.Change.Reason, "dev-greets ended without a proposal") {
			t.Errorf("%q, %+v", d.Change.Reason, d.Proposal)
		}
	})
}

// TestANewWishEndsTheOneBeforeAndNoneBeginsDuringATrial holds SM-021, SM-022 and SM-033.
func TestANewWishEndsTheOneBeforeAndNoneBeginsDuringATrial(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write(prompts, "Greet people.\n")
			return "", nil
		})
		c, _ := a.Begin()
		first := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		h.Is(c, first.ID, change.Working)
		second := a.Wished(c, "chg-bbbbbbbb", "Greet people by name")
		if d := h.Is(c, first.ID, change.Cancelled); !strings.Contains(d.Change.Reason, string(second.ID)) {
			t.Errorf("it says %q", d.Change.Reason)
		}
		time.Sleep(time.Minute)
		h.Is(c, second.ID, change.Working)
		tree := string(h.Show(c, second.ID).Checkpoints[0].Tree)
		if _, err := a.Call(t.Context(), tool.RequestSwap, swap, tree); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.Is(c, second.ID, change.AwaitingApproval)

		third := id.Change("chg-cccccccc")
		row := h.Show(c, second.ID).Change
		for _, state := range []change.State{change.Landing, change.InTrial, change.RollbackFailed} {
			h.Tx(func(ctx context.Context, tx store.Tx) error {
				was := row.State
				row.State = state
				return tx.MoveChange(ctx, was, row)
			})
			if _, err := a.Wish(c, third, "More"); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "previous swap still pending") {
				t.Errorf("%s: %v", state, err)
			}
		}
	})
}

// TestADevAgentMayAskTheSameAgainInALaterTurn holds that a question asked twice in a turn is one, that one of a later turn is another, and
// that words said twice are two messages.
func TestADevAgentMayAskTheSameAgainInALaterTurn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		var a *drivetest.Assistants
		a, _ = h.Assist(func(ctx context.Context, _ *drivetest.Scene, _ string) (string, error) {
			for range 2 {
				if _, err := a.Call(ctx, tool.AskUserQuestion, tool.Question{Question: "OK?", Options: []string{"yes", "no"}}, ""); err != nil {
					t.Error(err)
				}
				if _, err := a.Call(ctx, tool.SendMessage, tool.Message{Text: "Still at it"}, ""); err != nil {
					t.Error(err)
				}
			}
			return "", nil
		})
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		if err := c.TellDev(gittest.Context(t), h.Is(c, row.ID, change.Working).Change, "no"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		turn := []string{"OK?\n1. yes\n2. no", "Still at it", "Still at it"}
		if heard := a.Heard(); !slices.Equal(heard, slices.Concat(turn, turn)) {
			t.Errorf("the group heard %q", heard)
		}
	})
}

// TestOfTwoWishesAtOnceOneDevAgentIsLeft holds SM-022 and SM-100 for a group that asks in two conversations.
func TestOfTwoWishesAtOnceOneDevAgentIsLeft(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(context.Context, *drivetest.Scene, string) (string, error) { return "", nil })
		c, _ := a.Begin()
		var both sync.WaitGroup
		for _, of := range []id.Change{"chg-aaaaaaaa", "chg-bbbbbbbb"} {
			both.Go(func() {
				if _, err := a.Wish(c, of, "Greet people"); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		time.Sleep(time.Minute)
		all, err := c.List(gittest.Context(t), change.Filter{States: change.Open()})
		if err != nil || len(all) != 1 {
			t.Errorf("%d are open: %v", len(all), err)
		}
	})
}

// TestAFolderIsProposedAsAPersonSaysAndOnlyReadWhereNobodyCan holds CH-026: who is to be shown a folder proposes nothing before a person has
// said how, once, and nothing else than they said.
func TestAFolderIsProposedAsAPersonSaysAndOnlyReadWhereNobodyCan(t *testing.T) {
	const runner = "template/runner/runner.yaml"
	const read, write = "agent: echo\nmounts: [{path: /srv/box}]\n", "agent: echo\nmounts: [{path: /srv/box, readonly: false}]\n"
	for name, c := range map[string]struct {
		first, then string
		chat        bool   // there is a conversation in which somebody can be asked
		says        string // "" = nobody says anything
		refusal     string // of the second call
	}{
		"read-only, as it is":            {first: read, chat: true, says: "read-only"},
		"read-only, and it was written":  {first: write, chat: true, says: "read-only", refusal: "/srv/box is to be read-only: leave readonly out"},
		"read-write, as it is":           {first: write, chat: true, says: "read-write"},
		"read-write, and it was not":     {first: read, chat: true, says: "read-write", refusal: "/srv/box is to be read-write: write readonly: false"},
		"no answer yet":                  {first: read, chat: true, refusal: tool.Asked},
		"no folder any more":             {first: read, then: "agent: echo\nrounds: 2\n", chat: true},
		"nobody is there: read":          {first: read},
		"nobody is there: to be written": {first: write, refusal: "/srv/box is to be read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				var a *drivetest.Assistants
				tree := ""
				proposes := func(want string) {
					if r, err := a.Call(t.Context(), tool.RequestSwap, swap, tree); want == tool.Asked && !strings.HasPrefix(r.Text, tool.Asked) ||
						want != tool.Asked && (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("it answered %q, %v; want %q", r.Text, err, want)
					}
				}
				a, _ = h.Assist(
					func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
						s.Write(runner, c.first)
						return "", nil
					},
					func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
						if c.then != "" {
							s.Write(runner, c.then)
						}
						return "", nil
					},
				)
				d, _ := a.Begin()
				if c.chat {
					a.Converse("cht-abcdefgh")
				}
				row := a.Wished(d, "chg-aaaaaaaa", "Show yourself the box")
				time.Sleep(time.Minute)
				is := func() change.Row {
					cps := h.Is(d, row.ID, change.Working).Checkpoints
					tree = string(cps[len(cps)-1].Tree)
					return h.Show(d, row.ID).Change
				}
				is()
				if c.chat {
					proposes(tool.Asked)
					proposes(tool.Asked) // and asked nothing twice
					if open := a.Questions(row.ID.Subject()); len(open) != 1 || open[0].Kind != question.Mount || !strings.Contains(open[0].Text(), ": /srv/box. May it read there, or write too?\n1. read-only, ") {
						t.Fatalf("it asked %+v", open)
					}
				}
				if c.says != "" {
					a.Says(row.ID.Subject(), c.says)
				}
				if c.then != "" {
					if err := d.TellDev(t.Context(), is(), "leave it"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					is()
				}
				proposes(c.refusal)
				if c.refusal != "" {
					h.Is(d, row.ID, change.Working)
					return
				}
				time.Sleep(time.Minute)
				h.Is(d, row.ID, change.AwaitingApproval)
				if open := a.Questions(row.ID.Subject()); len(open) != 1 || open[0].Kind != question.Swap {
					t.Errorf("left open: %+v", open)
				}
			})
		})
	}
}

// TestADevAgentIsToldWhileItWorksWhatItsGroupCouldNotRun holds that it corrects that, and proposes again.
func TestADevAgentIsToldWhileItWorksWhatItsGroupCouldNotRun(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		const runner = "template/runner/runner.yaml"
		runs := ""
		a, _ := h.Assist(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				runs = s.Read(runner)
				s.Write(runner, runs+"rounds: many\n")
				s.Write(prompts, "Greet people.\n")
				return "", nil
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write(runner, runs)
				return "", nil
			},
		)
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		stands := func() string {
			time.Sleep(time.Minute)
			all := h.Is(c, row.ID, change.Working).Checkpoints
			return string(all[len(all)-1].Tree)
		}
		if _, err := a.Call(t.Context(), tool.RequestSwap, swap, stands()); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "groups/echo/runner/runner.yaml") {
			t.Errorf("it proposes what its group could not run: %v", err)
		}
		if err := c.TellDev(gittest.Context(t), h.Show(c, row.ID).Change, "mend it"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Call(t.Context(), tool.RequestSwap, swap, stands()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if d := h.Is(c, row.ID, change.AwaitingApproval); len(d.Proposal.Edits) != 1 {
			t.Errorf("it offers %+v", d.Proposal.Edits)
		}
	})
}

// TestADevAgentGoesOnAfterACheckRefusedItsProposal holds that it is told which check and how, as who it was, and proposes again; after as
// many rounds as any agent has, its change has failed.
func TestADevAgentGoesOnAfterACheckRefusedItsProposal(t *testing.T) {
	for name, mends := range map[string]bool{"it mends that": true, "it never does": false} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"make greeting"}}}
				work := func(ctx context.Context, s *drivetest.Scene, words string) (string, error) {
					if mends && strings.Contains(words, "The check \"make greeting\" failed there") && strings.Contains(words, "who is greeted?") && s.Read(prompts) == "Greet.\n" {
						s.Write(prompts, "Greet people.\n")
					} else {
						s.Write(prompts, "Greet.\n")
					}
					return "", nil
				}
				a, troupe := h.Assist(work)
				troupe.Check = func(s *drivetest.Scene) (string, bool) {
					return "who is greeted?\n", s.Read(drivetest.SwapPrompt) == "Greet people.\n" // as it would land
				}
				c, _ := a.Begin()
				row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
				proposes := func() {
					time.Sleep(time.Minute)
					all := h.Is(c, row.ID, change.Working).Checkpoints
					if _, err := a.Call(t.Context(), tool.RequestSwap, swap, string(all[len(all)-1].Tree)); err != nil {
						t.Fatal(err)
					}
				}
				proposes()
				proposes()
				if mends {
					time.Sleep(time.Minute)
					d := h.Is(c, row.ID, change.AwaitingApproval)
					if len(d.Sessions) != 1 || d.Sessions[0].Attempt != 2 || d.Proposal.Number != 2 {
						t.Errorf("it asks with card %d, after %+v", d.Proposal.Number, d.Sessions)
					}
					return
				}
				for range agent.RoundsDefault - 2 {
					proposes()
				}
				time.Sleep(time.Minute)
				if d := h.Is(c, row.ID, change.Failed); !strings.Contains(d.Change.Reason, "make greeting") {
					t.Errorf("it says %q", d.Change.Reason)
				}
			})
		})
	}
}

// TestADevAgentGoesOnAfterARuleRefusedItsProposal holds that what the home's policy refuses goes back to who made it, as a failed check does.
func TestADevAgentGoesOnAfterARuleRefusedItsProposal(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{Marks: policy.MarksRefuse}}}
		heard := ""
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, words string) (string, error) {
			if strings.Contains(words, "What you proposed was refused") {
				heard = words
				if err := os.Remove(filepath.Join(s.Tree, ".envrc")); err != nil {
					t.Error(err)
				}
			} else {
				s.Write(".envrc", "export X=1\n")
			}
			s.Write(prompts, "Greet people.\n")
			return "", nil
		})
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		for range 2 {
			time.Sleep(time.Minute)
			all := h.Is(c, row.ID, change.Working).Checkpoints
			if _, err := a.Call(t.Context(), tool.RequestSwap, swap, string(all[len(all)-1].Tree)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if d := h.Is(c, row.ID, change.AwaitingApproval); d.Proposal.Number != 2 || !strings.Contains(heard, ".envrc") {
			t.Errorf("it asks with card %d, after its agent heard %q", d.Proposal.Number, heard)
		}
	})
}

// TestAChangeOfAGroupIsTriedAsOftenAsItsRunnerSays is CW-053, of the runner.yaml that stood when the group asked for it.
func TestAChangeOfAGroupIsTriedAsOftenAsItsRunnerSays(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"make greeting"}}}
		a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write(prompts, "Greet.\n")
			s.Write("template/runner/runner.yaml", "agent: echo\nrounds: 20\n") // which counts for the next one
			return "", nil
		})
		troupe.Check = func(*drivetest.Scene) (string, bool) { return "", false }
		h.Commits("groups/echo/runner/runner.yaml", "agent: echo\nrounds: 2\n", "Two")
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		for range 2 {
			time.Sleep(time.Minute)
			all := h.Is(c, row.ID, change.Working).Checkpoints
			if _, err := a.Call(t.Context(), tool.RequestSwap, swap, string(all[len(all)-1].Tree)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if d := h.Is(c, row.ID, change.Failed); d.Proposal.Number != 2 {
			t.Errorf("it was tried %d times", d.Proposal.Number)
		}
	})
}

// TestWhatBindsAGroupBindsItsDevAgent holds SM-025 and SM-165: its budgets, which both use up, and the tools that are off, both as
// its files are now.
func TestWhatBindsAGroupBindsItsDevAgent(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		a, troupe := h.Assist(
			func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write(prompts, "Greet people.\n")
				if err := b.spend(ctx, 1200); err != nil {
					t.Errorf("the first request is refused: %v", err)
				}
				return "", b.spend(ctx, 1)
			},
			func(ctx context.Context, _ *drivetest.Scene, _ string) (string, error) {
				return "ready", b.spend(ctx, 1)
			},
		)
		h.Parts.Agents["echo"] = asking{wire: agent.Responses}
		const runner = "groups/echo/runner/runner.yaml"
		h.Commits(runner, "agent: echo\ntools_off: [ask_user_question]\nbudgets: {tokens_per_day: 1000}\n", "bound")
		c, _ := a.Begin()
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		time.Sleep(time.Minute)
		d := h.Is(c, row.ID, change.Blocked)
		if d.Change.Blocked != change.BudgetUsedUp || !strings.Contains(d.Change.Reason, "the group has 1,000 tokens") || !strings.Contains(d.Change.Reason, runner) {
			t.Errorf("it is blocked by %s: %s", d.Change.Blocked, d.Change.Reason)
		}
		if a.Has(tool.AskUserQuestion) || !a.Has(tool.RequestSwap) {
			t.Error("a tool that is off is there, or another is not")
		}
		if err := c.Resume(gittest.Context(t), row.ID, h.By()); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "1,200 were used") {
			t.Errorf("it goes on though nothing was raised: %v", err)
		}
		h.Commits(runner, "agent: echo\nbudgets: {tokens_per_day: 5000}\n", "more")
		if err := c.Resume(gittest.Context(t), row.ID, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.Is(c, row.ID, change.Working)
		if told := troupe.Told(); len(told) != 2 {
			t.Errorf("its agent was told %q", told)
		}
	})
}

// TestWhatNobodyCouldApproveIsRefusedWhileItsAgentWorks holds SM-090: it can leave out what takes more people than there are.
func TestWhatNobodyCouldApproveIsRefusedWhileItsAgentWorks(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		before := h.Git("show", "HEAD:page.txt") + "\n"
		a, _ := h.Assist(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write(prompts, "Greet people.\n")
				s.Write("page.txt", "of the home\n")
				return "", nil
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", before)
				return "", nil
			},
		)
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Approvals: right.Rules{People: 2}}}
		c, _ := a.Begin()
		ada := a.Admin("ada", "echo")
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			return tx.Link(ctx, person.Identity{Platform: person.Terminal, Account: "1001"}, ada.Person, "ada")
		})
		row := a.Wished(c, "chg-aaaaaaaa", "Greet people")
		proposes := func() error {
			time.Sleep(time.Minute)
			cps := h.Is(c, row.ID, change.Working).Checkpoints
			_, err := a.Call(t.Context(), tool.RequestSwap, swap, string(cps[len(cps)-1].Tree))
			return err
		}
		if err := proposes(); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "approvals.people: 2") {
			t.Errorf("it is refused by %v", err)
		}
		if err := c.TellDev(gittest.Context(t), row, "Leave the page as it was."); err != nil {
			t.Fatal(err)
		}
		if err := proposes(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		h.Is(c, row.ID, change.AwaitingApproval)
	})
}
