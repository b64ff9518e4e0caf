package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/who/group"
)

// conversations are the places where people and groups talk, and the chats in them.
type conversations struct{ *queries }

// PutConversation stores one, or returns the one that is there.
func (t conversations) PutConversation(ctx context.Context, c conversation.Conversation) (conversation.Conversation, error) {
	what := fmt.Sprintf("store the conversation %q of %s", c.Address, c.Platform)
	if err := exact(what, c); err != nil {
		return c, err
	}
	find := func() (conversation.Conversation, error) {
		return t.conversation(ctx, what, `platform = ? AND address = ?`, c.Platform, c.Address)
	}
	if there, err := find(); problem.KindOf(err) != problem.NotFound {
		if err != nil || there.Name == c.Name && there.Kind == c.Kind {
			return there, err
		}
		there.Name, there.Kind = c.Name, c.Kind
		if _, err := t.write(ctx, "rename-conversation", `UPDATE conversation SET name = ?, kind = ? WHERE id = ?`, c.Name, c.Kind, there.ID); err != nil {
			return there, fmt.Errorf("%s: %w", what, err)
		}
		return there, nil
	}
	_, err := t.write(ctx, "put-conversation", `INSERT INTO conversation (id, platform, address, kind, name, policy, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.Platform, c.Address, c.Kind, c.Name, cmp.Or(c.Policy, conversation.Request), ms(c.Created))
	if err != nil {
		return c, fmt.Errorf("%s: %w", what, err)
	}
	return find()
}

// Conversation returns one.
func (t conversations) Conversation(ctx context.Context, id id.Conversation) (conversation.Conversation, error) {
	return t.conversation(ctx, fmt.Sprintf("read the conversation %q", id), `id = ?`, id)
}

func (t conversations) conversation(ctx context.Context, what, where string, args ...any) (conversation.Conversation, error) {
	one, ok, err := firstOf(t.conversations(ctx, `WHERE `+where, args...))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport wiring list", "%s: there is none", what)
	}
	return one, doing(err, "%s", what)
}

func (t conversations) conversations(ctx context.Context, query string, args ...any) ([]conversation.Conversation, error) {
	return rows(ctx, t.queries, func(row scanner, c *conversation.Conversation) error {
		var created sql.NullInt64
		err := row.Scan(&c.ID, &c.Platform, &c.Address, &c.Kind, &c.Name, &c.Policy, &created)
		c.Created = clock(created)
		return err
	}, `SELECT id, platform, address, kind, name, policy, created_at FROM conversation `+query, args...)
}

// Conversations returns those of a platform, or all.
func (t conversations) Conversations(ctx context.Context, platform string) ([]conversation.Conversation, error) {
	all, err := t.conversations(ctx, `WHERE ?1 = '' OR platform = ?1 ORDER BY platform, name, id`, platform)
	return all, doing(err, "list the conversations")
}

// Lately returns those of a platform that a group hears and where something was said since a time.
func (t conversations) Lately(ctx context.Context, platform string, since time.Time) ([]conversation.Conversation, error) {
	all, err := t.conversations(ctx, `WHERE platform = ? AND id IN (SELECT conversation FROM wiring)
		AND id IN (SELECT conversation FROM intake WHERE received_at >= ?) ORDER BY platform, name, id`, platform, ms(since))
	return all, doing(err, "list the conversations of %q in which something was said lately", platform)
}

// SetPolicy gives a conversation another policy.
func (t conversations) SetPolicy(ctx context.Context, of id.Conversation, p conversation.Policy) error {
	n, err := t.write(ctx, "set-policy", `UPDATE conversation SET policy = ? WHERE id = ?`, p, of)
	if err == nil && n == 0 {
		err = problem.Errorf(problem.NotFound, "sallyport wiring list", "there is no conversation %q", of)
	}
	return doing(err, "give the conversation %q the policy %s", of, p)
}

const chatColumns = `id, folder, conversation, thread, identity, agent, tree, turn, fence, tool, created_at`

// readChat reads a row of chatColumns.
func readChat(row scanner, c *conversation.Chat) (err error) {
	var tool sql.NullString
	var created sql.NullInt64
	err = row.Scan(&c.ID, &c.Group, &c.Conversation, &c.Thread, &c.Identity, &c.Agent, &c.Tree, &c.Turn, &c.Fence, &tool, &created)
	if err == nil {
		c.Created = clock(created)
		c.Tool, err = decodeMaybe[conversation.Tool](tool)
	}
	return err
}

// chats reads chats.
func (t conversations) chats(ctx context.Context, query string, args ...any) ([]conversation.Chat, error) {
	return rows(ctx, t.queries, readChat, `SELECT `+chatColumns+` FROM chat `+query, args...)
}

// PutChat stores one, or returns the one that is there.
func (t conversations) PutChat(ctx context.Context, c conversation.Chat) (conversation.Chat, error) {
	what := fmt.Sprintf("store the chat of group %q", c.Group)
	if err := exact(what, c); err != nil {
		return c, err
	}
	find := func() ([]conversation.Chat, error) {
		return t.chats(ctx, `WHERE folder = ? AND conversation = ? AND thread = ?`, c.Group, c.Conversation, c.Thread)
	}
	all, err := find()
	if err == nil && len(all) == 0 {
		_, err = t.write(ctx, "put-chat", `INSERT INTO chat (id, folder, conversation, thread, identity, agent, tree, turn, fence, created_at)
			VALUES (?, ?, ?, ?, '', '', '', 0, 0, ?)`, c.ID, c.Group, c.Conversation, c.Thread, ms(c.Created))
		if err == nil {
			all, err = find()
		}
	}
	if err != nil || len(all) == 0 {
		return c, fmt.Errorf("%s: read it again (%d rows): %w", what, len(all), err)
	}
	return all[0], nil
}

// Chat returns one.
func (t conversations) Chat(ctx context.Context, id id.Chat) (conversation.Chat, error) {
	one, ok, err := firstOf(t.chats(ctx, `WHERE id = ?`, id))
	if err == nil && !ok {
		err = problem.Errorf(problem.NotFound, "sallyport session list", "there is no chat %q in this home", id)
	}
	return one, doing(err, "read the chat %q", id)
}

// Chats returns those of a group, or all.
func (t conversations) Chats(ctx context.Context, of group.Folder) ([]conversation.Chat, error) {
	all, err := t.chats(ctx, `WHERE ?1 = '' OR folder = ?1 ORDER BY created_at DESC, id`, of)
	return all, doing(err, "list the chats")
}

// ClaimChat takes a chat from whoever had it.
func (t conversations) ClaimChat(ctx context.Context, id id.Chat) (conversation.Chat, error) {
	if _, err := t.write(ctx, "claim-chat", `UPDATE chat SET fence = fence + 1 WHERE id = ?`, id); err != nil {
		return conversation.Chat{}, fmt.Errorf("claim the chat %q: %w", id, err)
	}
	return t.Chat(ctx, id)
}

// MoveChat stores what may change of a chat.
func (t conversations) MoveChat(ctx context.Context, c conversation.Chat) error {
	what := fmt.Sprintf("store the chat %q", c.ID)
	if err := exact(what, c); err != nil {
		return err
	}
	tool, err := encodeMaybe(c.Tool)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "move-chat", `UPDATE chat SET identity = ?, agent = ?, tree = ?, turn = ?, tool = ? WHERE id = ? AND fence = ?`,
		c.Identity, c.Agent, c.Tree, c.Turn, tool, c.ID, c.Fence)
	if err == nil && n == 0 {
		err = message.ErrMoved
	}
	return doing(err, "%s", what)
}

// unusedMost is how many rows of a table DropUnused removes at once.
const unusedMost = 500

// ofPlatforms chooses conversations that are not the host's own.
const ofPlatforms = `platform NOT IN ('` + conversation.Terminal + `', '` + conversation.Dev + `')`

// DropUnused removes what is left of places that nobody uses. A subject goes with its chat, and a chat before its conversation.
func (t conversations) DropUnused(ctx context.Context, before time.Time) (n int64, err error) {
	for _, query := range []string{
		`DELETE FROM sticky WHERE NOT EXISTS (SELECT 1 FROM chat WHERE folder = sticky.folder AND conversation = sticky.conversation AND thread = sticky.thread
			AND (EXISTS (SELECT 1 FROM message_in WHERE chat = chat.id) OR EXISTS (SELECT 1 FROM message_out WHERE chat = chat.id)))`,
		`DELETE FROM chat WHERE id IN (SELECT id FROM chat AS c WHERE created_at < ?1 AND conversation IN (SELECT id FROM conversation WHERE ` + ofPlatforms + `)
			AND NOT EXISTS (SELECT 1 FROM message_in WHERE chat = c.id) AND NOT EXISTS (SELECT 1 FROM message_out WHERE chat = c.id)
			AND NOT EXISTS (SELECT 1 FROM session WHERE subject = c.id) AND NOT EXISTS (SELECT 1 FROM usage WHERE subject = c.id)
			AND NOT EXISTS (SELECT 1 FROM asked WHERE subject = c.id) AND id NOT IN (SELECT subject FROM question) LIMIT ?2)`,
		`DELETE FROM subject WHERE id GLOB 'cht-*' AND NOT EXISTS (SELECT 1 FROM chat WHERE id = subject.id)`,
		`DELETE FROM conversation WHERE id IN (SELECT id FROM conversation AS c WHERE created_at < ?1 AND ` + ofPlatforms +
			` AND policy = '` + string(conversation.Request) + `'
			AND id NOT IN (SELECT conversation FROM chat) AND NOT EXISTS (SELECT 1 FROM intake WHERE conversation = c.id)
			AND NOT EXISTS (SELECT 1 FROM wiring WHERE conversation = c.id) AND NOT EXISTS (SELECT 1 FROM pending WHERE conversation = c.id)
			AND id NOT IN (SELECT direct FROM identity) LIMIT ?2)`,
	} {
		var args []any
		if strings.Contains(query, "?") {
			args = []any{ms(before), unusedMost}
		}
		gone, err := t.write(ctx, "drop-unused", query, args...)
		if err != nil {
			return n, fmt.Errorf("remove conversations that nobody uses: %w", err)
		}
		n += gone
	}
	return n, nil
}

// Resident returns the uid of a group's sandboxes.
func (t conversations) Resident(ctx context.Context, of group.Folder) (uid uint32, ok bool, err error) {
	if ok, err = t.one(ctx, `SELECT uid FROM resident WHERE folder = ?`, []any{of}, &uid); err != nil {
		err = fmt.Errorf("read the uid of group %q: %w", of, err)
	}
	return uid, ok, err
}

// CountResidents returns how many groups have a uid.
func (t conversations) CountResidents(ctx context.Context) (n int, err error) {
	if _, err = t.one(ctx, `SELECT count(*) FROM resident`, nil, &n); err != nil {
		err = fmt.Errorf("count the uids of groups: %w", err)
	}
	return n, err
}

// PutResident gives a group its uid, once.
func (t conversations) PutResident(ctx context.Context, of group.Folder, uid uint32) error {
	_, err := t.write(ctx, "put-resident", `INSERT INTO resident (folder, uid) VALUES (?, ?)`, of, uid)
	return doing(err, "give group %q a uid", of)
}
