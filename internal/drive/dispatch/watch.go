package dispatch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/store"
)

// Line is one thing that who watches a chat is told. Exactly what its kind names is set.
type Line struct {
	Kind LineKind
	At   time.Time
	In   *message.In
	Out  *message.Out
	Turn int
	Text string
	Tool *conversation.Tool // nil with LineTool: none is in flight any more

	of *message.Event // that tells it to all who watch; nil = it is told to this one alone
	n  int            // what it is of the event's
}

// Once returns what make makes of the line: made once for all who are told it.
func (l Line) Once(make func(Line) ([]byte, error)) ([]byte, error) {
	if l.of == nil {
		return make(l)
	}
	return l.of.Once(l.n, func() ([]byte, error) { return make(l) })
}

// LineKind is what a line tells.
type LineKind string

const (
	LineIn    LineKind = "in"    // a message, as it stands now
	LineOut   LineKind = "out"   // what was sent
	LineReady LineKind = "ready" // what was there before has been told
	LineTurn  LineKind = "turn"  // a turn has begun
	LineSaid  LineKind = "said"  // a piece of what the agent says: LineOut has it whole, once it is sent
	LineTool  LineKind = "tool"  // a tool is in flight, or none
)

// historyMax is the most that is read at once of what was said, of each direction.
const historyMax = 1000

// watcher knows what one who watches a chat was told of its rows.
type watcher struct {
	*Dispatcher
	chat id.Chat
	ins  int64 // told up to this message
	outs int64
	open map[id.Message]stand // told, and not at their end
	over int                  // the last turn that was told to its end: what it said on the way is told no more
}

// stand is where a message stood when it was told.
type stand struct {
	status message.Status
	tries  int
}

// All who watch are told so often together at the most, but for the first few times: what many who watch many messages cost is bounded,
// and few are told at once. What happens meanwhile is told together.
const (
	tellEvery = 200 * time.Microsecond
	tellAhead = 20 // times
)

// Watch tells what was said in a chat, the newest of each direction, and then what happens, until ctx ends or tell fails: each thing
// once, in the order in which it was written. tell is given what there is to tell together. Who is up to date is told from what the
// transactions wrote; rows are read for who has just come, and for who was too slow.
func (d *Dispatcher) Watch(ctx context.Context, chat id.Chat, history int, tell func([]Line) error) error {
	sub := d.Feed.Subscribe(chat)
	defer d.Feed.Unsubscribe(sub)
	w := &watcher{Dispatcher: d, chat: chat, open: map[id.Message]stand{}}
	lines, err := w.past(ctx, min(max(history, 0), historyMax))
	if err != nil {
		return err
	}
	now, missed, err := w.catchUp(ctx, sub)
	if err != nil {
		return err
	}
	if err := w.show(ctx, append(lines, missed...), tell); err != nil {
		return err
	}
	lines = []Line{{Kind: LineReady, Turn: now.Turn}} // told by itself: who leaves at it has been told what was before
	if now.Tool != nil {
		lines = append(lines, Line{Kind: LineTool, Turn: now.Turn, Tool: now.Tool})
	}

	for next := time.Now(); ; {
		if err := w.show(ctx, lines, tell); err != nil {
			return err
		}
		every := tellEvery * time.Duration(d.Feed.Watchers())
		if next = next.Add(every); time.Since(next) > 0 {
			next = time.Now()
		}
		pause(ctx, time.Until(next)-tellAhead*every)
		events, behind := d.Feed.Next(ctx, sub)
		if lines = nil; behind {
			if _, lines, err = w.catchUp(ctx, sub); err != nil {
				return err
			}
		} else if len(events) == 0 {
			return nil
		}
		lines = append(lines, w.happened(events)...)
	}
}

// pause waits, but not for the end of a context.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// happened are events as lines. What several transactions wrote one after the other is told as the last of them left it, and of a turn
// that is over only what it has sent.
func (w *watcher) happened(events []*message.Event) (all []Line) {
	for _, e := range events {
		for i := range e.Rows.Ins {
			w.ended(&e.Rows.Ins[i])
		}
	}
	events = slices.DeleteFunc(events, func(e *message.Event) bool {
		return (e.Kind == message.TurnBegan || e.Kind == message.Said) && e.Turn <= w.over
	})

	var rows []Line
	for i, e := range events {
		if e.Kind != message.RowsMoved {
			all = append(all, Line{Kind: kinds[e.Kind], At: e.At, Turn: e.Turn, Text: e.Text, Tool: e.Tool, of: e})
			continue
		}
		rows = linesOf(rows, &e.Rows, e)
		if i+1 == len(events) || events[i+1].Kind != message.RowsMoved {
			all, rows = append(all, w.news(rows)...), nil
		}
	}
	return all
}

// linesOf adds a line for each row, in the order in which they were written; of is the event that tells them, if one does.
func linesOf(lines []Line, rows *message.Rows, of *message.Event) []Line {
	for i := range rows.Ins {
		m := &rows.Ins[i]
		lines = append(lines, Line{Kind: LineIn, At: m.At, In: m, of: of, n: i})
	}
	for i := range rows.Outs {
		o := &rows.Outs[i]
		lines = append(lines, Line{Kind: LineOut, At: o.At, Out: o, of: of, n: len(rows.Ins) + i})
	}
	return lines
}

// ended notes of a message that has come to its end that its turn is over.
func (w *watcher) ended(m *message.In) {
	if m.Ended != nil {
		w.over = max(w.over, m.Turn)
	}
}

// kinds are the lines of events that no row tells.
var kinds = map[message.EventKind]LineKind{message.TurnBegan: LineTurn, message.Said: LineSaid, message.ToolMoved: LineTool}

// past are the newest of what was said before.
func (w *watcher) past(ctx context.Context, history int) ([]Line, error) {
	var ins []message.In
	var outs []message.Out
	err := w.DB.Read(ctx, func(tx store.Tx) (err error) {
		if ins, err = tx.Ins(ctx, message.Filter{Chat: w.chat, Newest: true, Limit: max(history, 1)}); err != nil {
			return err
		}
		outs, err = tx.NewestOuts(ctx, w.chat, max(history, 1))
		return err
	})
	if err != nil {
		return nil, err
	}
	if history > 0 {
		return w.news(linesOf(nil, &message.Rows{Ins: ins, Outs: outs}, nil)), nil
	}
	for _, m := range ins {
		w.ins = m.Seq
	}
	for _, o := range outs {
		w.outs = o.Seq
	}
	return nil, nil
}

// catchUp reads what has changed in the rows since they were told, has the subscription follow them from there, and returns the chat as
// it is then. The last look is taken in the order of the commits, so nothing falls between it and the first event, and nothing is in
// both; whoever has missed much reads it before, where nobody waits for that.
func (w *watcher) catchUp(ctx context.Context, sub *message.Subscription) (chat conversation.Chat, all []Line, err error) {
	for follows := false; !follows; {
		var rows message.Rows
		for more := true; more; all = append(all, w.news(linesOf(nil, &rows, nil))...) {
			err := w.DB.Read(ctx, func(tx store.Tx) error { rows, more, err = w.missed(ctx, tx); return err })
			if err != nil {
				return chat, nil, err
			}
		}
		err := w.DB.InTx(ctx, func(tx store.Tx) (err error) {
			var more bool
			if chat, err = tx.Chat(ctx, w.chat); err != nil {
				return err
			}
			if rows, more, err = w.missed(ctx, tx); err == nil && !more {
				tx.After(func() { w.Feed.Follow(sub); follows = true })
			}
			return err
		})
		if err != nil {
			return chat, nil, err
		}
		all = append(all, w.news(linesOf(nil, &rows, nil))...)
	}
	return chat, all, nil
}

// missed are the rows that were written since they were told; more says that there may be others.
func (w *watcher) missed(ctx context.Context, tx store.Tx) (rows message.Rows, more bool, err error) {
	if rows.Ins, err = w.moves(ctx, tx); err != nil {
		return rows, false, err
	}
	ins, err := tx.Ins(ctx, message.Filter{Chat: w.chat, After: w.ins, Limit: historyMax})
	if err != nil {
		return rows, false, err
	}
	rows.Ins = append(rows.Ins, ins...)
	rows.Outs, err = tx.Outs(ctx, w.chat, w.outs, 0, historyMax)
	return rows, len(ins) == historyMax || len(rows.Outs) == historyMax, err
}

// news are those lines of rows that were not told as they are, in the order of their times. It takes rows over.
func (w *watcher) news(rows []Line) []Line {
	all := rows[:0]
	last := map[id.Message]int{} // in all
	for _, l := range rows {
		if l.Out != nil {
			if l.Out.Seq > w.outs {
				w.outs, all = l.Out.Seq, append(all, l)
			}
			continue
		}
		m := l.In
		was, told := w.open[m.ID]
		is := stand{m.Status, m.Tries}
		if m.Seq <= w.ins && (!told || was == is) {
			continue
		}
		w.ins = max(w.ins, m.Seq)
		if w.ended(m); m.Ended == nil {
			w.open[m.ID] = is
		} else {
			delete(w.open, m.ID)
		}
		if n, again := last[m.ID]; again {
			all[n] = l
			continue
		}
		last[m.ID] = len(all)
		all = append(all, l)
	}

	return merged(all)
}

// merged are lines of messages of both directions in the order of their times. It takes all over.
func merged(all []Line) []Line {
	now := time.Now()
	all = slices.DeleteFunc(all, func(l Line) bool { return l.In != nil && (l.In.Planned(now) || l.In.Cancelled()) }) // told when its time has come, or never
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind)) })
	return all
}

// show tells lines; a card is delivered by that.
func (w *watcher) show(ctx context.Context, lines []Line, tell func([]Line) error) error {
	if len(lines) == 0 {
		return nil
	}
	var notes []func(told bool)
	for _, l := range lines {
		if l.Out != nil {
			notes = append(notes, decider{w.Dispatcher}.delivered(ctx, *l.Out))
		}
	}
	err := tell(lines)
	for _, note := range notes {
		note(err == nil)
	}
	return err
}

// moves are the messages that were open when they were told, as they are now: those that still are in one look.
func (w *watcher) moves(ctx context.Context, tx store.Tx) (all []message.In, err error) {
	if len(w.open) == 0 {
		return nil, nil
	}
	still, err := tx.Ins(ctx, message.Filter{Chat: w.chat, Status: []message.Status{message.Pending, message.Processing}})
	if err != nil {
		return nil, err
	}
	seen := map[id.Message]bool{}
	for _, m := range still {
		if _, told := w.open[m.ID]; told {
			seen[m.ID], all = true, append(all, m)
		}
	}
	for of := range w.open {
		if seen[of] {
			continue
		}
		m, err := tx.In(ctx, of)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
