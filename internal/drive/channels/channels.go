package channels

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Voices takes what people say, once it is known whom it reaches.
type Voices interface {
	// Decide has words, or the button of a card, decide; false if they are talk.
	Decide(ctx context.Context, tx store.Tx, where id.Conversation, in message.Intake, s dispatch.Said) (message.In, bool, error)
	// Hear puts words before the agent of a chat.
	Hear(ctx context.Context, tx store.Tx, chat conversation.Chat, in message.Intake, s dispatch.Said) (message.In, error)
	// Hush returns words as they are kept: while somebody may know the code of a change of the host, without it.
	Hush(text string) string
	// CarryOut does what words have decided, as they were said.
	CarryOut(ctx context.Context, in message.In, words string) error
	// Show returns what a card asks where it stands, what it can be answered by in a press, and what it shows once it has its answer; ""
	// while it waits.
	Show(ctx context.Context, tx store.Tx, card message.Out) (text string, options []channel.Option, outcome string, err error)
	// NoteDelivery says that a card has arrived.
	NoteDelivery(ctx context.Context, card message.Out)
	// Admit answers a question about a stranger or a place by its name, and says what came of it.
	Admit(ctx context.Context, of id.Question, words string, by audit.Actor) (told string, err error)
}

// Parts is what channels stand on.
type Parts struct {
	*ledger.Ledger
	Voices Voices
	Open   func(conversation.Channel) (channel.Driver, error) // the driver of a channel's platform
	Groups func(context.Context) ([]group.Folder, error)      // all of the home
	// Create makes a group, a copy of the template, and returns once it is there; nil: none is made from a conversation.
	Create func(ctx context.Context, g group.Folder, by audit.Actor) error
	// Code has hand hand over the code of a change of the host to by, whose yes has completed its approval; nil: none is handed over here.
	Code   func(ctx context.Context, ref id.Approval, by audit.Actor, hand func(of id.Change, plain string) (where string, err error)) bool
	Anyone func() bool // permissions are switched off at this moment (CH-059); nil: never
	// Quiet is a clause that says why nobody is let in at this moment, and no place: the host is on trial with another schema, and nothing of that
	// would come back with the old one. "" = they are; nil: always.
	Quiet func() string
}

// Channels runs the channels of a home.
type Channels struct {
	Parts
	Rounds atomic.Int64 // how often the loop that delivers has gone round

	mu     sync.Mutex
	lines  map[string]*line
	gone   map[string]*line // that were removed last, by name
	codes  tries
	floods floods
	shut   atomic.Bool // nothing more leaves
	later  laters
	ready  wiring.Ready
	look   chan struct{} // channels were added or removed
	poke   chan struct{} // something is to be delivered
	ending sync.WaitGroup
}

// State is how a channel stands.
type State struct {
	Connected bool
	Since     time.Time // of the session, or of its loss
	Account   string    // the assistant's, while there is one
	Reason    string    // why there is none; "" = the first is being made
	Lost      time.Time // when something that was said could not be had any more; zero = never since the daemon began
	LostIn    string    // the place of it; "" = anywhere
}

// New returns channels; nothing runs before Run.
func New(p Parts) *Channels {
	c := &Channels{Parts: p, lines: map[string]*line{}, gone: map[string]*line{}, look: make(chan struct{}, 1), poke: make(chan struct{}, 1)}
	p.DB.Hear(func(rows message.Rows) {
		if len(rows.Outs) > 0 {
			c.Poke()
		}
	})
	return c
}

// Poke has what waits looked at.
func (c *Channels) Poke() { token(c.poke) }

// Look has the list of channels read again.
func (c *Channels) Look() { token(c.look) }

func token(into chan struct{}) {
	select {
	case into <- struct{}{}:
	default:
	}
}

// Run speaks with the platforms until ctx ends.
func (c *Channels) Run(ctx context.Context) error {
	if err := forgetAnswered(ctx, c.DB); err != nil && ctx.Err() == nil {
		return fmt.Errorf("forget what waited for questions that have ended: %w", err)
	}
	defer c.ending.Wait()
	c.ending.Go(func() { carrier{c}.deliver(ctx) })
	for {
		if err := c.tune(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read which channels there are: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.look:
		}
	}
}

// tune begins the sessions of channels that were added, and ends those of channels that were removed; one that was removed and added again is
// another. It waits for none of them.
func (c *Channels) tune(ctx context.Context) error {
	var all []conversation.Channel
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Channels(ctx)
		return err
	})
	if err != nil {
		return err
	}

	c.mu.Lock()
	for name, l := range c.lines {
		if !slices.ContainsFunc(all, l.is) {
			delete(c.lines, name)
			c.gone[name] = l
			l.end()
		}
	}
	c.mu.Unlock()
	for _, ch := range all {
		if c.line(ch.Name) == nil {
			c.begin(ctx, ch, c.gone[ch.Name])
		}
	}
	c.Poke()
	return nil
}

func (c *Channels) line(name string) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[name]
}

// Any reports whether there is a channel: somebody may speak there at any time.
func (c *Channels) Any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lines) > 0
}

// States are how the channels stand, by name.
func (c *Channels) States() map[string]State {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]State{}
	for name, l := range c.lines {
		all[name] = l.State()
	}
	return all
}

// forgetAnswered drops what waits for questions that have ended: nobody is asked about it any more.
func forgetAnswered(ctx context.Context, db store.DB) error {
	return db.InTx(ctx, func(tx store.Tx) error {
		all, err := tx.PendingQuestions(ctx, "")
		for _, of := range all {
			if err == nil {
				err = forget(ctx, tx, of)
			}
		}
		return err
	})
}
