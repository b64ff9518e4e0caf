package channels_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// breaks has an operation of the store fail the next time, after what its transaction did before; and says how often it did.
func (s *scene) breaks(op string) (times func() int) {
	b := &breaking{DB: s.Parts.DB, op: op}
	s.Parts.DB = b
	return func() int { return int(b.did.Load()) }
}

// spoils has storing a message fail as a test says, for as long as it says so.
func (s *scene) spoils(bad func(message.In) error) {
	s.Parts.DB = &breaking{DB: s.Parts.DB, bad: bad}
}

// breaking is a store of which an operation fails once.
type breaking struct {
	store.DB
	op  string
	did atomic.Int64
	bad func(message.In) error // what storing a message fails with, each time; nil = nothing
}

var errBroken = errors.New("the disk is full")

func (b *breaking) InTx(ctx context.Context, do func(store.Tx) error) error {
	return b.DB.InTx(ctx, func(tx store.Tx) error { return do(brokenTx{tx, b}) })
}

// fails reports whether this operation is the one.
func (b *breaking) fails(op string) bool { return op == b.op && b.did.CompareAndSwap(0, 1) }

type brokenTx struct {
	store.Tx
	of *breaking
}

func (t brokenTx) MoveCursor(ctx context.Context, channel, cursor string) error {
	if t.of.fails("move-cursor") {
		return errBroken
	}
	return t.Tx.MoveCursor(ctx, channel, cursor)
}

func (t brokenTx) AddIntake(ctx context.Context, i message.Intake) (message.Intake, bool, error) {
	if t.of.fails("add-intake") {
		return i, false, errBroken
	}
	return t.Tx.AddIntake(ctx, i)
}

func (t brokenTx) PutChat(ctx context.Context, c conversation.Chat) (conversation.Chat, error) {
	if t.of.fails("put-chat") {
		return c, errBroken
	}
	return t.Tx.PutChat(ctx, c)
}

func (t brokenTx) PutIn(ctx context.Context, m message.In) (message.In, error) {
	if t.of.bad != nil {
		if err := t.of.bad(m); err != nil {
			return m, err
		}
	}
	if t.of.fails("put-in") {
		return m, errBroken
	}
	return t.Tx.PutIn(ctx, m)
}

func (t brokenTx) Stick(ctx context.Context, where id.Conversation, thread string, g group.Folder) error {
	if t.of.fails("stick") {
		return errBroken
	}
	return t.Tx.Stick(ctx, where, thread, g)
}

func (t brokenTx) MoveDelivery(ctx context.Context, d message.Delivery) error {
	if t.of.fails("move-delivery") {
		return errBroken
	}
	return t.Tx.MoveDelivery(ctx, d)
}

func (t brokenTx) NoteDelivery(ctx context.Context, card id.Out, at time.Time) error {
	if t.of.fails("note-delivery") {
		return errBroken
	}
	return t.Tx.NoteDelivery(ctx, card, at)
}
