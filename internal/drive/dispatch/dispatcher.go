package dispatch

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/layer"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// AtOnceDefault is how many sessions of groups live at once unless the home says otherwise.
const AtOnceDefault = 8

// Parts is what a dispatcher stands on.
type Parts struct {
	*ledger.Ledger
	Runtime    live.Runtime
	Owner      person.Owner // who may answer
	Ops        disk.Ops
	Home       git.Dir      // its repository
	Trees      *layer.Store // of groups
	Folder     string       // below which groups have what is theirs to write
	Desk       live.Desk    // where agents ask the host for things
	Swaps      Swaps        // changes what groups run
	Extra      live.Extra   // folders of this machine that groups may be shown
	Zone       func() *time.Location
	FirstUID   uint32 // of sandboxes; 0: all run as Self
	Self       sandbox.Owner
	Changes    Changes     // nil: nothing is decided in a conversation
	Coded      func() bool // somebody may know the code of a change of the host (SM-923); nil: nobody ever does
	Admissions Admissions  // nil: this daemon speaks with no platform
	// Quiet is a clause that says why nobody is let in and no other change begins at this moment; "" = they do; nil: always.
	Quiet    func() string
	AtOnce   int // sessions that live at once; one place more is kept for a trial
	PromptOf int // chat messages in a prompt (CH-014)
}

// Dispatcher runs the sessions of groups.
type Dispatcher struct {
	Parts
	Feed message.Feed

	folders lock.Keyed[group.Folder] // that are being made
	Rounds  atomic.Int64             // how often its loop has gone round
	poke    chan struct{}
	began   time.Time
	found   found
	Only    only
	shown   shown

	speaking speaking

	mu       sync.Mutex
	workers  map[id.Chat]*worker
	renewals map[id.Chat]*renewal // that no worker has taken up
	died     map[id.Chat]bool     // whose session ended by itself, and none has begun since
	uses     map[group.Folder]int // sessions that stand on what a group has written
	told     map[string]time.Time // when a sender was last told of a cause (CH-902)
	fresh    map[id.Message]bool  // words that decide and are this daemon's own to carry out; nil once an earlier one's are found
	ending   sync.WaitGroup
}

// New returns a dispatcher; nothing runs before Run.
func New(p Parts) *Dispatcher {
	if p.AtOnce <= 0 {
		p.AtOnce = AtOnceDefault
	}
	d := &Dispatcher{Parts: p, poke: make(chan struct{}, 1), began: time.Now(), workers: map[id.Chat]*worker{},
		renewals: map[id.Chat]*renewal{}, died: map[id.Chat]bool{}, uses: map[group.Folder]int{}, told: map[string]time.Time{},
		fresh: map[id.Message]bool{}}
	d.Only.poke = d.Poke
	p.DB.Hear(d.heard)
	return d
}

// heard tells who watches what a transaction did to messages, and has what waits looked at: by the chat's worker, if it has one.
func (d *Dispatcher) heard(rows message.Rows) {
	now := ledger.Now()
	d.Feed.Moved(now, rows)

	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range rows.Ins {
		switch w := d.workers[m.Chat]; {
		case m.Status != message.Pending || !m.Trigger:
		case w != nil && !m.Due.After(now):
			w.rouse()
		default:
			d.Poke()
		}
	}
}

// Run wakes the agent of every chat that is due until ctx ends, and then ends all sessions. What an earlier daemon left in process
// waits again first (CH-030, CH-033).
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.ending.Wait()
	if err := d.takeOver(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("take over unfinished turns: %w", err)
	}
	d.ending.Go(func() {
		if err := (decider{d}).finishWords(ctx); err != nil && ctx.Err() == nil {
			d.Log.Error("what people had decided in conversations when the host ended is not all done", "error", err)
		}
	})
	d.ending.Go(func() { d.trim(ctx) })
	for ctx.Err() == nil {
		now := ledger.Now() // of the look and of the sleep after it: what falls due between the two is looked at
		if err := d.sweep(ctx, now); err != nil && ctx.Err() == nil {
			return fmt.Errorf("find the chats that are due: %w", err)
		}
		d.Rounds.Add(1)
		if err := d.sleep(ctx, now); err != nil && ctx.Err() == nil {
			return fmt.Errorf("find what falls due next: %w", err)
		}
	}
	return nil
}

// trimEvery is how often files of groups that nobody runs any more are removed.
const trimEvery = time.Hour

// trim removes what is kept for a while, when that is over: layers of trees that no session shows, messages that were answered long ago,
// what came in, and what is left of places that nobody uses.
func (d *Dispatcher) trim(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		if err := d.trimRows(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("messages of long ago stay", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := d.Trees.Trim(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("files that groups do not run any more stay", "error", err)
		}
	}
}

// trimRows removes rows that nobody needs any more, and forgets whom it told of what long ago.
func (d *Dispatcher) trimRows(ctx context.Context) error {
	d.mu.Lock()
	maps.DeleteFunc(d.told, func(_ string, at time.Time) bool { return time.Since(at) > toldAgain })
	d.mu.Unlock()

	now := ledger.Now()
	return d.DB.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.DropIntakes(ctx, now.Add(-message.IntakeKept)); err != nil {
			return err
		}
		if _, err := tx.DropMessages(ctx, now.Add(-message.Kept)); err != nil {
			return err
		}
		_, err := tx.DropUnused(ctx, now.Add(-message.Kept))
		return err
	})
}

// Poke has the dispatcher look at once; doing it for nothing does no harm.
func (d *Dispatcher) Poke() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// Busy reports how many turns are under way.
func (d *Dispatcher) Busy() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	busy := 0
	for _, w := range d.workers {
		if w.turning {
			busy++
		}
	}
	return busy
}

// Owes reports whether anything is to be done by itself, now or later: a message waits, or a task.
func (d *Dispatcher) Owes(ctx context.Context) bool {
	_, any, err := d.nextDue(ctx, time.UnixMilli(0))
	return any || err != nil
}

// sweep wakes every chat that is due at a time.
func (d *Dispatcher) sweep(ctx context.Context, now time.Time) error {
	var due []id.Chat
	var waiting []message.In
	err := d.DB.Read(ctx, func(tx store.Tx) (err error) {
		if waiting, err = tx.WaitingUntil(ctx, now.Add(stuck.Backoff(0))); err != nil {
			return err
		}
		due, err = tx.DueChats(ctx, now)
		return err
	})
	if err != nil {
		return err
	}
	if len(late(ledger.Now(), waiting)) > 0 {
		return setBack(ctx, d) // and it looks again
	}
	renewed := Renewer{d}.renewed()
	for _, chat := range append(slices.Clone(renewed), due...) {
		if slices.Contains(renewed, chat) || !d.Only.rests(chat) {
			d.wake(ctx, chat)
		}
	}
	return nil
}

// late are the messages that wait longer than any can: the clock was set back since they came, or since they failed.
func late(now time.Time, waiting []message.In) []stuck.Reset {
	rows := make([]stuck.Row, len(waiting))
	for i, m := range waiting {
		rows[i] = m.Row(0)
	}
	return stuck.Clamp(stuck.Now{Wall: now}, rows)
}

// setBack has messages fall due as they would if the clock had always been what it is now.
func setBack(ctx context.Context, d *Dispatcher) error {
	defer d.Poke()
	return d.DB.InTx(ctx, func(tx store.Tx) error {
		now := ledger.Now()
		waiting, err := tx.WaitingUntil(ctx, now)
		if err != nil {
			return err
		}
		by := map[string]message.In{}
		for _, m := range waiting {
			by[string(m.ID)] = m
		}
		for _, r := range late(now, waiting) {
			m := by[r.ID]
			m.Due = r.Due
			if err := tx.MoveIn(ctx, m.Status, m.Fence, m); err != nil {
				return err
			}
			d.Log.Warn("a message waits no longer than it should", "chat", m.Chat, "because", r.Reason)
		}
		return nil
	})
}

func (d *Dispatcher) nextDue(ctx context.Context, after time.Time) (due time.Time, any bool, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		due, any, err = tx.NextDueChat(ctx, after)
		return err
	})
	return due, any, err
}

// sweepEvery is how long the dispatcher sleeps at the most: a clock that was set is noticed by then.
const sweepEvery = 10 * time.Second

// sleep waits for a wake-up, for the next message to fall due that was not at a time, or for the end.
func (d *Dispatcher) sleep(ctx context.Context, now time.Time) error {
	due, any, err := d.nextDue(ctx, now)
	if err != nil {
		return err
	}
	wait := sweepEvery
	if any {
		wait = min(wait, max(due.Sub(ledger.Now()), time.Millisecond))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-d.poke:
	case <-timer.C:
	}
	return nil
}

// wake has the worker of a chat look, and gives it one if there is a place. Without a place the session that has been without work the
// longest ends in good order, and the chat is woken when it has.
func (d *Dispatcher) wake(ctx context.Context, chat id.Chat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workers[chat]; w != nil {
		w.rouse()
		return
	}
	_, taken, _ := places(d.workers)
	full := taken >= d.AtOnce
	if full && d.renewals[chat] == nil {
		d.makeRoom(ctx, chat)
		return
	}
	w := newWorker(d, chat)
	w.kept = full // the place that is kept for a trial: that waits for nobody
	d.workers[chat] = w
	d.ending.Go(func() {
		w.run(ctx)
		d.dismiss(w)
	})
}

// dismiss gives the place of a worker to the next.
func (d *Dispatcher) dismiss(w *worker) {
	d.mu.Lock()
	delete(d.workers, w.of)
	d.mu.Unlock()
	close(w.gone)
	d.Poke()
}

// makeRoom has the session leave that has been idle the longest; it is called with mu held. If all are at work, who waits is told.
func (d *Dispatcher) makeRoom(ctx context.Context, chat id.Chat) {
	idle, _, leaving := places(d.workers)
	if leaving > 0 {
		return // a place is about to be free
	}
	if idle != nil {
		idle.leave()
		return
	}
	d.ending.Go(func() {
		d.tell(ctx, chat, "busy", fmt.Sprintf("All %d places for agents are taken by conversations that are at work. Your message waits for the next place.", d.AtOnce))
	})
}

// PromptLimit is what this process's environment says of it; what is no such number is the default.
func PromptLimit() int {
	n, err := strconv.Atoi(os.Getenv(prompt.LimitVariable))
	if err != nil || n < 1 {
		return prompt.MessagesDefault
	}
	return min(n, prompt.MessagesMax)
}
