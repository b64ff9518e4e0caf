package channels

import (
	"fmt"
	"testing"
	"time"

	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
)

func TestAWiringKeepsWhatIsNotSaid(t *testing.T) {
	for _, c := range []struct {
		kind conversation.Kind
		wish Wish
		want string
	}{
		{conversation.Group, Wish{}, "mention  all drop"},
		{conversation.Direct, Wish{}, "pattern . all drop"},
		{conversation.Direct, Wish{Scope: wiring.Known}, "pattern . known drop"},
		{conversation.Direct, Wish{Mode: wiring.Mention}, "mention  all drop"},
		{conversation.Group, Wish{Pattern: "^!a"}, "pattern ^!a all drop"},
		{conversation.Group, Wish{Ignored: wiring.Accumulate}, "mention  all accumulate"},
	} {
		w := c.wish.onto(wiring.New("cnv-1", c.kind, "ada", time.Time{}))
		if got := fmt.Sprint(w.Mode, " ", w.Pattern, " ", w.Scope, " ", w.Ignored); got != c.want || w.Check() != nil {
			t.Errorf("%s %+v: %q, not %q; %v", c.kind, c.wish, got, c.want, w.Check())
		}
	}
	if w := (Wish{Mode: wiring.Pattern}).onto(wiring.New("cnv-1", conversation.Group, "ada", time.Time{})); w.Check() == nil {
		t.Error("a pattern that was not said is saved")
	}
}
