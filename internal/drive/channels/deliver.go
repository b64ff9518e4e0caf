package channels

import (
	"context"
	"errors"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
)

const (
	// lookEvery is how often what waits is looked at when nothing happens: a clock that was set is noticed by then.
	lookEvery = 10 * time.Second
	// sendTime bounds one try.
	sendTime = time.Minute
	// toldMax is how many cards of a channel are brought up to date together.
	toldMax = 100
)

// carrier has messages leave.
type carrier struct{ *Channels }

// deliver sends what waits and is due until ctx ends, each lane of a conversation by itself.
func (c carrier) deliver(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := c.sendDue(ctx)
		c.Rounds.Add(1)
		if err != nil && ctx.Err() == nil {
			c.Log.Error("what is to be delivered cannot be found", "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-c.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// sendDue has each lane that is due send, and says when to look again.
func (c carrier) sendDue(ctx context.Context) (wait time.Duration, err error) {
	wait = lookEvery
	now := ledger.Now()
	var due, ended []message.Delivery
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		var next time.Time
		var any bool
		if next, any, err = tx.NextDelivery(ctx, now); err != nil {
			return err
		}
		if any {
			wait = min(wait, max(next.Sub(now), time.Millisecond))
		}
		if due, err = tx.DueDeliveries(ctx, now); err != nil {
			return err
		}
		for name, state := range c.States() {
			var some []message.Delivery
			if state.Connected && err == nil {
				some, err = tx.EndedCards(ctx, name, toldMax)
			}
			ended = append(ended, some...)
		}
		return err
	})
	if err != nil {
		return wait, err
	}
	for _, d := range due {
		c.inLane(d, "", func(ctx context.Context, l *line) { c.send(ctx, l, d.Out) })
	}
	for _, d := range ended {
		if l := c.line(d.Channel); l != nil && l.outcomes.due(d, now) {
			c.inLane(d, " told", func(ctx context.Context, l *line) { c.tellOutcome(ctx, l, d) })
		}
	}
	return wait, nil
}

// inLane runs do unless the lane is at work, or its channel takes nothing now; whoever is done looks again.
func (c carrier) inLane(d message.Delivery, kind string, do func(context.Context, *line)) {
	l := c.line(d.Channel)
	if l == nil || l.driver == nil {
		return
	}
	lane := string(d.Conversation) + " " + string(d.Lane) + kind
	if !l.occupy(lane) {
		return
	}
	if c.shut.Load() { // asked once the lane is taken, so that Flush sees what was ahead of it
		l.leave(lane)
		return
	}
	c.ending.Go(func() {
		do(l.life, l)
		l.leave(lane)
		c.Poke()
	})
}

// occupy takes a lane; false if it is at work, or nothing can be sent now.
func (l *line) occupy(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes[lane] || !l.takes() {
		return false
	}
	l.lanes[lane] = true
	return true
}

// takes reports whether anything can be sent now; with l.mu held.
func (l *line) takes() bool {
	return l.state.Connected && !time.Now().Before(l.until) && l.left < leftMax
}

// leave gives a lane back.
func (l *line) leave(lane string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lanes, lane)
}

// send sends the next piece of a message, and writes down what came of it. It is read anew: what was due may have left in the meantime.
func (c carrier) send(ctx context.Context, l *line, of id.Out) {
	var d message.Delivery
	var p parcel
	waits := false
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		if d, waits, err = tx.Delivery(ctx, of); err != nil || !waits {
			return err
		}
		p, err = c.open(ctx, tx, of)
		return err
	})
	switch now := ledger.Now(); {
	case ctx.Err() != nil || !waits && err == nil || waits && (d.Status != message.Waiting || d.Due.After(now)):
		return
	case err != nil:
		c.Log.Error("what is to be delivered cannot be read", "channel", l.Name, "message", of, "error", err)
		if waits {
			c.put(ctx, d.Again(problem.Of(err).Text, now), nil)
		}
		return
	}

	pieces := l.driver.Can().Cut(p.Text)
	if d.Pieces >= len(pieces) {
		c.put(ctx, d.Arrived(d.PlatformID, len(pieces), ledger.Now()), &p)
		return
	}
	ids := make(chan string, 1)
	err = l.call(ctx, sendTime, func(ctx context.Context) error {
		sent, err := l.driver.Deliver(ctx, p.piece(pieces, d.Pieces))
		ids <- sent
		return err
	})
	if err != nil && ctx.Err() != nil {
		return // it is sent again by the next daemon, unless the platform knows it
	}
	if now := ledger.Now(); err == nil {
		c.put(ctx, d.Arrived(<-ids, len(pieces), now), &p)
		return
	}
	next := c.after(l, d, err) // a call that was left behind may still read d
	if next.Status == message.Undelivered {
		c.Log.Warn("a message will not arrive", "channel", next.Channel, "message", next.Out, "reason", next.Reason)
	}
	c.put(ctx, next, &p)
}

// after is how a message waits, or is dead, once a try to send or to change it has failed.
func (c carrier) after(l *line, d message.Delivery, err error) message.Delivery {
	now := ledger.Now()
	var later *channel.Later
	if errors.As(err, &later) {
		until := bounded(later.Until, now)
		if later.All {
			l.pause(until)
		}
		return d.Later("the platform takes nothing more for a while", until)
	}
	why := c.reason(err)
	switch {
	case errors.Is(err, channel.ErrDead):
		return d.Dead(why, now)
	case errors.Is(err, channel.ErrAway):
		return d.Later(why, now.Add(againFirst)) // it is no fault of the message
	}
	return d.Again(why, now)
}

// A platform that says when to come again is believed between these.
const (
	laterLeast = 100 * time.Millisecond
	laterMost  = 24 * time.Hour
)

// bounded is when something is sent again, to the millisecond above, as rows have it.
func bounded(until, now time.Time) time.Time {
	wait := min(max(until.Sub(now), laterLeast), laterMost)
	return now.Add(wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// pause has nothing be sent before a time. What was on its way already may be answered with a shorter limit, which ends no longer one.
func (l *line) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

// put writes down how a message leaves. A card of the host's has been shown with its last piece: that is one transaction.
func (c carrier) put(ctx context.Context, d message.Delivery, p *parcel) {
	shown := p != nil && d.Status == message.Sent && p.Card.Host()
	err := c.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error {
		if err := tx.MoveDelivery(ctx, d); err != nil || !shown {
			return err
		}
		return tx.NoteDelivery(ctx, d.Out, *d.Ended) // when it arrived, however long this takes
	})
	switch {
	case err == nil && shown:
		c.Voices.NoteDelivery(ctx, p.Out)
	case err != nil && !errors.Is(err, message.ErrMoved):
		c.Log.Error("how a message left could not be kept; it may be sent again", "message", d.Out, "error", err)
	}
}
