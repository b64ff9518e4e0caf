package daemon

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/who/group"
)

// chats is the dispatcher to who is made before it.
type chats struct{ *Daemon }

var _ confirm.Chats = chats{}

func (c chats) now() dispatch.Renewer { return dispatch.Renewer{Dispatcher: c.Daemon.chats} }

func (c chats) Renew(ctx context.Context, of group.Folder, chat id.Chat) error {
	return c.now().Renew(ctx, of, chat)
}

func (c chats) Begin(ctx context.Context, of group.Folder, chat id.Chat) error {
	return c.now().Begin(ctx, of, chat)
}

func (c chats) Ask(ctx context.Context, of group.Folder, chat id.Chat) error {
	return c.now().Ask(ctx, of, chat)
}
