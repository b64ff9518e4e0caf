package dispatch_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// bury makes what no path can name and no session can begin in: folders in each other, the last of them closed, and a link out of it all.
func bury(t *testing.T, top, outside string) {
	t.Helper()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range 400 {
		name := strings.Repeat("d", 50)
		if err = errors.Join(err, unix.Mkdirat(at, name, 0o700)); err != nil {
			t.Fatal(err)
		}
		next, failed := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		err = errors.Join(failed, unix.Close(at))
		at = next
	}
	if err := errors.Join(err, unix.Symlinkat(outside, at, "link"), unix.Mkdirat(at, "closed", 0), unix.Fchmod(at, 0), unix.Close(at)); err != nil {
		t.Fatal(err)
	}
}

// TestAGroupThatWroteTooDeepStartsAgainOnceAPersonHasClearedItsMemory holds the way out of an agent that has shut out its own group.
func TestAGroupThatWroteTooDeepStartsAgainOnceAPersonHasClearedItsMemory(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		first := s.say(d, "echo", "one")
		s.is(first.ID, message.Completed)
		outside := filepath.Join(s.Parts.Home, "precious")
		written := filepath.Join(s.Parts.Home, "state", "groups", "echo", "agent")
		if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		bury(t, filepath.Join(written, "memory"), outside)
		if _, err := d.Stop(gittest.Context(t), first.Chat, s.By()); err != nil {
			t.Fatal(err)
		}

		starts := s.started()
		second := s.say(d, "echo", "two")
		s.is(second.ID, message.Pending)
		sent := s.sent(first.Chat)
		if told := sent[len(sent)-1]; s.started() != starts || !strings.Contains(told, "The agent of echo could not be woken: folders lie more than 128 deep in each other in the memory of group echo. What to do: sallyport group memory clear echo.") {
			t.Errorf("%d starts, told %q", s.started()-starts, told)
		}

		if _, err := afresh(d).ClearMemory(gittest.Context(t), "echo", audit.Actor{Kind: "person", Name: "eve"}); !errors.Is(err, person.ErrNotOwner) {
			t.Errorf("by somebody else: %v", err)
		}
		if _, err := afresh(d).ClearMemory(gittest.Context(t), "none", s.By()); problem.KindOf(err) != problem.NotFound {
			t.Errorf("of no group: %v", err)
		}
		if _, err := afresh(d).ClearMemory(gittest.Context(t), "echo", s.By()); err != nil {
			t.Fatal(err)
		}
		aside := filepath.Join(filepath.Dir(written), ".new-agent") // as a daemon leaves it that dies while it removes
		if err := os.Mkdir(aside, 0o700); err != nil {
			t.Fatal(err)
		}
		bury(t, aside, outside)
		third := s.say(d, "echo", "three")
		s.is(third.ID, message.Completed)
		s.is(second.ID, message.Completed)
		if left, err := os.ReadDir(filepath.Join(written, "memory")); err != nil || len(left) > 0 {
			t.Errorf("%v %v", left, err)
		}
		if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was cleared stays: %v", err)
		}
		if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
			t.Error(err)
		}
		s.audited("group:echo", "memory cleared", 1)
	})
}

// TestWhatIsAtWorkIsNotPulledAwayAndWhatRestsMakesWay holds it for both commands that begin something anew.
func TestWhatIsAtWorkIsNotPulledAwayAndWhatRestsMakesWay(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works, gate := s.turn, make(chan struct{})
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			<-gate
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "one")
		_, cleared := afresh(d).ClearMemory(gittest.Context(t), "echo", s.By())
		_, forgot := afresh(d).Forget(gittest.Context(t), m.Chat, s.By())
		for what, err := range map[string]error{"clear": cleared, "forget": forgot} {
			if p := problem.Of(err); p.Kind != problem.Conflict || p.Next != "sallyport session stop "+string(m.Chat) {
				t.Errorf("%s in a turn: %+v", what, p)
			}
		}

		close(gate)
		s.is(m.ID, message.Completed) // the session is at rest, and up
		if _, err := afresh(d).ClearMemory(gittest.Context(t), "echo", s.By()); err != nil {
			t.Error(err)
		}
		if _, err := afresh(d).Forget(gittest.Context(t), m.Chat, s.By()); err != nil {
			t.Error(err)
		}
		s.is(s.say(d, "echo", "two").ID, message.Completed)
		if n := s.started(); n != 2 {
			t.Errorf("%d sessions were started", n)
		}
	})
}

// TestAChatThatIsForgottenGoesOnAsNobody holds that nothing of the kept home comes back, and that nothing of what was said is lost.
func TestAChatThatIsForgottenGoesOnAsNobody(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.forgets = true // it would be told what was said
		d, _ := s.lives()
		first := s.say(d, "echo", "one")
		was := s.chat(first.Chat).Identity
		dir := filepath.Join(s.Parts.Settings.Sessions, string(was))
		bury(t, session.HomeDir(dir), s.Parts.Home)

		if _, err := afresh(d).Forget(gittest.Context(t), first.Chat, audit.Actor{Kind: "person", Name: "eve"}); !errors.Is(err, person.ErrNotOwner) {
			t.Errorf("by somebody else: %v", err)
		}
		if got, err := afresh(d).Forget(gittest.Context(t), first.Chat, s.By()); got != was || err != nil {
			t.Fatalf("%q, want %q: %v", got, was, err)
		}
		if again, err := afresh(d).Forget(gittest.Context(t), first.Chat, s.By()); again != "" || err != nil {
			t.Errorf("again: %q %v", again, err)
		}
		if _, err := os.Lstat(session.HomeDir(dir)); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		sent := s.sent(first.Chat)
		if told := sent[len(sent)-1]; !strings.HasPrefix(told, "notice: The agent of echo begins anew in this chat, as ") || sent[0] != "heard: one" {
			t.Errorf("sent %q", sent)
		}

		second := s.say(d, "echo", "two")
		s.is(second.ID, message.Completed)
		if now := s.chat(first.Chat).Identity; now == was || now == "" {
			t.Errorf("it goes on as %q", now)
		}
		if words := s.told(); strings.Contains(words[len(words)-1], "heard") || strings.Contains(words[len(words)-1], ">one<") {
			t.Errorf("it was told %q", words[len(words)-1])
		}
		s.transcribed(d, string(was))
		s.audited(string(first.Chat), "forgot", 1)
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			of, err := tx.Session(ctx, was)
			if of.Ended == nil {
				t.Error("its session has no end, so that its transcript is kept for ever")
			}
			return err
		})
	})
}

// TestAChatOfADaemonThatDiedIsForgottenToo holds that the row of the session is closed, though nothing ran that could close it.
func TestAChatOfADaemonThatDiedIsForgottenToo(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, end := s.lives()
		m := s.say(d, "echo", "one")
		end()
		was := s.chat(m.Chat).Identity
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			of, err := tx.Session(ctx, was)
			of.Ended = nil
			return errors.Join(err, tx.PutSession(ctx, of))
		})
		d, _ = s.lives()
		synctest.Wait()
		if _, err := afresh(d).Forget(gittest.Context(t), m.Chat, s.By()); err != nil {
			t.Fatal(err)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			of, err := tx.Session(ctx, was)
			if of.Ended == nil {
				t.Error("its session has no end")
			}
			return err
		})
	})
}

// transcribed holds that there is a transcript of a session.
func (s *scene) transcribed(d *dispatch.Dispatcher, name string) {
	s.T.Helper()
	log, err := d.Transcript(s.T.Context(), name)
	if err != nil {
		s.T.Errorf("the transcript of %s: %v", name, err)
		return
	}
	defer log.Close()
	if said, err := io.ReadAll(log); err != nil || len(said) == 0 {
		s.T.Errorf("the transcript of %s is empty (%v)", name, err)
	}
}

// audited holds how often something was written down of a subject.
func (s *scene) audited(subject, verb string, want int) {
	s.T.Helper()
	n := 0
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.Entries(ctx, "", 0, 1000)
		for _, e := range all {
			if e.Subject == subject && e.Verb == verb {
				n++
			}
		}
		return err
	})
	if n != want {
		s.T.Errorf("%q of %s is written down %d times, want %d", verb, subject, n, want)
	}
}

func afresh(d *dispatch.Dispatcher) dispatch.Afresh { return dispatch.Afresh{Dispatcher: d} }
