package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
)

const deliveryColumns = `d.seq, d.out, d.channel, d.conversation, d.lane, d.status, d.pieces, d.tries, d.due_at, d.platform_id, d.reason, d.ended_at, d.told`

// readDelivery reads a row of deliveryColumns.
func readDelivery(row scanner, d *message.Delivery) (err error) {
	var due, ended sql.NullInt64
	err = row.Scan(&d.Seq, &d.Out, &d.Channel, &d.Conversation, &d.Lane, &d.Status, &d.Pieces, &d.Tries, &due, &d.PlatformID, &d.Reason, &ended, &d.Told)
	d.Due, d.Ended = clock(due), maybe(ended)
	return err
}

func (t messages) deliveries(ctx context.Context, query string, args ...any) ([]message.Delivery, error) {
	return rows(ctx, t.queries, readDelivery, `SELECT `+deliveryColumns+` FROM delivery AS d `+query, args...)
}

// first chooses the first of each lane that waits.
const first = `status = 'waiting' AND NOT EXISTS (SELECT 1 FROM delivery AS before
	WHERE before.status = 'waiting' AND before.conversation = d.conversation AND before.lane = d.lane AND before.seq < d.seq)`

// DueDeliveries returns the first of each lane that waits and is due.
func (t messages) DueDeliveries(ctx context.Context, now time.Time) ([]message.Delivery, error) {
	all, err := t.deliveries(ctx, `WHERE due_at <= ? AND `+first+` ORDER BY due_at, seq`, ms(now))
	return all, doing(err, "find what is to be delivered")
}

// NextDelivery returns when the next first of a lane falls due.
func (t messages) NextDelivery(ctx context.Context, after time.Time) (time.Time, bool, error) {
	var due sql.NullInt64
	_, err := t.one(ctx, `SELECT min(due_at) FROM delivery AS d WHERE due_at > ? AND `+first, []any{ms(after)}, &due)
	return clock(due), due.Valid, doing(err, "find when something is to be delivered next")
}

// Delivery returns that of a message.
func (t messages) Delivery(ctx context.Context, of id.Out) (message.Delivery, bool, error) {
	one, ok, err := firstOf(t.deliveries(ctx, `WHERE out = ?`, of))
	return one, ok, doing(err, "read how %q leaves", of)
}

// lackingOf finds what was sent just before a card about the same change, and has not arrived.
const lackingOf = `SELECT 1 FROM message_out AS o JOIN delivery AS d ON d.out = o.id WHERE o.chat = ?1 AND o.seq < ?2 AND d.status <> 'sent'
	AND o.seq > coalesce((SELECT seq FROM message_out WHERE chat = ?1 AND seq < ?2 AND NOT (card = 'diff' AND change = ?3) ORDER BY seq DESC LIMIT 1), 0) LIMIT 1`

// Whole reports whether all that a card is about has arrived.
func (t messages) Whole(ctx context.Context, card message.Out) (bool, error) {
	var lacks int
	any, err := t.one(ctx, lackingOf, []any{card.Chat, card.Seq, card.Change}, &lacks)
	if err != nil {
		return false, fmt.Errorf("find what of %q has not arrived: %w", card.ID, err)
	}
	return !any, nil
}

// Deliveries returns the newest of a channel in a status.
func (t messages) Deliveries(ctx context.Context, channel string, status message.DeliveryStatus, limit int) ([]message.Delivery, error) {
	all, err := t.deliveries(ctx, `WHERE (?1 = '' OR channel = ?1) AND status = ?2 ORDER BY seq DESC LIMIT +?3`, channel, status, limit)
	if err != nil {
		return nil, fmt.Errorf("list what was delivered: %w", err)
	}
	slices.Reverse(all)
	return all, nil
}

// CountDeliveries counts those of a channel by status that wait, or came to their end since a time.
func (t messages) CountDeliveries(ctx context.Context, channel string, since time.Time) (map[message.DeliveryStatus]int, error) {
	n, err := counts[message.DeliveryStatus](ctx, t.queries,
		`SELECT status, count(*) FROM delivery WHERE channel = ? AND (ended_at IS NULL OR ended_at >= ?) GROUP BY status`, channel, ms(since))
	return n, doing(err, "count what leaves by %q", channel)
}

// MoveDelivery stores what may change of one that waits.
func (t messages) MoveDelivery(ctx context.Context, d message.Delivery) error {
	d.Reason = plain(d.Reason)
	n, err := t.write(ctx, "move-delivery", `UPDATE delivery SET status = ?, pieces = ?, tries = ?, due_at = ?, platform_id = ?, reason = ?, ended_at = ?
		WHERE out = ? AND status = 'waiting'`, d.Status, d.Pieces, d.Tries, ms(d.Due), plain(d.PlatformID), d.Reason, whenever(d.Ended), d.Out)
	if err == nil && n == 0 {
		err = message.ErrMoved
	}
	return doing(err, "store how %q leaves", d.Out)
}

// EndedCards returns cards whose question has ended since they were sent.
func (t messages) EndedCards(ctx context.Context, channel string, limit int) ([]message.Delivery, error) {
	all, err := t.deliveries(ctx, `JOIN message_out AS o ON o.id = d.out
		LEFT JOIN question AS q ON q.id = o.question LEFT JOIN trial AS r ON o.card = 'trial' AND r.change = o.change
		WHERE d.channel = ? AND d.status = 'sent' AND d.told = 0 AND o.digits > 0
		AND (q.outcome IS NOT NULL OR r.handshake_state IN ('confirmed', 'rolled_back')) ORDER BY d.seq LIMIT +?`, channel, limit)
	return all, doing(err, "find cards that have their answer")
}

// NoteTold writes down that a card shows its outcome.
func (t messages) NoteTold(ctx context.Context, card id.Out) error {
	_, err := t.write(ctx, "note-told", `UPDATE delivery SET told = 1 WHERE out = ?`, card)
	return doing(err, "note that the card %q shows its outcome", card)
}

// Out returns a message that leaves.
func (t messages) Out(ctx context.Context, of id.Out) (message.Out, error) {
	one, ok, err := firstOf(t.outs(ctx, `WHERE id = ?`, of))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport message list", "there is no message %q in this home", of)
	}
	return one, doing(err, "read the message %q", of)
}
