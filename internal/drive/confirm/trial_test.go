package confirm_test

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
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
)

func TestATrialThatIsConfirmedStays(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		tried := h.Asked(c, chg)
		if got := s.Started(); !slices.Equal(got, []string{"two\n", "two\n"}) || tried.Restarts != 2 {
			t.Errorf("restarted on %q, %d counted: a confirmed version answers after a second restart too", got, tried.Restarts)
		}
		if armed, _ := h.Keeper.Still(); len(armed) != 1 || armed[tried.Landing].Until.In != tried.Expires.In+3*time.Second {
			t.Errorf("armed is %+v", armed)
		}
		if got := s.Heard(ledger.NoteTrial); !slices.Equal(got, []string{trial.Message1}) {
			t.Errorf("told %q", got)
		}
		time.Sleep(119 * time.Second)
		if err := c.Confirm(gittest.Context(t), chg, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		d := h.Is(c, chg, change.Finalized)
		if err := c.Confirm(gittest.Context(t), chg, h.By(), ""); err != nil {
			t.Errorf("said again: %v", err)
		}
		if h.Page() != "two\n" || d.Trial.Handshake != trial.Confirmed || d.Trial.By.UID != h.Owner.UID {
			t.Errorf("the page is %q, the trial %+v", h.Page(), d.Trial)
		}
		if armed, _ := h.Keeper.Still(); len(armed) != 0 {
			t.Errorf("still armed: %v", armed)
		}
		time.Sleep(time.Hour)
		h.Is(c, chg, change.Finalized)
		want := []string{"began landing", "tried", "answered after restart 1", "answered after restart 2", "asked to confirm", "message 1 delivered", "confirmed"}
		if got := h.Verbs(c, chg); !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("the audit log says %q", got)
		}
	})
}

func TestATrialThatNobodyConfirmsGoesBackAtItsDeadline(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Deaf = true
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		tried := h.Asked(c, chg)
		time.Sleep(tried.Expires.In - time.Second)
		h.Asked(c, chg)
		time.Sleep(2 * time.Second)
		h.GoneBack(c, chg, "deadman timeout")
		if got := s.Heard(ledger.NoteRolledBack); !slices.Equal(got, []string{trial.TimeoutSay}) {
			t.Errorf("told %q", got)
		}
		if got := s.Started(); got[len(got)-1] != "one\n" {
			t.Errorf("the old version was not restarted: %q", got)
		}
		if err := c.Confirm(gittest.Context(t), chg, h.By(), ""); problem.KindOf(err) != problem.Conflict || !strings.HasSuffix(err.Error(), "nobody confirmed it in time") {
			t.Errorf("confirmed after all: %v", err)
		}
		if entries, err := c.Audit(gittest.Context(t), chg, 0, 0); err != nil || slices.ContainsFunc(entries, func(e audit.Entry) bool { return strings.Contains(e.Reason, trial.Timeout) }) {
			t.Errorf("the audit says it in words for programs: %+v, %v", entries, err)
		}
	})
}

func TestATrialGoesBackAlsoWhereGitHasComeToConvertItsFiles(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		tried := h.Asked(c, chg)
		disktest.Put(t, filepath.Join(h.Repo, ".git/info/attributes"), "*.txt eol=crlf\n", 0o644)
		time.Sleep(tried.Expires.In + time.Second)
		h.Is(c, chg, change.RolledBack)
		if h.Page() != "one\n" {
			t.Errorf("the page is %q", h.Page())
		}
	})
}

// TestExactlyOneOfConfirmRollbackAndTimerWins is I7, all three in the same tick and in every order.
func TestExactlyOneOfConfirmRollbackAndTimerWins(t *testing.T) {
	type point struct {
		before time.Duration
		order  int
	}
	var points []point
	for order := range 6 {
		for _, before := range []time.Duration{time.Nanosecond, 0} { // just in time, and on the dot: the time was over
			points = append(points, point{before, order})
		}
	}
	for _, at := range disktest.Sample(t, points, 3) { // it is odd, so that both times have their turn
		before, order := at.before, at.order
		t.Run(fmt.Sprint(before, order), func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s := h.Serve()
				s.Words.Restart = ""
				c, _ := h.Daemon()
				chg := h.Land(c, nil)
				tried := h.Asked(c, chg)
				at, _ := s.Clock()
				time.Sleep(tried.Expires.Left(at) - before)
				errs := map[string]error{}
				say := map[string]func() error{
					"confirm":  func() error { return c.Confirm(gittest.Context(t), chg, h.By(), "") },
					"rollback": func() error { _, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Later); return err },
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
				d := h.Show(c, chg)
				v := h.Verbs(c, chg)
				if n := drivetest.Count(v, "confirmed") + drivetest.Count(v, "rollback decided"); n != 1 {
					t.Errorf("%d decisions: %q", n, v)
				}
				switch d.Change.State {
				case change.Finalized:
					if errs["confirm"] != nil || problem.KindOf(errs["rollback"]) == "" && d.Trial.By.Kind == audit.Host.Kind || before == 0 || h.Page() != "two\n" {
						t.Errorf("finalized, but %v, page %q", errs, h.Page())
					}
				case change.RolledBack:
					if errs["confirm"] == nil || h.Page() != "one\n" {
						t.Errorf("rolled back, but %v, page %q", errs, h.Page())
					}
				default:
					t.Errorf("it is %s", d.Change.State)
				}
			})
		})
	}
}

func TestDeliveryMovesTheDeadlineOnceAndNeverPastTheCap(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Takes = 45 * time.Second // twice
		s.Deaf = true
		c, _ := h.Daemon()
		ten := 9 * time.Minute
		chg := h.Land(c, &ten)
		time.Sleep(91 * time.Second)
		tried := h.Asked(c, chg)
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
		now := h.Asked(c, chg)
		if now.Delivered == nil || now.Expires.In != trust.TrialMax {
			t.Errorf("after delivery it is %+v", now)
		}
		if armed, _ := h.Keeper.Still(); armed[now.Landing].Until.In != trust.TrialMax+3*time.Second {
			t.Errorf("the keeper waits for %s", armed[now.Landing].Until.In)
		}
		time.Sleep(time.Until(now.Started.Wall.Add(trust.TrialMax)) + time.Second + s.Takes)
		h.GoneBack(c, chg, trial.Timeout)
	})
}

// TestAStartFindsATrialWhereItWas is SM-131 to SM-134: the row says where it was, whoever ended the daemon.
func TestAStartFindsATrialWhereItWas(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Takes = 20 * time.Second
		c, end := h.Daemon()
		chg := h.Land(c, nil)
		time.Sleep(25 * time.Second) // in the middle of the second restart
		end()
		if d, _ := c.Show(gittest.Context(t), chg); d.Trial.Handshake != trial.PendingRestart || d.Trial.Restarts != 1 {
			t.Fatalf("%+v", d.Trial)
		}
		if armed, _ := h.Keeper.Still(); len(armed) != 1 {
			t.Errorf("armed: %v", armed)
		} else {
			for _, w := range armed {
				if !w.Parted {
					t.Error("a daemon that was asked to end is to be brought back at once")
				}
			}
		}
		c, end = h.Daemon() // SM-131
		time.Sleep(21 * time.Second)
		tried := h.Asked(c, chg)
		if n := len(s.Started()); n != 3 || len(s.Heard(ledger.NoteTrial)) != 1 {
			t.Errorf("restarted %d times, told %d times", n, len(s.Heard(ledger.NoteTrial)))
		}
		end()
		time.Sleep(30 * time.Second)
		c, end = h.Daemon() // SM-132
		if again := h.Asked(c, chg); len(s.Heard(ledger.NoteTrial)) != 1 || len(s.Started()) != 3 || again.Expires != tried.Expires {
			t.Errorf("sent %d times, %+v", len(s.Heard(ledger.NoteTrial)), again)
		}
		end()
		time.Sleep(tried.Expires.In)
		before := time.Now()
		c, _ = h.Daemon() // SM-133
		synctest.Wait()
		time.Sleep(s.Takes)
		h.GoneBack(c, chg, trial.Timeout)
		if took := time.Since(before); took > s.Takes {
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
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s := h.Serve()
				s.Words.Restart = ""
				d, _ := h.Daemon()
				chg := h.Land(d, nil)
				h.Asked(d, chg)
				time.Sleep(time.Minute)
				s.Set(func(s *drivetest.Service) { s.Moved, s.Boot = c.moved, c.boot })
				time.Sleep(2 * time.Second)
				if c.over {
					h.GoneBack(d, chg, trial.Timeout)
					return
				}
				h.Asked(d, chg)
				time.Sleep(time.Minute)
				h.GoneBack(d, chg, trial.Timeout)
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
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s := h.Serve()
			s.Answers = no
			c, _ := h.Daemon()
			chg := h.Land(c, nil)
			h.GoneBack(c, chg, "the probe did not pass: connection refused")
			if got := s.Started(); !slices.Equal(got, []string{"two\n", "one\n"}) {
				t.Errorf("restarted on %q", got)
			}
			if len(s.Heard(ledger.NoteTrial)) != 0 {
				t.Error("a person was asked")
			}
		})
	})
	t.Run("its restart fails", func(t *testing.T) {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s := h.Serve()
			s.OnRestart = no
			c, _ := h.Daemon()
			h.GoneBack(c, h.Land(c, nil), "the probe did not pass: connection refused")
		})
	})
	t.Run("it answers, and then no more", func(t *testing.T) {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s := h.Serve()
			c, _ := h.Daemon()
			chg := h.Land(c, nil)
			h.Asked(c, chg)
			time.Sleep(10*time.Second + 500*time.Millisecond)
			s.Set(func(s *drivetest.Service) { s.Answers = no })
			time.Sleep(2 * time.Second)
			h.Asked(c, chg) // two misses are none
			s.Set(func(s *drivetest.Service) { s.Answers = nil })
			time.Sleep(2 * time.Second)
			s.Set(func(s *drivetest.Service) { s.Answers = no })
			time.Sleep(4 * time.Second)
			h.GoneBack(c, chg, "the target answered at first, then stopped answering: the probe did not pass: connection refused")
		})
	})
	t.Run("nobody is asked", func(t *testing.T) {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s := h.Serve()
			s.Words.Trial = 0
			c, _ := h.Daemon()
			chg := h.Land(c, nil)
			if d := h.Is(c, chg, change.Finalized); d.Trial.Handshake != trial.Confirmed || d.Trial.By.Kind != audit.Host.Kind || len(s.Started()) != 2 {
				t.Errorf("%+v after %q", d.Trial, s.Started())
			}
		})
	})
}

func TestAPersonRollsATrialBackAtOnce(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Takes = time.Minute
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		time.Sleep(10 * time.Second)
		if err := c.Confirm(gittest.Context(t), chg, h.By(), ""); problem.KindOf(err) != problem.Conflict {
			t.Errorf("confirmed what has not answered: %v", err)
		}
		stranger := audit.Actor{Kind: "person", Name: "eve", UID: h.Owner.UID, Person: "psn-0000eve0"}
		if err := c.Confirm(gittest.Context(t), chg, stranger, ""); problem.KindOf(err) != problem.Denied {
			t.Errorf("confirmed by a stranger: %v", err)
		}
		row, err := c.Rollback(gittest.Context(t), chg, h.By(), "it looks odd with ghp_"+"9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi", request.Ask)
		if err != nil || row.ID != chg {
			t.Fatalf("%+v, %v", row, err)
		}
		synctest.Wait()
		if h.Page() != "one\n" {
			t.Errorf("the page is %q while the old version restarts", h.Page())
		}
		time.Sleep(time.Minute)
		h.GoneBack(c, chg, "it looks odd with [secret: github-token]")
	})
}

func TestWhatCannotBeTakenBackIsSaidLoudlyAndHealed(t *testing.T) {
	for name, spoil := range map[string]func(h *drivetest.Home, s *drivetest.Service) (heal func(), says string){
		"a later commit at the path": func(h *drivetest.Home, s *drivetest.Service) (func(), string) {
			h.Write("three\n")
			h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "mine")
			return func() { h.Git("reset", "-q", "--hard", "HEAD~1") }, "page.txt changed on main"
		},
		"uncommitted work at the path": func(h *drivetest.Home, s *drivetest.Service) (func(), string) {
			h.Write("three\n")
			return func() { h.Write("two\n") }, "page.txt"
		},
		"an old version that does not answer": func(h *drivetest.Home, s *drivetest.Service) (func(), string) {
			s.Set(func(s *drivetest.Service) {
				s.Answers = func(page string) error {
					if page == "one\n" {
						return problem.Errorf(problem.Refused, "sallyport target show", "it is broken, too")
					}
					return nil
				}
			})
			return func() { s.Set(func(s *drivetest.Service) { s.Answers = nil }) }, "the old version does not answer: it is broken, too"
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s := h.Serve()
				c, _ := h.Daemon()
				chg := h.Land(c, nil)
				h.Asked(c, chg)
				heal, says := spoil(h, s)
				if _, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Later); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				d := h.Is(c, chg, change.RollbackFailed)
				if !strings.Contains(d.Change.Reason, says) || d.Change.Next == "" || d.Change.Attempts < 5 {
					t.Errorf("it says %q, next %q, after %d attempts", d.Change.Reason, d.Change.Next, d.Change.Attempts)
				}
				if back := strings.Contains(d.Change.Reason, "ends that; the old files stay"); back != d.Trial.Restored || back != (name == "an old version that does not answer") {
					t.Errorf("the old files are back: %t; it says %q", d.Trial.Restored, d.Change.Reason)
				}
				if n := len(s.Heard(ledger.NoteRollbackFailed)); n != 1 || len(s.Heard(ledger.NoteRolledBack)) != 0 {
					t.Errorf("told %d times", n)
				}
				if !c.Owes(gittest.Context(t)) {
					t.Error("a daemon would go idle over it")
				}
				heal()
				time.Sleep(2 * time.Minute)
				h.GoneBack(c, chg, "no")
				if c.Owes(gittest.Context(t)) {
					t.Error("something is still to be done")
				}
			})
		})
	}
}

func TestAWayBackThatCannotBeIsGivenUpByAPerson(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Asked(c, chg)
		h.Write("three\n")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "mine")
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "no"); problem.KindOf(err) != problem.Conflict {
			t.Errorf("a trial was cancelled: %v", err)
		}
		if _, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		d := h.Is(c, chg, change.RollbackFailed)
		if !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) {
			t.Errorf("the way out is not named: %q", d.Change.Reason)
		}
		if err := h.Keeper.Arm(d.Trial.Landing, guard.Watched{}); err != nil { // as a daemon that was killed in a try leaves it
			t.Fatal(err)
		}
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "it is mended"); err != nil {
			t.Fatal(err)
		}
		d = h.Is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "(it is mended), and the new files remain") || h.Page() != "three\n" || c.Owes(gittest.Context(t)) {
			t.Errorf("it says %q, page %q", d.Change.Reason, h.Page())
		}
		if armed, _ := h.Keeper.Still(); len(armed) != 0 {
			t.Errorf("a keeper watches on: %v", armed)
		}
		if _, err := c.ResumeSession(gittest.Context(t), d.Sessions[0].ID, h.By(), nil); problem.KindOf(err) != problem.Conflict {
			t.Errorf("it was resumed: %v", err)
		}
	})
}

func TestNothingLandsBesideATrial(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Serve()
		c, _ := h.Daemon()
		first := h.Land(c, nil)
		h.Asked(c, first)
		h.Cage.Play = drivetest.Writes("three\n")
		second := h.Land(c, nil)
		time.Sleep(time.Minute)
		if d := h.Is(c, second, change.Landing); !strings.Contains(d.Change.Reason, string(first)+" is on trial") || d.Change.Attempts != 0 {
			t.Errorf("it says %q after %d attempts", d.Change.Reason, d.Change.Attempts)
		}
		if err := c.Confirm(gittest.Context(t), first, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		h.Is(c, first, change.Finalized)
		time.Sleep(2 * time.Second)
		if d := h.Show(c, second); d.Change.State == change.Landing {
			t.Errorf("it still waits: %s", d.Change.Reason)
		}
	})
}

func TestARevertRestartsTheOldVersionAndSaysIfItDoesNotAnswer(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Words.Trial = 0
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Is(c, chg, change.Finalized)
		s.Set(func(s *drivetest.Service) {
			s.Answers = func(page string) error {
				if page == "one\n" {
					return problem.Errorf(problem.Refused, "sallyport target show", "it is broken, too")
				}
				return nil
			}
		})
		back, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Yes)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if d := h.Is(c, back.ID, change.RollbackFailed); !strings.Contains(d.Change.Reason, "it is broken, too") || h.Page() != "one\n" {
			t.Errorf("it says %q, the page is %q", d.Change.Reason, h.Page())
		}
		h.Is(c, chg, change.Finalized)
		s.Set(func(s *drivetest.Service) { s.Answers = nil })
		time.Sleep(2 * time.Minute)
		h.Is(c, back.ID, change.Finalized)
		h.Is(c, chg, change.RolledBack)
	})
}

func TestATargetThatNobodyTrustsIsNotRunAndSaid(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Words, s.Unproven = trust.Target{}, "the repository proposes a target that nobody trusts"
		c, _ := h.Daemon()
		if d := h.Is(c, h.Land(c, nil), change.Finalized); d.Trial != nil || d.Change.Reason != s.Unproven || len(s.Started()) != 0 {
			t.Errorf("%+v, %q", d.Trial, d.Change.Reason)
		}
	})
}

func TestWithoutATargetAPersonCanBeAskedAllTheSame(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		s.Words, s.Deaf = trust.Target{}, true
		c, _ := h.Daemon()
		ten := 10 * time.Second
		chg := h.Land(c, &ten)
		h.Asked(c, chg)
		if got := s.Heard(ledger.NoteTrial); len(got) != 1 || !strings.HasPrefix(got[0], "It has landed, and nothing was restarted or probed") || h.Show(c, chg).Change.Reason != got[0] {
			t.Errorf("they are asked %q", got)
		}
		time.Sleep(11 * time.Second)
		h.GoneBack(c, chg, trial.Timeout)
		if len(s.Started()) != 0 {
			t.Error("something was restarted")
		}
	})
}

// TestATrialThatGoesBackIsByteIdentical is SM-138: adds, deletes, renames, modes and binaries, a link that went, with a person's
// own work beside. A link that comes breaks a rule; that it goes back is held in package landing.
func TestATrialThatGoesBackIsByteIdentical(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		file := func(dir, name, text string, mode os.FileMode) {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
		file(h.Repo, "gone/only.txt", "gone\n", 0o644)
		file(h.Repo, "tool.sh", "#!/bin/sh\n", 0o644)
		file(h.Repo, "old name", "moved\n", 0o755)
		file(h.Repo, "was", "a file\n", 0o644)
		file(h.Repo, "binary", "\x00\xff\x00", 0o644)
		if err := os.Symlink("page.txt", filepath.Join(h.Repo, "link")); err != nil {
			t.Fatal(err)
		}
		h.Git("add", "-A")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "second")
		file(h.Repo, "mine.txt", "untracked\n", 0o600)
		before := h.Tree()
		h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
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
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Asked(c, chg)
		if maps.Equal(h.Tree(), before) {
			t.Fatal("nothing landed")
		}
		s.Set(func(s *drivetest.Service) { s.Answers = func(string) error { return errors.New("no answer") } })
		time.Sleep(5 * time.Second)
		s.Set(func(s *drivetest.Service) { s.Answers = nil })
		time.Sleep(10 * time.Second)
		d := h.Is(c, chg, change.RolledBack)
		for name, was := range before {
			if is := h.Tree()[name]; is != was {
				t.Errorf("%q is %q, and was %q", name, is, was)
			}
		}
		if after := h.Tree(); !maps.Equal(after, before) {
			t.Errorf("the tree is %q", slices.Sorted(maps.Keys(after)))
		}
		if is := h.Git("status", "--porcelain"); is != "?? mine.txt" || h.Git("rev-parse", "HEAD^{tree}") != h.Git("rev-parse", "HEAD~2^{tree}") || d.Undoing.NewTree != git.OID(h.Git("rev-parse", "HEAD^{tree}")) {
			t.Errorf("git says %q", is)
		}
	})
}

func TestABranchThatIsNotCheckedOutRestartsNothingAndSaysSo(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		h.Git("branch", "aside")
		c, _ := h.Daemon()
		r, err := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo}, Branch: "aside", Agent: "played", Argv: []string{"true"}, Approve: request.Yes}, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d := h.Is(c, r.Change.ID, change.Finalized)
		if got := s.Started(); len(got) != 0 || d.Trial != nil || !strings.Contains(d.Change.Reason, `"aside" is not checked out in`) {
			t.Errorf("what was never touched was restarted: %q, %+v, %q", got, d.Trial, d.Change.Reason)
		}
	})
}

func TestTheOldVersionIsNotSaidToRunFromAnotherBranch(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Asked(c, chg)
		starts := len(s.Started())
		h.Git("switch", "-q", "-c", "aside")
		if _, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		d := h.Is(c, chg, change.RollbackFailed)
		if got := s.Started(); len(got) != starts || !d.Trial.Restored || !strings.HasSuffix(d.Change.Next, " switch main") {
			t.Errorf("restarted on %q; %+v; next %q", got, d.Trial, d.Change.Next)
		}
		h.Git("switch", "-q", "main")
		time.Sleep(2 * time.Minute)
		h.GoneBack(c, chg, "no")
		if got := s.Started(); len(got) != starts+1 || got[starts] != "one\n" {
			t.Errorf("restarted on %q", got)
		}
	})
}

func TestAWayBackThatIsTriedAgainLeavesAnotherTrialAlone(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Asked(c, chg)
		s.Set(func(s *drivetest.Service) { s.Answers = func(string) error { return errors.New("no answer") } })
		time.Sleep(5 * time.Second)
		if d := h.Is(c, chg, change.RollbackFailed); !d.Trial.Restored {
			t.Fatalf("%+v", d.Trial)
		}
		s.Set(func(s *drivetest.Service) { s.Answers = nil })
		other := h.Land(c, nil)
		h.Asked(c, other)
		starts := len(s.Started())
		time.Sleep(100 * time.Second)
		h.Asked(c, other)
		if d := h.Is(c, chg, change.RollbackFailed); len(s.Started()) != starts || !strings.Contains(d.Change.Reason, string(other)+" is on trial in this repository") {
			t.Errorf("restarted %d times beside a trial; it says %q", len(s.Started())-starts, d.Change.Reason)
		}
		if _, err := c.Rollback(gittest.Context(t), other, h.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		h.Is(c, other, change.RolledBack)
		h.Is(c, chg, change.RolledBack)
	})
}

// TestWhoStopsARollbackWhoseFilesAreBackIsToldThatTheyAre: the old version alone does not answer.
func TestWhoStopsARollbackWhoseFilesAreBackIsToldThatTheyAre(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := h.Serve()
		c, _ := h.Daemon()
		chg := h.Land(c, nil)
		h.Asked(c, chg)
		s.Set(func(s *drivetest.Service) {
			s.Answers = func(string) error { return problem.Errorf(problem.Refused, "", "it is broken") }
		})
		if _, err := c.Rollback(gittest.Context(t), chg, h.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		h.Is(c, chg, change.RollbackFailed)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		if d := h.Is(c, chg, change.Failed); !strings.HasSuffix(d.Change.Reason, "and the old files, which are back, remain") || h.Page() != "one\n" {
			t.Errorf("it says %q, page %q", d.Change.Reason, h.Page())
		}
	})
}
