package channels_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/channel/channeltest"
)

// TestWhatIsSaidBesideThreadsIsContextOfTheNextThatWakes holds CH-011 and CH-013 where each message may begin a thread, as on Slack: what wakes
// nobody makes no chat of its own, and the next thread that wakes the group takes it over, once.
func TestWhatIsSaidBesideThreadsIsContextOfTheNextThatWakes(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.platform.Rooted()
		s.hears(room, "echo", func(w *wiring.Wiring) { w.Ignored = wiring.Accumulate })
		s.lives()
		broken := s.says(dan, room, "it is broken")
		s.says(dan, room, "since noon")
		for _, said := range []string{"who has a look", "@echo do you"} { // in the thread that the first of them began
			s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: broken, Text: said})
			synctest.Wait()
		}
		s.says(dan, room, "thank you")
		s.says(dan, room, "@echo anything else")
		s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: broken, Text: "and now"})

		same(t, "heard", s.heard(), "echo: @echo do you", "echo: @echo anything else", "echo: and now")
		for i, want := range [][]string{{"it is broken", "since noon", "who has a look", "@echo do you"}, {"thank you", "@echo anything else"}, {"and now"}} {
			same(t, "turn", saidIn(s.words[i]), want...)
		}
		chats := map[string]bool{}
		for _, m := range s.ins("echo") {
			chats[string(m.Chat)] = true
		}
		if len(chats) != 2 {
			t.Errorf("what was said is in %d chats", len(chats))
		}
	})
}

// saidIn are the texts of the messages of a prompt.
func saidIn(words string) (all []string) {
	for _, part := range strings.Split(words, "<message ")[1:] {
		all = append(all, drivetest.Last("<message "+part))
	}
	return all
}
