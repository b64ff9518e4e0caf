package channels

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

const (
	// lostWithin is how lately something must have been said in a conversation to tell it that something is lost.
	lostWithin = 24 * time.Hour
	// lostAgain is how long a conversation is not told again: a session that comes and goes fills no channel.
	lostAgain = time.Hour
)

// lost notes that what was said meanwhile cannot be had any more, in a place or in all, and says so where people may have said something.
func (c *Channels) lost(ctx context.Context, l *line, place string) {
	l.mu.Lock()
	l.state.Lost, l.state.LostIn = ledger.Now(), inert.Short(place, 80)
	l.mu.Unlock()

	err := c.DB.InTx(ctx, func(tx store.Tx) error { return c.tellLost(ctx, tx, l, place) })
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("people are not told that something they may have said is lost", "channel", l.Name, "place", inert.Short(place, 80), "error", err)
	}
}

func (c *Channels) tellLost(ctx context.Context, tx store.Tx, l *line, place string) error {
	now := ledger.Now()
	where, err := tx.Lately(ctx, l.Name, now.Add(-lostWithin))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("This conversation had no connection to %s for a while. Messages sent here in that time are lost: please send them again.", l.Name)
	for _, w := range where {
		if place != "" && w.Address != place {
			continue
		}
		chat, err := ledger.HostChat(ctx, tx, w.ID)
		if err != nil {
			return err
		}
		said, err := tx.NewestOuts(ctx, chat.ID, 20)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(said, func(o message.Out) bool { return o.Text == text && now.Sub(o.At) < lostAgain }) {
			continue
		}
		if err := c.notice(ctx, tx, w.ID, text); err != nil {
			return err
		}
	}
	return nil
}
