package dispatch

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

// notice writes the host's word into a chat.
func (d *Dispatcher) notice(ctx context.Context, tx store.Tx, chat id.Chat, text string) error {
	c, err := tx.Chat(ctx, chat)
	if err != nil {
		return err
	}
	_, err = tx.PutOut(ctx, message.Out{
		ID: id.NewOut(), Chat: chat, Lane: message.Notice, Turn: c.Turn, Text: d.Secrets.Redact(text), At: ledger.Now(),
	})
	return err
}

// waitingMax is how many messages of one chat are looked at together that wake, and how much of the context.
const waitingMax = 10_000

// stopped reports whether a message was the last of a task that would come again.
func stopped(m message.In) bool {
	return m.Status == message.Dead && m.Recurrence != nil && m.Recurrence.Kind != schedule.Once
}

// stoppedTasks are those of a chat, or of all, that would come again and were given up: they come again once they are tried again.
func stoppedTasks(ctx context.Context, tx store.Tx, chat id.Chat) ([]message.In, error) {
	all, err := tx.Ins(ctx, message.Filter{Chat: chat, Status: []message.Status{message.Dead}, Tasks: true, Newest: true})
	return slices.DeleteFunc(all, func(m message.In) bool { return !stopped(m) }), err
}

// toldAgain is how long nobody is told of the same cause again (CH-902).
const toldAgain = 10 * time.Minute

// tell has the host say something in a chat, at most once per cause in ten minutes.
func (d *Dispatcher) tell(ctx context.Context, chat id.Chat, cause, text string) {
	key := string(chat) + " " + cause
	d.mu.Lock()
	last, ever := d.told[key]
	if ever && time.Since(last) < toldAgain {
		d.mu.Unlock()
		return
	}
	d.told[key] = time.Now()
	d.mu.Unlock()

	err := d.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error { return d.notice(ctx, tx, chat, text) })
	if err != nil {
		d.Log.Error("somebody who waits was not told why", "chat", chat, "error", err)
	}
}
