package deadman

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// scene is a record and a daemon that a test moves about.
type scene struct {
	mu     sync.Mutex
	armed  *Armed
	alive  bool
	broken error
	fired  []time.Time
	ended  []Process
	told   []string
	onFire func(*scene) error
}

// moment is both clocks at a time of the bubble.
func moment(at time.Time) Moment {
	return Moment{Wall: at, Boot: "b", Up: at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}
}

func due(from time.Time, in time.Duration) Deadline { return Deadline{Set: moment(from), In: in} }

func (s *scene) set(f func(*scene)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *scene) firings() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired
}

func (s *scene) watcher() Watcher {
	return Watcher{
		Read: func() (Armed, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.armed == nil {
				return Armed{}, fmt.Errorf("gone: %w", fs.ErrNotExist)
			}
			return *s.armed, s.broken
		},
		Alive: func(p Process) bool { s.mu.Lock(); defer s.mu.Unlock(); return s.alive || p.PID == 2 },
		Fire: func(_ context.Context, a Armed) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fired = append(s.fired, time.Now())
			if s.onFire != nil {
				return s.onFire(s)
			}
			return nil
		},
		Now: func() (Moment, error) { return moment(time.Now()), nil },
		End: func(p Process) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, p)
			if p.PID == 1 {
				s.alive = false
			}
			return nil
		},
		Tell: func(state string, _ int, _ string) { s.mu.Lock(); defer s.mu.Unlock(); s.told = append(s.told, state) },
	}
}

// start watches a record whose deadline lies ten minutes ahead.
func start(t *testing.T, ctx context.Context) (*scene, time.Time, chan error) {
	begin := time.Now()
	s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, 10*time.Minute)}, alive: true}
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, s.watcher()) }()
	return s, begin, done
}

func after(d time.Duration) {
	time.Sleep(d) // the bubble's time
	synctest.Wait()
}

func TestWatchFiresAtTheDeadlineAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) { s.onFire = func(s *scene) error { s.armed = nil; return nil } })
		after(10*time.Minute - time.Nanosecond)
		if n := len(s.firings()); n != 0 {
			t.Fatalf("fired %d times early", n)
		}
		after(time.Nanosecond)
		if f := s.firings(); len(f) != 1 || f[0].Sub(begin) != 10*time.Minute {
			t.Fatalf("fired %v after the start at %v", f, begin)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWatchFiresOnceTheDaemonIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) { s.onFire = func(s *scene) error { s.armed = nil; return nil } })
		after(time.Minute)
		s.set(func(s *scene) { s.alive = false })
		after(lookEvery)
		if f := s.firings(); len(f) != 1 || f[0].Sub(begin) > time.Minute+lookEvery {
			t.Fatalf("fired %v; the daemon died a minute after %v", f, begin)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWatchEndsWhenDisarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, done := start(t, t.Context())
		after(10*time.Minute - time.Second)
		s.set(func(s *scene) { s.armed, s.alive = nil, false }) // even if the daemon ends right after
		after(lookEvery)
		if err := <-done; err != nil || len(s.firings()) != 0 {
			t.Errorf("err = %v, fired %d times", err, len(s.firings()))
		}
	})
}

// A daemon that is asked to stop after a landing disarms and goes in the same instant. Who has read the record before that, and looks for
// the daemon after it, brings nobody back.
func TestNobodyIsBroughtBackWhoDisarmedOrPartedBeforeTheyWent(t *testing.T) {
	for name, last := range map[string]func(*scene){
		"disarmed": func(s *scene) { s.armed = nil },
		"parted":   func(s *scene) { s.armed.Parted, s.armed.At = true, time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(time.Now(), 10*time.Minute)}, alive: true}
				w := s.watcher()
				w.Alive = func(p Process) bool {
					s.set(func(s *scene) {
						if s.alive {
							s.alive = false
							last(s)
						}
					})
					return false
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Second)
				defer cancel()
				_ = Watch(ctx, w)
				if n := len(s.firings()); n != 0 {
					t.Errorf("fired %d times", n)
				}
			})
		})
	}
}

func TestWatchGoesByTheRecordThatANewDaemonArms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) {
			s.alive = false
			s.onFire = func(s *scene) error {
				s.armed = &Armed{Landing: "lnd-1", Daemon: Process{PID: 2}, Due: due(begin, 30*time.Minute)}
				s.onFire = func(s *scene) error { s.armed = nil; return nil }
				return nil
			}
		})
		after(30*time.Minute - time.Second)
		if n := len(s.firings()); n != 1 {
			t.Fatalf("fired %d times before the new deadline, want once for the dead daemon", n)
		}
		after(time.Second)
		if err := <-done; err != nil || len(s.firings()) != 2 {
			t.Errorf("err = %v, fired %d times, want 2", err, len(s.firings()))
		}
	})
}

func TestWatchGivesUpInTheEnd(t *testing.T) {
	for name, onFire := range map[string]func(*scene) error{
		"the command fails":         func(*scene) error { return errors.New("exit status 1") },
		"the command helps nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begin, done := start(t, t.Context())
				s.set(func(s *scene) { s.alive, s.onFire = false, onFire })
				if err := <-done; !errors.Is(err, ErrGaveUp) {
					t.Errorf("err = %v", err)
				}
				f := s.firings()
				if len(f) != AttemptsMax {
					t.Fatalf("fired %d times, want %d", len(f), AttemptsMax)
				}
				for i := 2; i < len(f); i++ {
					if was, is := f[i-1].Sub(f[i-2]), f[i].Sub(f[i-1]); is < was {
						t.Errorf("pause %d is %s after %s: it must not shrink", i, is, was)
					}
				}
				if took := time.Since(begin); took > LifeMax {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestAMachineThatCanDoNothingForHalfAnHourIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) {
			s.alive = false
			s.onFire = func(s *scene) error {
				if time.Since(begin) < 30*time.Minute {
					return errors.New("no space left on device")
				}
				s.armed = nil
				return nil
			}
		})
		if err := <-done; err != nil || time.Since(begin) > 31*time.Minute+time.Second {
			t.Errorf("err = %v after %s", err, time.Since(begin))
		}
	})
}

func TestAKeeperLivesNoLongerThanItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) { s.armed.Due = due(begin, 100*LifeMax) }) // a record that Arm would not write
		if err := <-done; !errors.Is(err, ErrGaveUp) || time.Since(begin) != LifeMax {
			t.Errorf("err = %v after %s", err, time.Since(begin))
		}
	})
}

func TestWatchKeepsToTheLastRecordItCouldRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, done := start(t, t.Context())
		after(time.Second)
		s.set(func(s *scene) {
			s.broken = errors.New("input/output error")
			s.onFire = func(s *scene) error { s.armed = nil; return nil }
		})
		after(10 * time.Minute)
		if err := <-done; err != nil || len(s.firings()) != 1 {
			t.Errorf("err = %v, fired %d times: a record that cannot be read is not disarmed", err, len(s.firings()))
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("told to end")
		ctx, cancel := context.WithCancelCause(t.Context())
		s, _, done := start(t, ctx)
		after(time.Second)
		cancel(why)
		if err := <-done; !errors.Is(err, why) || len(s.firings()) != 0 {
			t.Errorf("err = %v, fired %d times", err, len(s.firings()))
		}
	})
}

// A daemon that goes on arms its record anew before the deadline: the keeper goes by the new one, not by the one
// that it read first, be it later or sooner.
func TestWatchGoesByADeadlineThatTheSameDaemonMoved(t *testing.T) {
	for name, moved := range map[string]time.Duration{"later": 25 * time.Minute, "sooner": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begin, done := start(t, t.Context())
				after(time.Minute)
				s.set(func(s *scene) {
					s.armed = &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, moved)}
					s.onFire = func(s *scene) error { s.armed = nil; return nil }
				})
				if err := <-done; err != nil {
					t.Error(err)
				}
				if f := s.firings(); len(f) != 1 || f[0].Sub(begin) != moved {
					t.Errorf("fired %v after the start at %v, want once after %s", f, begin, moved)
				}
			})
		})
	}
}

func TestAKeeperWithoutAClockFiresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, time.Minute)}, alive: true}
		s.onFire = func(s *scene) error { s.armed = nil; return nil }
		w := s.watcher()
		w.Now = func() (Moment, error) { return Moment{}, errors.New("no clock") }
		if err := Watch(t.Context(), w); err != nil {
			t.Error(err)
		}
		if f := s.firings(); len(f) != 1 || f[0] != begin {
			t.Errorf("fired %v, want at once: nothing says that there is time left", f)
		}
	})
}
