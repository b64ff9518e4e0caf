package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/who/group"
)

// wirings say who hears what, and keep what waits for somebody to decide that.
type wirings struct{ *queries }

// PutWiring stores one.
func (t wirings) PutWiring(ctx context.Context, w wiring.Wiring) error {
	what := fmt.Sprintf("have %q hear the conversation %q", w.Group, w.Conversation)
	if err := exact(what, w); err != nil {
		return err
	}
	pattern := sql.NullString{String: w.Pattern, Valid: w.Mode == wiring.Pattern}
	_, err := t.write(ctx, "put-wiring", `INSERT INTO wiring (conversation, folder, engage_mode, engage_pattern, sender_scope, ignored_message_policy, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (conversation, folder) DO UPDATE SET engage_mode = excluded.engage_mode,
		engage_pattern = excluded.engage_pattern, sender_scope = excluded.sender_scope, ignored_message_policy = excluded.ignored_message_policy`,
		w.Conversation, w.Group, w.Mode, pattern, w.Scope, w.Ignored, ms(w.Created))
	return doing(err, "%s", what)
}

// DropWiring removes one.
func (t wirings) DropWiring(ctx context.Context, of id.Conversation, g group.Folder) (bool, error) {
	if _, err := t.write(ctx, "drop-wiring", `DELETE FROM sticky WHERE conversation = ? AND folder = ?`, of, g); err != nil {
		return false, fmt.Errorf("forget what %q was mentioned in: %w", g, err)
	}
	n, err := t.write(ctx, "drop-wiring", `DELETE FROM wiring WHERE conversation = ? AND folder = ?`, of, g)
	return n > 0, doing(err, "have %q hear the conversation %q no more", g, of)
}

// Wirings returns those of a conversation, or all.
func (t wirings) Wirings(ctx context.Context, of id.Conversation) ([]wiring.Wiring, error) {
	all, err := rows(ctx, t.queries, func(row scanner, w *wiring.Wiring) error {
		var pattern sql.NullString
		var created sql.NullInt64
		err := row.Scan(&w.Conversation, &w.Group, &w.Mode, &pattern, &w.Scope, &w.Ignored, &created)
		w.Pattern, w.Created = pattern.String, clock(created)
		return err
	}, `SELECT conversation, folder, engage_mode, engage_pattern, sender_scope, ignored_message_policy, created_at FROM wiring
		WHERE ?1 = '' OR conversation = ?1 ORDER BY conversation, created_at, folder`, of)
	return all, doing(err, "list who hears what")
}

// Stick has all that is said in a thread engage a group.
func (t wirings) Stick(ctx context.Context, of id.Conversation, thread string, g group.Folder) error {
	_, err := t.write(ctx, "stick", `INSERT INTO sticky (conversation, thread, folder) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, of, thread, g)
	return doing(err, "have the thread %q engage %q", thread, g)
}

// Stuck returns the groups that a thread engages.
func (t wirings) Stuck(ctx context.Context, of id.Conversation, thread string) (map[group.Folder]bool, error) {
	all := map[group.Folder]bool{}
	err := t.each(ctx, func(row scanner) error {
		var g group.Folder
		err := row.Scan(&g)
		all[g] = true
		return err
	}, `SELECT folder FROM sticky WHERE conversation = ? AND thread = ?`, of, thread)
	return all, doing(err, "read whom the thread %q engages", thread)
}

// PutPending stores one.
func (t wirings) PutPending(ctx context.Context, p wiring.Pending) error {
	what := fmt.Sprintf("keep what %q said until somebody has decided", p.Identity)
	if err := exact(what, p); err != nil {
		return err
	}
	n, err := t.write(ctx, "put-pending", `INSERT INTO pending (question, kind, conversation, identity, folder, sender, event, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, conversation, identity) DO NOTHING`,
		p.Question, p.About, p.Conversation, p.Identity, p.Group, p.Sender, string(p.Event), ms(p.Created))
	if err == nil && n == 0 {
		err = problem.New(problem.Conflict, "somebody is asked about that already")
	}
	return doing(err, "%s", what)
}

// PendingOf returns that of a conversation and identity.
func (t wirings) PendingOf(ctx context.Context, about wiring.About, where id.Conversation, identity string) (wiring.Pending, bool, error) {
	return t.pending(ctx, `kind = ? AND conversation = ? AND identity = ?`, about, where, identity)
}

// PendingQuestions returns the questions of a channel, or all.
func (t wirings) PendingQuestions(ctx context.Context, channel string) ([]id.Question, error) {
	all, err := rows(ctx, t.queries, value[id.Question],
		`SELECT question FROM pending WHERE ?1 = '' OR conversation IN (SELECT id FROM conversation WHERE platform = ?1) ORDER BY created_at, question`, channel)
	return all, doing(err, "list what waits for a decision")
}

// Pending returns that of a question.
func (t wirings) Pending(ctx context.Context, q id.Question) (wiring.Pending, bool, error) {
	return t.pending(ctx, `question = ?`, q)
}

func (t wirings) pending(ctx context.Context, where string, args ...any) (p wiring.Pending, ok bool, err error) {
	var event string
	var created sql.NullInt64
	ok, err = t.one(ctx, `SELECT question, kind, conversation, identity, folder, sender, event, created_at FROM pending WHERE `+where, args,
		&p.Question, &p.About, &p.Conversation, &p.Identity, &p.Group, &p.Sender, &event, &created)
	if err != nil {
		return p, false, fmt.Errorf("read what waits for a decision: %w", err)
	}
	p.Event, p.Created = json.RawMessage(event), clock(created)
	return p, ok, nil
}

// ReplacePending stores another event of one.
func (t wirings) ReplacePending(ctx context.Context, q id.Question, event json.RawMessage) error {
	_, err := t.write(ctx, "replace-pending", `UPDATE pending SET event = ? WHERE question = ?`, string(event), q)
	return doing(err, "keep what was said last until %q is decided", q)
}

// DropPending removes one.
func (t wirings) DropPending(ctx context.Context, q id.Question) error {
	_, err := t.write(ctx, "drop-pending", `DELETE FROM pending WHERE question = ?`, q)
	return doing(err, "forget what waited for %q", q)
}
