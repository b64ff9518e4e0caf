package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/store"
)

// pushAgain is how long an agent is left alone that took no words in the middle of its turn: twice as long each time, so often at the most.
const (
	pushAgain   = 5 * time.Second
	pushDoubles = 6
)

// pushing is what is given to an agent in the middle of its turn. Its rows are the last of the turn's.
type pushing struct {
	own   int           // rows that the turn began with
	wait  bool          // something may wait
	after time.Duration // nothing is pushed before that, by the dispatcher's clock
	vain  int           // how often the agent took none

	rows  []message.In         // on their way, as they were
	given <-chan path.Delivery // what the agent says to them; nil = none are on their way
	over  context.CancelFunc   // of their way
	lost  bool                 // the agent did not say anything to some
}

// push gives the agent what has come meanwhile, in the middle of its turn (CH-082). Its rows are the turn's before the agent hears of it: a
// host that dies then has the whole turn taken again. What an agent does not take there is the next turn's. because says why the turn is
// to end, if it is.
func (w *worker) push(ctx context.Context, t *turn, because string) error {
	p := &t.pushed
	if !w.live.steers || because != "" || !p.wait || t.told > 0 || p.given != nil || p.lost || w.up() < p.after {
		return nil
	}
	more, err := w.join(ctx, t)
	switch {
	case errors.Is(err, message.ErrMoved): // the chat is another's, or a row of the turn is
		return err
	case err != nil: // what waits can be the next turn's too
		p.again(w.up())
		w.Log.Warn("what came in the middle of a turn could not be given to its agent yet", "chat", w.chat.ID, "error", err)
		return nil
	}
	if p.wait = more.later > 0; len(more.rows) == 0 {
		return nil
	}
	way, over := context.WithCancel(ctx)
	p.over, p.given = over, give(way, w.live.run.Talk.Steer, more.text(w.Zone()))
	return nil
}

// join takes what waits in the chat into a turn that is under way, in one transaction. None of it may have been in a turn before, as then
// its calls are known by that, and what failed together is kept apart; and all of it must be shown: what is only counted is so at the
// beginning of a turn.
func (w *worker) join(ctx context.Context, t *turn) (more turn, err error) {
	if slices.ContainsFunc(t.rows, func(m message.In) bool { return m.Tries >= together }) {
		return more, nil
	}
	var taken []message.In
	err = w.DB.InTx(ctx, func(tx store.Tx) error {
		more, taken = turn{}, nil
		rows, shown, err := more.gather(ctx, tx, w.chat.ID, ledger.Now(), t.counts())
		if err != nil || len(shown) == 0 {
			return err
		}
		chosen := prompt.Select(shown, w.PromptOf)
		for _, m := range rows {
			if m.Tries > 0 || m.First > 0 || len(chosen.Folded) > 0 {
				return nil
			}
		}
		more.later = len(chosen.Later)
		for _, m := range chosen.Shown {
			row := rows[m.ID]
			taken = append(taken, row)
			from, fence := row.Status, row.Fence
			row.Status, row.Fence, row.Turn, row.First = message.Processing, w.chat.Fence, t.number, t.number
			if err := tx.MoveIn(ctx, from, fence, row); err != nil {
				return err
			}
			more.rows = append(more.rows, row)
		}
		return tx.MoveChat(ctx, w.chat)
	})
	if err == nil {
		t.pushed.rows, t.rows = taken, append(t.rows, more.rows...)
	}
	return more, err
}

// heardOf hears what the agent says to words in the middle of its turn. Those that it did not take wait for the next, as they were.
func (w *worker) heardOf(ctx context.Context, t *turn, d path.Delivery) error {
	p := &t.pushed
	p.drop()
	if p.lost = p.lost || d.Delivered && d.At.IsZero(); p.lost || d.Acknowledged {
		p.rows = nil
		return nil
	}
	p.again(w.up())
	has := len(t.rows) - len(p.rows)
	err := w.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error {
		for i, was := range p.rows {
			row := t.rows[has+i]
			row.Status, row.First = was.Status, was.First
			if err := tx.MoveIn(ctx, message.Processing, w.chat.Fence, row); err != nil {
				return err
			}
		}
		return tx.MoveChat(ctx, w.chat)
	})
	if err == nil {
		t.rows, p.rows = t.rows[:has], nil
	}
	return err
}

// settle is called when a turn is over: words that are on their way into it are not taken any more, unless the agent has said so.
func (w *worker) settle(ctx context.Context, t *turn) error {
	if t.pushed.given == nil {
		return nil
	}
	t.pushed.over()
	d := <-t.pushed.given
	d.Delivered = d.Acknowledged
	return w.heardOf(ctx, t, d)
}

// again has words be given once more after a while that began at now.
func (p *pushing) again(now time.Duration) {
	p.wait, p.after = true, now+pushAgain<<min(p.vain, pushDoubles)
	p.vain++
}

// drop is called when nobody waits any more for what the agent says.
func (p *pushing) drop() {
	if p.given != nil {
		p.over()
		p.given = nil
	}
}
