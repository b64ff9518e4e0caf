package channels

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
)

// outcomes are the cards of a channel that could not be shown to have their answer. They are kept in memory: the next daemon tries anew.
type outcomes struct {
	mu     sync.Mutex
	cards  map[id.Out]message.Delivery   // with their tries, and when the next is due
	places map[id.Conversation]time.Time // before which the platform takes nothing there
}

// tried returns a card with its tries.
func (o *outcomes) tried(d message.Delivery) message.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, ok := o.cards[d.Out]; ok {
		return before
	}
	return d
}

// due reports whether a card may be tried.
func (o *outcomes) due(d message.Delivery, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.cards[d.Out].Due.After(now) && !o.places[d.Conversation].After(now)
}

// wait has a card wait for its next try, and all others of its place with it if the platform takes nothing there.
func (o *outcomes) wait(d message.Delivery, place bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cards == nil {
		o.cards, o.places = map[id.Out]message.Delivery{}, map[id.Conversation]time.Time{}
	}
	now := ledger.Now()
	maps.DeleteFunc(o.places, func(_ id.Conversation, until time.Time) bool { return !until.After(now) })
	o.cards[d.Out] = d
	if place {
		o.places[d.Conversation] = d.Due
	}
}

// forget forgets a card that needs no other try.
func (o *outcomes) forget(card id.Out) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.cards, card)
}

// tellOutcome has a card that has its answer show that, where the platform changes messages (CH-904). A try that fails is made again, as often
// as one to send a message: until then people see buttons that do nothing any more.
func (c carrier) tellOutcome(ctx context.Context, l *line, d message.Delivery) {
	if !l.outcomes.due(d, ledger.Now()) {
		return
	}
	d = l.outcomes.tried(d)
	if err := c.showOutcome(ctx, l, d); err != nil {
		if ctx.Err() != nil {
			return
		}
		var later *channel.Later
		if next := c.after(l, d, err); next.Status != message.Undelivered {
			l.outcomes.wait(next, errors.As(err, &later))
			return
		}
		c.Log.Info("a card does not show that it has its answer", "channel", d.Channel, "card", d.Out, "error", c.reason(err))
	}
	err := c.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error { return tx.NoteTold(ctx, d.Out) })
	if err != nil {
		c.Log.Error("that a card shows its answer could not be kept", "card", d.Out, "error", err)
		l.outcomes.wait(d.Later("", ledger.Now().Add(lookEvery)), false)
		return
	}
	l.outcomes.forget(d.Out)
}

// showOutcome changes a card to what it shows once it has its answer. Whether it does already is read anew: another look may have had it told
// after this one found it.
func (c carrier) showOutcome(ctx context.Context, l *line, d message.Delivery) error {
	var p parcel
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		if d, _, err = tx.Delivery(ctx, d.Out); err != nil || d.Told {
			return err
		}
		p, err = c.open(ctx, tx, d.Out)
		return err
	})
	if err != nil || d.Told || p.outcome == "" || d.PlatformID == "" || !l.driver.Can().Edits {
		return err
	}
	pieces := l.driver.Can().Cut(p.Text + "\n\n" + p.outcome)
	m := channel.Message{Place: p.where.Address, Thread: p.chat.Thread, Account: p.account, Text: pieces[len(pieces)-1], Card: &channel.Card{Question: p.press}}
	return l.call(ctx, sendTime, func(ctx context.Context) error { return l.driver.Update(ctx, d.PlatformID, m) })
}
