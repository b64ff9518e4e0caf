package confirm

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/who/group"
)

// Chats runs the sessions of groups.
type Chats interface {
	// Renew has the sessions of a group end after their turn; that of chat begins on the group's files as they are now, and takes a turn. nil =
	// it answered; else a problem that says why it did not. It may be called again after a crash in the middle.
	Renew(ctx context.Context, of group.Folder, chat id.Chat) error
	// Begin has no session of a group run on other files than it has now, and that of chat run on those. No model is asked for anything.
	Begin(ctx context.Context, of group.Folder, chat id.Chat) error
	// Ask returns nil unless the session of chat has died and cannot begin again.
	Ask(ctx context.Context, of group.Folder, chat id.Chat) error
}
