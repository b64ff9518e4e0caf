package deadman

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestADaemonThatLivesAndDoesNothingIsEndedAndAnotherStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) {
			s.onFire = func(s *scene) error {
				if !s.alive {
					s.armed = nil
				}
				return nil
			}
		})
		if err := <-done; err != nil {
			t.Error(err)
		}
		f := s.firings()
		if len(f) != 2 || len(s.ended) != 1 || s.ended[0] != (Process{PID: 1}) {
			t.Fatalf("fired %d times, ended %v", len(f), s.ended)
		}
		if late := f[1].Sub(begin) - 10*time.Minute; late < hungAfter || late > hungAfter+lookEvery {
			t.Errorf("another was started %s after the deadline", late)
		}
		if want := []string{"fired", "ended", "fired"}; !slices.Equal(s.told, want) {
			t.Errorf("told %q, want %q", s.told, want)
		}
	})
}

func TestADaemonThatTakesItsDeadlineUpIsNotEnded(t *testing.T) {
	for name, then := range map[string]func(s *scene, begin time.Time){
		"it disarms": func(s *scene, _ time.Time) { s.armed = nil },
		"it moves nothing but the deadline": func(s *scene, begin time.Time) {
			s.armed = &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, 20*time.Minute)}
		},
		"it arms anew": func(s *scene, begin time.Time) {
			s.armed = &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, 20*time.Minute), At: time.Now()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, enough := context.WithCancel(t.Context())
				s, begin, done := start(t, ctx)
				after(10*time.Minute + hungAfter - lookEvery - time.Millisecond)
				s.set(func(s *scene) { then(s, begin) })
				after(5 * time.Minute)
				if len(s.ended) != 0 || len(s.firings()) != 1 {
					t.Errorf("fired %d times, ended %v", len(s.firings()), s.ended)
				}
				enough()
				<-done
			})
		})
	}
}

func TestACommandThatNeverEndsHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, time.Minute)}, alive: true}
		w := s.watcher()
		fire := w.Fire
		w.Fire = func(ctx context.Context, a Armed) error { // it asks a daemon that has stopped
			s.mu.Lock()
			alive := s.alive
			s.mu.Unlock()
			if alive {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			s.set(func(s *scene) { s.armed = nil })
			return fire(ctx, a)
		}
		if err := Watch(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin) - time.Minute; took > hungAfter+2*lookEvery || len(s.ended) != 1 {
			t.Errorf("it took %s, ended %v", took, s.ended)
		}
	})
}

func TestADaemonThatPartedIsNotBroughtBackBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin, done := start(t, t.Context())
		s.set(func(s *scene) {
			s.armed.Parted = true
			s.onFire = func(s *scene) error { s.armed = nil; return nil }
		})
		after(time.Second)
		s.set(func(s *scene) { s.alive = false })
		if err := <-done; err != nil {
			t.Error(err)
		}
		if f := s.firings(); len(f) != 1 || f[0].Sub(begin) != 10*time.Minute || len(s.ended) != 0 {
			t.Errorf("fired %v after %v, ended %v", f, begin, s.ended)
		}
	})
}

func TestExactlyTheProcessThatWasMeantIsEnded(t *testing.T) {
	cmd := exec.Command("cat")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	echo := bufio.NewReader(out)
	lives := func() bool { // what was killed says nothing more, also if it is not gone yet
		_, err := io.WriteString(in, "you?\n")
		line, read := echo.ReadString('\n')
		return err == nil && read == nil && line == "you?\n"
	}
	if !lives() {
		t.Fatal("it never lived")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p, _, err := look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]Process{
		"one that had its number before": {PID: p.PID, Start: p.Start - 1, Boot: p.Boot},
		"one of another boot":            {PID: p.PID, Start: p.Start, Boot: "another"},
	} {
		before, _ := os.ReadDir("/proc/self/fd")
		if err := End(other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
			t.Errorf("%d descriptors were open, and %d are", len(before), len(after))
		}
		if !lives() {
			t.Fatalf("%s: the wrong process was ended", name)
		}
	}
	if err := End(p); err != nil {
		t.Fatal(err)
	}
	<-ended
	if Alive(p) {
		t.Error("it lives")
	}
	if err := End(p); err != nil {
		t.Errorf("ending what is gone: %v", err)
	}
}

func TestWhatGoesWrongWithAHungDaemonIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, enough := context.WithCancel(t.Context())
		s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(time.Now(), time.Minute)}, alive: true}
		s.onFire = func(*scene) error { return errors.New("it does not start") }
		w := s.watcher()
		w.End = func(Process) error { return errors.New("it does not end") }
		done := make(chan error, 1)
		go func() { done <- Watch(ctx, w) }()
		after(time.Minute + hungAfter + lookEvery)
		if want := []string{"fired", "failed", "ended", "failed"}; !slices.Equal(s.told, want) {
			t.Errorf("told %q, want %q", s.told, want)
		}
		enough()
		<-done
	})
}

func TestADaemonThatTakesAMomentToEndIsEndedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(time.Now(), time.Minute)}, alive: true}
		s.onFire = func(s *scene) error {
			if !s.alive {
				s.armed = nil
			}
			return nil
		}
		w, ended := s.watcher(), 0
		w.End = func(Process) error {
			ended++
			time.AfterFunc(pauseMin/2, func() { s.set(func(s *scene) { s.alive = false }) })
			return nil
		}
		if err := Watch(t.Context(), w); err != nil || ended != 1 || len(s.firings()) != 2 {
			t.Errorf("fired %d times, ended it %d times, %v", len(s.firings()), ended, err)
		}
	})
}

func TestACommandIsNotWaitedForOnceTheRecordIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &scene{armed: &Armed{Landing: "lnd-1", Daemon: Process{PID: 1}, Due: due(begin, time.Minute)}, alive: true}
		w := s.watcher()
		w.Fire = func(ctx context.Context, _ Armed) error {
			s.set(func(s *scene) { s.armed = nil })
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err := Watch(t.Context(), w); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin) - time.Minute; took > 2*lookEvery {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAKeeperThatIsToldToEndFiresNoMore(t *testing.T) {
	for name, alive := range map[string]bool{"the daemon is gone": false, "the daemon is hung": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, enough := context.WithCancelCause(t.Context())
				s, _, done := start(t, ctx)
				s.set(func(s *scene) { s.alive = alive })
				after(10*time.Minute + lookEvery + time.Millisecond)
				fired := len(s.firings())
				told := errors.New("told to end")
				enough(told)
				if err := <-done; !errors.Is(err, told) || fired == 0 || len(s.firings()) != fired || len(s.ended) != 0 {
					t.Errorf("fired %d times and then %d, ended %v, %v", fired, len(s.firings()), s.ended, err)
				}
			})
		})
	}
}
