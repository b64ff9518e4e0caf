package channels

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// Places are the channels of a home as a person adds, looks at and removes them.
type Places struct {
	*Channels
	Check func(conversation.Channel) error // what a person says of a channel, and whether its credential can be read
}

// Standing is a channel as it stands.
type Standing struct {
	conversation.Channel
	State
	Counts map[message.DeliveryStatus]int
	Failed int                // of those that will not arrive: of the last day
	Newest []message.Delivery // that will not arrive, the newest first
}

// channelsMax is how many channels a home has.
const channelsMax = 50

// Add adds a channel, which connects at once. Errors: problem.Usage, naming the setting; problem.Refused for a credential that others can
// read; problem.Conflict if the name is taken.
func (p Places) Add(ctx context.Context, c conversation.Channel, by audit.Actor) (Standing, error) {
	if _, err := conversation.ParseName(c.Name); err != nil {
		return Standing{}, err
	}
	if err := p.Check(c); err != nil {
		return Standing{}, err
	}
	c.Added = ledger.Now()
	err := p.DB.InTx(ctx, func(tx store.Tx) error {
		all, err := tx.Channels(ctx)
		if err != nil {
			return err
		}
		if len(all) >= channelsMax {
			return problem.Errorf(problem.Refused, "sallyport channel list", "the home has %d channels, which is the limit", channelsMax)
		}
		if err := tx.PutChannel(ctx, c); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: "channel:" + c.Name, Verb: "added channel", Reason: "on " + c.Platform})
	})
	if err != nil {
		return Standing{}, err
	}
	p.Look()
	return Standing{Channel: c, State: State{Since: c.Added}}, nil
}

// List returns the channels, by name.
func (p Places) List(ctx context.Context) (all []Standing, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		rows, err := tx.Channels(ctx)
		for _, c := range rows {
			if err != nil {
				return err
			}
			var s Standing
			s, err = p.stands(ctx, tx, c)
			all = append(all, s)
		}
		return err
	})
	return all, err
}

// Show returns a channel. Errors: problem.NotFound.
func (p Places) Show(ctx context.Context, name string) (s Standing, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		c, err := channelOf(ctx, tx, name)
		if err != nil {
			return err
		}
		s, err = p.stands(ctx, tx, c)
		return err
	})
	return s, err
}

// channelOf finds a channel by its name.
func channelOf(ctx context.Context, tx store.Tx, name string) (conversation.Channel, error) {
	all, err := tx.Channels(ctx)
	if err != nil {
		return conversation.Channel{}, err
	}
	if i := slices.IndexFunc(all, func(c conversation.Channel) bool { return c.Name == name }); i >= 0 {
		return all[i], nil
	}
	return conversation.Channel{}, problem.Errorf(problem.NotFound, "sallyport channel list", "there is no channel %q", inert.Short(name, 40))
}

const (
	// newestShown is how many messages that will not arrive are told of a channel.
	newestShown = 5
	// failedFor is how long one that will not arrive is something to look at.
	failedFor = 24 * time.Hour
)

// stands reads how a channel stands. One whose session is not made yet is connecting.
func (p Places) stands(ctx context.Context, tx store.Tx, c conversation.Channel) (s Standing, err error) {
	s = Standing{Channel: c, State: State{Since: c.Added}}
	if l := p.line(c.Name); l != nil && l.is(c) {
		s.State = l.State()
	}
	if s.Counts, err = tx.CountDeliveries(ctx, c.Name, time.UnixMilli(0)); err != nil {
		return s, err
	}
	lately, err := tx.CountDeliveries(ctx, c.Name, ledger.Now().Add(-failedFor))
	if err != nil {
		return s, err
	}
	s.Failed = lately[message.Undelivered]
	s.Newest, err = tx.Deliveries(ctx, c.Name, message.Undelivered, newestShown)
	slices.Reverse(s.Newest)
	return s, err
}

// Waiting returns the questions about strangers and places that wait for their answer, oldest first.
func (p Places) Waiting(ctx context.Context) (open []question.Question, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		all, err := tx.PendingQuestions(ctx, "")
		for _, of := range all {
			if err != nil {
				return err
			}
			var q question.Question
			q, err = tx.Question(ctx, of)
			open = append(open, q)
		}
		return err
	})
	return open, err
}

// Gone is what went with a channel.
type Gone struct{ Wirings, Waiting int }

// Remove ends a channel's session and removes it, with who is known there, who hears what there, what waits to leave by it, and what somebody
// is asked about its strangers and places. Errors: problem.NotFound.
func (p Places) Remove(ctx context.Context, name string, by audit.Actor) (gone Gone, err error) {
	if _, err := p.Show(ctx, name); err != nil {
		return gone, err
	}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		gone = Gone{}
		counts, err := tx.CountDeliveries(ctx, name, ledger.Now())
		if err != nil {
			return err
		}
		gone.Waiting = counts[message.Waiting]
		places, err := tx.Conversations(ctx, name)
		for _, c := range places {
			if err != nil {
				return err
			}
			wirings, wrong := tx.Wirings(ctx, c.ID)
			gone.Wirings, err = gone.Wirings+len(wirings), wrong
		}
		if err != nil {
			return err
		}

		if err := withdrawAll(ctx, tx, name); err != nil {
			return err
		}
		if there, err := tx.DropChannel(ctx, name); err != nil || !there {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: "channel:" + name, Verb: "removed channel"})
	})
	if err == nil {
		p.Look()
	}
	return gone, err
}

// withdrawAll ends the questions about strangers and places of a channel that is removed.
func withdrawAll(ctx context.Context, tx store.Tx, channel string) error {
	open, err := tx.PendingQuestions(ctx, channel)
	for _, of := range open {
		if err != nil {
			return err
		}
		err = question.Withdraw(ctx, tx, of, "the channel "+channel+" was removed", ledger.Now())
	}
	return err
}

// placeOf finds a conversation of a channel. Errors: problem.NotFound, also for one of the host's own.
func placeOf(ctx context.Context, tx store.Tx, of id.Conversation) (conversation.Conversation, error) {
	where, err := tx.Conversation(ctx, of)
	if err != nil {
		return where, err
	}
	if _, err := channelOf(ctx, tx, where.Platform); err != nil {
		return where, problem.Errorf(problem.NotFound, "sallyport wiring list", "%s is no conversation of a channel: %w", of, err)
	}
	return where, nil
}
