package dispatch_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/chat/message"
)

// TestTheSameAgentInAnotherGroupInheritsNothing holds RM-028: neither home, memory, transcript nor a word that was said elsewhere, also
// for an agent that is told what was said before.
func TestTheSameAgentInAnotherGroupInheritsNothing(t *testing.T) {
	play(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		s.forgets = true
		works := s.turn
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			spec := s.starts[len(s.starts)-1]
			left := filepath.Join(spec.Home, "notes")
			for _, place := range []string{left, filepath.Join(spec.Own[0].Source, "memory", "notes")} {
				if _, err := os.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%q was written elsewhere: %v", place, err)
				}
			}
			if err := errors.Join(os.WriteFile(left, nil, 0o600), os.WriteFile(filepath.Join(spec.Own[0].Source, "memory", "notes"), nil, 0o600)); err != nil {
				t.Error(err)
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		first := s.say(d, "a", "the secret of a")
		s.is(first.ID, message.Completed)
		second := s.say(d, "b", "look")
		s.is(second.ID, message.Completed)

		a, b := s.chat(first.Chat), s.chat(second.Chat)
		if a.Identity == b.Identity || a.Agent != b.Agent || s.starts[0].Home == s.starts[1].Home || s.starts[0].Own[0].Source == s.starts[1].Own[0].Source {
			t.Errorf("%+v\n%+v", a, b)
		}
		for _, words := range s.told()[1:] {
			if strings.Contains(words, "secret of a") {
				t.Errorf("b is told %q", words)
			}
		}
		if left, err := filepath.Glob(filepath.Join(s.Parts.Home, "state", "groups", "*", "agent", "memory", "notes")); err != nil || len(left) != 2 {
			t.Errorf("notes are %q (%v)", left, err)
		}
	})
}
