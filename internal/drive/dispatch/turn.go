package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/store"
)

// turn is what an agent is given at once, and what becomes of it.
type turn struct {
	number int
	rows   []message.In // in process
	folded []message.In // older, counted in the prompt: folded once the turn is completed
	older  string       // where the agent can read them
	cut    int64        // context before this number is counted and folded too, and not read
	unread int          // how much that is
	later  int
	sent   []prompt.Sent // by an earlier try

	given   <-chan path.Delivery // of its words, until that is known
	told    time.Duration        // when they were said, by the dispatcher's clock; 0 = the agent has them
	claimed time.Duration        // when the agent had them
	pushed  pushing
}

// inProcess are the turn's messages as stuck detection sees them.
func (t *turn) inProcess() []stuck.Row {
	rows := make([]stuck.Row, len(t.rows))
	for i, m := range t.rows {
		rows[i] = m.Row(t.claimed)
		rows[i].Told, rows[i].Pushed = t.told, i >= t.pushed.own
	}
	return rows
}

// begin takes what waits in a chat into a turn, in one transaction; false if nothing waits that wakes and is due.
func (w *worker) begin(ctx context.Context) (t turn, any bool, err error) {
	err = w.DB.InTx(ctx, func(tx store.Tx) error {
		t, any = turn{}, false
		now := ledger.Now()
		rows, shown, err := t.gather(ctx, tx, w.chat.ID, now, t.counts())
		if err != nil || len(shown) == 0 {
			return err
		}
		any = true

		chosen := prompt.Select(shown, w.PromptOf)
		t.number, t.later = w.chat.Turn+1, len(chosen.Later)
		for _, m := range chosen.Folded {
			t.folded = append(t.folded, rows[m.ID])
		}
		for _, m := range chosen.Shown {
			t.rows = append(t.rows, rows[m.ID])
		}
		earliest := t.number
		for i := range t.rows {
			row := &t.rows[i]
			row.First = cmp.Or(row.First, t.number)
			earliest = min(earliest, row.First)
			from, fence := row.Status, row.Fence
			row.Status, row.Fence, row.Turn = message.Processing, w.chat.Fence, t.number
			if err := tx.MoveIn(ctx, from, fence, *row); err != nil {
				return err
			}
		}
		for n := earliest; n < t.number; n++ {
			if err := sentIn(ctx, tx, w.chat.ID, n, &t.sent); err != nil {
				return err
			}
		}

		chat := w.chat
		chat.Turn, chat.Tool = t.number, nil
		return tx.MoveChat(ctx, chat)
	})
	if err == nil && any {
		w.chat.Turn, w.chat.Tool = t.number, nil
		t.pushed.own = len(t.rows)
	}
	return t, any, err
}

// counts returns what says of a message whether the turn has told its agent of it as a number. Such a one is no other turn's, and waits only
// until this one is completed.
func (t *turn) counts() func(message.In) bool {
	folded := map[id.Message]bool{}
	for _, m := range t.folded {
		folded[m.ID] = true
	}
	return func(m message.In) bool { return folded[m.ID] || !m.Trigger && m.Seq < t.cut }
}

// gather reads what a turn may show: all that wakes, however much was said beside it, and the newest of the context. Of what is older it
// reads only how much it is. What is counted already is left out.
func (t *turn) gather(
	ctx context.Context, tx store.Tx, chat id.Chat, now time.Time, counted func(message.In) bool,
) (map[string]message.In, []prompt.Message, error) {
	f := message.Filter{Chat: chat, Status: []message.Status{message.Pending}, Wakes: true, Limit: waitingMax}
	waiting, err := tx.Ins(ctx, f)
	waiting = slices.DeleteFunc(waiting, counted)
	if err != nil || !slices.ContainsFunc(waiting, func(m message.In) bool { return !m.Due.After(now) }) {
		return nil, nil, err
	}
	f.Wakes, f.Fills, f.Newest = false, true, true
	said, err := tx.Ins(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	said = slices.DeleteFunc(said, counted)
	waiting = append(waiting, said...)
	slices.SortFunc(waiting, func(a, b message.In) int { return cmp.Compare(a.Seq, b.Seq) })
	rows, shown := eligible(waiting, now)
	if len(said) < waitingMax || len(shown) < len(rows) { // all of it was read, or a message is alone in its turn
		return rows, shown, nil
	}
	t.cut = said[0].Seq
	t.unread, err = tx.CountContext(ctx, chat, t.cut)
	return rows, shown, err
}

// eligible are the messages that a turn may show: those that are due, and those that a failed try gave back, so that order holds. There
// are none unless one wakes and is due.
func eligible(waiting []message.In, now time.Time) (rows map[string]message.In, shown []prompt.Message) {
	rows = map[string]message.In{}
	wakes := false
	for _, m := range waiting {
		due := !m.Due.After(now)
		if !due && m.Tries == 0 && m.Trigger { // such as a task whose time has not come
			continue
		}
		wakes = wakes || due && m.Trigger
		rows[string(m.ID)] = m
		shown = append(shown, m.Shown())
	}
	if !wakes {
		return nil, nil
	}
	return rows, alone(rows, shown)
}

// together is how often messages fail in one turn before each gets a turn of its own: so one that ends every turn ends no other with it.
const together = 2

// alone is the oldest of what may be shown that wakes, if some of it has failed together; else all of it.
func alone(rows map[string]message.In, shown []prompt.Message) []prompt.Message {
	var oldest *prompt.Message
	failing := false
	for i, m := range shown {
		failing = failing || rows[m.ID].Tries >= together
		if m.Trigger && (oldest == nil || m.At.Before(oldest.At)) {
			oldest = &shown[i]
		}
	}
	if !failing || oldest == nil {
		return shown
	}
	return []prompt.Message{*oldest}
}

// sentIn adds what an earlier turn had sent before its end.
func sentIn(ctx context.Context, tx store.Tx, chat id.Chat, turn int, sent *[]prompt.Sent) error {
	outs, err := tx.Outs(ctx, chat, 0, turn, prompt.SentMax)
	for _, o := range outs {
		if o.Lane == message.Talk && o.Call != "" {
			*sent = append(*sent, prompt.Sent{At: o.At, Text: o.Text})
		}
	}
	return err
}

// text is the turn as its agent is given it.
func (t turn) text(loc *time.Location) string {
	b := prompt.Batch{Location: loc, Folded: len(t.folded) + t.unread, FoldedAt: t.older, Later: t.later, Sent: t.sent}
	for _, m := range t.rows {
		b.Messages = append(b.Messages, m.Shown())
	}
	return b.String()
}

// intake is what the turn's tool calls are for: the first turn of the message that was tried most often. So it is the same in the next
// try, whatever has come meanwhile, and also once messages that failed together have a turn each.
func (t turn) intake() string {
	if len(t.rows) == 0 {
		return ""
	}
	first := slices.MaxFunc(t.rows, func(a, b message.In) int { return cmp.Compare(a.Tries, b.Tries) })
	return fmt.Sprintf("%s/%d", first.Chat, first.First)
}

// complete sends what the agent said and moves the turn's messages on, in one transaction.
func (w *worker) complete(ctx context.Context, t turn, said string) error {
	text := w.Secrets.Redact(prompt.Strip(said))
	err := w.DB.InTx(ctx, func(tx store.Tx) error {
		chat := w.chat
		chat.Tool = nil
		if err := tx.MoveChat(ctx, chat); err != nil { // another that has claimed it meanwhile answers
			return err
		}
		now := ledger.Now()
		if text != "" {
			o, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Turn: t.number, Text: text, At: now})
			if err == nil && w.dev != nil {
				err = hearDev(ctx, tx, w.dev.Row, text, string(o.ID))
			}
			if err != nil {
				return err
			}
		}
		for _, m := range t.rows {
			if err := w.finish(ctx, tx, m, now); err != nil {
				return err
			}
		}
		for _, m := range t.folded {
			from, fence := m.Status, m.Fence
			m.Status, m.Turn, m.Ended, m.Fence = message.Folded, t.number, &now, chat.Fence
			if err := tx.MoveIn(ctx, from, fence, m); err != nil {
				return err
			}
		}
		if t.unread == 0 {
			return nil
		}
		return tx.FoldContext(ctx, chat.ID, t.cut, message.Folding{Turn: t.number, Fence: chat.Fence, At: now})
	})
	if err == nil {
		w.chat.Tool = nil
	}
	return err
}

// finish completes one message, and has it come again if it does (CH-111).
func (w *worker) finish(ctx context.Context, tx store.Tx, m message.In, now time.Time) error {
	if m.Recurrence != nil { // its task may have been cancelled since the turn began
		is, err := tx.In(ctx, m.ID)
		if err != nil {
			return err
		}
		m.Recurrence = is.Recurrence
	}
	done := m
	done.Status, done.Ended, done.Reason = message.Completed, &now, ""
	due := m.Due
	if m.Recurrence != nil && !m.Recurrence.NextRun.IsZero() {
		due = m.Recurrence.NextRun // a try that failed has moved the other
	}
	next, original, warning := schedule.Recur(schedule.Occurrence{Status: string(done.Status), Due: due, Recurrence: m.Recurrence}, now)
	done.Recurrence = original.Recurrence
	if err := tx.MoveIn(ctx, m.Status, m.Fence, done); err != nil {
		return err
	}
	if warning != "" {
		w.Log.Warn("a schedule goes on otherwise than it says", "task", m.Task, "warning", warning)
	}
	if next == nil {
		return nil
	}
	again := m
	again.ID, again.Seq, again.Intake, again.At = id.NewMessage(), 0, 0, next.Due
	again.Status, again.Tries, again.Due, again.Fence, again.Turn, again.First, again.Reason, again.Ended = message.Pending, 0, next.Due, 0, 0, 0, "", nil
	again.Recurrence = next.Recurrence
	_, err := tx.PutIn(ctx, again)
	return err
}

// How long the host waits until it writes again what it could not: twice as long each time, up to the other.
const (
	writeAgain    = time.Second
	writeAgainMax = time.Minute
)

// giveBack returns the messages of a turn that did not come to its end: each waits and is tried again, or is dead and its sender is
// told. blameless says that it was nobody's fault: no try counts. What cannot be written is written again, until ctx ends: the next
// daemon gives back what this one has left in process.
func (w *worker) giveBack(ctx context.Context, t turn, because string, blameless bool) error {
	now := stuck.Now{Up: w.up(), Wall: ledger.Now()}
	rows := t.inProcess()
	for i := range rows {
		rows[i].Pushed = rows[i].Pushed || blameless
	}
	resets := stuck.Return(now, rows, because)
	for pause := writeAgain; ; pause = min(2*pause, writeAgainMax) {
		over := ctx.Err() != nil
		err := w.leaveOff(context.WithoutCancel(ctx), t, resets)
		if err == nil || over || errors.Is(err, message.ErrMoved) {
			return err
		}
		w.Log.Error("the messages of a turn could not be given back; that is tried again", "chat", w.chat.ID, "in", pause, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// leaveOff writes what becomes of the messages of a turn that did not come to its end.
func (w *worker) leaveOff(ctx context.Context, t turn, resets []stuck.Reset) error {
	chat := w.chat
	chat.Tool = nil
	err := w.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.MoveChat(ctx, chat); err != nil {
			return err
		}
		return w.reset(ctx, tx, t.rows, resets)
	})
	if err == nil {
		w.chat = chat
	}
	return err
}

// reset stores what becomes of messages in process, and tells the senders of those that are dead (CH-102, CH-901). One that has moved on keeps
// no other from it.
func (d *Dispatcher) reset(ctx context.Context, tx store.Tx, rows []message.In, resets []stuck.Reset) error {
	by := map[string]message.In{}
	for _, m := range rows {
		by[string(m.ID)] = m
	}
	for _, r := range resets {
		m, ok := by[r.ID]
		if !ok {
			continue
		}
		from := m.Status
		m.Status, m.Tries, m.Due, m.Reason = message.Pending, r.Tries, r.Due, d.Secrets.Redact(r.Reason)
		if r.Dead {
			at := ledger.Now()
			m.Status, m.Due, m.Ended = message.Dead, at, &at
		}
		err := tx.MoveIn(ctx, from, m.Fence, m)
		if errors.Is(err, message.ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		if r.Dead {
			if err := d.notice(ctx, tx, m.Chat, dead(m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dead tells the sender of a message that it was given up.
func dead(m message.In) string {
	what := "Your message was not answered"
	if m.Task != "" {
		what = fmt.Sprintf("The task %s was not done", m.Task)
	}
	if stopped(m) {
		what += ", and does not come again until it is tried again"
	}
	return fmt.Sprintf("%s: %s. To try it again: sallyport message retry %s", what, m.Reason, m.ID)
}

// takeOver gives back what an earlier daemon had in process: its sandboxes are gone (CH-030, CH-090).
func (d *Dispatcher) takeOver(ctx context.Context) error {
	var chats []conversation.Chat
	err := d.DB.InTx(ctx, func(tx store.Tx) error {
		var err error
		if chats, err = tx.Chats(ctx, ""); err != nil {
			return err
		}
		left, err := tx.Ins(ctx, message.Filter{Status: []message.Status{message.Processing}, Limit: waitingMax})
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, message.In.Open) // no agent had it
		rows := make([]stuck.Row, len(left))
		for i, m := range left {
			rows[i] = m.Row(0)
		}
		now := stuck.Now{Wall: ledger.Now()}
		if err := d.reset(ctx, tx, left, stuck.Return(now, rows, "the host ended in the middle of the turn")); err != nil {
			return err
		}
		for _, c := range chats {
			if c.Tool == nil {
				continue
			}
			c.Tool = nil
			if err := tx.MoveChat(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
