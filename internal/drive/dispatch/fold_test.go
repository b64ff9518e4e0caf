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

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/sandbox"
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
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
			}
		}
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
