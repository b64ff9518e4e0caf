package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// view shows a change's notices as they come.
type view interface {
	// show shows one notice.
	show(n api.Notice)
	// tick is called a few times a second, for what moves by itself.
	tick(now time.Time)
	// key is a key that was pressed.
	key(k byte)
	// question shows what Ctrl-C asks and what was typed so far; answered takes it away again.
	question(typed string)
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
	silent  string // why nobody is asked here; "" where they said so themselves
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
func follow(ctx context.Context, a *app, c *client.Client, change string, how manner) (api.Detail, error) {
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
	f := &following{app: a, client: c, change: change, manner: how, canAsk: canAsk, keys: keys, view: newView(a, change, how.output, canAsk)}
	defer f.view.close()
	err := f.loop(ctx, signals)
	if err != nil && !errors.Is(err, errEnough) {
		return api.Detail{}, err
	}
	return client.Call(ctx, c, api.ChangeShow, change)
}

func newView(a *app, change string, output, canAsk bool) view {
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
	state    string // as it was seen last
	keys     <-chan byte
	asking   *typing        // Ctrl-C's question is on the screen; nil if it is not
	question *trialQuestion // a trial's is, nil if none
	looked   time.Time      // at the trial
	asked    bool           // the trial's own question was shown
	told     bool           // that it asks, and until when
	reason   string         // of the last state: a trial's question that says the same is not said twice
}

// loop returns nil when the change rests, errEnough when the rest is a person's and errLeft when they leave.
func (f *following) loop(ctx context.Context, signals <-chan os.Signal) error {
	queue := newQueue()
	watched := make(chan error, 1)
	go func() { // ends with ctx
		watched <- f.watch(ctx, queue)
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
			case f.asking != nil || !f.canAsk || sig != unix.SIGINT:
				return errLeft
			case f.question != nil:
				return errEnough
			}
			f.dropKeys()
			f.asking = &typing{}
			f.view.question("")
		case k := <-f.keys:
			if err := f.press(ctx, k); err != nil {
				return err
			}
		case now := <-tick.C:
			if f.asking == nil {
				f.view.tick(now)
			}
			if f.question != nil && now.Sub(f.looked) > lookAgain {
				_ = f.look(ctx) // the time may have been moved; a daemon that went away ends the watch
			}
		}
	}
}

// comebacksMax is how often a daemon that died is started again under one watch.
const comebacksMax = 3

func (f *following) watch(ctx context.Context, q *queue) error {
	return watchOn(ctx, f.app, f.client, f.change, func(n api.Notice) error { q.put(n); return nil })
}

// watchOn hands a change's notices on until it rests. A daemon that died is started again, and the watch goes on. So
// it does while the host changes itself.
func watchOn(ctx context.Context, a *app, c *client.Client, change string, put func(api.Notice) error) error {
	for again := 0; ; again++ {
		err := c.Watch(ctx, change, put)
		moves := errors.Is(err, client.ErrCut) && c.HostMoves()
		if moves { // which takes as many starts as it takes
			again = 0
		}
		if !errors.Is(err, client.ErrCut) || again == comebacksMax {
			return err
		}
		if moves {
			if err := put(api.Notice{Change: change, At: time.Now(), Kind: "host", Text: "it starts again; this goes on once it answers"}); err != nil {
				return err
			}
		}
		if err := c.ComeBack(ctx, err); err != nil {
			return err
		}
		if moves {
			continue
		}
		if err := giveKeys(ctx, a.Getenv, c, change); err != nil { // it died with the key of the agent's model
			return err
		}
		if err := put(api.Notice{Change: change, At: time.Now(), Kind: "daemon", Text: "the daemon died and was started again"}); err != nil {
			return err
		}
	}
}

func (f *following) drain(ctx context.Context, q *queue) error {
	if f.asking != nil {
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
		f.asked = f.asked || n.Kind == api.NoticeTrial
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

// press answers the question that is on the screen, or is the view's. An answer is a line, so that no key alone decides.
func (f *following) press(ctx context.Context, k byte) error {
	switch {
	case f.asking == nil && f.question != nil:
		return f.reply(ctx, k)
	case f.asking == nil:
		f.view.key(k)
		return nil
	case k == endOfInputKey:
		return errLeft
	}

	word, whole := f.asking.key(k)
	if !whole {
		f.view.question(string(f.asking.typed))
		return nil
	}
	switch word {
	case "l", "leave", "q", "quit":
		return errLeft
	case "":
		f.asking = nil
		f.view.answered()
		return nil
	case "c", "cancel":
		f.asking = nil
		f.view.answered()
		return client.Do(ctx, f.client, api.ChangeCancel, api.Reason{Of: f.change, Reason: "cancelled at the terminal"})
	}
	f.view.answered()
	f.sheet(f.Err).line("nothing was decided: answer leave or cancel, or press Enter to go on watching")
	f.dropKeys()
	f.view.question("")
	return nil
}

// dropKeys drops the keys that were pressed before a question was on the screen, and those still coming.
func (f *following) dropKeys() {
	for end := time.Now().Add(noisyMax); time.Now().Before(end); {
		select {
		case <-f.keys:
		case <-time.After(quietFor):
			return
		}
	}
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
