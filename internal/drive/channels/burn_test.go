package channels_test

import (
	"testing"

	"sallyport/internal/rule/right"
)

// TestACodeThatOthersCanReadIsGoodNoMore holds that a code which somebody sends in a group links nobody afterwards, and that no agent is told
// it.
func TestACodeThatOthersCanReadIsGoodNoMore(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.know(bob, right.Held{Role: right.Member, Group: "echo"})
		s.wire(stream, "echo")
		s.lives()
		code := s.code()

		s.mentions(bob, stream, code)
		s.tells(cyd, code)
		if k, ok := s.person(cyd); ok {
			t.Errorf("who read the code is %+v", k)
		}
		same(t, "heard", s.heard())
		if n := s.drops()["a code where it links nobody"]; n != 1 {
			t.Errorf("dropped %d times: %v", n, s.drops())
		}
	})
}
