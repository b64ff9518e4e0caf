package ledger

import (
	"context"

	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

// ChangeOf is the change that a session works for. Errors: problem.Usage for a session of a chat, which goes on by itself.
func ChangeOf(ctx context.Context, tx store.Tx, s session.Session) (change.Row, error) {
	if s.Chat == "" {
		return tx.Change(ctx, s.Change)
	}
	chat, err := tx.Chat(ctx, s.Chat)
	if err != nil {
		return change.Row{}, err
	}
	return change.Row{}, problem.Errorf(problem.Usage, "sallyport chat "+string(chat.Group),
		"the session %s is a chat with the group %s: it goes on with your next message", s.ID, chat.Group)
}
