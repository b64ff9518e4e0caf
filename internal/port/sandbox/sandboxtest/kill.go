package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// runaways leaves processes behind in every way that leaves a group or session.
func runaways(mark string) string {
	return "setsid sh -c 'setsid sleep " + mark + " & setsid sh -c \"trap : TERM; sleep " + mark + "\" & sleep " + mark + "' & " +
		"(sleep " + mark + " & ) ; (setsid sh -c '(sleep " + mark + " &)' &) ; touch ready; "
}

func testKill(t *testing.T, s Setup) {
	ready := func(t *testing.T, spec sandbox.Spec, mark string, n int) {
		t.Helper()
		eventually(t, "the processes run", func() bool {
			_, err := os.Stat(filepath.Join(spec.Tree.Upper, "ready"))
			return err == nil && len(alive(t, "sleep\x00"+mark)) >= n
		})
	}
	t.Run("kill ends the whole tree", func(t *testing.T) {
		mark := marker()
		spec := s.Spec(t, runaways(mark)+"sleep "+mark)
		p := s.start(t, spec)
		ready(t, spec, mark, 5)
		p.Kill()
		p.Kill()
		exit, err := p.Wait()
		if err != nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
		p.Kill()
	})
	t.Run("what ends it from outside, and was not asked to, is no end of the program's", func(t *testing.T) {
		mark := marker()
		spec := s.Spec(t, "touch ready; exec sleep "+mark)
		p := s.start(t, spec)
		ready(t, spec, mark, 1)
		program := alive(t, "sleep\x00"+mark)
		if len(program) != 1 {
			t.Fatalf("the processes of the program are %q", program)
		}
		stat, err := os.ReadFile("/proc/" + program[0] + "/stat")
		must(t, err)
		_, rest, _ := strings.Cut(string(stat), ") ")
		above, err := strconv.Atoi(strings.Fields(rest)[1]) // it dies before who waits for it has seen that
		must(t, err)
		must(t, unix.Kill(above, unix.SIGKILL))
		if exit, err := p.Wait(); err == nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
	})
	t.Run("the end of the program is the end of what it left behind", func(t *testing.T) {
		mark := marker()
		got := s.run(t, s.Spec(t, runaways(mark)+"exit 5"))
		if got.Code != 5 {
			t.Errorf("%+v", got)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
	})
	t.Run("cancelling the context kills", func(t *testing.T) {
		mark := marker()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := s.Spec(t, runaways(mark)+"sleep "+mark)
		p, err := s.Driver.Start(ctx, spec)
		must(t, err)
		ready(t, spec, mark, 5)
		cancel()
		if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
	})
	t.Run("a context that is over starts nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("withdrawn")
		cancel(why)
		if _, err := s.Driver.Start(ctx, s.Spec(t, "true")); !errors.Is(err, why) {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("cancelled while it starts, it ends at every moment", func(t *testing.T) {
		spec := s.Spec(t, "true")
		began := time.Now()
		if got := s.run(t, spec); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		const moments = 30
		step := time.Since(began) / moments
		why := errors.New("withdrawn")
		for i := range moments {
			mark := marker()
			spec := s.Spec(t, "exec sleep "+mark)
			ctx, cancel := context.WithCancelCause(t.Context())
			late := time.AfterFunc(time.Duration(i)*step, func() { cancel(why) })
			p, err := s.Driver.Start(ctx, spec)
			switch {
			case err == nil:
				if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
					t.Errorf("moment %d: %+v, %v", i, exit, err)
				}
			case !errors.Is(err, why):
				t.Errorf("moment %d: %v", i, err)
			}
			late.Stop()
			if left := alive(t, mark); len(left) > 0 {
				t.Errorf("moment %d left alive: %s", i, strings.Join(left, " "))
			}
		}
	})
	t.Run("many at once end each by itself", func(t *testing.T) {
		done := make(chan result, 8)
		for i := range cap(done) {
			spec := s.Spec(t, "exit "+utoa(uint32(i)))
			go func() {
				p, err := s.Driver.Start(t.Context(), spec)
				if err != nil {
					done <- result{err: err.Error()}
					return
				}
				exit, err := p.Wait()
				if err != nil {
					done <- result{err: err.Error()}
				}
				done <- result{Exit: exit}
			}()
		}
		sum := 0
		for range cap(done) {
			r := <-done
			if r.err != "" {
				t.Error(r.err)
			}
			sum += r.Code
		}
		if sum != 28 {
			t.Errorf("the statuses add up to %d", sum)
		}
	})
}
