package channels_test

import (
	"testing"

	"sallyport/internal/port/channel/channeltest"
)

// TestTheOwnerAloneWithTheAssistantIsHeardByTheOnlyGroup holds that what the owner says in a new place needs no question where there is but
// one group (CH-061, CH-062).
func TestTheOwnerAloneWithTheAssistantIsHeardByTheOnlyGroup(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.lives()
		s.tells(olga, "good morning")

		same(t, "heard", s.heard(), "echo: good morning")
		same(t, "answered", s.texts(channeltest.DirectOf(olga)), "heard: good morning")
	})
}
