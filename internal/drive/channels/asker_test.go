package channels_test

import (
	"context"
	"strings"
	"testing"

	"sallyport/internal/drive/channels"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

// TestAQuestionIsShownToTheNextOnceWhoeverWasAskedIsGone holds that a stranger who speaks again does not wait for nobody (CH-052), and that
// nobody is shown a question twice.
func TestAQuestionIsShownToTheNextOnceWhoeverWasAskedIsGone(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		held := right.Held{Role: right.GroupAdmin, Group: "echo"}
		admin := s.know(cyd, held)
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		s.lives()
		for range 3 {
			s.tells(bob, "hello")
		}
		if asked := s.texts(channeltest.DirectOf(cyd)); len(asked) != 1 || len(s.texts(olgaDM)) > 0 {
			t.Errorf("the admin is asked %q, the owner %q", asked, s.texts(olgaDM))
		}

		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Revoke(ctx, admin, held)
			return err
		})
		for range 3 {
			s.tells(bob, "anybody?")
		}
		if asked := s.texts(olgaDM); len(asked) != 1 || !strings.Contains(asked[0], "bob") || len(s.questions(at)) != 1 {
			t.Errorf("the owner is asked %q, %d questions wait", asked, len(s.questions(at)))
		}
		s.press(olga, olgaDM, channels.Allow)
		same(t, "heard", s.heard(), "echo: hello")
	})
}
