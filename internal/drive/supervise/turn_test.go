package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// page is a turn that writes the page.
func page(text string) drivetest.Deed {
	return func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
		s.Write("page.txt", text)
		return "I wrote " + text, nil
	}
}

// holding is a check that wants a word in the page.
func holding(word string) func(*drivetest.Scene) (string, bool) {
	return func(s *drivetest.Scene) (string, bool) {
		return "the page is " + s.Read("page.txt"), strings.Contains(s.Read("page.txt"), word)
	}
}

// TestAnAgentIsToldWhatIsWrongUntilItIsRight is CW-052: a rule, then a check, then nothing.
func TestAnAgentIsToldWhatIsWrongUntilItIsRight(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		p := h.Converses(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("docs/new.md", "bad\n")
				return "All done.", nil
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				if err := os.RemoveAll(s.Tree + "/docs"); err != nil {
					return "", err
				}
				s.Write("page.txt", "wrong\n")
				return "All done again.", nil
			},
			page("right\n"))
		p.Check = holding("right")
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look at the page")
		time.Sleep(10 * time.Second)
		at := h.Is(d, chg, change.AwaitingApproval)
		told := p.Told()
		if len(told) != 3 || told[0] != "Change the page" {
			t.Fatalf("it was told %q", told)
		}
		for i, wants := range [][]string{
			1: {"docs/new.md", "rule forbidden_area", "What to do:", "The files are as you left them."},
			2: {`The check "look at the page" failed`, "status 1", "the page is wrong"},
		} {
			for _, want := range wants {
				if !strings.Contains(told[i], want) {
					t.Errorf("turn %d was told %q, without %q", i+1, told[i], want)
				}
			}
		}
		if got, want := drivetest.Statuses(at), []string{"turn_end invalid", "turn_end valid", "turn_end valid", "end valid"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := p.Checked(); !slices.Equal(got, []string{"wrong\n", "right\n"}) {
			t.Errorf("the checks looked at %q", got)
		}
		rounds := h.Reasons(d, chg, "round")
		if len(rounds) != 2 || !strings.HasPrefix(rounds[0], `round 2 of 5: "docs/new.md" breaks the rule`) || rounds[1] != `round 3 of 5: the check "look at the page" failed: it ended with status 1` {
			t.Errorf("%q", rounds)
		}
		if says := at.Proposal.Card.AgentSays; !strings.Contains(says, "I wrote right") || strings.Contains(says, "turn_end") {
			t.Errorf("the agent says %q", says)
		}
		if at.Proposal.Card.Checks[0].Command != "look at the page" || !at.Proposal.Card.Checks[0].OK {
			t.Errorf("%+v", at.Proposal.Card.Checks)
		}
	})
}

// TestAfterItsRoundsAnAgentIsToldNothingMore is CW-053.
func TestAfterItsRoundsAnAgentIsToldNothingMore(t *testing.T) {
	for _, c := range []struct{ rounds, want int }{{0, 5}, {2, 2}, {1, 1}} {
		t.Run(fmt.Sprint(c.rounds), func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				turn := 0
				p := h.Converses(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
					turn++
					s.Write("page.txt", fmt.Sprintf("wrong %d\n", turn))
					return "done", nil
				})
				h.Parts.Agents["played"] = drivetest.Turning{Rounds: c.rounds}
				p.Check = holding("right")
				d, _ := h.Daemon()
				chg := h.AskChecked(d, "look")
				time.Sleep(30 * time.Second)
				at := h.Is(d, chg, change.Failed)
				if n := len(p.Told()); n != c.want {
					t.Errorf("it had %d turns, not %d", n, c.want)
				}
				if n := len(p.Checked()); n != c.want {
					t.Errorf("%d checks ran, not %d", n, c.want)
				}
				if want := fmt.Sprintf(`the check "look" failed: it ended with status 1; the agent had %d rounds to correct this, and they are over`, c.want); at.Change.Reason != want {
					t.Errorf("%q", at.Change.Reason)
				}
				if page := h.Kept(d, len(at.Checkpoints), chg, "page.txt"); page != fmt.Sprintf("wrong %d\n", c.want) {
					t.Errorf("what it did is not kept: %q", page)
				}
			})
		})
	}
}

func TestAFailedTurnFailsTheChangeAndSaysWhy(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "half\n")
			return "", errors.New("the model refused the key (401)")
		})
		p.Check = holding("half")
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(5 * time.Second)
		at := h.Is(d, chg, change.Failed)
		if at.Change.Reason != "the agent gave up: the model refused the key (401)" || at.Change.Problem != string(problem.AgentFailed) {
			t.Errorf("%s: %q", at.Change.Problem, at.Change.Reason)
		}
		if len(p.Checked()) != 0 || h.Kept(d, len(at.Checkpoints), chg, "page.txt") != "half\n" {
			t.Errorf("%d checks ran; %q", len(p.Checked()), drivetest.Statuses(at))
		}
	})
}

// TestWordsOfAPersonWhileChecksRunAreAnotherTurn is law 4: what the checks say of the tree before is void.
func TestWordsOfAPersonWhileChecksRunAreAnotherTurn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(page("first\n"), page("as told\n"))
		answer := make(chan struct{})
		p.Check = func(s *drivetest.Scene) (string, bool) { <-answer; return "", true }
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(3 * time.Second)
		if got := p.Checked(); !slices.Equal(got, []string{"first\n"}) {
			t.Fatalf("the checks look at %q", got)
		}
		sent, err := d.Tell(t.Context(), chg, h.By(), "and do this")
		if err != nil || !sent.Acknowledged {
			t.Fatalf("%+v, %v", sent, err)
		}
		time.Sleep(3 * time.Second)
		close(answer)
		time.Sleep(5 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); !slices.Equal(told, []string{"Change the page", "and do this"}) {
			t.Errorf("it was told %q", told)
		}
		if got := p.Checked(); !slices.Equal(got, []string{"first\n", "as told\n"}) {
			t.Errorf("the checks looked at %q", got)
		}
		if rounds := h.Reasons(d, chg, "round"); len(rounds) != 0 {
			t.Errorf("a person's words were counted: %q", rounds)
		}
	})
}

// TestWhatChecksSayWhileTheAgentWorksOnIsVoid is the same where the checks are done before it is.
func TestWhatChecksSayWhileTheAgentWorksOnIsVoid(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(page("first\n"), func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			time.Sleep(10 * time.Second)
			s.Write("page.txt", "as told\n")
			return "done", nil
		})
		answer := make(chan struct{})
		p.Check = func(s *drivetest.Scene) (string, bool) { <-answer; return holding("told")(s) }
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(3 * time.Second)
		if _, err := d.Tell(t.Context(), chg, h.By(), "and do this"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		time.Sleep(20 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); !slices.Equal(told, []string{"Change the page", "and do this"}) {
			t.Errorf("it was told %q", told)
		}
		if rounds := h.Reasons(d, chg, "round"); len(rounds) != 0 {
			t.Errorf("%q", rounds)
		}
	})
}

// TestAProgramThatDoesNotEndIsEndedAndItsTreeJudged holds that nothing that is wanted no more holds a person up.
func TestAProgramThatDoesNotEndIsEndedAndItsTreeJudged(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(page("done\n"))
		p.Check = holding("done")
		run := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			code := run(spec, killed)
			if spec.Argv[0] == "adapt" {
				<-killed
			}
			return code
		}
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(14 * time.Second)
		h.Is(d, chg, change.Working)
		time.Sleep(5 * time.Second)
		at := h.Is(d, chg, change.AwaitingApproval)
		if at.Sessions[0].Exit.Signal != "SIGKILL" {
			t.Errorf("%+v", at.Sessions[0].Exit)
		}
	})
}

func TestWhatChecksSayWaitsWhileAnAgentStands(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(page("wrong\n"), page("right\n"))
		answer := make(chan struct{})
		p.Check = func(s *drivetest.Scene) (string, bool) { <-answer; return holding("right")(s) }
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(3 * time.Second)
		if err := d.Pause(t.Context(), chg, h.By(), "wait"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		time.Sleep(time.Minute)
		h.Is(d, chg, change.Paused)
		if n := len(p.Told()); n != 1 {
			t.Errorf("a paused agent had %d turns", n)
		}
		if err := d.Resume(t.Context(), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if n := len(p.Told()); n != 2 {
			t.Errorf("it had %d turns", n)
		}
	})
}

func TestAnAgentThatBreaksRulesThreeTimesIsStoppedAndCanBeLetGoOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		turns := make([]drivetest.Deed, 3)
		for i := range turns {
			turns[i] = func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("docs/new.md", fmt.Sprintf("bad %d\n", i))
				return "done", nil
			}
		}
		p := h.Converses(append(turns, func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "right\n")
			return "done", os.RemoveAll(s.Tree + "/docs")
		})...)
		p.Check = holding("right")
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(time.Minute)
		h.Is(d, chg, change.Blocked)
		if err := d.Resume(t.Context(), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); len(told) != 4 || !strings.Contains(told[3], "docs/new.md") {
			t.Errorf("it was told %q", told)
		}
	})
}

// TestAChangeThatIsCancelledWhileItsChecksRunEnds holds that a check beside a session holds nothing up.
func TestAChangeThatIsCancelledWhileItsChecksRunEnds(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(page("first\n"))
		ended := make(chan struct{})
		p.Check = func(*drivetest.Scene) (string, bool) { <-ended; return "", false }
		run := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if spec.Argv[0] == "/bin/sh" {
				go func() { <-killed; close(ended) }()
			}
			return run(spec, killed)
		}
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(3 * time.Second)
		if err := d.Cancel(t.Context(), chg, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		h.Is(d, chg, change.Cancelled)
		if n := h.Cage.Alive(); n != 0 {
			t.Errorf("%d programs still run", n)
		}
	})
}

// TestAnInterruptedAgentGoesOnWithWhatItLeft is RM-025 and law 4: a daemon that died takes no work with it.
func TestAnInterruptedAgentGoesOnWithWhatItLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  session.Supervision
		half  string // file of the half turn
		finds string // of it, by the session that goes on
	}{
		{"valid", session.Supervision{}, "half.txt", "half\n"},
		{"invalid, in the agent's own tree", session.Supervision{}, "docs/half.md", "half\n"},
		{"invalid, in a shadow", session.Supervision{Strategy: session.Shadow}, "docs/half.md", "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Rules = drivetest.Forbidding(c.mode)
				found := make(chan string, 2)
				p := h.Converses(
					func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
						s.Write("page.txt", "begun\n")
						time.Sleep(40 * time.Second) // long enough for a checkpoint, and too short for the next one
						s.Write(c.half, "half\n")
						<-ctx.Done()
						return "", context.Cause(ctx)
					},
					func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
						found <- s.Read("page.txt")
						found <- s.Read(c.half)
						if err := os.RemoveAll(s.Tree + "/docs"); err != nil {
							return "", err
						}
						s.Write("page.txt", "finished\n")
						return "finished", nil
					})
				p.Check = holding("finished")
				d, end := h.Daemon()
				chg := h.AskChecked(d, "look")
				time.Sleep(45 * time.Second)
				h.Is(d, chg, change.Working)
				end()
				d, _ = h.Daemon()
				time.Sleep(10 * time.Second)
				at := h.Is(d, chg, change.AwaitingApproval)
				if page, half := <-found, <-found; page != "begun\n" || !strings.Contains(half, c.finds) {
					t.Errorf("it finds %q and %q", page, half)
				}
				told := p.Told()
				if len(told) != 2 || !strings.Contains(told[1], "was interrupted: the host that you work on was stopped") || !strings.Contains(told[1], "Go on where you left off") || !strings.Contains(told[1], "Change the page") {
					t.Errorf("it was told %q", told)
				}
				if !slices.ContainsFunc(at.Checkpoints, func(cp checkpoint.Checkpoint) bool { return cp.Trigger == checkpoint.Interrupted }) {
					t.Errorf("what it left is not kept: %q", drivetest.Statuses(at))
				}
				if session.HasHome(h.Parts.Settings.Sessions + "/" + string(at.Sessions[0].ID)) {
					t.Error("the home folder stayed with the first session")
				}
			})
		})
	}
}

// TestAResumedSessionGoesOnWithItsHome is RM-025 after an end.
func TestAResumedSessionGoesOnWithItsHome(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		p := h.Converses(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", "half\n")
				return "", errors.New("the model was not reached")
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				if s.Read("page.txt") != "half\n" {
					return "", errors.New("what it had done is gone")
				}
				s.Write("page.txt", "whole\n")
				return "finished", nil
			})
		p.Check = holding("whole")
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(5 * time.Second)
		at := h.Is(d, chg, change.Failed)
		if _, err := d.ResumeSession(t.Context(), at.Sessions[0].ID, h.By(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		at = h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); len(told) != 2 || !strings.Contains(told[1], "a person has asked you to go on") || !strings.Contains(told[1], "Go on where you left off") {
			t.Errorf("it was told %q", told)
		}
		if len(at.Sessions) != 1 {
			t.Errorf("%d sessions", len(at.Sessions))
		}
	})
}

// TestAnAgentWhoseTreeCannotGoBackUnderItIsToldWhyAndStartsAgain is the live restore's way out, for an agent that goes on.
func TestAnAgentWhoseTreeCannotGoBackUnderItIsToldWhyAndStartsAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{Strategy: session.Shadow})
		h.Cage.Blind = errors.New("no view")
		found := make(chan string, 1)
		p := h.Converses(
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("docs/new.md", "bad\n")
				return "done", nil
			},
			func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
				found <- s.Read("docs/new.md")
				s.Write("page.txt", "right\n")
				return "done", nil
			})
		p.Check = holding("right")
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(20 * time.Second)
		at := h.Is(d, chg, change.AwaitingApproval)
		if is := <-found; !strings.Contains(is, "no such file") {
			t.Errorf("it finds %q", is)
		}
		told := p.Told()
		if len(told) != 2 || !strings.Contains(told[1], `your files were restored to an earlier state`) || !strings.Contains(told[1], `"docs/new.md" breaks the rule forbidden_area`) {
			t.Errorf("it was told %q", told)
		}
		if len(at.Sessions) != 2 {
			t.Errorf("%d sessions", len(at.Sessions))
		}
	})
}

// TestAnAgentThatDoesNotReadIsNotWaitedFor holds that words which reach nobody are no round to wait for.
func TestAnAgentThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Agents = map[string]agent.Driver{"played": drivetest.Turning{}}
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			s := &drivetest.Scene{T: t, Tree: spec.Tree.Dir}
			if spec.Argv[0] == "/bin/sh" {
				return 1
			}
			s.Write("page.txt", "done\n")
			fmt.Fprintln(spec.Stdout, `{"type":"turn_end","turn":1,"outcome":"done"}`)
			<-killed
			return 0
		}
		d, _ := h.Daemon()
		chg := h.AskChecked(d, "look")
		time.Sleep(time.Minute)
		at := h.Is(d, chg, change.Failed)
		if !strings.Contains(at.Change.Reason, `the check "look" failed`) {
			t.Errorf("%q", at.Change.Reason)
		}
	})
}
