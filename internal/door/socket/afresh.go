package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/who/group"
)

// Afresh takes away what keeps an agent from going on; it checks who asks.
type Afresh interface {
	// Find returns the chat of an id: of a chat, or of a session of one.
	Find(ctx context.Context, name string) (dispatch.Seen, error)
	// Forget has a chat go on with a new session. Errors: conflict while its agent is at work.
	Forget(ctx context.Context, chat id.Chat, by audit.Actor) (id.Session, error)
	// ClearMemory removes what a group's agent has written. Errors: conflict while one is at work.
	ClearMemory(ctx context.Context, of group.Folder, by audit.Actor) (bytes int64, err error)
}

// afresh answers who wants an agent to begin anew.
type afresh struct{ part Afresh }

func (n afresh) forget(ctx context.Context, by audit.Actor, name string) (out api.Forgotten, err error) {
	seen, err := n.part.Find(ctx, name)
	if err != nil {
		return out, err
	}
	was, err := n.part.Forget(ctx, seen.ID, by)
	return api.Forgotten{Chat: string(seen.ID), Session: string(was)}, err
}

func (n afresh) clearMemory(ctx context.Context, by audit.Actor, of string) (out api.Cleared, err error) {
	bytes, err := n.part.ClearMemory(ctx, group.Folder(of), by)
	return api.Cleared{Group: of, Bytes: bytes}, err
}
