package dispatch_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/sandbox"
)

// said is a log that a test reads while it is written.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(s.text.String(), "\n")
}

// TestAnAgentThatEndsBadlyLeavesItsLastWordsInTheLogAndNoFile holds CH-084 and CH-110: code and last lines are in the log, with the
// group; what was said before is kept, and no file is written for the end.
func TestAnAgentThatEndsBadlyLeavesItsLastWordsInTheLogAndNoFile(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		log := &said{}
		s.Parts.Log = slog.New(slog.NewTextHandler(log, nil))
		d, _ := s.lives()
		first := s.say(d, "echo", "one")
		s.is(first.ID, message.Completed)
		if _, err := d.Stop(gittest.Context(t), first.Chat, s.By()); err != nil {
			t.Fatal(err)
		}
		before := files(t, s)

		works := s.Cage.Program
		s.Cage.Program = func(spec sandbox.Spec, _ <-chan struct{}) int {
			for n := range 400 {
				fmt.Fprintf(spec.Stderr, "panic: no model %d\n", n)
			}
			return 3
		}
		second := s.say(d, "echo", "two")
		s.is(second.ID, message.Pending)
		var told []string
		for _, l := range log.lines() {
			if strings.Contains(l, "an agent's session ended") {
				told = append(told, l)
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], "level=WARN") || !strings.Contains(told[0], "group=echo") || !strings.Contains(told[0], `how="it ended with status 3"`) ||
			!strings.Contains(told[0], "panic: no model 399") || strings.Contains(told[0], "panic: no model 1\\n") || len(told[0]) > 4<<10 {
			t.Errorf("the log says %q", told)
		}
		if now := files(t, s); now != before {
			t.Errorf("files were\n%s\nand are\n%s", before, now)
		}

		s.Cage.Program = works
		third := s.say(d, "echo", "three")
		s.is(third.ID, message.Completed)
		if all := s.sent(first.Chat); all[0] != "heard: one" {
			t.Errorf("sent %q", all)
		}
	})
}

// files are the names of all that lies in the sessions' folder.
func files(t *testing.T, s *scene) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(s.Parts.Settings.Sessions, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return strings.Join(all, "\n")
}
