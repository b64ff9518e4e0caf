package channels

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

const (
	// lostWithin is how lately something must have been said in a conversation to tell it that something is lost.
	lostWithin = 24 * time.Hour
	// lostAgain is how long a conversation is not told again in which nobody has said anything since: a session that comes and goes fills none.
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
	where, err := tx.Lately(ctx, l.Name, ledger.Now().Add(-lostWithin))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("This conversation had no connection to %s for a while. Messages sent here in that time are lost: please send them again.", l.Name)
	for _, w := range where {
		if place != "" && w.Address != place {
			continue
		}
		if knows, err := c.knows(ctx, tx, w, text); err != nil || knows {
			if err != nil {
				return err
			}
			continue
		}
		if err := c.notice(ctx, tx, w.ID, text); err != nil {
			return err
		}
	}
	return nil
}

// knows reports whether a conversation was told a text lately, and nobody has said anything there since.
func (c *Channels) knows(ctx context.Context, tx store.Tx, where conversation.Conversation, text string) (bool, error) {
	chat, err := ledger.HostChat(ctx, tx, where.ID)
	if err != nil {
		return false, err
	}
	told, err := tx.NewestOuts(ctx, chat.ID, 20)
	if err != nil {
		return false, err
	}
	for _, o := range slices.Backward(told) {
		if o.Text == text {
			since, err := tx.Lately(ctx, where.Platform, o.At)
			spoken := slices.ContainsFunc(since, func(w conversation.Conversation) bool { return w.ID == where.ID })
			return !spoken && ledger.Now().Sub(o.At) < lostAgain, err
		}
	}
	return false, nil
}

// notice has the host itself say something in a conversation.
func (c *Channels) notice(ctx context.Context, tx store.Tx, where id.Conversation, text string) error {
	chat, err := ledger.HostChat(ctx, tx, where)
	if err != nil {
		return err
	}
	_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Text: text, At: ledger.Now()})
	return err
}
