package dispatch_test

import (
	"context"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

// TestWhatFallsDueWhileItIsLookedForIsFoundAtOnce holds that a look which takes long, as on a busy machine, has no message wait for the one after
// the next.
func TestWhatFallsDueWhileItIsLookedForIsFoundAtOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.Parts.DB = longLook{s.Parts.DB}
		d, _ := s.lives()
		time.Sleep(lookTakes + time.Second) // nothing is looked for now
		at := ledger.Now()
		m := message.In{ID: id.NewMessage(), Chat: s.chatWith(d, "echo").ID, Kind: prompt.Chat, Trigger: true, Text: "hello", At: at,
			Status: message.Pending, Due: at.Add(lookTakes / 2)}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PutIn(ctx, m)
			return err
		})
		time.Sleep(2*lookTakes + time.Second)
		s.is(m.ID, message.Completed)
	})
}

// longLook is a store in which to look for what is due takes long.
type longLook struct{ store.DB }

const lookTakes = 2 * time.Second

func (l longLook) Read(ctx context.Context, do func(store.Tx) error) error {
	looked := false
	err := l.DB.Read(ctx, func(tx store.Tx) error { return do(lookingTx{tx, &looked}) })
	if looked {
		time.Sleep(lookTakes)
	}
	return err
}

type lookingTx struct {
	store.Tx
	looked *bool
}

func (t lookingTx) DueChats(ctx context.Context, now time.Time) ([]id.Chat, error) {
	*t.looked = true
	return t.Tx.DueChats(ctx, now)
}
