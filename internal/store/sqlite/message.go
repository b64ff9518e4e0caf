package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/schedule"
)

// messages are what reaches groups and what leaves them.
type messages struct{ *queries }

// AddIntake stores what a platform handed over, once.
func (t messages) AddIntake(ctx context.Context, i message.Intake) (message.Intake, bool, error) {
	what := fmt.Sprintf("store what came in %q", i.Conversation)
	if err := exact(what, i); err != nil {
		return i, false, err
	}
	platformID := sql.NullString{String: i.PlatformID, Valid: i.PlatformID != ""}
	ok, err := t.one(ctx, `INSERT INTO intake (conversation, platform_id, received_at, outcome, reason) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (conversation, platform_id) DO NOTHING RETURNING seq`,
		[]any{i.Conversation, platformID, ms(i.Received), i.Outcome, i.Reason}, &i.Seq)
	if err != nil {
		return i, false, fmt.Errorf("%s: %w", what, err)
	}
	if ok {
		t.note("add-intake")
		return i, true, nil
	}
	var at sql.NullInt64
	_, err = t.one(ctx, `SELECT seq, received_at, outcome, reason FROM intake WHERE conversation = ? AND platform_id = ?`,
		[]any{i.Conversation, i.PlatformID}, &i.Seq, &at, &i.Outcome, &i.Reason)
	if err != nil {
		return i, false, fmt.Errorf("%s: %w", what, err)
	}
	i.Received = clock(at)
	return i, false, nil
}

// DropIntake writes down that nothing became of an intake.
func (t messages) DropIntake(ctx context.Context, seq int64, reason string) error {
	_, err := t.write(ctx, "drop-intake", `UPDATE intake SET outcome = 'dropped', reason = ? WHERE seq = ?`, reason, seq)
	return doing(err, "drop what came in")
}

// CountDrop counts an intake with another that was dropped, and removes it.
func (t messages) CountDrop(ctx context.Context, seq, with int64, reason string) (bool, error) {
	n, err := t.write(ctx, "count-drop", `UPDATE intake SET times = times + 1 WHERE seq = ? AND seq <> ? AND outcome = 'dropped' AND reason = ?`, with, seq, reason)
	if err == nil && n > 0 {
		_, err = t.write(ctx, "drop-counted", `DELETE FROM intake WHERE seq = ?`, seq)
	}
	if err != nil {
		return false, fmt.Errorf("count what is dropped: %w", err)
	}
	return n > 0, nil
}

// DropIntakes removes those received before a time.
func (t messages) DropIntakes(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.write(ctx, "drop-intakes", `DELETE FROM intake WHERE received_at < ?`, ms(before))
	return n, doing(err, "remove old intakes")
}

// dropsMax is how many reasons of drops are told.
const dropsMax = 50

// CountDrops counts what was handed over and dropped, by reason.
func (t messages) CountDrops(ctx context.Context) ([]message.Drop, error) {
	all, err := rows(ctx, t.queries, func(row scanner, d *message.Drop) error {
		return row.Scan(&d.Reason, &d.Count)
	}, `SELECT reason, sum(times) AS n FROM intake WHERE outcome = 'dropped' GROUP BY reason ORDER BY n DESC, reason LIMIT +?`, dropsMax)
	return all, doing(err, "count what was dropped")
}

const inColumns = `seq, id, chat, intake, kind, trig, identity, sender, text, reply_to, quote_from, quote, question, at,
	status, tries, due_at, fence, turn, first_turn, reason, ended_at, task, recurrence, decides`

// readIn reads a row of inColumns.
func readIn(row scanner, m *message.In) (err error) {
	var intake, at, due, ended sql.NullInt64
	var recurrence, decides sql.NullString
	err = row.Scan(&m.Seq, &m.ID, &m.Chat, &intake, &m.Kind, &m.Trigger, &m.Identity, &m.Sender, &m.Text, &m.ReplyTo, &m.Quote.From, &m.Quote.Text,
		&m.Question, &at, &m.Status, &m.Tries, &due, &m.Fence, &m.Turn, &m.First, &m.Reason, &ended, &m.Task, &recurrence, &decides)
	if err != nil {
		return err
	}
	m.Intake, m.At, m.Due, m.Ended = intake.Int64, clock(at), clock(due), maybe(ended)
	if m.Recurrence, err = decodeMaybe[schedule.Schedule](recurrence); err != nil {
		return err
	}
	m.Decides, err = decodeMaybe[message.Decision](decides)
	return err
}

// ins reads messages.
func (t messages) ins(ctx context.Context, query string, args ...any) ([]message.In, error) {
	return rows(ctx, t.queries, readIn, `SELECT `+inColumns+` FROM message_in `+query, args...)
}

// documents are how a message comes again and what it decides, as columns have them.
func documents(m message.In) (recurrence, decides sql.NullString, err error) {
	if recurrence, err = encodeMaybe(m.Recurrence); err != nil {
		return recurrence, decides, err
	}
	decides, err = encodeMaybe(m.Decides)
	return recurrence, decides, err
}

// PutIn stores a new message.
func (t messages) PutIn(ctx context.Context, m message.In) (message.In, error) {
	what := fmt.Sprintf("store the message %q", m.ID)
	if err := exact(what, m); err != nil {
		return m, err
	}
	recurrence, decides, err := documents(m)
	if err != nil {
		return m, fmt.Errorf("%s: %w", what, err)
	}
	intake := sql.NullInt64{Int64: m.Intake, Valid: m.Intake != 0}
	_, err = t.one(ctx, `INSERT INTO message_in (id, chat, intake, kind, trig, identity, sender, text, reply_to, quote_from, quote, question, at,
			status, tries, due_at, fence, turn, first_turn, reason, ended_at, task, recurrence, decides)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
		[]any{m.ID, m.Chat, intake, m.Kind, m.Trigger, m.Identity, m.Sender, m.Text, m.ReplyTo, m.Quote.From, m.Quote.Text, m.Question, ms(m.At),
			m.Status, m.Tries, ms(m.Due), m.Fence, m.Turn, m.First, m.Reason, whenever(m.Ended), m.Task, recurrence, decides}, &m.Seq)
	if err != nil {
		return m, fmt.Errorf("%s: %w", what, err)
	}
	t.note("put-message")
	t.rows.Ins = append(t.rows.Ins, m)
	return m, nil
}

// In returns one.
func (t messages) In(ctx context.Context, id id.Message) (message.In, error) {
	one, ok, err := firstOf(t.ins(ctx, `WHERE id = ?`, id))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport message list", "there is no message %q in this home", id)
	}
	return one, doing(err, "read the message %q", id)
}

// InOf returns what came of an intake in a chat.
func (t messages) InOf(ctx context.Context, chat id.Chat, intake int64) (message.In, bool, error) {
	one, ok, err := firstOf(t.ins(ctx, `WHERE chat = ? AND intake = ?`, chat, intake))
	return one, ok, doing(err, "read what came of an intake")
}

// Ins returns those that a filter chooses.
func (t messages) Ins(ctx context.Context, f message.Filter) ([]message.In, error) {
	where, args := []string{"seq > ?"}, []any{f.After}
	add := func(clause string, more ...any) {
		where, args = append(where, clause), append(args, more...)
	}
	if f.Chat != "" {
		add("chat = ?", f.Chat)
	}
	if f.Group != "" {
		add("chat IN (SELECT id FROM chat WHERE folder = ?)", f.Group)
	}
	if f.Task != "" {
		add("task = ?", f.Task)
	}
	if f.Tasks {
		add("task <> ''")
	}
	if f.Wakes {
		add("trig = 1")
	}
	if f.Fills {
		add("trig = 0")
	}
	if !f.Due.IsZero() {
		add("NOT (task <> '' AND status = 'pending' AND tries = 0 AND due_at > ?)", ms(f.Due))
	}
	if len(f.Status) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(f.Status)), ", ")
		statuses := make([]any, len(f.Status))
		for i, s := range f.Status {
			statuses[i] = s
		}
		add("status IN ("+marks+")", statuses...)
	}
	limit := f.Limit
	if limit == 0 {
		limit = 1000
	}
	order := "ORDER BY seq LIMIT +?"
	if f.Newest {
		order = "ORDER BY seq DESC LIMIT +?"
	}
	all, err := t.ins(ctx, `WHERE `+strings.Join(where, " AND ")+" "+order, append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	if f.Newest {
		slices.Reverse(all)
	}
	return all, nil
}

// MoveIn stores what may change of a message. A task that was cancelled meanwhile stays cancelled: nobody gives a recurrence back.
func (t messages) MoveIn(ctx context.Context, from message.Status, fence int64, m message.In) error {
	what := fmt.Sprintf("move the message %q", m.ID)
	if err := exact(what, m); err != nil {
		return err
	}
	recurrence, decides, err := documents(m)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "move-message", `UPDATE message_in SET status = ?, tries = ?, due_at = ?, fence = ?, turn = ?, first_turn = ?, reason = ?, ended_at = ?, recurrence = iif(recurrence IS NULL, NULL, ?), decides = ?
		WHERE id = ? AND status = ? AND fence = ?`,
		m.Status, m.Tries, ms(m.Due), m.Fence, m.Turn, m.First, m.Reason, whenever(m.Ended), recurrence, decides, m.ID, from, fence)
	if err == nil && n == 0 {
		err = message.ErrMoved
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t.rows.Ins = append(t.rows.Ins, m)
	return nil
}

// waitsAsContext finds the chat messages that wait and wake nobody, and olderContext those of a chat before a number.
const (
	waitsAsContext = `status = 'pending' AND trig = 0 AND kind NOT IN ('task', 'system', 'answer')`
	olderContext   = `chat = ? AND seq < ? AND ` + waitsAsContext
	takenContext   = `chat = (SELECT id FROM chat WHERE folder = ? AND conversation = ? AND thread = '') AND ` + waitsAsContext
)

// CountContext counts the chat messages that wait before a number and wake nobody.
func (t messages) CountContext(ctx context.Context, chat id.Chat, before int64) (n int, err error) {
	if _, err = t.one(ctx, `SELECT count(*) FROM message_in WHERE `+olderContext, []any{chat, before}, &n); err != nil {
		return 0, fmt.Errorf("count what was said in %q: %w", chat, err)
	}
	return n, nil
}

// FoldContext folds them.
func (t messages) FoldContext(ctx context.Context, chat id.Chat, before int64, by message.Folding) error {
	_, err := t.write(ctx, "fold-messages", `UPDATE message_in SET status = 'folded', turn = ?, fence = ?, ended_at = ? WHERE `+olderContext,
		by.Turn, by.Fence, ms(by.At), chat, before)
	return doing(err, "fold what was said in %q", chat)
}

// TakeContext has a chat take over what its group was told without a thread.
func (t messages) TakeContext(ctx context.Context, to conversation.Chat) error {
	_, err := t.write(ctx, "take-context", `UPDATE message_in SET chat = ? WHERE `+takenContext, to.ID, to.Group, to.Conversation)
	return doing(err, "have %q take over what was said before", to.ID)
}

// dueChats is asked after each message: it looks at what waits alone, however much was said.
const dueChats = `SELECT chat, min(due_at) AS due FROM message_in WHERE status = 'pending' AND trig = 1 AND due_at <= ? GROUP BY +chat ORDER BY +due, min(seq)`

// nextDueChat is asked whenever the dispatcher rests.
const nextDueChat = `SELECT min(due_at) FROM message_in WHERE status = 'pending' AND trig = 1 AND due_at > ?`

// waitingUntil is asked with each look of the dispatcher: few wait for a time to come.
const waitingUntil = `WHERE status = 'pending' AND trig = 1 AND due_at > ? AND (task = '' OR tries > 0) ORDER BY due_at DESC LIMIT +?`

// waitingMax is how many of those are told at once, those that wait the longest.
const waitingMax = 1000

// WaitingUntil returns those that wake and fall due after a time, and were not planned for it.
func (t messages) WaitingUntil(ctx context.Context, after time.Time) ([]message.In, error) {
	all, err := t.ins(ctx, waitingUntil, ms(after), waitingMax)
	return all, doing(err, "find the messages that wait")
}

// DueChats returns the chats that something waits for which wakes and is due.
func (t messages) DueChats(ctx context.Context, now time.Time) ([]id.Chat, error) {
	all, err := rows(ctx, t.queries, func(row scanner, chat *id.Chat) error {
		var due int64
		return row.Scan(chat, &due)
	}, dueChats, ms(now))
	return all, doing(err, "find the chats that are due")
}

// NextDueChat returns when the next message that wakes falls due after a time.
func (t messages) NextDueChat(ctx context.Context, after time.Time) (time.Time, bool, error) {
	var due sql.NullInt64
	_, err := t.one(ctx, nextDueChat, []any{ms(after)}, &due)
	return clock(due), due.Valid, doing(err, "find the next message that falls due")
}

const outColumns = `seq, id, chat, lane, turn, number, call, question, text, at, card, change, digits, delivered_at`

// readOut reads a row of outColumns.
func readOut(row scanner, o *message.Out) (err error) {
	var at, delivered sql.NullInt64
	err = row.Scan(&o.Seq, &o.ID, &o.Chat, &o.Lane, &o.Turn, &o.Number, &o.Call, &o.Question, &o.Text, &at, &o.Card, &o.Change, &o.Digits, &delivered)
	o.At, o.Delivered = clock(at), maybe(delivered)
	return err
}

// PutOut stores one with the next number of its turn and lane.
func (t messages) PutOut(ctx context.Context, o message.Out) (message.Out, error) {
	what := fmt.Sprintf("store what %q says", o.Chat)
	if err := exact(what, o); err != nil {
		return o, err
	}
	if o.Call != "" {
		all, err := t.outs(ctx, `WHERE chat = ? AND call = ?`, o.Chat, o.Call)
		if err != nil {
			return o, fmt.Errorf("%s: %w", what, err)
		}
		if len(all) > 0 {
			return all[0], nil
		}
	}
	var err error
	if o.Digits = 0; o.Card.Asks() {
		if o.Digits, err = t.nextDigits(ctx, o.Chat); err != nil {
			return o, fmt.Errorf("%s: %w", what, err)
		}
	}
	_, err = t.one(ctx, `INSERT INTO message_out (id, chat, lane, turn, number, call, question, text, at, card, change, digits, delivered_at, conversation)
		SELECT ?1, ?2, ?3, ?4, coalesce(max(number), 0) + 1, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, (SELECT conversation FROM chat WHERE id = ?2) FROM message_out WHERE chat = ?2 AND lane = ?3 AND turn = ?4
		RETURNING seq, number`,
		[]any{o.ID, o.Chat, o.Lane, o.Turn, o.Call, o.Question, o.Text, ms(o.At), o.Card, o.Change, o.Digits, whenever(o.Delivered)}, &o.Seq, &o.Number)
	if err != nil {
		return o, fmt.Errorf("%s: %w", what, err)
	}
	t.note("put-out")
	t.rows.Outs = append(t.rows.Outs, o)
	return o, nil
}

// nextDigits is what the next card of a chat's conversation is called: what no card of the host's is that waits there, if that can be.
func (t messages) nextDigits(ctx context.Context, of id.Chat) (int, error) {
	chat, err := conversations(t).Chat(ctx, of)
	if err != nil {
		return 0, err
	}
	newest, err := t.outs(ctx, `WHERE conversation = ? AND digits > 0 ORDER BY seq DESC LIMIT 1`, chat.Conversation)
	if err != nil {
		return 0, err
	}
	open, err := t.outs(ctx, openCards, chat.Conversation)
	if err != nil {
		return 0, err
	}

	digits := 99
	if len(newest) > 0 {
		digits = newest[0].Digits
	}
	for range 90 {
		digits = 10 + (digits-9)%90
		if !slices.ContainsFunc(open, func(o message.Out) bool { return o.Digits == digits }) {
			break
		}
	}
	return digits, nil
}

func (t messages) outs(ctx context.Context, query string, args ...any) ([]message.Out, error) {
	return rows(ctx, t.queries, readOut, `SELECT `+outColumns+` FROM message_out `+query, args...)
}

// Outs returns those of a chat after a number.
func (t messages) Outs(ctx context.Context, chat id.Chat, after int64, turn, limit int) ([]message.Out, error) {
	all, err := t.outs(ctx, `WHERE chat = ?1 AND seq > ?2 AND (?3 = 0 OR turn = ?3) ORDER BY seq LIMIT +?4`, chat, after, turn, limit)
	return all, doing(err, "read what %q said", chat)
}

// NewestOuts returns the newest of a chat.
func (t messages) NewestOuts(ctx context.Context, chat id.Chat, limit int) ([]message.Out, error) {
	all, err := t.outs(ctx, `WHERE chat = ? ORDER BY seq DESC LIMIT +?`, chat, limit)
	if err != nil {
		return nil, fmt.Errorf("read what %q said: %w", chat, err)
	}
	slices.Reverse(all)
	return all, nil
}

// newestCards are the numbers of the newest cards of a conversation, of those about changes (1) or about all else (0).
func newestCards(about string) string {
	return `SELECT seq FROM (SELECT seq FROM message_out WHERE conversation = ?1 AND digits > 0 AND (change <> '') = ` + about + ` ORDER BY seq DESC LIMIT +?2)`
}

// openCards finds the cards of the host's in a conversation that wait for their answer.
const openCards = `WHERE conversation = ?1 AND digits > 0 AND (card = 'trial'
	AND EXISTS (SELECT 1 FROM trial AS r WHERE r.change = message_out.change AND r.handshake_state NOT IN ('confirmed', 'rolled_back'))
	OR card NOT IN ('trial', 'question') AND EXISTS (SELECT 1 FROM question AS q WHERE q.id = message_out.question AND q.outcome IS NULL)) ORDER BY seq`

// cardsOf finds them and the newest.
var cardsOf = `WHERE seq IN (SELECT seq FROM (SELECT seq FROM message_out ` + openCards + `) UNION ALL ` + newestCards("1") + ` UNION ALL ` + newestCards("0") + `) ORDER BY seq`

// Cards returns those of the host's in a conversation that wait, and the newest: about a change, and as many of the others.
func (t messages) Cards(ctx context.Context, in id.Conversation, limit int) ([]message.Out, error) {
	all, err := t.outs(ctx, cardsOf, in, limit)
	return all, doing(err, "read what was asked in %q", in)
}

// Talk returns what agents have said or asked where a card stands, after it or since a time before.
func (t messages) Talk(ctx context.Context, card id.Out, since time.Time, limit int) (said []string, err error) {
	all, err := t.outs(ctx, `WHERE chat IN (SELECT h.id FROM message_out AS c JOIN chat AS h ON h.conversation = c.conversation WHERE c.id = ?1)
		AND (seq > (SELECT seq FROM message_out WHERE id = ?1) OR at > ?2) AND lane = 'talk' AND card IN ('', 'question') ORDER BY seq DESC LIMIT +?3`,
		card, ms(since), limit)
	for _, o := range all {
		said = append(said, o.Text)
	}
	return said, doing(err, "read what agents said beside the card %q", card)
}

// cardsAbout finds the cards of a change.
const cardsAbout = `WHERE change = ? AND digits > 0 ORDER BY seq`

// CardsAbout returns those about a change that ask something.
func (t messages) CardsAbout(ctx context.Context, of id.Change) ([]message.Out, error) {
	all, err := t.outs(ctx, cardsAbout, of)
	return all, doing(err, "read what was asked about %q", of)
}

// NoteDelivery writes down when somebody was told a card.
func (t messages) NoteDelivery(ctx context.Context, card id.Out, at time.Time) error {
	_, err := t.write(ctx, "note-delivery", `UPDATE message_out SET delivered_at = ? WHERE id = ? AND delivered_at IS NULL`, ms(at), card)
	return doing(err, "note that the card %q was delivered", card)
}

// DropMessages removes messages that came to their end before a time, and what was sent before it. A question that waits stays, with what
// it is about: whether that has all arrived is asked until it is answered (SM-909).
func (t messages) DropMessages(ctx context.Context, before time.Time) (int64, error) {
	in, err := t.write(ctx, "drop-messages", `DELETE FROM message_in WHERE ended_at < ? AND recurrence IS NULL AND status IN ('completed', 'folded', 'dead')`, ms(before))
	if err != nil {
		return 0, fmt.Errorf("remove old messages: %w", err)
	}
	out, err := t.write(ctx, "drop-messages", `DELETE FROM message_out WHERE at < ? AND id NOT IN (SELECT out FROM delivery WHERE status = 'waiting') AND question NOT IN (SELECT id FROM question WHERE outcome IS NULL)
		AND NOT (card = 'diff' AND change IN (SELECT subject FROM question WHERE outcome IS NULL))`, ms(before))
	if err != nil {
		return 0, fmt.Errorf("remove what was sent long ago: %w", err)
	}
	if _, err := t.write(ctx, "drop-messages", `DELETE FROM delivery WHERE out NOT IN (SELECT id FROM message_out)`); err != nil {
		return 0, fmt.Errorf("forget how messages of long ago left: %w", err)
	}
	return in + out, nil
}

// CountIns counts messages by status.
func (t messages) CountIns(ctx context.Context, chat id.Chat) (map[message.Status]int, error) {
	n, err := counts[message.Status](ctx, t.queries, `SELECT status, count(*) FROM message_in WHERE ?1 = '' OR chat = ?1 GROUP BY status`, chat)
	return n, doing(err, "count messages")
}

// CountAlong counts what waits in a chat and wakes nobody.
func (t messages) CountAlong(ctx context.Context, chat id.Chat) (n int, err error) {
	_, err = t.one(ctx, `SELECT count(*) FROM message_in WHERE chat = ? AND status = 'pending' AND trig = 0`, []any{chat}, &n)
	return n, doing(err, "count what goes along in %q", chat)
}
