package dispatch_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/live"
	"sallyport/internal/rule/mount"
)

// TestASessionHasTheFoldersThatItBeganWith holds CH-025 where sessions begin: what the home allows counts for the next one, and what is
// refused is told to the agent and keeps nobody from answering.
func TestASessionHasTheFoldersThatItBeganWith(t *testing.T) {
	top, err := os.MkdirTemp("/var/tmp", "sallyport-extra-")
	if err == nil {
		top, err = filepath.EvalSymlinks(top)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	for _, dir := range []string{"notes", "box"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var allowed atomic.Bool
		allowed.Store(true)
		s.extra = live.Extra{Roots: func() ([]mount.Root, error) {
			if !allowed.Load() {
				return nil, nil
			}
			return []mount.Root{{Path: top, Write: true}}, nil
		}}
		s.commit("groups/echo/runner/runner.yaml", "agent: echo\nmounts: [{path: "+top+"/notes}, {path: "+top+"/box, readonly: false}, {path: "+top+"/gone}]\n")
		d, _ := s.lives()
		m := s.say(d, "echo", "1")
		s.is(m.ID, message.Completed)
		allowed.Store(false)
		s.is(s.say(d, "echo", "2").ID, message.Completed)
		if n := s.started(); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		if shown := s.starts[0].Mounts; len(shown) != 2 || shown[0].Source != top+"/notes" || shown[0].Writable || shown[1].Target != "/extra/box" || !shown[1].Writable {
			t.Errorf("it is shown %+v", shown)
		}
		told := s.systems[0]
		for _, want := range []string{"- /extra/notes, read-only\n", "- /extra/box, read-write", "- /extra/gone is not shown"} {
			if !strings.Contains(told, want) {
				t.Errorf("it is not told %q: %q", want, told)
			}
		}

		if _, err := d.Stop(gittest.Context(t), m.Chat, s.By()); err != nil {
			t.Fatal(err)
		}
		s.is(s.say(d, "echo", "3").ID, message.Completed)
		if n := s.started(); n != 2 || len(s.starts[1].Mounts) != 0 || strings.Contains(s.systems[1], "read-") {
			t.Errorf("%d sessions, the last is shown %+v and told %q", n, s.starts[n-1].Mounts, s.systems[n-1])
		}
	})
}
