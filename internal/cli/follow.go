package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/api"
	"sallyport/internal/client"
)

// view shows a change's notices as they come.
type view interface {
	// show shows one notice.
	show(n api.Notice)
	// tick is called a few times a second, for what moves by itself.
	tick(now time.Time)
	// key is a key that was pressed.
	key(k byte)
	// question shows what Ctrl-C asks; answered takes it away again.
	question()
	answered()
	// trial shows until when a person may confirm and what they have typed; nil takes it away again.
	trial(q *trialQuestion)
	// close leaves the screen as lines that stay.
	close()
}

// errLeft says that the person left and the change goes on.
var errLeft = errors.New("left running")

// errEnough says that the change waits for a person, who is not asked here or answers later.
var errEnough = errors.New("left waiting")

// manner is what a command does with a change that it follows.
type manner struct {
	approve string // ask: the card is shown and the person asked; yes: it is shown, for it was approved beforehand
	output  bool   // show the agent's output
	trial   trialManner
	patient bool   // stay where a rollback failed, for it is tried again
	wanted  string // the state that the command was given for: reaching it is success
}

// trialManner is what is done when a trial asks a person.
type trialManner int

const (
	trialEnd   trialManner = iota // end: it waits for a person
	trialStay                     // see how it ends
	trialAsked                    // ask; where nobody can be asked, end
)

// follow shows a change until it rests, and returns it. Ctrl-C asks at a terminal: leave
// it running or cancel; a second one, or one where nobody can be asked, leaves it running (errLeft).
func (a *app) follow(ctx context.Context, c *client.Client, change string, how manner) (api.Detail, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	var keys <-chan byte
	canAsk := a.interactive() && !a.json
	if fd, ok := terminal(a.In); ok && canAsk {
		var restore func()
		var err error
		if keys, restore, err = readKeys(fd); err != nil {
			canAsk = false
		} else {
			defer restore()
		}
	}
	f := &following{app: a, client: c, change: change, manner: how, canAsk: canAsk, view: a.newView(change, how.output, canAsk)}
	defer f.view.close()
	err := f.loop(ctx, signals, keys)
	if err != nil && !errors.Is(err, errEnough) {
		return api.Detail{}, err
	}
	return c.Show(ctx, change)
}

func (a *app) newView(change string, output, canAsk bool) view {
	switch {
	case a.json:
		return &jsonView{app: a}
	case canAsk:
		return newLiveView(a, change, output)
	}
	return &plainView{app: a, change: change, output: output}
}

// following is one change being followed.
type following struct {
	*app
	manner
	client   *client.Client
	change   string
	view     view
	canAsk   bool
	state    string         // as it was seen last
	asking   bool           // Ctrl-C's question is on the screen
	question *trialQuestion // a trial's is, nil if none
	looked   time.Time      // at the trial
	reason   string         // of the last state: a trial's question that says the same is not said twice
}

// loop returns nil when the change rests, errEnough when the rest is a person's and errLeft when they leave.
func (f *following) loop(ctx context.Context, signals <-chan os.Signal, keys <-chan byte) error {
	queue := newQueue()
	watched := make(chan error, 1)
	go func() { // ends with ctx
		watched <- f.client.Watch(ctx, f.change, func(n api.Notice) error { queue.put(n); return nil })
	}()
	tick := time.NewTicker(120 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-queue.ready:
			if err := f.drain(ctx, queue); err != nil {
				return err
			}
		case err := <-watched:
			return errors.Join(f.drain(ctx, queue), err)
		case sig := <-signals:
			switch {
			case f.asking || !f.canAsk || sig != unix.SIGINT:
				return errLeft
			case f.question != nil:
				return errEnough
			}
			f.asking = true
			f.view.question()
		case k := <-keys:
			if err := f.press(ctx, k); err != nil {
				return err
			}
		case now := <-tick.C:
			if !f.asking {
				f.view.tick(now)
			}
			if f.question != nil && now.Sub(f.looked) > lookAgain {
				_ = f.look(ctx) // the time may have been moved; a daemon that went away ends the watch
			}
		}
	}
}

func (f *following) drain(ctx context.Context, q *queue) error {
	if f.asking {
		return nil // shown when the question is answered
	}
	look := false
	for _, n := range q.take() {
		if f.json || n.Kind != api.NoticeTrial || n.Text != f.reason {
			f.view.show(n)
		}
		if n.Kind == api.NoticeState {
			f.reason = n.Text
		}
		f.ring(n)
		switch {
		case n.Kind == api.NoticeTrial || n.Kind == api.NoticeState && n.State == api.InTrial:
			look = true
		case n.Kind == api.NoticeState && n.State == api.RollbackFailed && !f.patient:
			return errEnough
		case n.Kind == api.NoticeState && f.question != nil:
			f.ask(nil)
		}
	}
	if look {
		return f.look(ctx)
	}
	return nil
}

// press answers the question, or is the view's.
func (f *following) press(ctx context.Context, k byte) error {
	switch {
	case !f.asking && f.question != nil:
		return f.reply(ctx, k)
	case !f.asking:
		f.view.key(k)
		return nil
	}
	switch k {
	case 'l', 'L', 'q', 'Q':
		return errLeft
	case 'c', 'C':
		f.asking = false
		f.view.answered()
		return f.client.Cancel(ctx, f.change, "cancelled at the terminal")
	case 27, 'n', 'N', '\n', '\r':
		f.asking = false
		f.view.answered()
	}
	return nil
}

// queue holds what came while nobody looked, so that a question never makes the daemon wait.
type queue struct {
	mu    sync.Mutex
	items []api.Notice
	ready chan struct{}
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) put(n api.Notice) {
	q.mu.Lock()
	q.items = append(q.items, n)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) take() []api.Notice {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}
