package dispatch_test

import (
	"testing"

	"sallyport/internal/chat/message"
)

func TestTheAgentOfAGroupStartsFromTheHomesImage(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.Parts.Settings.Image = "/home/.state/images/0123/root"
		d, _ := s.lives()
		s.is(s.say(d, "echo", "1").ID, message.Completed)
		if n := s.started(); n != 1 || s.starts[0].Image != s.Parts.Settings.Image {
			t.Errorf("%d sessions, the last from %q", n, s.starts[n-1].Image)
		}
	})
}
