package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

// TestWhatAPromptOnlyCountsIsReadInTheSessionsOwnFolder holds the place of CH-014b: the host writes it before the turn, nothing inside can,
// and it does not grow for ever.
func TestWhatAPromptOnlyCountsIsReadInTheSessionsOwnFolder(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works, gate := s.turn, make(chan struct{})
		var read []string // as the agent finds it in its turn
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			<-gate
			if _, at, ok := strings.Cut(words, "Read what you need of them in "); ok {
				at, _, _ = strings.Cut(at, ".</folded>")
				text, err := os.ReadFile(filepath.Join(folded(s.starts[len(s.starts)-1]).Source, strings.TrimPrefix(at, dispatch.FoldedFolder)))
				if err != nil {
					t.Error(err)
				}
				read = append(read, string(text))
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		s.say(d, "echo", "first")
		var said []message.In
		for round := range 18 { // a turn waits at the gate while the next one's messages come
			for n := range 13 {
				said = append(said, s.say(d, "echo", fmt.Sprintf("%d-%d", round, n)))
			}
			gate <- struct{}{}
			synctest.Wait()
		}
		gate <- struct{}{}
		s.is(said[len(said)-1].ID, message.Completed)

		s.is(said[0].ID, message.Folded)
		if len(read) != 18 || strings.Count(read[0], "<message ") != 3 || !strings.Contains(read[0], `id="`+string(said[0].ID)+`">0-0</message>`) || strings.Contains(read[0], "0-3<") {
			t.Errorf("%d were read, the first %q", len(read), read)
		}
		bind := folded(s.starts[0])
		files, err := os.ReadDir(bind.Source)
		if err != nil || bind.Writable || len(files) != 16 {
			t.Errorf("%d files are left of %d turns (%v), writable %t", len(files), len(read), err, bind.Writable)
		}
		if info, err := os.Stat(filepath.Dir(bind.Source)); err != nil || info.Mode().Perm() != 0o700 { // the session's own
			t.Errorf("it lies in %v, %v", info.Mode(), err)
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
			}
		}
	})
}

// TestContextSilencesNoChatHoweverMuchThereIs holds CH-011 and CH-014b: who is named is answered, all that is older is told as a number, and
// none of it waits any more.
func TestContextSilencesNoChatHoweverMuchThereIs(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		const all = 10_020
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			for n := range all {
				m := message.In{ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.Chat, Sender: "bob", Text: fmt.Sprint("talk ", n), At: time.Now(), Due: time.Now(), Status: message.Pending}
				if _, err := tx.PutIn(ctx, m); err != nil {
					return err
				}
			}
			return nil
		})
		if seen, err := d.List(gittest.Context(t), "echo"); err != nil || len(seen) != 1 || seen[0].Waiting != 0 {
			t.Errorf("what wakes nobody waits for an answer: %+v, %v", seen, err)
		}
		m := s.say(d, "echo", "and you?")
		s.is(m.ID, message.Completed)
		words := s.told()
		if len(words) != 1 || !strings.Contains(words[0], fmt.Sprintf(`<folded count="%d">`, all-9)) || strings.Count(words[0], "<message ") != 10 || !strings.Contains(words[0], ">talk 10019<") {
			t.Fatalf("the agent was told %q", words)
		}
		text, err := os.ReadFile(filepath.Join(folded(s.starts[0]).Source, "turn-00000001.txt"))
		if shown := strings.Count(string(text), "<message "); err != nil || !strings.Contains(string(text), fmt.Sprintf(`<folded count="%d">`, all-9-shown)) {
			t.Errorf("%d of them can be read: %v", shown, err)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			counts, err := tx.CountIns(ctx, chat.ID)
			if counts[message.Pending] != 0 || counts[message.Folded] != all-9 || counts[message.Completed] != 10 {
				t.Errorf("afterwards there are %v", counts)
			}
			return err
		})
	})
}

// folded is what a session sees of the folder for what its prompts only count.
func folded(spec sandbox.Spec) sandbox.Bind {
	at := slices.IndexFunc(spec.Own, func(b sandbox.Bind) bool { return b.Target == dispatch.FoldedFolder })
	if at < 0 {
		return sandbox.Bind{}
	}
	return spec.Own[at]
}
