package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// commit has a file of the home committed.
func (s *scene) commit(name, text string) {
	s.T.Helper()
	s.Git("read-tree", "HEAD")
	file := filepath.Join(s.Repo, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.T.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.Git("add", name)
	s.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "change "+name, "--", name)
}

// treeOf is what a group is on the branch.
func (s *scene) treeOf(commit, group string) git.OID {
	return git.OID(s.Git("rev-parse", commit+":groups/"+group))
}

// by says something as another person.
func (s *scene) by(d *dispatch.Dispatcher, account, text string) message.In {
	s.T.Helper()
	m, err := d.Say(s.T.Context(), dispatch.Said{Group: "echo", Text: text, Account: account, Name: "bob"})
	if err != nil {
		s.T.Fatal(err)
	}
	synctest.Wait()
	return m
}

// renews begins a group anew and hands over what came of it.
func (s *scene) renews(d *dispatch.Dispatcher, chat id.Chat) <-chan error {
	done := make(chan error, 1)
	go func() { done <- dispatch.Renewer{Dispatcher: d}.Renew(s.T.Context(), "echo", chat) }()
	synctest.Wait()
	return done
}

const system = "<system "

// TestAGroupBeginsAnewAndAnswers is SM-106: only its own sessions begin anew, and nobody is shown the turn by which it answers.
func TestAGroupBeginsAnewAndAnswers(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		works := s.turn
		s.swaps = &wishes{s: s}
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if !strings.Contains(words, system) {
				return works(ctx, words, st)
			}
			for _, asks := range []struct {
				verb tool.Name
				args any
			}{
				{tool.SendMessage, tool.Message{Text: "I am here"}},
				{tool.SendMessage, tool.Message{Text: "I am here", To: "dev-greets"}},
				{tool.AskUserQuestion, tool.Question{Question: "Am I?"}},
				{tool.ScheduleTask, tool.Schedule{Text: "be here", Interval: "1h"}},
				{tool.ListTasks, tool.Nothing{}},
				{tool.CancelTask, tool.Cancel{Task: "tsk-abcdefgh"}},
				{tool.RequestDevChanges, tool.DevChanges{Summary: "be elsewhere"}},
			} {
				if _, err := st.ask(asks.verb, asks.args); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "no tool works in it") {
					t.Errorf("%s works: %v", asks.verb, err)
				}
			}
			return "ready", nil
		}
		d, _ := s.lives()
		here, there, other := s.say(d, "echo", "1"), s.by(d, "1001", "1"), s.say(d, "other", "1")
		old := s.chat(here.Chat)
		s.commit("groups/echo/AGENTS.md", "Be brief.\n")
		sub := d.Feed.Subscribe(here.Chat)
		d.Feed.Follow(sub)
		if err := <-s.renews(d, here.Chat); err != nil {
			t.Fatal(err)
		}

		now := s.chat(here.Chat)
		if now.Tree != s.treeOf("HEAD", "echo") || now.Tree == old.Tree || now.Identity != old.Identity || now.Turn != old.Turn {
			t.Errorf("before %+v, now %+v", old, now)
		}
		if s.started() != 4 || s.Cage.Alive() != 2 {
			t.Errorf("%d sessions have begun, %d run: what the other conversation ran on ends, and another group goes on", s.started(), s.Cage.Alive())
		}
		same(t, "sent", s.sent(here.Chat), "heard: 1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if events, _ := d.Feed.Next(ctx, sub); events != nil {
			t.Errorf("who watches is told %+v", events)
		}

		s.say(d, "echo", "2")
		s.by(d, "1001", "2")
		s.say(d, "other", "2")
		same(t, "sent", s.sent(here.Chat), "heard: 1", "heard: 2")
		if c := s.chat(there.Chat); s.started() != 5 || c.Tree != now.Tree || s.chat(other.Chat).Tree == "" {
			t.Errorf("the other conversation is %+v, %d sessions", c, s.started())
		}
	})
}

// TestAGroupThatDoesNotAnswerSaysWhy holds every way in which a new version can be no good (SM-904).
func TestAGroupThatDoesNotAnswerSaysWhy(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	turn := func(f func(ctx context.Context, st *stage) (string, error)) func(*scene) {
		return func(s *scene) {
			works := s.turn
			s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
				if strings.Contains(words, system) {
					return f(ctx, st)
				}
				return works(ctx, words, st)
			}
		}
	}
	for name, c := range map[string]struct {
		plays func(s *scene)
		why   string
		takes time.Duration
		still int // sessions that go on
	}{
		"its turn fails":  {turn(func(context.Context, *stage) (string, error) { return "", errors.New("no\x1b[2J model by " + planted) }), `the agent of echo does not answer: its turn failed: no\x1b[2J model by [secret: `, 0, 0},
		"it says nothing": {turn(func(context.Context, *stage) (string, error) { return " <internal>hm</internal>\n", nil }), "the agent of echo does not answer: it said nothing", 0, 0},
		"it hangs":        {turn(func(ctx context.Context, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }), "the agent of echo does not answer: its turn did not end within 1m15s", 75 * time.Second, 0},
		"it goes on for ever": {turn(func(ctx context.Context, st *stage) (string, error) {
			for ctx.Err() == nil {
				st.Note("and on")
				time.Sleep(time.Second)
			}
			return "", ctx.Err()
		}), "the agent of echo does not answer: its turn did not end within 1m15s; the last line of its program: sallyport: and on", 75 * time.Second, 0},
		"it exits": {func(s *scene) {
			s.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
				fmt.Fprintln(spec.Stdout, "cannot find module x by "+planted)
				time.Sleep(time.Second)
				return 3
			}
		}, "the agent of echo does not answer: its program ended: it ended with status 3; the last line of its program: cannot find module x by [secret: ", time.Second, 0},
		"its runner.yaml is broken": {func(s *scene) { s.commit("groups/echo/runner/runner.yaml", "agent: "+planted+"\n") },
			`the agent of echo does not begin: groups/echo/runner/runner.yaml:1:8: agent: "[secret: `, 0, 0},
		"a person ends its session": {func(s *scene) {
			turn(func(ctx context.Context, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() })(s)
			s.later = func(d *dispatch.Dispatcher, chat id.Chat) {
				time.Sleep(time.Second)
				if ran, err := d.Stop(s.T.Context(), chat, s.By()); !ran || err != nil {
					s.T.Errorf("it ran: %t, %v", ran, err)
				}
			}
		}, "the agent of echo does not answer: a person ended its session", time.Second, 0},
		"it is gone": {func(s *scene) {
			s.Git("read-tree", "HEAD")
			s.Git("rm", "-rq", "--cached", "groups/echo")
			s.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "gone")
		}, `there is no group "echo" in this home`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				d, _ := s.lives()
				m := s.say(d, "echo", "hello")
				c.plays(s)
				began := time.Now()
				if s.later != nil {
					go s.later(d, m.Chat)
				}
				err := (dispatch.Renewer{Dispatcher: d}).Renew(t.Context(), "echo", m.Chat)
				p := problem.Of(err)
				if err == nil || !strings.HasPrefix(p.Text, c.why) || p.Next == "" {
					t.Errorf("%+v, want %q", p, c.why)
				}
				if took := time.Since(began); took < c.takes || took > c.takes+time.Second || s.Cage.Alive() != c.still {
					t.Errorf("it took %s, and %d sessions run", took, s.Cage.Alive())
				}
				same(t, "sent", s.sent(m.Chat), "heard: hello")
			})
		})
	}
}

// TestATurnUnderWayEndsBeforeItsGroupBeginsAnew holds that no message is lost, none is answered twice, and none waits for long.
func TestATurnUnderWayEndsBeforeItsGroupBeginsAnew(t *testing.T) {
	for name, takes := range map[string]time.Duration{"it ends soon": 10 * time.Second, "it does not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				works, tries := s.turn, 0
				s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
					if strings.Contains(words, ">work<") {
						if tries++; tries == 1 {
							select {
							case <-time.After(takes):
							case <-ctx.Done():
								return "", ctx.Err()
							}
						}
					}
					if strings.Contains(words, system) {
						time.Sleep(5 * time.Second)
					}
					return works(ctx, words, st)
				}
				d, _ := s.lives()
				m := s.say(d, "echo", "work")
				s.commit("groups/echo/AGENTS.md", "Be brief.\n")
				began := time.Now()
				done := s.renews(d, m.Chat)
				time.Sleep(min(takes, 30*time.Second) + time.Second)
				more := s.say(d, "echo", "more") // in the middle of the turn that nobody is shown
				s.is(more.ID, message.Pending)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != min(takes, 30*time.Second)+5*time.Second {
					t.Errorf("it took %s", took)
				}
				if row := s.is(m.ID, message.Completed); row.Tries != 0 {
					t.Errorf("%+v", row)
				}
				s.is(more.ID, message.Completed)
				if sent := s.sent(m.Chat); tries != map[bool]int{true: 1, false: 2}[takes < time.Minute] || !strings.Contains(strings.Join(sent, "|"), "more") || len(sent) > 2 {
					t.Errorf("%d tries, sent %q", tries, sent)
				}
				if c := s.chat(m.Chat); c.Tree != s.treeOf("HEAD", "echo") || s.started() != 2 {
					t.Errorf("%+v, %d sessions", c, s.started())
				}
			})
		})
	}
}

// TestATrialWaitsForNoPlace holds that conversations which are at work keep nothing from being tried.
func TestATrialWaitsForNoPlace(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		s.atOnce = 1
		works, gate := s.turn, make(chan struct{})
		defer close(gate)
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">work<") {
				<-gate
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		s.say(d, "other", "work")
		began := time.Now()
		if err := <-s.renews(d, m.Chat); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestOnePlaceIsKeptForATrialAndNoMore holds that a conversation does not take it, and that after the trial no more live than may.
func TestOnePlaceIsKeptForATrialAndNoMore(t *testing.T) {
	play(t, []string{"echo", "b", "c", "d"}, func(t *testing.T, s *scene) {
		s.atOnce = 2
		works, gate := s.turn, make(chan struct{})
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">work<") {
				<-gate
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		a := s.say(d, "echo", "hello")
		s.say(d, "b", "work")
		time.Sleep(time.Second)
		s.say(d, "c", "work") // echo leaves for it
		live := func() (n int) {
			synctest.Wait()
			all, err := d.List(gittest.Context(t), "")
			for _, seen := range all {
				if seen.Live {
					n++
				}
			}
			if err != nil {
				t.Error(err)
			}
			return n
		}
		began := time.Now()
		if err := <-s.renews(d, a.Chat); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if n := live(); n != 2 {
			t.Errorf("%d live after the trial", n)
		}
		late := s.say(d, "d", "hello")
		s.is(late.ID, message.Pending) // two are at work, and the kept place is none of its

		close(gate)
		s.is(late.ID, message.Completed)
		if err := <-s.renews(d, a.Chat); err != nil {
			t.Error(err)
		}
		if n := live(); n != 2 {
			t.Errorf("%d live after another trial, with who rests", n)
		}
	})
}

// TestWhoGivesUpWaitingLeavesNoTurnBehind holds it for a trial that was decided, and for a host that ends.
func TestWhoGivesUpWaitingLeavesNoTurnBehind(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works := s.turn
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, system) {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return works(ctx, words, st)
		}
		d, end := s.lives()
		m := s.say(d, "echo", "hello")
		decided := errors.New("it is decided")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- dispatch.Renewer{Dispatcher: d}.Renew(ctx, "echo", m.Chat) }()
		synctest.Wait()
		cancel(decided)
		if err := <-done; !errors.Is(err, decided) || s.Cage.Alive() != 0 {
			t.Errorf("%v, %d run", err, s.Cage.Alive())
		}
		s.is(s.say(d, "echo", "again").ID, message.Completed)

		s.renews(d, m.Chat)
		end()
		if n := s.Cage.Alive(); n != 0 {
			t.Errorf("%d run", n)
		}
	})
}

// TestASessionThatDiedIsBegunAgainOrIsNoGood is how a group is asked whether it answers, while a person is to confirm it.
func TestASessionThatDiedIsBegunAgainOrIsNoGood(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		die := make(chan struct{}, 1)
		runs := s.Cage.Program
		s.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			over := make(chan int, 1)
			go func() { over <- runs(spec, killed) }()
			select {
			case <-die:
				return 1
			case code := <-over:
				return code
			}
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		asks := func() error { return dispatch.Renewer{Dispatcher: d}.Ask(t.Context(), "echo", m.Chat) }
		if err := asks(); err != nil || s.started() != 1 {
			t.Errorf("%v, %d sessions", err, s.started())
		}
		die <- struct{}{}
		synctest.Wait()
		if err := asks(); err != nil || s.started() != 2 || s.Cage.Alive() != 1 {
			t.Errorf("%v, %d sessions", err, s.started())
		}
		s.commit("groups/echo/runner/runner.yaml", "agent: [\n")
		die <- struct{}{}
		synctest.Wait()
		for range 2 {
			synctest.Wait()
			if err := asks(); err == nil || !strings.Contains(err.Error(), "the agent of echo does not begin") {
				t.Errorf("%v", err)
			}
		}
	})
}

// goesBack stores a change of a group that is decided to go back, and has not.
func (s *scene) goesBack(of string, head git.OID) trial.Trial {
	s.T.Helper()
	now := ledger.Now()
	row := change.Row{ID: id.NewChange(), State: change.InTrial, Created: now, Moved: now, Request: request.Request{
		Kind: request.Swap, By: s.By(), At: now, Text: "Be brief", Project: git.Project{Top: s.Repo, GitDir: s.Repo + "/.git", CommonDir: s.Repo + "/.git"}, Branch: "main", Group: of,
	}}
	l := landing.Landing{ID: id.NewLanding(), Change: row.ID, State: landing.Journaled, Project: row.Request.Project, Branch: "main", Head: head, Started: now,
		Edits: []git.Edit{{Path: "groups/" + of + "/AGENTS.md"}}}
	t := trial.Begin(row.ID, l.ID, trust.Target{Group: of}, time.Minute, deadman.Moment{Wall: now, Boot: "b"})
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		closed := l
		closed.State, closed.Ended = landing.Landed, &now
		return errors.Join(tx.AddChange(ctx, row), tx.AddLanding(ctx, l), tx.CloseLanding(ctx, closed), tx.AddTrial(ctx, t))
	})
	return t
}

// TestAGroupThatGoesBackRunsItsOldFilesAtOnce holds SM-906 also while its files lie there still, and across a restart of the host.
func TestAGroupThatGoesBackRunsItsOldFilesAtOnce(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		works, tries := s.turn, 0
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">loop<") {
				if tries++; tries == 1 {
					for ctx.Err() == nil {
						st.Began(agent.Tool{ID: "t", Kind: "execute", Title: "on and on"})
						time.Sleep(time.Second)
					}
					return "", ctx.Err()
				}
			}
			return works(ctx, words, st)
		}
		before := git.OID(s.Git("rev-parse", "HEAD"))
		s.commit("groups/echo/AGENTS.md", "Be brief.\n")
		s.commit("groups/other/AGENTS.md", "Be brief.\n")
		d, end := s.lives()
		m, other := s.say(d, "echo", "loop"), s.say(d, "other", "hello")
		tried := s.goesBack("echo", before)
		tree := func(want git.OID, what string) {
			t.Helper()
			if c := s.chat(m.Chat); c.Tree != want {
				t.Errorf("%s it runs %s, not %s", what, c.Tree, want)
			}
		}
		s.is(m.ID, message.Processing)
		tree(s.treeOf("HEAD", "echo"), "before it is decided")

		s.Tx(func(ctx context.Context, tx store.Tx) error {
			return tx.DecideTrial(ctx, tried.Change, trial.Decision{To: trial.RolledBack, By: audit.Host, At: ledger.Now(), Reason: "no"})
		})
		if err := (dispatch.Renewer{Dispatcher: d}).Begin(t.Context(), "echo", m.Chat); err != nil {
			t.Fatal(err)
		}
		if row := s.is(m.ID, message.Completed); row.Tries != 0 {
			t.Errorf("the turn that the new version never ended: %+v", row)
		}
		tree(s.treeOf(string(before), "echo"), "once it is decided")
		if c := s.chat(other.Chat); c.Tree != s.treeOf("HEAD", "other") {
			t.Errorf("another group runs %s", c.Tree)
		}
		n := s.started()
		if err := (dispatch.Renewer{Dispatcher: d}).Begin(t.Context(), "echo", m.Chat); err != nil || s.started() != n {
			t.Errorf("begun again: %v, %d sessions", err, s.started()-n)
		}

		end()
		d, _ = s.lives()
		s.is(s.say(d, "echo", "again").ID, message.Completed)
		tree(s.treeOf(string(before), "echo"), "after a restart of the host")
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			now, _, err := tx.Trial(ctx, tried.Change)
			now.Restored = true
			return errors.Join(err, tx.MoveTrial(ctx, trial.RolledBack, now))
		})
		s.say(d, "echo", "and again")
		tree(s.treeOf("HEAD", "echo"), "once the files are back")
	})
}

// TestAThirdGroupAnswersAtItsPaceWhileTwoBeginAnew: what two groups do on their trials, for as long as those take, and on their way back, keeps
// no message of another waiting for a moment. Nothing here depends on how fast a machine is.
func TestAThirdGroupAnswersAtItsPaceWhileTwoBeginAnew(t *testing.T) {
	play(t, []string{"echo", "other", "third"}, func(t *testing.T, s *scene) {
		const pace, tried = 200 * time.Millisecond, 60 * time.Second
		works := s.turn
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			time.Sleep(map[bool]time.Duration{true: tried, false: pace}[strings.Contains(words, system)])
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		here, there := s.say(d, "echo", "1"), s.say(d, "other", "1")
		var chat id.Chat
		var want []string
		asks := func(text string) {
			t.Helper()
			m := s.say(d, "third", text)
			time.Sleep(pace)
			s.is(m.ID, message.Completed)
			chat, want = m.Chat, append(want, "heard: "+text)
		}
		asks("alone")

		s.commit("groups/echo/AGENTS.md", "Be brief.\n")
		s.commit("groups/other/AGENTS.md", "Be brief.\n")
		r := dispatch.Renewer{Dispatcher: d}
		done := make(chan error, 2)
		go func() { done <- r.Renew(t.Context(), "echo", here.Chat) }()
		go func() { done <- r.Renew(t.Context(), "other", there.Chat) }()
		for n := range 20 {
			asks(fmt.Sprintf("on trial %d", n))
		}
		if len(done) > 0 {
			t.Error("a trial was over before the third had been asked everything")
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}

		s.say(d, "other", "and this takes a turn")
		s.commit("groups/other/AGENTS.md", "Be long.\n")
		go func() { done <- r.Begin(t.Context(), "other", there.Chat) }()
		asks("on the way back")
		if err := <-done; err != nil {
			t.Error(err)
		}
		same(t, "the third is sent", s.sent(chat), want...)
	})
}
