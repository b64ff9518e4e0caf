package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// turning is a driver whose program is an adapter.
type turning struct{ rounds int }

func (turning) Name() string { return "played" }
func (turning) Capabilities() agent.Capabilities {
	return agent.Capabilities{PauseProtocol: agent.PauseSignal}
}
func (d turning) Program(t agent.Task) (agent.Program, error) {
	line, err := json.Marshal(agent.Order{Engine: "played", Agent: "played", Text: t.Text, Resumed: t.Resumed})
	return agent.Program{Name: "played", Argv: []string{"adapt"}, Stdin: append(line, '\n'), Messages: true, Turns: true, Keeps: true, Rounds: d.rounds}, err
}

// deed is one turn of a played agent: it is given words, and works on the tree.
type deed func(ctx context.Context, s *scene, words string) (says string, err error)

// troupe is the agents, the checks and what both were told.
type troupe struct {
	h     *home
	turns []deed
	check func(tree *scene) (says string, ok bool)
	kept  int // turns that all sessions have had
	loads bool

	mu     sync.Mutex
	words  []string
	checks []string // what page.txt was
}

// converses has every agent work in these turns, the last again and again, whatever session they are in.
func (h *home) converses(turns ...deed) *troupe {
	p := &troupe{h: h, turns: turns}
	h.parts.Agents = map[string]agent.Driver{"played": turning{}}
	h.cage.program = p.run
	return p
}

func (p *troupe) run(spec sandbox.Spec, killed <-chan struct{}) int {
	tree := &scene{t: p.h.t, tree: spec.Tree.Dir}
	if spec.Argv[0] == "/bin/sh" {
		p.mu.Lock()
		p.checks = append(p.checks, tree.read("page.txt"))
		p.mu.Unlock()
		says, ok := p.check(tree)
		fmt.Fprint(spec.Stdout, says)
		if ok {
			return 0
		}
		return 1
	}
	ended := make(chan os.Signal, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-killed:
			ended <- os.Kill
		case <-stop:
		}
	}()
	return adapter.Run(context.Background(), adapter.Options{
		Engines: map[string]agent.Engine{"played": &actor{p, tree}}, In: spec.Stdin, Out: spec.Stdout, Home: spec.Home, Ended: ended,
	})
}

// told is what agents were told, in order.
func (p *troupe) told() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.words)
}

func (p *troupe) checked() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.checks)
}

// actor is the engine and the conversation of one session.
type actor struct {
	*troupe
	tree *scene
}

func (a *actor) Open(_ context.Context, _ agent.Order, last string, _ agent.Show) (agent.Conversation, error) {
	a.loads = last != ""
	return a, nil
}
func (a *actor) Session() string                    { return "the only one" }
func (a *actor) Loaded() bool                       { return a.loads }
func (a *actor) Steer(context.Context, string) bool { return false }
func (a *actor) Close() error                       { return nil }

func (a *actor) Prompt(ctx context.Context, words string) (string, error) {
	a.mu.Lock()
	a.words = append(a.words, words)
	turn := a.turns[min(a.kept, len(a.turns)-1)]
	a.kept++
	a.mu.Unlock()
	return turn(ctx, a.tree, words)
}

// page is a turn that writes the page.
func page(text string) deed {
	return func(_ context.Context, s *scene, _ string) (string, error) {
		s.write("page.txt", text)
		return "I wrote " + text, nil
	}
}

// holding is a check that wants a word in the page.
func holding(word string) func(*scene) (string, bool) {
	return func(s *scene) (string, bool) {
		return "the page is " + s.read("page.txt"), strings.Contains(s.read("page.txt"), word)
	}
}

// askChecked requests a change with a check.
func (h *home) askChecked(c *control.Controller, checks ...string) id.Change {
	h.t.Helper()
	r, err := c.Request(h.t.Context(), request.Request{By: h.by(), Text: "Change the page", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"}, Checks: checks, Approve: request.Later}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

// reasons are the audit log's words about a change whose verb begins so, with their reasons.
func (h *home) reasons(c *control.Controller, id id.Change, verb string) (all []string) {
	h.t.Helper()
	entries, err := c.Audit(h.t.Context(), id, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Verb, verb) {
			all = append(all, e.Verb+": "+e.Reason)
		}
	}
	return all
}

// TestAnAgentIsToldWhatIsWrongUntilItIsRight is CW-052: a rule, then a check, then nothing.
func TestAnAgentIsToldWhatIsWrongUntilItIsRight(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		p := h.converses(
			func(_ context.Context, s *scene, _ string) (string, error) {
				s.write("docs/new.md", "bad\n")
				return "All done.", nil
			},
			func(_ context.Context, s *scene, _ string) (string, error) {
				if err := os.RemoveAll(s.tree + "/docs"); err != nil {
					return "", err
				}
				s.write("page.txt", "wrong\n")
				return "All done again.", nil
			},
			page("right\n"))
		p.check = holding("right")
		d, _ := h.daemon()
		chg := h.askChecked(d, "look at the page")
		time.Sleep(10 * time.Second)
		at := h.is(d, chg, change.AwaitingApproval)
		told := p.told()
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
		if got, want := statuses(at), []string{"turn_end invalid", "turn_end valid", "turn_end valid", "end valid"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := p.checked(); !slices.Equal(got, []string{"wrong\n", "right\n"}) {
			t.Errorf("the checks looked at %q", got)
		}
		rounds := h.reasons(d, chg, "round")
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
			bubble(t, func(t *testing.T, h *home) {
				turn := 0
				p := h.converses(func(_ context.Context, s *scene, _ string) (string, error) {
					turn++
					s.write("page.txt", fmt.Sprintf("wrong %d\n", turn))
					return "done", nil
				})
				h.parts.Agents["played"] = turning{rounds: c.rounds}
				p.check = holding("right")
				d, _ := h.daemon()
				chg := h.askChecked(d, "look")
				time.Sleep(30 * time.Second)
				at := h.is(d, chg, change.Failed)
				if n := len(p.told()); n != c.want {
					t.Errorf("it had %d turns, not %d", n, c.want)
				}
				if n := len(p.checked()); n != c.want {
					t.Errorf("%d checks ran, not %d", n, c.want)
				}
				if want := fmt.Sprintf(`the check "look" failed: it ended with status 1; the agent had %d rounds to correct this, and they are over`, c.want); at.Change.Reason != want {
					t.Errorf("%q", at.Change.Reason)
				}
				if page := h.kept(d, len(at.Checkpoints), chg, "page.txt"); page != fmt.Sprintf("wrong %d\n", c.want) {
					t.Errorf("what it did is not kept: %q", page)
				}
			})
		})
	}
}

func TestAFailedTurnFailsTheChangeAndSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(func(_ context.Context, s *scene, _ string) (string, error) {
			s.write("page.txt", "half\n")
			return "", errors.New("the model refused the key (401)")
		})
		p.check = holding("half")
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(5 * time.Second)
		at := h.is(d, chg, change.Failed)
		if at.Change.Reason != "the agent gave up: the model refused the key (401)" || at.Change.Problem != string(problem.AgentFailed) {
			t.Errorf("%s: %q", at.Change.Problem, at.Change.Reason)
		}
		if len(p.checked()) != 0 || h.kept(d, len(at.Checkpoints), chg, "page.txt") != "half\n" {
			t.Errorf("%d checks ran; %q", len(p.checked()), statuses(at))
		}
	})
}

// TestWordsOfAPersonWhileChecksRunAreAnotherTurn is law 4: what the checks say of the tree before is void.
func TestWordsOfAPersonWhileChecksRunAreAnotherTurn(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(page("first\n"), page("as told\n"))
		answer := make(chan struct{})
		p.check = func(s *scene) (string, bool) { <-answer; return "", true }
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(3 * time.Second)
		if got := p.checked(); !slices.Equal(got, []string{"first\n"}) {
			t.Fatalf("the checks look at %q", got)
		}
		sent, err := d.Tell(t.Context(), chg, h.by(), "and do this")
		if err != nil || !sent.Acknowledged {
			t.Fatalf("%+v, %v", sent, err)
		}
		time.Sleep(3 * time.Second)
		close(answer)
		time.Sleep(5 * time.Second)
		h.is(d, chg, change.AwaitingApproval)
		if told := p.told(); !slices.Equal(told, []string{"Change the page", "and do this"}) {
			t.Errorf("it was told %q", told)
		}
		if got := p.checked(); !slices.Equal(got, []string{"first\n", "as told\n"}) {
			t.Errorf("the checks looked at %q", got)
		}
		if rounds := h.reasons(d, chg, "round"); len(rounds) != 0 {
			t.Errorf("a person's words were counted: %q", rounds)
		}
	})
}

// TestWhatChecksSayWhileTheAgentWorksOnIsVoid is the same where the checks are done before it is.
func TestWhatChecksSayWhileTheAgentWorksOnIsVoid(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(page("first\n"), func(_ context.Context, s *scene, _ string) (string, error) {
			time.Sleep(10 * time.Second)
			s.write("page.txt", "as told\n")
			return "done", nil
		})
		answer := make(chan struct{})
		p.check = func(s *scene) (string, bool) { <-answer; return holding("told")(s) }
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(3 * time.Second)
		if _, err := d.Tell(t.Context(), chg, h.by(), "and do this"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		time.Sleep(20 * time.Second)
		h.is(d, chg, change.AwaitingApproval)
		if told := p.told(); !slices.Equal(told, []string{"Change the page", "and do this"}) {
			t.Errorf("it was told %q", told)
		}
		if rounds := h.reasons(d, chg, "round"); len(rounds) != 0 {
			t.Errorf("%q", rounds)
		}
	})
}

// TestAProgramThatDoesNotEndIsEndedAndItsTreeJudged holds that nothing that is wanted no more holds a person up.
func TestAProgramThatDoesNotEndIsEndedAndItsTreeJudged(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(page("done\n"))
		p.check = holding("done")
		run := h.cage.program
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			code := run(spec, killed)
			if spec.Argv[0] == "adapt" {
				<-killed
			}
			return code
		}
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(14 * time.Second)
		h.is(d, chg, change.Working)
		time.Sleep(5 * time.Second)
		at := h.is(d, chg, change.AwaitingApproval)
		if at.Sessions[0].Exit.Signal != "SIGKILL" {
			t.Errorf("%+v", at.Sessions[0].Exit)
		}
	})
}

func TestWhatChecksSayWaitsWhileAnAgentStands(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(page("wrong\n"), page("right\n"))
		answer := make(chan struct{})
		p.check = func(s *scene) (string, bool) { <-answer; return holding("right")(s) }
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(3 * time.Second)
		if err := d.Pause(t.Context(), chg, h.by(), "wait"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		time.Sleep(time.Minute)
		h.is(d, chg, change.Paused)
		if n := len(p.told()); n != 1 {
			t.Errorf("a paused agent had %d turns", n)
		}
		if err := d.Resume(t.Context(), chg, h.by()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		h.is(d, chg, change.AwaitingApproval)
		if n := len(p.told()); n != 2 {
			t.Errorf("it had %d turns", n)
		}
	})
}

func TestAnAgentThatBreaksRulesThreeTimesIsStoppedAndCanBeLetGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		turns := make([]deed, 3)
		for i := range turns {
			turns[i] = func(_ context.Context, s *scene, _ string) (string, error) {
				s.write("docs/new.md", fmt.Sprintf("bad %d\n", i))
				return "done", nil
			}
		}
		p := h.converses(append(turns, func(_ context.Context, s *scene, _ string) (string, error) {
			s.write("page.txt", "right\n")
			return "done", os.RemoveAll(s.tree + "/docs")
		})...)
		p.check = holding("right")
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(time.Minute)
		h.is(d, chg, change.Blocked)
		if err := d.Resume(t.Context(), chg, h.by()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		h.is(d, chg, change.AwaitingApproval)
		if told := p.told(); len(told) != 4 || !strings.Contains(told[3], "docs/new.md") {
			t.Errorf("it was told %q", told)
		}
	})
}

// TestAChangeThatIsCancelledWhileItsChecksRunEnds holds that a check beside a session holds nothing up.
func TestAChangeThatIsCancelledWhileItsChecksRunEnds(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(page("first\n"))
		ended := make(chan struct{})
		p.check = func(*scene) (string, bool) { <-ended; return "", false }
		run := h.cage.program
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if spec.Argv[0] == "/bin/sh" {
				go func() { <-killed; close(ended) }()
			}
			return run(spec, killed)
		}
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(3 * time.Second)
		if err := d.Cancel(t.Context(), chg, h.by(), "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		h.is(d, chg, change.Cancelled)
		if n := h.cage.alive(); n != 0 {
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
			bubble(t, func(t *testing.T, h *home) {
				h.parts.Rules = forbidding(c.mode)
				found := make(chan string, 2)
				p := h.converses(
					func(ctx context.Context, s *scene, _ string) (string, error) {
						s.write("page.txt", "begun\n")
						time.Sleep(40 * time.Second) // long enough for a checkpoint, and too short for the next one
						s.write(c.half, "half\n")
						<-ctx.Done()
						return "", context.Cause(ctx)
					},
					func(_ context.Context, s *scene, _ string) (string, error) {
						found <- s.read("page.txt")
						found <- s.read(c.half)
						if err := os.RemoveAll(s.tree + "/docs"); err != nil {
							return "", err
						}
						s.write("page.txt", "finished\n")
						return "finished", nil
					})
				p.check = holding("finished")
				d, end := h.daemon()
				chg := h.askChecked(d, "look")
				time.Sleep(45 * time.Second)
				h.is(d, chg, change.Working)
				end()
				d, _ = h.daemon()
				time.Sleep(10 * time.Second)
				at := h.is(d, chg, change.AwaitingApproval)
				if page, half := <-found, <-found; page != "begun\n" || !strings.Contains(half, c.finds) {
					t.Errorf("it finds %q and %q", page, half)
				}
				told := p.told()
				if len(told) != 2 || !strings.Contains(told[1], "was interrupted: the host that you work on was stopped") || !strings.Contains(told[1], "Go on where you left off") || !strings.Contains(told[1], "Change the page") {
					t.Errorf("it was told %q", told)
				}
				if !slices.ContainsFunc(at.Checkpoints, func(cp checkpoint.Checkpoint) bool { return cp.Trigger == checkpoint.Interrupted }) {
					t.Errorf("what it left is not kept: %q", statuses(at))
				}
				if session.HasHome(h.parts.Settings.Sessions + "/" + string(at.Sessions[0].ID)) {
					t.Error("the home folder stayed with the first session")
				}
			})
		})
	}
}

// TestAResumedSessionGoesOnWithItsHome is RM-025 after an end.
func TestAResumedSessionGoesOnWithItsHome(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		p := h.converses(
			func(_ context.Context, s *scene, _ string) (string, error) {
				s.write("page.txt", "half\n")
				return "", errors.New("the model was not reached")
			},
			func(_ context.Context, s *scene, _ string) (string, error) {
				if s.read("page.txt") != "half\n" {
					return "", errors.New("what it had done is gone")
				}
				s.write("page.txt", "whole\n")
				return "finished", nil
			})
		p.check = holding("whole")
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(5 * time.Second)
		at := h.is(d, chg, change.Failed)
		if _, err := d.ResumeSession(t.Context(), at.Sessions[0].ID, h.by(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		at = h.is(d, chg, change.AwaitingApproval)
		if told := p.told(); len(told) != 2 || !strings.Contains(told[1], "a person has asked you to go on") || !strings.Contains(told[1], "Go on where you left off") {
			t.Errorf("it was told %q", told)
		}
		if len(at.Sessions) != 1 {
			t.Errorf("%d sessions", len(at.Sessions))
		}
	})
}

// TestAnAgentWhoseTreeCannotGoBackUnderItIsToldWhyAndStartsAgain is the live restore's way out, for an agent that goes on.
func TestAnAgentWhoseTreeCannotGoBackUnderItIsToldWhyAndStartsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{Strategy: session.Shadow})
		h.cage.blind = errors.New("no view")
		found := make(chan string, 1)
		p := h.converses(
			func(_ context.Context, s *scene, _ string) (string, error) {
				s.write("docs/new.md", "bad\n")
				return "done", nil
			},
			func(_ context.Context, s *scene, _ string) (string, error) {
				found <- s.read("docs/new.md")
				s.write("page.txt", "right\n")
				return "done", nil
			})
		p.check = holding("right")
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(20 * time.Second)
		at := h.is(d, chg, change.AwaitingApproval)
		if is := <-found; !strings.Contains(is, "no such file") {
			t.Errorf("it finds %q", is)
		}
		told := p.told()
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
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Agents = map[string]agent.Driver{"played": turning{}}
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			s := &scene{t: t, tree: spec.Tree.Dir}
			if spec.Argv[0] == "/bin/sh" {
				return 1
			}
			s.write("page.txt", "done\n")
			fmt.Fprintln(spec.Stdout, `{"type":"turn_end","turn":1,"outcome":"done"}`)
			<-killed
			return 0
		}
		d, _ := h.daemon()
		chg := h.askChecked(d, "look")
		time.Sleep(time.Minute)
		at := h.is(d, chg, change.Failed)
		if !strings.Contains(at.Change.Reason, `the check "look" failed`) {
			t.Errorf("%q", at.Change.Reason)
		}
	})
}
