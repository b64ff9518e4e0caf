package channels

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
)

// giveCode gives who has approved a change of the host the code that it is confirmed with (SM-923). It goes by the platform alone, and is
// written down nowhere.
func (c *Channels) giveCode(l *line, e channel.Event, yes message.Decision) {
	if c.Code == nil {
		return
	}
	given := c.Code(l.life, yes.Approval, yes.By, func(of id.Change, plain string) (where string, err error) {
		m := channel.Message{Place: e.Place.Address, Thread: e.Thread, Nonce: string(id.NewOut()), Text: codeText(of, plain)}
		where = "in the conversation where they approved it, on " + l.Name
		err = l.call(l.life, sendTime, func(ctx context.Context) error {
			alone, err := l.alone(ctx, e)
			if err != nil { // others read along where the yes was said
				return err
			}
			if alone != "" {
				m.Place, m.Thread, m.Account = alone, "", e.Sender.Account
				where = "where they are alone with the assistant, on " + l.Name
			}
			_, err = l.driver.Deliver(ctx, m)
			return err
		})
		return where, err
	})
	if given {
		c.Poke()
	}
}

// alone is where the sender of an event is alone with the assistant; "" if the platform has no such place.
func (l *line) alone(ctx context.Context, e channel.Event) (address string, err error) {
	switch {
	case e.Place.Kind == channel.Direct:
		return e.Place.Address, nil
	case e.Sender.Account == "" || !l.driver.Can().Direct:
		return "", nil
	}
	return l.driver.Direct(ctx, e.Sender.Account)
}

// codeText is how the code of a change is given.
func codeText(of id.Change, plain string) string {
	return fmt.Sprintf("This code keeps %s once it is on trial: %s\nThe host lands it now, starts again and asks whether it is to stay. Then reply `confirm` and this code. It is shown once: without it the host goes back by itself. "+
		"Where a platform lets its bot read what it said, it guards against a version with a mistake, and not against one that means harm.", of, plain)
}
