package channels_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/store"
)

// TestWhatIsHandedOverLateDecidesNothingThatWasShownSince holds that words said before a card was shown decide nothing about it, however late
// their platform hands them over, by its own order or by when they came; and that the same words said again do.
func TestWhatIsHandedOverLateDecidesNothingThatWasShownSince(t *testing.T) {
	for name, platform := range map[string]func(*channeltest.Scripted){
		"by its order": func(s *channeltest.Scripted) { s.Counting() }, "by when it came": func(s *channeltest.Scripted) { s.Dating() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
				platform(s.platform)
				side := channeltest.NewScripted()
				s.others["side"] = side
				s.addChannel("side")
				s.wire(olgaDM, "echo")
				s.lives()

				s.platform.Hold()
				s.tells(olga, "ignore")
				time.Sleep(time.Minute)
				side.Say(t, channeltest.Saying{By: bob, Place: hallway, Mention: true, Text: "hi"})
				if card := s.newest(olgaDM).Text; !strings.Contains(card, "wire it?") {
					t.Fatalf("the card: %s", card)
				}
				time.Sleep(time.Minute)
				s.platform.Release()
				synctest.Wait()
				if n := s.undecided(); n != 1 {
					t.Fatalf("words of before have decided: %d questions wait", n)
				}
				told := s.newest(olgaDM).Text
				if !strings.HasPrefix(told, "Nothing is decided: you had not been shown this here before.") && told != "heard: ignore" {
					t.Errorf("what becomes of it is told as %q", told)
				}

				s.tells(olga, "10 ignore") // the first card; the assistant has said the bare word since
				if n := s.undecided(); n != 0 {
					t.Errorf("after it was said again %d questions wait: %q", n, s.texts(olgaDM))
				}
			})
		})
	}
}

// undecided is how many questions about strangers and places wait.
func (s *scene) undecided() (n int) {
	s.T.Helper()
	synctest.Wait()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.PendingQuestions(ctx, "")
		n = len(all)
		return err
	})
	return n
}
