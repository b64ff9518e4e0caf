package channels

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
)

// line is the session of a channel.
type line struct {
	conversation.Channel
	driver channel.Driver
	host   context.Context // for as long as the daemon runs
	life   context.Context // for as long as the channel is there
	end    context.CancelFunc
	over   chan struct{}

	outcomes outcomes

	mu    sync.Mutex
	self  channel.Self
	state State
	lanes map[string]bool // at work
	until time.Time       // before which the whole platform takes nothing
	left  int             // calls that have not come back, and that nobody waits for any more
}

// is reports whether a line is the one of a channel, as its row says now.
func (l *line) is(ch conversation.Channel) bool {
	return l.Name == ch.Name && l.Platform == ch.Platform && l.Credential == ch.Credential && l.Added.Equal(ch.Added) && maps.Equal(l.Settings, ch.Settings)
}

// names are those by which people mention the assistant.
func (l *line) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.self.Names
}

// begin begins the session of a channel, once that of another channel of the name is over.
func (c *Channels) begin(ctx context.Context, ch conversation.Channel, before *line) {
	life, end := context.WithCancel(ctx)
	l := &line{
		Channel: ch, host: ctx, life: life, end: end, over: make(chan struct{}), lanes: map[string]bool{},
		state: State{Since: ledger.Now()},
	}
	err := calmly(func() (err error) {
		l.driver, err = c.Open(ch)
		return err
	})
	if err != nil {
		l.driver = nil
		l.lose(c.reason(err))
	}
	c.mu.Lock()
	c.lines[ch.Name] = l
	c.mu.Unlock()
	c.ending.Go(func() {
		defer close(l.over)
		if before != nil {
			<-before.over
		}
		if l.driver != nil {
			c.keep(life, l)
		}
	})
}

// A lost session is begun again after a while that grows.
const (
	againFirst = time.Second
	againMost  = 2 * time.Minute
	// againRefused is the wait after a platform has taken no credential, or has said no: who asks more often is locked out.
	againRefused = 15 * time.Minute
)

// keep runs a session for as long as the channel is there.
func (c *Channels) keep(ctx context.Context, l *line) {
	wait := againFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := c.session(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > againMost {
			wait = againFirst
		}
		if err == nil {
			err = errors.New("the platform has ended it, and does not say why")
		}
		pause := wait
		if kind := problem.KindOf(err); kind == problem.Denied || kind == problem.Refused {
			pause = againRefused
		}
		l.lose(c.reason(err))
		c.Log.Warn("the session of a channel is lost", "channel", l.Name, "error", l.State().Reason, "again", pause)

		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, againMost)
	}
}

// session is one session with a platform.
func (c *Channels) session(ctx context.Context, l *line) error {
	cursor, err := c.cursor(ctx, l.Name)
	if err != nil {
		return err
	}
	session, end := context.WithCancel(ctx)
	defer end() // what a driver that was left behind says counts for nothing
	return l.call(session, 0, func(ctx context.Context) error {
		return l.driver.Run(ctx, channel.Listener{
			Cursor: cursor,
			Ready: func(s channel.Self) {
				if session.Err() == nil {
					l.connect(s)
					c.Poke()
				}
			},
			Take: func(ctx context.Context, e channel.Event) error {
				if err := session.Err(); err != nil {
					return err
				}
				return c.take(ctx, l, e)
			},
			Move: func(ctx context.Context, cursor string) error {
				if err := session.Err(); err != nil {
					return err
				}
				return c.DB.InTx(ctx, func(tx store.Tx) error { return tx.MoveCursor(ctx, l.Name, cursor) })
			},
			Lost: func(ctx context.Context, place string) {
				if session.Err() == nil {
					c.lost(ctx, l, place)
				}
			},
		})
	})
}

const (
	// graceTime is how long a driver has to come back once its time is over.
	graceTime = 10 * time.Second
	// leftMax is how many calls of one channel may be left behind: with more, nothing is sent there until some have come back.
	leftMax = 16
)

var (
	errCrashed = problem.New(problem.Internal, "what speaks with the platform has crashed")
	errLeft    = problem.New(problem.Unavailable, "what speaks with the platform does not come back")
)

// call has the driver do something that takes so long at the most; 0 = until ctx ends. One that does not come back then is left behind.
func (l *line) call(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	ended := make(chan error, 1)
	go func() { ended <- calmly(func() error { return do(ctx) }) }() // ends with ctx, or is counted below
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}

	grace := time.NewTimer(graceTime)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
	}
	l.note(1)
	go func() { // ends with what was left behind
		<-ended
		l.note(-1)
	}()
	return errLeft
}

// note counts calls that were left behind.
func (l *line) note(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left += n
}

// calmly does something of a driver's: one that panics takes nothing else with it.
func calmly(do func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%w: %s", errCrashed, inert.Short(fmt.Sprint(what), 200))
		}
	}()
	return do()
}

// connect notes that there is a session.
func (l *line) connect(s channel.Self) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.state.Since
	if !l.state.Connected {
		since = ledger.Now()
	}
	account := s.Account
	if len(s.Names) > 0 {
		account = s.Names[0]
	}
	l.self, l.state = s, State{Connected: true, Since: since, Account: inert.Short(account, 80), Lost: l.state.Lost, LostIn: l.state.LostIn}
}

func (c *Channels) cursor(ctx context.Context, name string) (cursor string, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		all, err := tx.Channels(ctx)
		for _, ch := range all {
			if ch.Name == name {
				cursor = ch.Cursor
			}
		}
		return err
	})
	return cursor, err
}

// lose notes why there is no session.
func (l *line) lose(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := ledger.Now()
	if !l.state.Connected && l.state.Reason != "" { // it was away before
		since = l.state.Since
	}
	l.state = State{Since: since, Reason: why, Lost: l.state.Lost, LostIn: l.state.LostIn}
}

// reason is what a platform says of a failure, as it is stored, logged and shown: it may hold the channel's own token.
func (c *Channels) reason(err error) string {
	return inert.Short(c.Secrets.Redact(problem.Of(err).Text), 300)
}

// State is how the channel stands.
func (l *line) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}
