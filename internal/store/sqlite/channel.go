package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
)

// PutChannel stores one.
func (t conversations) PutChannel(ctx context.Context, c conversation.Channel) error {
	what := fmt.Sprintf("store the channel %q", c.Name)
	if err := exact(what, c); err != nil {
		return err
	}
	settings, err := encode(c.Settings)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = t.write(ctx, "put-channel", `INSERT INTO channel (name, platform, settings, credential, cursor, added_at) VALUES (?, ?, ?, ?, ?, ?)`,
		c.Name, c.Platform, settings, c.Credential, c.Cursor, ms(c.Added))
	if duplicate(err) {
		return problem.Errorf(problem.Conflict, "sallyport channel list", "%s: a channel of that name is there already", what)
	}
	return doing(err, "%s", what)
}

// Channels returns all, by name.
func (t conversations) Channels(ctx context.Context) ([]conversation.Channel, error) {
	all, err := rows(ctx, t.queries, func(row scanner, c *conversation.Channel) error {
		var settings string
		var added sql.NullInt64
		err := row.Scan(&c.Name, &c.Platform, &settings, &c.Credential, &c.Cursor, &added)
		c.Added = clock(added)
		if err == nil {
			c.Settings, err = decode[map[string]string](settings)
		}
		return err
	}, `SELECT name, platform, settings, credential, cursor, added_at FROM channel ORDER BY name`)
	return all, doing(err, "list the channels")
}

// DropChannel removes one. What was said there stays, in conversations that no channel has: whoever adds one by the same name begins anew.
func (t conversations) DropChannel(ctx context.Context, name string) (bool, error) {
	what := fmt.Sprintf("remove the channel %q", name)
	for _, query := range []string{
		`DELETE FROM identity WHERE platform = ?`,
		`DELETE FROM wiring WHERE conversation IN (SELECT id FROM conversation WHERE platform = ?)`,
		`DELETE FROM sticky WHERE conversation IN (SELECT id FROM conversation WHERE platform = ?)`,
		`DELETE FROM pending WHERE conversation IN (SELECT id FROM conversation WHERE platform = ?)`,
		`UPDATE delivery SET status = 'dead', reason = 'the channel was removed', ended_at = due_at WHERE status = 'waiting' AND channel = ?`,
		`UPDATE delivery SET told = 1, channel = channel || ' (removed)' WHERE channel = ?`,
		`UPDATE message_in SET status = 'dead', reason = 'the channel was removed', ended_at = min(due_at, unixepoch() * 1000), recurrence = NULL
			WHERE status = 'pending' AND chat IN (SELECT chat.id FROM chat JOIN conversation ON conversation.id = chat.conversation WHERE platform = ?)`,
		`UPDATE message_in SET recurrence = NULL
			WHERE recurrence IS NOT NULL AND chat IN (SELECT chat.id FROM chat JOIN conversation ON conversation.id = chat.conversation WHERE platform = ?)`,
		`UPDATE conversation SET platform = platform || ' (removed, ' || id || ')' WHERE platform = ?`, // what no channel can be called
	} {
		if _, err := t.write(ctx, "drop-channel", query, name); err != nil {
			return false, fmt.Errorf("%s: %w", what, err)
		}
	}
	n, err := t.write(ctx, "drop-channel", `DELETE FROM channel WHERE name = ?`, name)
	return n > 0, doing(err, "%s", what)
}

// MoveCursor stores from where on a platform goes on.
func (t conversations) MoveCursor(ctx context.Context, channel, cursor string) error {
	_, err := t.write(ctx, "move-cursor", `UPDATE channel SET cursor = ?2 WHERE name = ?1 AND cursor <> ?2`, channel, cursor)
	return doing(err, "store how far the channel %q has come", channel)
}
