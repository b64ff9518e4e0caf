package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// judgeEvery is how often a session is looked at.
const judgeEvery = time.Second

// worker serves one chat: it has its agent take one turn after the other.
type worker struct {
	*Dispatcher
	of   id.Chat
	chat conversation.Chat // as its row was last written
	live *session          // nil: none runs
	dev  *maker            // of the chat of a dev agent: what it has made; nil of a chat with people

	nudge   chan struct{} // holds one token when a message may wait
	away    chan struct{} // closed when the place is wanted for another
	stops   chan stop     // somebody ends the session
	yields  chan struct{} // holds one token when the turn may have to be begun anew
	printed string        // the last line of the session that ran last
	gone    chan struct{} // closed when the worker is

	// Of the dispatcher, under its lock.
	turning  bool
	leaving  bool
	group    group.Folder // "" before the chat is claimed
	outdated bool         // its session ends at its next rest if it runs on other files than those of now
	kept     bool         // it has the place that is kept for a trial, until it rests
	since    time.Time    // without work
}

func newWorker(d *Dispatcher, chat id.Chat) *worker {
	return &worker{
		Dispatcher: d, of: chat, chat: conversation.Chat{ID: chat}, turning: true, since: time.Now(),
		nudge: make(chan struct{}, 1), away: make(chan struct{}), stops: make(chan stop), yields: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

// rouse has the worker look for messages.
func (w *worker) rouse() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// leave has the worker end its session in good order; it is called with the dispatcher's lock held.
func (w *worker) leave() {
	if !w.leaving {
		w.leaving = true
		close(w.away)
	}
}

// works says whether a turn is under way; false if the worker is to leave instead.
func (w *worker) works(turning bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turning && w.leaving {
		return false
	}
	if w.turning && !turning {
		w.since = time.Now()
		w.Poke() // who waits for a place may have this one
	}
	w.turning = turning
	if !turning {
		w.kept = false
		w.fitIn()
	}
	return true
}

// fitIn has the session leave that has been idle the longest, if a trial has left one more than there are places; it is called with the
// dispatcher's lock held.
func (w *worker) fitIn() {
	idle, taken, leaving := places(w.workers)
	if idle != nil && taken-leaving > w.AtOnce {
		idle.leave()
	}
}

// places says how many places are taken, the one aside that is kept for a trial, how many of them are about to be free, and whose session
// has been without work the longest; nil if none is.
func places(workers map[id.Chat]*worker) (idle *worker, taken, leaving int) {
	for _, w := range workers {
		if w.kept {
			continue
		}
		taken++
		switch {
		case w.leaving:
			leaving++
		case !w.turning && (idle == nil || w.since.Before(idle.since)):
			idle = w
		}
	}
	return idle, taken, leaving
}

// run takes turns until the place is wanted, the chat goes to another, or ctx ends.
func (w *worker) run(ctx context.Context) {
	elsewhere := false // its agent hears nothing in it now
	err := w.DB.InTx(ctx, func(tx store.Tx) (err error) {
		if w.chat, err = tx.ClaimChat(ctx, w.chat.ID); err != nil {
			return err
		}
		swap, is, err := devOf(ctx, tx, w.chat)
		if w.dev = nil; !is || err != nil {
			return err
		}
		w.dev = &maker{w.Dispatcher, swap}
		why, err := w.dev.elsewhere(ctx, tx)
		if elsewhere = why != ""; elsewhere {
			return closeWaiting(ctx, tx, w.chat.ID, why)
		}
		return err
	})
	w.mu.Lock()
	w.group = w.chat.Group
	w.mu.Unlock()
	defer w.end(ctx)
	for err == nil && !elsewhere && ctx.Err() == nil && w.works(true) {
		if r := (renewing{w}).renewal(); r != nil {
			r.done <- renewing{w}.renew(ctx, r)
			continue
		}
		var t turn
		var any bool
		if w.Only.rests(w.chat.ID) {
			any = false
		} else if t, any, err = w.begin(ctx); err != nil {
			break
		}
		if any {
			err = w.take(ctx, t)
			continue
		}
		renewing{w}.refresh(ctx)
		w.works(false)
		if !w.rest(ctx) {
			return
		}
	}
	if err != nil {
		renewing{w}.refuse(err)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Error("a conversation broke off; it goes on when its messages are due again", "chat", w.chat.ID, "error", err)
	}
}

// rest waits until there may be something to do; false if the worker is to end.
func (w *worker) rest(ctx context.Context) bool {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		var over <-chan ended
		if w.live != nil {
			over = w.live.over
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.away:
			return false
		case s := <-w.stops:
			ran := w.live != nil
			w.end(ctx)
			s.answer <- stopping{ran, nil}
			return false
		case <-w.nudge:
			return true
		case end := <-over:
			w.record(ctx, end)
			renewing{w}.dies()
		case <-tick.C:
			if w.live == nil {
				continue
			}
			if v := w.live.judge(w.live.started, w.chat.Fence, nil); v.Act == stuck.Kill {
				w.Log.Info("a session was ended", "chat", w.chat.ID, "because", v.Because)
				return false
			}
		}
	}
}

// take has the agent take one turn, and writes what came of it. An error says that this could not be written: the chat is
// another's, or ctx has ended.
func (w *worker) take(ctx context.Context, t turn) error {
	tree, err := w.tree(ctx, w.chat.Group)
	if err == nil && w.live != nil && w.live.tree != tree {
		w.end(ctx) // what has landed counts from the next turn on
	}
	if err == nil && w.live == nil {
		err = w.start(ctx)
	}
	if err == nil {
		t.older, err = foldOf(w.Ops, w.live.run.Session.Dir).lay(t.number, t.folded, t.unread, w.Zone())
	}
	if err != nil {
		if ctx.Err() != nil {
			return w.giveBack(ctx, t, "the host was stopped", true)
		}
		p := problem.Of(err)
		w.tell(ctx, w.chat.ID, "start: "+p.Text, cannotWake(w.chat, p))
		return w.giveBack(ctx, t, p.Text, false)
	}

	w.live.next(t.number)
	w.Feed.Publish(&message.Event{Chat: w.chat.ID, At: ledger.Now(), Kind: message.TurnBegan, Turn: t.number})
	w.live.intake.Store(t.intake())
	t.told = w.up() // what its session took to begin was no delay of its agent's
	t.given = give(ctx, w.live.run.Talk.Tell, t.text(w.Zone()))
	return w.attend(ctx, t)
}

// give gives an agent words, and does not wait for what it says to that: its program may still begin. It is over with the session.
func give(ctx context.Context, tell func(context.Context, string) path.Delivery, words string) <-chan path.Delivery {
	given := make(chan path.Delivery, 1)
	go func() { given <- tell(ctx, words) }()
	return given
}

// cannotWake tells a sender why the agent could not be woken (CH-902).
func cannotWake(c conversation.Chat, p problem.Problem) string {
	text := fmt.Sprintf("The agent of %s could not be woken: %s", c.Group, p.Text)
	if p.Next != "" {
		text += ". What to do: " + p.Next
	}
	return text + ". Your message waits and is tried again."
}

// attend waits for the end of a turn.
func (w *worker) attend(ctx context.Context, t turn) error {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	defer t.pushed.drop()
	because := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			w.end(ctx)
			return w.giveBack(ctx, t, "the host was stopped", true)
		case <-w.yields:
			if (renewing{w}).yielding(ctx) {
				w.end(ctx)
				return w.giveBack(ctx, t, "the group began anew on other files", true)
			}
		case end := <-w.live.over:
			return w.perished(ctx, t, end, because)
		case d := <-t.given:
			t.given = nil
			if !d.Delivered {
				w.end(ctx)
				return w.giveBack(ctx, t, "the agent did not take the message", ctx.Err() != nil)
			}
			if d.Acknowledged {
				t.told, t.claimed = 0, w.up()-time.Since(d.At)
			}
		case d := <-t.pushed.given:
			err = w.heardOf(ctx, &t, d)
		case e := <-w.live.run.Talk.Turns():
			return w.turned(ctx, t, e, because)
		case <-w.live.moved:
			err = w.keepTool(ctx)
		case s := <-w.stops:
			err := w.settle(ctx, &t)
			w.end(ctx)
			err = errors.Join(err, w.stopTurn(ctx, t, s.by))
			s.answer <- stopping{true, err}
			return w.broke(ctx, t, err)
		case <-w.nudge:
			t.pushed.wait = true
			err = w.push(ctx, &t, because)
		case <-tick.C:
			v := w.live.judge(w.live.started, w.chat.Fence, &t)
			switch v.Act {
			case stuck.Leave:
				err = w.push(ctx, &t, because)
			case stuck.Interrupt:
				because = v.Because
				w.live.interrupt()
				w.live.run.Talk.Interrupt()
			case stuck.Kill:
				w.Log.Warn("an agent was ended", "chat", w.chat.ID, "group", w.chat.Group, "because", v.Because)
				w.end(ctx)
				return w.giveBack(ctx, t, v.Because, false)
			}
		}
		if err != nil {
			return w.broke(ctx, t, err)
		}
	}
}

// broke gives back the messages of a turn of which something could not be written: err says what, nil = nothing. That is nobody's fault at
// first. For one that has been in a turn before the try counts, so that none is given to an agent for ever. What another has by now is left
// to it: of the chat that is all, and an error.
func (w *worker) broke(ctx context.Context, t turn, err error) error {
	if err == nil {
		return nil
	}
	w.end(ctx)
	stopped := ctx.Err() != nil
	if !stopped {
		w.Log.Error("a turn broke off; what it still has of its messages is given back", "chat", w.chat.ID, "error", err)
	}
	again := slices.ContainsFunc(t.rows, func(m message.In) bool { return m.First < t.number })
	return w.giveBack(ctx, t, "the host could not write what came of the turn", stopped || !again)
}

// perished writes what came of a turn in which the session ended by itself; because says why the host had the turn end.
func (w *worker) perished(ctx context.Context, t turn, end ended, because string) error {
	select {
	case e := <-w.live.run.Talk.Turns(): // before that it has said how its turn ended
		w.live.over <- end
		return w.turned(ctx, t, e, because)
	default:
	}
	why := w.record(ctx, end)
	renewing{w}.dies()
	return w.giveBack(ctx, t, cmp.Or(because, why), ctx.Err() != nil)
}

// turned writes what came of a turn that its agent has ended; because says why the host had it end.
func (w *worker) turned(ctx context.Context, t turn, e agent.TurnEnd, because string) error {
	if e.Outcome != agent.TurnDone {
		w.end(ctx) // CH-103: an agent that failed begins anew
		if because == "" && e.Reason != "" {
			because = "the agent's turn failed: " + e.Reason
		}
		return w.giveBack(ctx, t, cmp.Or(because, "the agent's turn was cancelled"), false)
	}
	if err := w.settle(ctx, &t); err != nil {
		return w.broke(ctx, t, err)
	}
	if t.pushed.lost {
		w.end(ctx)
		return w.giveBack(ctx, t, "the agent did not say whether it took the words that came in its turn", false)
	}
	return w.broke(ctx, t, w.complete(ctx, t, w.live.words()))
}

// keepTool writes which tool is in flight (CH-094).
func (w *worker) keepTool(ctx context.Context) error {
	chat := w.chat
	chat.Tool = w.live.flight()
	err := w.DB.InTx(ctx, func(tx store.Tx) error { return tx.MoveChat(ctx, chat) })
	if err == nil {
		w.chat = chat
	}
	return err
}

// stopTurn writes what becomes of the messages of a turn whose session somebody has ended. Those of one that the host ended wait as they
// were, and whose they are by now is found anew: the place is left for that.
func (w *worker) stopTurn(ctx context.Context, t turn, by audit.Actor) error {
	if by != audit.Host {
		return w.leaveOff(ctx, t, t.stopped())
	}
	w.mu.Lock()
	w.leave()
	w.mu.Unlock()
	return w.giveBack(ctx, t, "the host ended the session", true)
}

// stopped is what becomes of the messages of a turn that a person ended: they are not tried again by themselves.
func (t turn) stopped() []stuck.Reset {
	resets := make([]stuck.Reset, len(t.rows))
	for i, m := range t.rows {
		resets[i] = stuck.Reset{ID: string(m.ID), Dead: true, Tries: m.Tries, Reason: "a person ended the session"}
	}
	return resets
}

// stop is somebody's word to end a session, and where what came of it is told.
type stop struct {
	by     audit.Actor
	answer chan<- stopping
}

// stopping is what came of a word to end a session.
type stopping struct {
	ran bool
	err error
}

// Stop ends the session of a chat, and its turn; false if none runs.
func (d *Dispatcher) Stop(ctx context.Context, chat id.Chat, by audit.Actor) (bool, error) {
	d.mu.Lock()
	w := d.workers[chat]
	d.mu.Unlock()
	if w == nil {
		return false, nil
	}
	answer := make(chan stopping, 1)
	select {
	case w.stops <- stop{by, answer}:
	case <-w.gone:
		return false, nil
	case <-ctx.Done():
		return false, fmt.Errorf("the session of %s did not answer: %w", chat, context.Cause(ctx))
	}
	select {
	case s := <-answer:
		if !s.ran || s.err != nil {
			return s.ran, s.err
		}
		return true, d.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error {
			return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(chat), Verb: "session stopped"})
		})
	case <-ctx.Done():
		return false, fmt.Errorf("the session of %s did not answer: %w", chat, context.Cause(ctx))
	}
}

// Retry has a dead message tried again. Errors: problem.NotFound; problem.Conflict if it is not dead.
func (d *Dispatcher) Retry(ctx context.Context, of id.Message, by audit.Actor) (m message.In, err error) {
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		if m, err = tx.In(ctx, of); err != nil {
			return err
		}
		if m.Status != message.Dead {
			return problem.Errorf(problem.Conflict, "sallyport message show "+string(of), "the message %s is not dead: it is %s",
				inert.Short(string(of), 40), m.Status)
		}
		m.Status, m.Tries, m.Due, m.Reason, m.Ended = message.Pending, 0, ledger.Now(), "", nil
		if err := tx.MoveIn(ctx, message.Dead, m.Fence, m); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(of), Verb: "message retried"})
	})
	return m, err
}
