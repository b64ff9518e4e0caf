package control_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
)

// service is a target that a test plays.
type service struct {
	mu       sync.Mutex
	words    trust.Target
	unproven string
	starts   []string      // what the page said at each restart
	takes    time.Duration // a restart
	restart  func(page string) error
	answers  func(page string) error
	page     string // path
	told     []ledger.Note
	deaf     bool // a note reaches nobody
	moved    time.Duration
	boot     string
}

func (s *service) Of(context.Context, git.Dir, git.Project, git.OID) (trust.Target, string, error) {
	return s.words, s.unproven, nil
}

func (s *service) read() string {
	raw, err := os.ReadFile(s.page)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (s *service) Restart(ctx context.Context, _ trust.Target, _ git.Project, _ id.Change) error {
	page := s.read()
	s.mu.Lock()
	s.starts = append(s.starts, page)
	restart := s.restart
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(s.takes):
	}
	if restart == nil {
		return nil
	}
	return restart(page)
}

func (s *service) Probe(ctx context.Context, t trust.Target, p git.Project) error {
	return s.Ask(ctx, t, p)
}

func (s *service) Ask(context.Context, trust.Target, git.Project) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		return nil
	}
	return s.answers(s.read())
}

func (s *service) Tell(_ context.Context, n ledger.Note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, n)
	if s.deaf {
		return errors.New("nobody is there")
	}
	return nil
}

func (s *service) clock() (deadman.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	return deadman.Moment{Wall: now.Add(s.moved), Boot: s.boot, Up: now.Sub(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))}, nil
}

func (s *service) set(f func(*service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *service) started() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.starts)
}

func (s *service) heard(kind ledger.NoteKind) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.told {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// serve gives a home a target.
func (h *home) serve() *service {
	s := &service{
		words: trust.Target{Restart: "restart it", Probe: trust.Probe{HTTP: "http://127.0.0.1:1/"}, Trial: 2 * time.Minute},
		page:  filepath.Join(h.repo, "page.txt"), boot: "first",
	}
	h.parts.Targets, h.parts.Teller, h.parts.Clock = s, s, s.clock
	h.cage.play = writes("two\n")
	return s
}

// land has a change approved, and waits until it moves no further without time passing.
func (h *home) land(c *control.Controller, length *time.Duration) id.Change {
	h.t.Helper()
	r, err := c.Request(h.t.Context(), request.Request{By: h.by(), Text: "Change the page", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Yes, Trial: length}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

func (h *home) page() string {
	raw, err := os.ReadFile(filepath.Join(h.repo, "page.txt"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(raw)
}

// asked fails unless a change waits for a person, and returns its trial.
func (h *home) asked(c *control.Controller, chg id.Change) trial.Trial {
	h.t.Helper()
	d := h.is(c, chg, change.InTrial)
	if d.Trial == nil || d.Trial.Handshake != trial.Message1Sent {
		h.t.Fatalf("its trial is %+v", d.Trial)
	}
	return *d.Trial
}

// goneBack fails unless a change has gone back for a reason, with its files and one commit that says so.
func (h *home) goneBack(c *control.Controller, chg id.Change, reason string) {
	h.t.Helper()
	d := h.is(c, chg, change.RolledBack)
	if h.page() != "one\n" || h.git("status", "--porcelain") != "" || h.git("rev-parse", "HEAD^{tree}") != h.git("rev-parse", "HEAD~2^{tree}") {
		h.t.Errorf("the page is %q, git says %q", h.page(), h.git("status", "--porcelain"))
	}
	want := "Revert \"Change the page\"\n\nThis reverts commit " + h.git("rev-parse", "HEAD~1") + ".\n\n" + reason + "\n\nSallyport-Change: " + string(chg)
	if is := h.git("log", "-1", "--format=%B"); !strings.HasPrefix(is, want) {
		h.t.Errorf("the commit says %q, not %q", is, want)
	}
	if d.Trial.Handshake != trial.RolledBack || !d.Trial.Restored || d.Trial.Reason != reason || d.Undoing == nil || d.Change.Reason != d.Trial.Said() {
		h.t.Errorf("the trial is %+v, the change says %q", d.Trial, d.Change.Reason)
	}
	if armed, disarmed := h.keeper.still(); len(armed) != 0 {
		h.t.Errorf("still armed: %v, disarmed %d", armed, disarmed)
	}
}

func TestATrialThatIsConfirmedStays(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		c, _ := h.daemon()
		chg := h.land(c, nil)
		tried := h.asked(c, chg)
		if got := s.started(); !slices.Equal(got, []string{"two\n", "two\n"}) || tried.Restarts != 2 {
			t.Errorf("restarted on %q, %d counted: a confirmed version answers after a second restart too", got, tried.Restarts)
		}
		if armed, _ := h.keeper.still(); len(armed) != 1 || armed[tried.Landing].Until.In != tried.Expires.In+3*time.Second {
			t.Errorf("armed is %+v", armed)
		}
		if got := s.heard(ledger.NoteTrial); !slices.Equal(got, []string{trial.Message1}) {
			t.Errorf("told %q", got)
		}
		time.Sleep(119 * time.Second)
		if err := c.Confirm(t.Context(), chg, h.by()); err != nil {
			t.Fatal(err)
		}
		d := h.is(c, chg, change.Finalized)
		if err := c.Confirm(t.Context(), chg, h.by()); err != nil {
			t.Errorf("said again: %v", err)
		}
		if h.page() != "two\n" || d.Trial.Handshake != trial.Confirmed || d.Trial.By.UID != h.owner.UID {
			t.Errorf("the page is %q, the trial %+v", h.page(), d.Trial)
		}
		if armed, _ := h.keeper.still(); len(armed) != 0 {
			t.Errorf("still armed: %v", armed)
		}
		time.Sleep(time.Hour)
		h.is(c, chg, change.Finalized)
		want := []string{"began landing", "tried", "answered after restart 1", "answered after restart 2", "asked to confirm", "message 1 delivered", "confirmed"}
		if got := h.verbs(c, chg); !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("the audit log says %q", got)
		}
	})
}

func TestATrialThatNobodyConfirmsGoesBackAtItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.deaf = true
		c, _ := h.daemon()
		chg := h.land(c, nil)
		tried := h.asked(c, chg)
		time.Sleep(tried.Expires.In - time.Second)
		h.asked(c, chg)
		time.Sleep(2 * time.Second)
		h.goneBack(c, chg, "deadman timeout")
		if got := s.heard(ledger.NoteRolledBack); !slices.Equal(got, []string{trial.TimeoutSay}) {
			t.Errorf("told %q", got)
		}
		if got := s.started(); got[len(got)-1] != "one\n" {
			t.Errorf("the old version was not restarted: %q", got)
		}
		if err := c.Confirm(t.Context(), chg, h.by()); problem.KindOf(err) != problem.Conflict {
			t.Errorf("confirmed after all: %v", err)
		}
	})
}

func TestATrialGoesBackAlsoWhereGitHasComeToConvertItsFiles(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.serve()
		c, _ := h.daemon()
		chg := h.land(c, nil)
		tried := h.asked(c, chg)
		if err := os.WriteFile(filepath.Join(h.repo, ".git/info/attributes"), []byte("*.txt eol=crlf\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tried.Expires.In + time.Second)
		h.is(c, chg, change.RolledBack)
		if h.page() != "one\n" {
			t.Errorf("the page is %q", h.page())
		}
	})
}

// TestExactlyOneOfConfirmRollbackAndTimerWins is I7, all three in the same tick and in every order.
func TestExactlyOneOfConfirmRollbackAndTimerWins(t *testing.T) {
	for _, before := range []time.Duration{time.Nanosecond, 0} { // just in time, and on the dot: the time was over
		for order := range 6 {
			t.Run(fmt.Sprint(before, order), func(t *testing.T) {
				bubble(t, func(t *testing.T, h *home) {
					s := h.serve()
					s.words.Restart = ""
					c, _ := h.daemon()
					chg := h.land(c, nil)
					tried := h.asked(c, chg)
					at, _ := s.clock()
					time.Sleep(tried.Expires.Left(at) - before)
					errs := map[string]error{}
					say := map[string]func() error{
						"confirm":  func() error { return c.Confirm(t.Context(), chg, h.by()) },
						"rollback": func() error { _, err := c.Rollback(t.Context(), chg, h.by(), "no", request.Later); return err },
						"nothing":  func() error { time.Sleep(before); return nil },
					}
					var said sync.WaitGroup
					var mu sync.Mutex
					for _, who := range [][]string{{"confirm", "rollback", "nothing"}, {"confirm", "nothing", "rollback"}, {"rollback", "confirm", "nothing"},
						{"rollback", "nothing", "confirm"}, {"nothing", "confirm", "rollback"}, {"nothing", "rollback", "confirm"}}[order] {
						said.Go(func() {
							err := say[who]()
							mu.Lock()
							defer mu.Unlock()
							errs[who] = err
						})
					}
					said.Wait()
					time.Sleep(time.Second)
					d := h.show(c, chg)
					v := h.verbs(c, chg)
					if n := count(v, "confirmed") + count(v, "rollback decided"); n != 1 {
						t.Errorf("%d decisions: %q", n, v)
					}
					switch d.Change.State {
					case change.Finalized:
						if errs["confirm"] != nil || problem.KindOf(errs["rollback"]) == "" && d.Trial.By.Kind == audit.Host.Kind || before == 0 || h.page() != "two\n" {
							t.Errorf("finalized, but %v, page %q", errs, h.page())
						}
					case change.RolledBack:
						if errs["confirm"] == nil || h.page() != "one\n" {
							t.Errorf("rolled back, but %v, page %q", errs, h.page())
						}
					default:
						t.Errorf("it is %s", d.Change.State)
					}
				})
			})
		}
	}
}

func TestDeliveryMovesTheDeadlineOnceAndNeverPastTheCap(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.takes = 45 * time.Second // twice
		s.deaf = true
		c, _ := h.daemon()
		ten := 9 * time.Minute
		chg := h.land(c, &ten)
		time.Sleep(91 * time.Second)
		tried := h.asked(c, chg)
		if tried.Delivered != nil || tried.Expires.In != 9*time.Minute {
			t.Fatalf("nobody heard it, and yet %+v", tried)
		}
		time.Sleep(time.Minute)
		for range 3 { // people who begin to watch
			ctx, enough := context.WithCancel(t.Context())
			notices, err := c.Watch(ctx, chg)
			if err != nil {
				t.Fatal(err)
			}
			asks := 0
			for asks == 0 { // the first is told what came before, too
				if n := <-notices; n.Kind == "trial" && n.Text == trial.Message1 {
					asks++
				}
			}
			synctest.Wait()
			select {
			case n := <-notices:
				if n.Kind == "trial" {
					t.Errorf("asked again: %+v", n)
				}
			default:
			}
			enough()
			synctest.Wait()
			time.Sleep(10 * time.Second)
		}
		now := h.asked(c, chg)
		if now.Delivered == nil || now.Expires.In != trust.TrialMax {
			t.Errorf("after delivery it is %+v", now)
		}
		if armed, _ := h.keeper.still(); armed[now.Landing].Until.In != trust.TrialMax+3*time.Second {
			t.Errorf("the keeper waits for %s", armed[now.Landing].Until.In)
		}
		time.Sleep(time.Until(now.Started.Wall.Add(trust.TrialMax)) + time.Second + s.takes)
		h.goneBack(c, chg, trial.Timeout)
	})
}

// TestAStartFindsATrialWhereItWas is SM-131 to SM-134: the row says where it was, whoever ended the daemon.
func TestAStartFindsATrialWhereItWas(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.takes = 20 * time.Second
		c, end := h.daemon()
		chg := h.land(c, nil)
		time.Sleep(25 * time.Second) // in the middle of the second restart
		end()
		if d, _ := c.Show(t.Context(), chg); d.Trial.Handshake != trial.PendingRestart || d.Trial.Restarts != 1 {
			t.Fatalf("%+v", d.Trial)
		}
		if armed, _ := h.keeper.still(); len(armed) != 1 {
			t.Errorf("armed: %v", armed)
		} else {
			for _, w := range armed {
				if !w.Parted {
					t.Error("a daemon that was asked to end is to be brought back at once")
				}
			}
		}
		c, end = h.daemon() // SM-131
		time.Sleep(21 * time.Second)
		tried := h.asked(c, chg)
		if n := len(s.started()); n != 3 || len(s.heard(ledger.NoteTrial)) != 1 {
			t.Errorf("restarted %d times, told %d times", n, len(s.heard(ledger.NoteTrial)))
		}
		end()
		time.Sleep(30 * time.Second)
		c, end = h.daemon() // SM-132
		if again := h.asked(c, chg); len(s.heard(ledger.NoteTrial)) != 1 || len(s.started()) != 3 || again.Expires != tried.Expires {
			t.Errorf("sent %d times, %+v", len(s.heard(ledger.NoteTrial)), again)
		}
		end()
		time.Sleep(tried.Expires.In)
		before := time.Now()
		c, _ = h.daemon() // SM-133
		synctest.Wait()
		time.Sleep(s.takes)
		h.goneBack(c, chg, trial.Timeout)
		if took := time.Since(before); took > s.takes {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAClockThatIsMovedMovesNoDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		moved time.Duration
		boot  string
		over  bool // at once
	}{
		"an hour forth":                  {moved: time.Hour, boot: "first"},
		"an hour back":                   {moved: -time.Hour, boot: "first"},
		"another boot, the clock right":  {boot: "second"},
		"another boot, an hour later":    {moved: time.Hour, boot: "second", over: true},
		"another boot, the clock broken": {moved: -time.Hour, boot: "second", over: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				s := h.serve()
				s.words.Restart = ""
				d, _ := h.daemon()
				chg := h.land(d, nil)
				h.asked(d, chg)
				time.Sleep(time.Minute)
				s.set(func(s *service) { s.moved, s.boot = c.moved, c.boot })
				time.Sleep(2 * time.Second)
				if c.over {
					h.goneBack(d, chg, trial.Timeout)
					return
				}
				h.asked(d, chg)
				time.Sleep(time.Minute)
				h.goneBack(d, chg, trial.Timeout)
			})
		})
	}
}

func TestWhatDoesNotAnswerGoesBackAtOnceWithTheReason(t *testing.T) {
	no := func(page string) error {
		if page == "two\n" {
			return problem.Errorf(problem.Refused, "", "the probe did not pass: connection refused")
		}
		return nil
	}
	t.Run("it never answers", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *home) {
			s := h.serve()
			s.answers = no
			c, _ := h.daemon()
			chg := h.land(c, nil)
			h.goneBack(c, chg, "the probe did not pass: connection refused")
			if got := s.started(); !slices.Equal(got, []string{"two\n", "one\n"}) {
				t.Errorf("restarted on %q", got)
			}
			if len(s.heard(ledger.NoteTrial)) != 0 {
				t.Error("a person was asked")
			}
		})
	})
	t.Run("its restart fails", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *home) {
			s := h.serve()
			s.restart = no
			c, _ := h.daemon()
			h.goneBack(c, h.land(c, nil), "the probe did not pass: connection refused")
		})
	})
	t.Run("it answers, and then no more", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *home) {
			s := h.serve()
			c, _ := h.daemon()
			chg := h.land(c, nil)
			h.asked(c, chg)
			time.Sleep(10*time.Second + 500*time.Millisecond)
			s.set(func(s *service) { s.answers = no })
			time.Sleep(2 * time.Second)
			h.asked(c, chg) // two misses are none
			s.set(func(s *service) { s.answers = nil })
			time.Sleep(2 * time.Second)
			s.set(func(s *service) { s.answers = no })
			time.Sleep(4 * time.Second)
			h.goneBack(c, chg, "the target answered at first, then stopped answering: the probe did not pass: connection refused")
		})
	})
	t.Run("nobody is asked", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *home) {
			s := h.serve()
			s.words.Trial = 0
			c, _ := h.daemon()
			chg := h.land(c, nil)
			if d := h.is(c, chg, change.Finalized); d.Trial.Handshake != trial.Confirmed || d.Trial.By.Kind != audit.Host.Kind || len(s.started()) != 2 {
				t.Errorf("%+v after %q", d.Trial, s.started())
			}
		})
	})
}

func TestAPersonRollsATrialBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.takes = time.Minute
		c, _ := h.daemon()
		chg := h.land(c, nil)
		time.Sleep(10 * time.Second)
		if err := c.Confirm(t.Context(), chg, h.by()); problem.KindOf(err) != problem.Conflict {
			t.Errorf("confirmed what has not answered: %v", err)
		}
		stranger := audit.Actor{Kind: "person", Name: "eve", UID: h.owner.UID + 1}
		if err := c.Confirm(t.Context(), chg, stranger); problem.KindOf(err) != problem.Denied {
			t.Errorf("confirmed by a stranger: %v", err)
		}
		row, err := c.Rollback(t.Context(), chg, h.by(), "it looks odd", request.Ask)
		if err != nil || row.ID != chg {
			t.Fatalf("%+v, %v", row, err)
		}
		synctest.Wait()
		if h.page() != "one\n" {
			t.Errorf("the page is %q while the old version restarts", h.page())
		}
		time.Sleep(time.Minute)
		h.goneBack(c, chg, "it looks odd")
	})
}

func TestWhatCannotBeTakenBackIsSaidLoudlyAndHealed(t *testing.T) {
	for name, spoil := range map[string]func(h *home, s *service) (heal func(), says string){
		"a later commit at the path": func(h *home, s *service) (func(), string) {
			h.write("three\n")
			h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "mine")
			return func() { h.git("reset", "-q", "--hard", "HEAD~1") }, "page.txt changed on main"
		},
		"uncommitted work at the path": func(h *home, s *service) (func(), string) {
			h.write("three\n")
			return func() { h.write("two\n") }, "page.txt"
		},
		"an old version that does not answer": func(h *home, s *service) (func(), string) {
			s.set(func(s *service) {
				s.answers = func(page string) error {
					if page == "one\n" {
						return problem.Errorf(problem.Refused, "sallyport target show", "it is broken, too")
					}
					return nil
				}
			})
			return func() { s.set(func(s *service) { s.answers = nil }) }, "the old version does not answer: it is broken, too"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				s := h.serve()
				c, _ := h.daemon()
				chg := h.land(c, nil)
				h.asked(c, chg)
				heal, says := spoil(h, s)
				if _, err := c.Rollback(t.Context(), chg, h.by(), "no", request.Later); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				d := h.is(c, chg, change.RollbackFailed)
				if !strings.Contains(d.Change.Reason, says) || d.Change.Next == "" || d.Change.Attempts < 5 {
					t.Errorf("it says %q, next %q, after %d attempts", d.Change.Reason, d.Change.Next, d.Change.Attempts)
				}
				if n := len(s.heard(ledger.NoteRollbackFailed)); n != 1 || len(s.heard(ledger.NoteRolledBack)) != 0 {
					t.Errorf("told %d times", n)
				}
				if !c.Owes(t.Context()) {
					t.Error("a daemon would go idle over it")
				}
				heal()
				time.Sleep(2 * time.Minute)
				h.goneBack(c, chg, "no")
				if c.Owes(t.Context()) {
					t.Error("something is still to be done")
				}
			})
		})
	}
}

func TestAWayBackThatCannotBeIsGivenUpByAPerson(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.serve()
		c, _ := h.daemon()
		chg := h.land(c, nil)
		h.asked(c, chg)
		h.write("three\n")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "mine")
		if err := c.Cancel(t.Context(), chg, h.by(), "no"); problem.KindOf(err) != problem.Conflict {
			t.Errorf("a trial was cancelled: %v", err)
		}
		if _, err := c.Rollback(t.Context(), chg, h.by(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		d := h.is(c, chg, change.RollbackFailed)
		if !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) {
			t.Errorf("the way out is not named: %q", d.Change.Reason)
		}
		if err := h.keeper.Arm(d.Trial.Landing, guard.Watched{}); err != nil { // as a daemon that was killed in a try leaves it
			t.Fatal(err)
		}
		if err := c.Cancel(t.Context(), chg, h.by(), "it is mended"); err != nil {
			t.Fatal(err)
		}
		d = h.is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "(it is mended), and the new files remain") || h.page() != "three\n" || c.Owes(t.Context()) {
			t.Errorf("it says %q, page %q", d.Change.Reason, h.page())
		}
		if armed, _ := h.keeper.still(); len(armed) != 0 {
			t.Errorf("a keeper watches on: %v", armed)
		}
		if _, err := c.ResumeSession(t.Context(), d.Sessions[0].ID, h.by(), nil); problem.KindOf(err) != problem.Conflict {
			t.Errorf("it was resumed: %v", err)
		}
	})
}

func (h *home) write(text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.repo, "page.txt"), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func TestNothingLandsBesideATrial(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.serve()
		c, _ := h.daemon()
		first := h.land(c, nil)
		h.asked(c, first)
		h.cage.play = writes("three\n")
		second := h.land(c, nil)
		time.Sleep(time.Minute)
		if d := h.is(c, second, change.Landing); !strings.Contains(d.Change.Reason, string(first)+" is on trial") || d.Change.Attempts != 0 {
			t.Errorf("it says %q after %d attempts", d.Change.Reason, d.Change.Attempts)
		}
		if err := c.Confirm(t.Context(), first, h.by()); err != nil {
			t.Fatal(err)
		}
		h.is(c, first, change.Finalized)
		time.Sleep(2 * time.Second)
		if d := h.show(c, second); d.Change.State == change.Landing {
			t.Errorf("it still waits: %s", d.Change.Reason)
		}
	})
}

func TestARevertRestartsTheOldVersionAndSaysIfItDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.words.Trial = 0
		c, _ := h.daemon()
		chg := h.land(c, nil)
		h.is(c, chg, change.Finalized)
		s.set(func(s *service) {
			s.answers = func(page string) error {
				if page == "one\n" {
					return problem.Errorf(problem.Refused, "sallyport target show", "it is broken, too")
				}
				return nil
			}
		})
		back, err := c.Rollback(t.Context(), chg, h.by(), "no", request.Yes)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if d := h.is(c, back.ID, change.RollbackFailed); !strings.Contains(d.Change.Reason, "it is broken, too") || h.page() != "one\n" {
			t.Errorf("it says %q, the page is %q", d.Change.Reason, h.page())
		}
		h.is(c, chg, change.Finalized)
		s.set(func(s *service) { s.answers = nil })
		time.Sleep(2 * time.Minute)
		h.is(c, back.ID, change.Finalized)
		h.is(c, chg, change.RolledBack)
	})
}

func TestATargetThatNobodyTrustsIsNotRunAndSaid(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.words, s.unproven = trust.Target{}, "the repository proposes a target that nobody trusts"
		c, _ := h.daemon()
		if d := h.is(c, h.land(c, nil), change.Finalized); d.Trial != nil || d.Change.Reason != s.unproven || len(s.started()) != 0 {
			t.Errorf("%+v, %q", d.Trial, d.Change.Reason)
		}
	})
}

func TestWithoutATargetAPersonCanBeAskedAllTheSame(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		s.words, s.deaf = trust.Target{}, true
		c, _ := h.daemon()
		ten := 10 * time.Second
		chg := h.land(c, &ten)
		h.asked(c, chg)
		if got := s.heard(ledger.NoteTrial); len(got) != 1 || !strings.HasPrefix(got[0], "It has landed, and nothing was restarted or probed") || h.show(c, chg).Change.Reason != got[0] {
			t.Errorf("they are asked %q", got)
		}
		time.Sleep(11 * time.Second)
		h.goneBack(c, chg, trial.Timeout)
		if len(s.started()) != 0 {
			t.Error("something was restarted")
		}
	})
}

// TestATrialThatGoesBackIsByteIdentical is SM-138: adds, deletes, renames, modes and binaries, a link that went, with a person's
// own work beside. A link that comes breaks a rule; that it goes back is held in package landing.
func TestATrialThatGoesBackIsByteIdentical(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		file := func(dir, name, text string, mode os.FileMode) {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
		file(h.repo, "gone/only.txt", "gone\n", 0o644)
		file(h.repo, "tool.sh", "#!/bin/sh\n", 0o644)
		file(h.repo, "old name", "moved\n", 0o755)
		file(h.repo, "was", "a file\n", 0o644)
		file(h.repo, "binary", "\x00\xff\x00", 0o644)
		if err := os.Symlink("page.txt", filepath.Join(h.repo, "link")); err != nil {
			t.Fatal(err)
		}
		h.git("add", "-A")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "second")
		file(h.repo, "mine.txt", "untracked\n", 0o600)
		before := h.tree()
		h.cage.play = func(_ int, tree string, _ <-chan struct{}) int {
			file(tree, "new/deep/file.txt", "new\n", 0o644)
			file(tree, "tool.sh", "#!/bin/sh\n", 0o755)
			file(tree, "new name", "moved\n", 0o755)
			file(tree, "binary", strings.Repeat("\x01\x00", 40000), 0o644)
			err := errors.Join(os.RemoveAll(filepath.Join(tree, "gone")), os.Remove(filepath.Join(tree, "old name")), os.Remove(filepath.Join(tree, "was")), os.Remove(filepath.Join(tree, "link")))
			file(tree, "was/inside.txt", "a folder now\n", 0o644)
			if err != nil {
				t.Error(err)
			}
			return 0
		}
		c, _ := h.daemon()
		chg := h.land(c, nil)
		h.asked(c, chg)
		if maps.Equal(h.tree(), before) {
			t.Fatal("nothing landed")
		}
		s.set(func(s *service) { s.answers = func(string) error { return errors.New("no answer") } })
		time.Sleep(5 * time.Second)
		s.set(func(s *service) { s.answers = nil })
		time.Sleep(10 * time.Second)
		d := h.is(c, chg, change.RolledBack)
		for name, was := range before {
			if is := h.tree()[name]; is != was {
				t.Errorf("%q is %q, and was %q", name, is, was)
			}
		}
		if after := h.tree(); !maps.Equal(after, before) {
			t.Errorf("the tree is %q", slices.Sorted(maps.Keys(after)))
		}
		if is := h.git("status", "--porcelain"); is != "?? mine.txt" || h.git("rev-parse", "HEAD^{tree}") != h.git("rev-parse", "HEAD~2^{tree}") || d.Undoing.NewTree != git.OID(h.git("rev-parse", "HEAD^{tree}")) {
			t.Errorf("git says %q", is)
		}
	})
}

// tree is every file of the repository: mode and bytes, or where a link points.
func (h *home) tree() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.repo, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		name, _ := filepath.Rel(h.repo, path)
		if d.Type() == os.ModeSymlink {
			to, err := os.Readlink(path)
			all[name] = "-> " + to
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		all[name] = info.Mode().String() + " " + string(raw)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func TestABranchThatIsNotCheckedOutRestartsNothingAndSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		h.git("branch", "aside")
		c, _ := h.daemon()
		r, err := c.Request(t.Context(), request.Request{By: h.by(), Text: "Change the page", Project: git.Project{Top: h.repo}, Branch: "aside", Agent: "played", Argv: []string{"true"}, Approve: request.Yes}, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d := h.is(c, r.Change.ID, change.Finalized)
		if got := s.started(); len(got) != 0 || d.Trial != nil || !strings.Contains(d.Change.Reason, `"aside" is not checked out in`) {
			t.Errorf("what was never touched was restarted: %q, %+v, %q", got, d.Trial, d.Change.Reason)
		}
	})
}

func TestTheOldVersionIsNotSaidToRunFromAnotherBranch(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		c, _ := h.daemon()
		chg := h.land(c, nil)
		h.asked(c, chg)
		starts := len(s.started())
		h.git("switch", "-q", "-c", "aside")
		if _, err := c.Rollback(t.Context(), chg, h.by(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		d := h.is(c, chg, change.RollbackFailed)
		if got := s.started(); len(got) != starts || !d.Trial.Restored || !strings.HasSuffix(d.Change.Next, " switch main") {
			t.Errorf("restarted on %q; %+v; next %q", got, d.Trial, d.Change.Next)
		}
		h.git("switch", "-q", "main")
		time.Sleep(2 * time.Minute)
		h.goneBack(c, chg, "no")
		if got := s.started(); len(got) != starts+1 || got[starts] != "one\n" {
			t.Errorf("restarted on %q", got)
		}
	})
}

func TestAWayBackThatIsTriedAgainLeavesAnotherTrialAlone(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		s := h.serve()
		c, _ := h.daemon()
		chg := h.land(c, nil)
		h.asked(c, chg)
		s.set(func(s *service) { s.answers = func(string) error { return errors.New("no answer") } })
		time.Sleep(5 * time.Second)
		if d := h.is(c, chg, change.RollbackFailed); !d.Trial.Restored {
			t.Fatalf("%+v", d.Trial)
		}
		s.set(func(s *service) { s.answers = nil })
		other := h.land(c, nil)
		h.asked(c, other)
		starts := len(s.started())
		time.Sleep(100 * time.Second)
		h.asked(c, other)
		if d := h.is(c, chg, change.RollbackFailed); len(s.started()) != starts || !strings.Contains(d.Change.Reason, string(other)+" is on trial in this repository") {
			t.Errorf("restarted %d times beside a trial; it says %q", len(s.started())-starts, d.Change.Reason)
		}
		if _, err := c.Rollback(t.Context(), other, h.by(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		h.is(c, other, change.RolledBack)
		h.is(c, chg, change.RolledBack)
	})
}
