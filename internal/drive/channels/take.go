package channels

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// said is an event on its way: where, by whom, as what came in.
type said struct {
	channel.Event
	names  []string // of the assistant's account there
	before func(first, second string) bool
	roots  bool // the id of a message there names the thread that begins with it
	where  conversation.Conversation
	intake message.Intake
	by     audit.Actor
	sender wiring.Sender
	home   wiring.Home // as it was before the transaction
	flood  bool        // they have said too much
	talk   *talker     // set where it counts, and as what
	// decider is who has decided about it; nobody yet, as long as nothing had to be decided.
	decider audit.Actor
}

// take makes of an event what becomes of it, in one transaction with how far the platform has come. An event that comes again changes
// nothing. An error means that it is to be handed over again.
func (c *Channels) take(ctx context.Context, l *line, e channel.Event) error {
	e = clean(e)
	if e.Place.Kind == channel.Threaded && e.Thread == "" && l.driver.Can().Roots {
		e.Thread = e.ID // what answers it stands in its thread
	}
	home, err := c.home(ctx)
	if err != nil {
		return err
	}
	decided, talk, err := c.takeIn(ctx, l, e, home)
	if lasts(err) {
		err = c.pass(ctx, l, e, err)
	}
	if err != nil {
		return err
	}
	if talk != (talker{}) {
		c.floods.count(talk, measure(e), ledger.Now())
	}
	switch {
	case !decided.Open():
		return nil
	case decided.Decides.Does != decide.Name:
		err := c.Voices.CarryOut(ctx, decided, e.Text)
		if err == nil && decided.Decides.Does == decide.Approve {
			c.ending.Go(func() { c.giveCode(l, e, *decided.Decides) })
		}
		return err
	}
	c.ending.Go(func() { c.makeAside(l, decided) }) // a group takes a while to make, and nobody is to wait for it
	return nil
}

// makeAside has a group made that somebody has named, for as long as the daemon runs. What it does not come to the next one does.
func (c *Channels) makeAside(l *line, decided message.In) {
	if err := c.Voices.CarryOut(l.host, decided, decided.Text); err != nil && l.host.Err() == nil {
		c.Log.Error("what was decided in a conversation is not done before the next start", "channel", l.Name, "error", c.reason(err))
	}
}

// takeIn is that transaction. It returns what was decided, and in whose measure it counts: what comes again is counted once.
func (c *Channels) takeIn(ctx context.Context, l *line, e channel.Event, home wiring.Home) (decided message.In, talk talker, err error) {
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		decided, talk = message.In{}, talker{}
		s, fresh, err := c.receive(ctx, tx, l, e)
		if err != nil || !fresh {
			return err
		}
		s.home, s.talk = home, &talk
		decided, err = c.become(ctx, tx, s)
		return err
	})
	return decided, talk, err
}

// lasts reports whether an error is one that the same event meets each time.
func lasts(err error) bool {
	switch problem.KindOf(err) {
	case "", problem.Unavailable, problem.Internal:
		return false
	}
	return true
}

// pass drops an event of which nothing can become, so that it stands in the way of nothing that is said after it.
func (c *Channels) pass(ctx context.Context, l *line, e channel.Event, why error) error {
	kind := problem.KindOf(why)
	c.Log.Warn("nothing can become of something that was said in a conversation", "channel", l.Name, "error", c.reason(why))
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		s, fresh, err := c.receive(ctx, tx, l, e)
		if err != nil || !fresh {
			return err
		}
		return c.drop(ctx, tx, s, fmt.Sprintf("nothing can become of it: %s (see the daemon's log)", kind))
	})
	if lasts(err) { // of its place or its sender too
		return c.DB.InTx(ctx, func(tx store.Tx) error { return tx.MoveCursor(ctx, l.Name, e.Cursor) })
	}
	return err
}

// Limits of what a platform may say of somebody or of a place.
const (
	labelMax   = 200
	addressMax = 512
)

// clean bounds an event, and takes out what is no text.
func clean(e channel.Event) channel.Event {
	text := func(s string, most int) string {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
		for len(s) > most {
			_, size := utf8.DecodeLastRuneInString(s[:most])
			s = s[:most-size]
		}
		return s
	}
	e.Text = text(e.Text, message.TextBytesMax)
	e.ID, e.Thread, e.Place.Address = text(e.ID, addressMax), text(e.Thread, addressMax), text(e.Place.Address, addressMax)
	e.Sender.Account, e.Sender.Handle = text(e.Sender.Account, addressMax), text(e.Sender.Handle, addressMax)
	if strings.HasPrefix(e.Sender.Account, "~") { // that is how a handle is marked
		e.Sender.Account = ""
	}
	e.Place.Name, e.Sender.Name = inert.Short(e.Place.Name, labelMax), inert.Short(e.Sender.Name, labelMax)
	if e.Quote != nil {
		q := *e.Quote
		q.ID, q.From, q.Text = text(q.ID, addressMax), inert.Short(q.From, labelMax), text(q.Text, message.TextBytesMax/4)
		e.Quote = &q
	}
	if e.Press != nil {
		p := *e.Press
		p.Question, p.Option = text(p.Question, addressMax), text(p.Option, addressMax)
		e.Press = &p
	}
	return e
}

// receive writes down that something came in, with how far the platform has come, and finds out who said it; false if it came before.
func (c *Channels) receive(ctx context.Context, tx store.Tx, l *line, e channel.Event) (s said, fresh bool, err error) {
	can := l.driver.Can()
	s = said{Event: e, names: l.names(), before: can.Before, roots: can.Roots, by: actor(e.Sender)}
	if e.Cursor != "" {
		if err := tx.MoveCursor(ctx, l.Name, e.Cursor); err != nil {
			return s, false, err
		}
	}
	s.where, err = tx.PutConversation(ctx, conversation.Conversation{
		ID: id.NewConversation(), Platform: l.Name, Address: cmp.Or(e.Place.Address, "?"), Kind: e.Place.Kind,
		Name: cmp.Or(e.Place.Name, e.Place.Address), Created: ledger.Now(),
	})
	if err != nil {
		return s, false, err
	}
	s.intake, fresh, err = tx.AddIntake(ctx, message.Intake{Conversation: s.where.ID, PlatformID: e.ID, Received: ledger.Now(), Outcome: message.Stored})
	if err != nil || !fresh {
		return s, false, err
	}

	if err := c.recognize(ctx, tx, &s); err != nil {
		return s, false, err
	}
	if e.Place.Kind == channel.Direct && s.by.Person != "" {
		err = tx.NoteDirect(ctx, s.identity(), s.where.ID)
	}
	return s, err == nil, err
}

// identity is who said it as the platform knows them. Where the platform does not say who that is, it is a handle, marked so that no account
// is taken for it.
func (s said) identity() person.Identity {
	if s.Sender.Account == "" {
		return person.Identity{Platform: s.where.Platform, Account: "~" + cmp.Or(s.Sender.Handle, s.Sender.Name, "?")}
	}
	return person.Identity{Platform: s.where.Platform, Account: s.Sender.Account}
}

// recognize finds out who said it, and what they are in the home at this moment. Whoever has only a handle may have been let in to talk; they
// are nobody who decides.
func (c *Channels) recognize(ctx context.Context, tx store.Tx, s *said) (err error) {
	if s.by, err = person.Recognize(ctx, tx, s.by, s.identity()); err != nil {
		return err
	}
	if s.sender, err = known(ctx, tx, s.by.Person); err != nil || s.Sender.Account != "" {
		return err
	}
	s.by.Person, s.by.Name, s.sender.Over = "", actor(s.Sender).Name, false
	for g := range s.sender.Groups {
		s.sender.Groups[g] = right.Member
	}
	return nil
}

// known is what somebody is in the home at this moment, as routing sees it.
func known(ctx context.Context, tx store.Tx, who id.Person) (wiring.Sender, error) {
	s := wiring.Sender{Person: who, Groups: map[group.Folder]right.Role{}}
	if who == "" {
		return s, nil
	}
	held, err := tx.Roles(ctx, who)
	for _, h := range held {
		switch h.Role {
		case right.Owner, right.GlobalAdmin:
			s.Over = true
		case right.GroupAdmin:
			s.Groups[group.Folder(h.Group)] = right.GroupAdmin
		case right.Member:
			if s.Groups[group.Folder(h.Group)] == "" {
				s.Groups[group.Folder(h.Group)] = right.Member
			}
		}
	}
	return s, err
}

// become does what is to become of something that was said: a code, words that decide, or what routing says.
func (c *Channels) become(ctx context.Context, tx store.Tx, s said) (message.In, error) {
	talk, word := talker{where: s.where.ID, person: s.sender.Person}, talker{s.where.ID, s.sender.Person, true}
	s.flood = !c.floods.room(talk, measure(s.Event), s.intake.Received)
	if !s.flood { // what is dropped for that makes it no longer
		*s.talk = talk
	}
	if took, err := c.takeCode(ctx, tx, s); err != nil || took {
		return message.In{}, err
	}
	var in message.In
	decides := s.Press == nil || s.Press.Question != "" // a button without a card is no word
	if decides = decides && c.floods.room(word, measure(s.Event), s.intake.Received); decides {
		words := s.words()
		words.Brief = s.flood
		var err error
		if in, decides, err = c.Voices.Decide(ctx, tx, s.where.ID, s.intake, words); err != nil {
			return in, err
		}
	}
	switch {
	case decides:
		if in.Decides == nil || in.Decides.Kind == decide.Decided {
			*s.talk = word
		}
		return in, nil
	case s.Press != nil:
		return in, c.drop(ctx, tx, s, "a button that they may not press, or that is none any more")
	case s.Edited:
		return in, c.drop(ctx, tx, s, "an edit of what was said before")
	case s.flood:
		return in, c.drop(ctx, tx, s, "too much is said at once")
	}
	s.hush(c.Voices.Hush)
	return in, c.route(ctx, tx, s)
}

// hush takes the code of a change of the host out of what was said.
func (s *said) hush(words func(string) string) {
	s.Text = words(s.Text)
	if s.Quote != nil {
		q := *s.Quote
		q.Text = words(q.Text)
		s.Quote = &q
	}
}

// words are what was said as the dispatcher takes it.
func (s said) words() dispatch.Said {
	w := dispatch.Said{
		ID: s.Event.ID, Before: s.before, Came: s.Came, Text: s.Text, Name: actor(s.Sender).Name, By: s.by,
		Forwarded: s.Forwarded, Edited: s.Edited, Bot: s.Sender.Bot,
	}
	if s.Quote != nil {
		w.Answers, w.ReplyTo, w.Quote = true, s.Quote.ID, prompt.Quote{From: s.Quote.From, Text: s.Quote.Text}
	}
	if s.Press != nil {
		w.Card, w.Text = id.Out(s.Press.Question), s.Press.Option
		if of := s.Press.Asks(); of != "" {
			w.Card, w.Asked = "", id.Question(of)
		}
	}
	return w
}

// actor is who said something, before it is known who that is.
func actor(s channel.Sender) audit.Actor {
	return audit.Actor{Kind: "person", Name: inert.Short(cmp.Or(s.Name, s.Handle, s.Account, "somebody"), 80), UID: -1}
}
