package channels

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/people"
	"sallyport/internal/port/channel"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// usher lets people and places in.
type usher struct{ *Channels }

// release takes what was said out of what waits, and returns it with whom its card names.
func (c usher) release(ctx context.Context, tx store.Tx, p wiring.Pending, home wiring.Home) (s said, first channel.Sender, err error) {
	if err := tx.DropPending(ctx, p.Question); err != nil {
		return s, first, err
	}
	k, err := keptBy(p)
	if err != nil {
		return s, first, err
	}
	s, err = c.again(ctx, tx, p, k, home)
	return s, k.First, err
}

// again is what was said once, with its time.
func (c usher) again(ctx context.Context, tx store.Tx, p wiring.Pending, k kept, home wiring.Home) (s said, err error) {
	s = said{Event: k.Event, intake: k.Intake, by: actor(k.Event.Sender), home: home}
	if s.where, err = tx.Conversation(ctx, p.Conversation); err != nil {
		return s, err
	}
	if l := c.line(s.where.Platform); l != nil && l.driver != nil {
		s.names, s.roots = l.names(), l.driver.Can().Roots
	}
	return s, c.recognize(ctx, tx, &s)
}

// withdraw ends a question that nobody needs to answer any more, because of what somebody did, and returns what waited for its answer.
func (c usher) withdraw(ctx context.Context, tx store.Tx, p wiring.Pending, home wiring.Home, by audit.Actor, did string) (s said,
	first channel.Sender, err error) {
	why := inert.Short(by.Name, 60) + " " + did
	if err := question.Withdraw(ctx, tx, p.Question, why, ledger.Now()); err != nil {
		return s, first, err
	}
	s, first, err = c.release(ctx, tx, p, home)
	s.decider = by
	return s, first, err
}

// settle ends the question about a place that somebody has wired otherwise: what was said there is heard as after its answer (CH-066, CH-074).
// Whom the card names becomes a member where the place asks about strangers at all.
func (c usher) settle(ctx context.Context, tx store.Tx, w wiring.Wiring, home wiring.Home, by audit.Actor) error {
	p, waits, err := tx.PendingOf(ctx, wiring.AboutChannel, w.Conversation, "")
	if err != nil || !waits {
		return err
	}
	s, first, err := c.withdraw(ctx, tx, p, home, by, fmt.Sprintf("wired it to %s", w.Group))
	if err != nil {
		return err
	}
	if s.where.Policy == conversation.Request {
		if err := c.letInFirst(ctx, tx, s, first, w.Group); err != nil {
			return err
		}
	}
	if err := c.recognize(ctx, tx, &s); err != nil {
		return err
	}
	return c.route(ctx, tx, s)
}

// wireAtOnce wires a place for the group of whoever speaks there, without a question (CH-062). Nobody else becomes a member by it: what a
// stranger said there before is heard if they may be, or they are asked about.
func (c usher) wireAtOnce(ctx context.Context, tx store.Tx, s said, g group.Folder) error {
	if _, err := putWiring(ctx, tx, s.where, wiring.New(s.where.ID, s.where.Kind, g, ledger.Now()), s.by); err != nil {
		return err
	}
	p, waits, err := tx.PendingOf(ctx, wiring.AboutChannel, s.where.ID, "")
	if err != nil {
		return err
	}
	if waits {
		before, _, err := c.withdraw(ctx, tx, p, s.home, s.by, fmt.Sprintf("wired it to %s", g))
		if err != nil {
			return err
		}
		if err := c.route(ctx, tx, before); err != nil {
			return err
		}
	}
	return c.route(ctx, tx, s)
}

// HearKnown reads how the home stands, and returns what has heard, in a transaction, who waits and is known by then: somebody has given them a
// role.
func (c *Channels) HearKnown(ctx context.Context) (people.Heard, error) {
	home, err := c.home(ctx)
	return func(ctx context.Context, tx store.Tx, by audit.Actor) error {
		return usher{c}.hearKnown(ctx, tx, home, by, "has let them talk")
	}, err
}

// hearKnown has heard who waits and is known by now, because of what somebody did: their question needs no answer any more.
func (c usher) hearKnown(ctx context.Context, tx store.Tx, home wiring.Home, by audit.Actor, did string) error {
	open, err := tx.PendingQuestions(ctx, "")
	if err != nil {
		return err
	}
	for _, of := range open {
		p, waits, err := tx.Pending(ctx, of)
		if err != nil {
			return err
		}
		if waits && p.About == wiring.AboutSender {
			if err := c.hearIfKnown(ctx, tx, p, home, by, did); err != nil {
				return err
			}
		}
	}
	return nil
}

// hearIfKnown has heard what a sender said, if the group that they want knows them.
func (c usher) hearIfKnown(ctx context.Context, tx store.Tx, p wiring.Pending, home wiring.Home, by audit.Actor, did string) error {
	k, err := keptBy(p)
	if err != nil {
		return err
	}
	s, err := c.again(ctx, tx, p, k, home)
	if err != nil || !s.sender.Known(p.Group) {
		return err
	}
	if s, _, err = c.withdraw(ctx, tx, p, home, by, did); err != nil {
		return err
	}
	return c.route(ctx, tx, s)
}

// letIn makes a stranger a member of a group.
func (c usher) letIn(ctx context.Context, tx store.Tx, s said, g group.Folder) error {
	if s.sender.Known(g) {
		return nil
	}
	who := s.sender.Person
	note := func(verb, reason string) error { return ledger.NotePerson(ctx, tx, s.decider, who, verb, reason) }
	if who == "" {
		who = id.NewPerson()
		name := fmt.Sprintf("%s (%s)", s.by.Name, who)
		if err := tx.AddPerson(ctx, person.Person{ID: who, Name: name}); err != nil {
			return err
		}
		if err := note("added", name); err != nil {
			return err
		}
		if err := tx.Link(ctx, s.identity(), who, s.by.Name); err != nil {
			return err
		}
		if err := note("linked", s.identity().String()); err != nil {
			return err
		}
	}
	h := right.Held{Role: right.Member, Group: string(g)}
	if err := tx.Grant(ctx, who, h); err != nil {
		return err
	}
	return note("was given a role", h.Words())
}

// wire has a group hear a place, and makes its member whom the card named (CH-066, CH-074). Whoever else spoke there stays a stranger: no card
// showed them.
func (c usher) wire(ctx context.Context, tx store.Tx, s said, first channel.Sender, g group.Folder) error {
	if !slices.Contains(s.home.Groups, g) {
		return problem.Errorf(problem.NotFound, "sallyport group list", "there is no group %q any more", g)
	}
	if _, err := putWiring(ctx, tx, s.where, wiring.New(s.where.ID, s.where.Kind, g, ledger.Now()), s.decider); err != nil {
		return err
	}
	return c.letInFirst(ctx, tx, s, first, g)
}

// letInFirst makes a member of whom the card of a place names.
func (c usher) letInFirst(ctx context.Context, tx store.Tx, s said, first channel.Sender, g group.Folder) error {
	s.Sender, s.by = first, actor(first)
	if err := c.recognize(ctx, tx, &s); err != nil {
		return err
	}
	return c.letIn(ctx, tx, s, g)
}

// putWiring stores a wiring that can be saved, and writes down who did it.
func putWiring(ctx context.Context, tx store.Tx, where conversation.Conversation, w wiring.Wiring, by audit.Actor) (Wired, error) {
	all := Wired{Conversation: where}
	if err := w.Check(); err != nil {
		return all, err
	}
	if err := tx.PutWiring(ctx, w); err != nil {
		return all, err
	}
	how := string(w.Mode)
	if w.Mode == wiring.Pattern {
		how += " " + inert.Short(w.Pattern, 80)
	}
	if err := noteWiring(ctx, tx, by, where.ID, "wired", "group %s: %s, %s, %s", w.Group, how, w.Scope, w.Ignored); err != nil {
		return all, err
	}
	var err error
	all.Wirings, err = tx.Wirings(ctx, where.ID)
	return all, err
}

// noteWiring writes down who changed what is heard in a conversation.
func noteWiring(ctx context.Context, tx store.Tx, by audit.Actor, of id.Conversation, verb, text string, args ...any) error {
	return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(of), Verb: verb, Reason: fmt.Sprintf(text, args...)})
}
