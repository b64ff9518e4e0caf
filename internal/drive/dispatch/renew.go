package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/agent"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// How long what a trial waits for may take: twice, for it begins twice (SM-917), in less than trust.GroupAllows.
const (
	yieldAfter = 30 * time.Second // until a turn that was begun on the old files is begun anew on the new ones
	answerMax  = 75 * time.Second // until an agent has answered
	askMax     = 10 * time.Second // until a session that died has begun again
)

// onTrial is what an agent is told that is to show whether it answers. Nobody is shown what it says.
const onTrial = "You have been restarted on a new version of your files. Nobody reads what you say now: answer with one word, such as ready. " +
	"No tool of the host works in this turn."

// renewal is a session that is to begin anew.
type renewal struct {
	ctx  context.Context // of who waits for it
	turn bool            // and to take a turn, whatever runs
	done chan error      // has room for the answer
}

// Renewer begins the sessions of groups anew, and says what files they run.
type Renewer struct{ *Dispatcher }

// Renew has the sessions of a group end after their turn. That of chat begins on the group's files as they are now, and takes one turn
// that nobody is shown. A nil error says that it answered; else it is a problem that says why it did not, with the last line that
// its program printed. What waits in the chat is answered after that.
func (d Renewer) Renew(ctx context.Context, of group.Folder, chat id.Chat) error {
	d.outdate(of, false)
	return d.renew(ctx, of, chat, true)
}

// Begin ends the sessions of a group that run on other files than the group has now, also in the middle of a turn: that is taken anew.
// The session of chat begins, unless it runs on those files already. No model is asked for anything.
func (d Renewer) Begin(ctx context.Context, of group.Folder, chat id.Chat) error {
	d.outdate(of, true)
	return d.renew(ctx, of, chat, false)
}

// Ask returns nil unless the session of a chat has died and cannot begin again.
func (d Renewer) Ask(ctx context.Context, of group.Folder, chat id.Chat) error {
	d.mu.Lock()
	died := d.died[chat]
	if w := d.workers[chat]; w != nil && w.turning {
		died = false // it is being tried again
	}
	d.mu.Unlock()
	if !died {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	return d.renew(ctx, of, chat, false)
}

// outdate has the sessions of a group end at their next rest that run on other files than the group has by then; in a hurry none is left
// to end its turn.
func (d Renewer) outdate(of group.Folder, hurry bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.workers {
		if w.group != of {
			continue
		}
		w.outdated = true
		if hurry {
			renewing{w}.yield()
		}
		w.rouse()
	}
}

// yield has the turn under way end if it is to be begun anew.
func (w renewing) yield() {
	select {
	case w.yields <- struct{}{}:
	default:
	}
}

// renew has the worker of a chat begin its session, and waits.
func (d Renewer) renew(ctx context.Context, of group.Folder, chat id.Chat, turn bool) error {
	c, err := store.Look(ctx, d.DB, store.Tx.Chat, chat)
	if err != nil {
		return err
	}
	if c.Group != of {
		return problem.Errorf(problem.Internal, "", "%s is a conversation with %s, and not with %s", chat, c.Group, of)
	}

	r := &renewal{ctx: ctx, turn: turn, done: make(chan error, 1)}
	d.mu.Lock()
	d.renewals[chat] = r
	d.mu.Unlock()
	defer d.withdraw(chat, r)
	d.Poke()
	patience := time.NewTimer(yieldAfter)
	defer patience.Stop()
	for {
		select {
		case err := <-r.done:
			return err
		case <-patience.C:
			d.mu.Lock()
			if w := d.workers[chat]; w != nil && d.renewals[chat] == r {
				renewing{w}.yield()
			}
			d.mu.Unlock()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// withdraw takes back a renewal that no worker has taken up.
func (d Renewer) withdraw(chat id.Chat, r *renewal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.renewals[chat] == r {
		delete(d.renewals, chat)
	}
}

// renewed are the chats whose session is to begin anew.
func (d Renewer) renewed() (chats []id.Chat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for chat := range d.renewals {
		chats = append(chats, chat)
	}
	return chats
}

// renewing is how a worker begins its session anew.
type renewing struct{ *worker }

// renewal takes up what is wanted of the worker's session; nil if nothing is.
func (w renewing) renewal() *renewal {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.renewals[w.of]
	delete(w.renewals, w.of)
	return r
}

// refuse answers who waits for a session that this worker cannot begin, because of err.
func (w renewing) refuse(err error) {
	if r := w.renewal(); r != nil {
		r.done <- err
	}
}

// dies remembers that the session ended by itself.
func (w renewing) dies() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.died[w.of] = true
}

// refresh ends a session at rest that runs on other files than its group has now.
func (w renewing) refresh(ctx context.Context) {
	w.mu.Lock()
	outdated := w.outdated
	w.outdated = false
	w.mu.Unlock()
	if !outdated || w.live == nil {
		return
	}
	if tree, err := w.tree(ctx, w.chat.Group); err == nil && tree != w.live.tree {
		w.end(ctx)
	}
}

// yielding reports whether the turn under way is to be begun anew: its session has waited long enough for its end, or it runs on other
// files than those of now.
func (w renewing) yielding(ctx context.Context) bool {
	w.mu.Lock()
	r := w.renewals[w.of]
	w.mu.Unlock()
	if r != nil && r.turn {
		return true
	}
	tree, err := w.tree(ctx, w.chat.Group)
	return err == nil && tree != w.live.tree
}

// renew begins the session anew as r wants it.
func (w renewing) renew(ctx context.Context, r *renewal) error {
	tree, err := w.tree(ctx, w.chat.Group)
	if err != nil {
		return err
	}
	if r.turn || w.live != nil && w.live.tree != tree {
		w.end(ctx)
	}
	if w.live == nil {
		w.printed = ""
		if err := w.start(ctx); err != nil {
			return w.mute("does not begin: "+problem.Of(err).Text, problem.Of(err).Next)
		}
	}
	if !r.turn {
		return nil
	}
	why := w.try(ctx, r)
	if why == "" {
		return nil
	}
	w.end(ctx)
	if err := errors.Join(context.Cause(ctx), context.Cause(r.ctx)); err != nil {
		return err
	}
	return w.mute("does not answer: "+why, "")
}

// notePrefix begins what an adapter writes of itself into the transcript, such as how a turn failed.
const notePrefix = "sallyport: "

// mute is why a group is no good as it is now.
func (w renewing) mute(why, next string) error {
	if w.printed != "" && !strings.Contains(why, strings.TrimPrefix(w.printed, notePrefix)) {
		why += "; the last line of its program: " + w.printed
	}
	if next == "" {
		next = "sallyport session log " + string(w.chat.ID)
	}
	return problem.Errorf(problem.AgentFailed, next, "the agent of %s %s", w.chat.Group, inert.Line(w.Secrets.Redact(why)))
}

// try has the agent take the turn by which it shows that it answers, and says why it does not; "" if it does.
func (w renewing) try(ctx context.Context, r *renewal) (why string) {
	s := w.live
	s.onTrial(true)
	defer s.onTrial(false)
	s.intake.Store("")
	words := prompt.Batch{Location: w.Zone(), Messages: []prompt.Message{{Kind: prompt.System, At: ledger.Now(), Text: onTrial}}}
	limit := time.NewTimer(answerMax)
	defer limit.Stop()
	give(ctx, s.run.Talk.Try, words.String())
	select {
	case <-ctx.Done():
		return "the host was stopped"
	case <-r.ctx.Done():
		return "nobody waits for it any more"
	case s := <-w.stops:
		w.end(ctx)
		s.answer <- stopping{true, nil}
		return "a person ended its session"
	case end := <-s.over:
		return strings.Replace(w.record(ctx, end), "the agent's ", "its ", 1)
	case e := <-s.run.Talk.Turns():
		switch {
		case e.Outcome == agent.TurnDone && strings.TrimSpace(prompt.Strip(s.words())) != "":
			return ""
		case e.Outcome == agent.TurnDone:
			return "it said nothing"
		case e.Reason != "":
			return "its turn failed: " + e.Reason
		}
		return "its turn was cancelled"
	case <-limit.C:
		return fmt.Sprintf("its turn did not end within %s", answerMax)
	}
}
