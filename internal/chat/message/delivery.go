package message

import (
	"context"
	"time"

	"sallyport/internal/base/id"
)

// Delivery is how a message leaves by a channel. Those of a lane of a conversation leave in their order; nobody waits for another lane.
type Delivery struct {
	Seq          int64
	Out          id.Out
	Channel      string
	Conversation id.Conversation
	Lane         Lane
	Status       DeliveryStatus
	Pieces       int // of the text that have arrived
	Tries        int // of the next piece
	Due          time.Time
	PlatformID   string // of the last piece
	Reason       string // why it waits, or is dead
	Ended        *time.Time
	Told         bool // as a card, it shows its outcome, or never will
}

// DeliveryStatus is where a delivery stands.
type DeliveryStatus string

const (
	Waiting     DeliveryStatus = "waiting"
	Sent        DeliveryStatus = "sent"
	Undelivered DeliveryStatus = "dead" // it will never arrive
)

// TriesMax is how often a piece is sent that does not arrive, and backoff how long the next try waits.
const (
	DeliveryTriesMax = 12
	deliveryFirst    = time.Second
	deliveryMost     = 5 * time.Minute
)

// Again returns d as it waits for its next try, after one that failed; dead, if it was tried often enough.
func (d Delivery) Again(why string, now time.Time) Delivery {
	d.Tries++
	if d.Tries >= DeliveryTriesMax {
		return d.Dead(why, now)
	}
	wait := deliveryMost
	if shift := d.Tries - 1; shift < 9 {
		wait = min(wait, deliveryFirst<<shift)
	}
	d.Reason, d.Due = why, now.Add(wait)
	return d
}

// Later returns d as it waits because the platform says so. That is no try.
func (d Delivery) Later(why string, until time.Time) Delivery {
	d.Reason, d.Due = why, until
	return d
}

// Dead returns d as it never arrives.
func (d Delivery) Dead(why string, now time.Time) Delivery {
	d.Status, d.Reason, d.Ended = Undelivered, why, &now
	return d
}

// Arrived returns d with one more piece there, the last of so many.
func (d Delivery) Arrived(platformID string, of int, now time.Time) Delivery {
	d.Pieces, d.Tries, d.PlatformID, d.Reason, d.Due = d.Pieces+1, 0, platformID, "", now
	if d.Pieces >= of {
		d.Status, d.Ended = Sent, &now
	}
	return d
}

// DeliveryTx is what deliveries ask of a transaction.
type DeliveryTx interface {
	// DueDeliveries returns the first of each lane that waits and is due, the longest due first.
	DueDeliveries(ctx context.Context, now time.Time) ([]Delivery, error)
	// NextDelivery returns when the next first of a lane falls due after a time; false if none will.
	NextDelivery(ctx context.Context, after time.Time) (time.Time, bool, error)
	// Delivery returns that of a message; false if it leaves by no channel.
	Delivery(ctx context.Context, of id.Out) (Delivery, bool, error)
	// Deliveries returns the newest of a channel, or of all for "", in a status, oldest first.
	Deliveries(ctx context.Context, channel string, status DeliveryStatus, limit int) ([]Delivery, error)
	// Whole reports whether all that a card is about, which was sent just before it, has arrived by the channel by which the card leaves; true where
	// that is none.
	Whole(ctx context.Context, card Out) (bool, error)
	// CountDeliveries counts those of a channel by status that wait, or came to their end at a time or later.
	CountDeliveries(ctx context.Context, channel string, since time.Time) (map[DeliveryStatus]int, error)
	// MoveDelivery stores what may change of one that waits. Errors: ErrMoved.
	MoveDelivery(ctx context.Context, d Delivery) error
	// EndedCards returns cards that were sent by a channel, whose question has ended since, and which do not show that yet.
	EndedCards(ctx context.Context, channel string, limit int) ([]Delivery, error)
	// NoteTold writes down that a card shows its outcome, or never will.
	NoteTold(ctx context.Context, card id.Out) error
	// Out returns a message that leaves. Errors: problem.NotFound.
	Out(ctx context.Context, id id.Out) (Out, error)
}
