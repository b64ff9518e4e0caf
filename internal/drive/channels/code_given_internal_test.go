package channels

import (
	"context"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
)

// shy is a platform on which nobody can be reached alone, though it has places for that.
type shy struct {
	channel.Driver
	said []channel.Message
}

func (s *shy) Can() channel.Can { return channel.Can{Direct: true} }

func (s *shy) Direct(context.Context, string) (string, error) { return "", channel.ErrDead }

func (s *shy) Deliver(_ context.Context, m channel.Message) (string, error) {
	s.said = append(s.said, m)
	return "1", nil
}

// TestACodeIsNotSaidInARoomBecauseItsPlaceFails holds SM-923: others read along there.
func TestACodeIsNotSaidInARoomBecauseItsPlaceFails(t *testing.T) {
	platform, given := &shy{}, false
	c := &Channels{}
	c.Code = func(_ context.Context, _ id.Approval, _ audit.Actor, hand func(id.Change, string) (string, error)) bool {
		_, err := hand("chg-1", "ABCD-EFGH-JKLM")
		given = err == nil
		return given
	}
	e := channel.Event{Place: channel.Place{Address: "hallway", Kind: channel.Group}, Sender: channel.Sender{Account: "U1"}}
	c.giveCode(&line{driver: platform, life: t.Context()}, e, message.Decision{})
	for _, m := range platform.said {
		t.Errorf("in %s stands %q", m.Place, strings.ReplaceAll(m.Text, "\n", " "))
	}
	if given {
		t.Error("it counts as given")
	}
}
