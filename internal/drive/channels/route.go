package channels

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// route has the groups hear that are to hear it, or somebody asked.
func (c *Channels) route(ctx context.Context, tx store.Tx, s said) error {
	place, err := c.ground(ctx, tx, s)
	if err != nil {
		return err
	}
	var stuck map[group.Folder]bool
	if s.Thread != "" {
		if stuck, err = tx.Stuck(ctx, s.where.ID, s.Thread); err != nil {
			return err
		}
	}
	words := wiring.Said{Text: s.Text, Mention: s.Mention, Stuck: stuck, Account: s.names, Sender: s.sender}
	home := s.home
	v := place.Route(words, home)
	if v.Kind == wiring.AskSender || v.Kind == wiring.AskPlace { // hardly ever: then it counts whether somebody can be asked
		asked, err := c.approvers(ctx, tx, "")
		if err != nil {
			return err
		}
		home.Approver = len(asked) > 0
		v = place.Route(words, home)
	}
	if v.Kind == wiring.Wire || v.Kind == wiring.AskSender || v.Kind == wiring.AskPlace {
		if why := (quiet{c}).why(); why != "" {
			return quiet{c}.again(ctx, tx, s, why, sayAgain)
		}
	}
	switch v.Kind {
	case wiring.Heard:
		return c.heard(ctx, tx, s, v)
	case wiring.Wire:
		return usher{c}.wireAtOnce(ctx, tx, s, v.Group)
	case wiring.AskSender:
		return c.askSender(ctx, tx, s, v.Group)
	case wiring.AskPlace:
		return c.askPlace(ctx, tx, s)
	}
	return c.drop(ctx, tx, s, string(v.Reason))
}

// home is what routing has to know of the home, as it stands now: files are read for it, which no transaction waits for.
func (c *Channels) home(ctx context.Context) (wiring.Home, error) {
	groups, err := c.Groups(ctx)
	return wiring.Home{Open: c.Anyone != nil && c.Anyone(), Groups: groups, Approver: true}, err
}

// ground is what routing has to know of the conversation.
func (c *Channels) ground(ctx context.Context, tx store.Tx, s said) (wiring.Place, error) {
	wirings, err := tx.Wirings(ctx, s.where.ID)
	if err != nil {
		return wiring.Place{}, err
	}
	place, fresh := c.ready.Place(s.where, wirings)
	if !fresh {
		return place, nil
	}
	for g, why := range place.Broken() {
		c.Log.Warn("a wiring engages on nothing", "group", g, "conversation", s.where.ID, "error", why)
	}
	return place, nil
}

// heard puts what was said before the groups that hear it.
func (c *Channels) heard(ctx context.Context, tx store.Tx, s said, v wiring.Verdict) error {
	for _, o := range v.Outcomes {
		if o.Action == wiring.Ignore {
			continue
		}
		chat, err := s.chat(ctx, tx, o)
		if err != nil {
			return err
		}
		w := s.words()
		w.Group, w.Context = o.Group, o.Action == wiring.Context
		if _, err := c.Voices.Hear(ctx, tx, chat, s.intake, w); err != nil {
			return err
		}
		if o.Sticks && s.Thread != "" {
			if err := tx.Stick(ctx, s.where.ID, s.Thread, o.Group); err != nil {
				return err
			}
		}
	}
	return nil
}

// chat is that of a group which hears something. Where each message may begin a thread, one that wakes nobody begins none: it waits for the
// next thread that wakes the group, and is its context (CH-011, CH-013).
func (s said) chat(ctx context.Context, tx store.Tx, o wiring.Outcome) (conversation.Chat, error) {
	c := conversation.Chat{ID: id.NewChat(), Group: o.Group, Conversation: s.where.ID, Thread: s.Thread, Created: ledger.Now()}
	if s.roots && o.Action == wiring.Context && s.Thread == s.ID {
		c.Thread = ""
	}
	c, err := tx.PutChat(ctx, c)
	if err == nil && s.roots && o.Action == wiring.Wake && c.Thread != "" && c.Turn == 0 {
		err = tx.TakeContext(ctx, c)
	}
	return c, err
}

// drop writes down that nothing became of something, and why (CH-906). What was said is not kept. In a flood it is counted, and no more.
func (c *Channels) drop(ctx context.Context, tx store.Tx, s said, why string) error {
	of, flood := dropped{talker{where: s.where.ID, person: s.sender.Person}, why}, s.flood
	if s.sender.Person == "" && s.decider.Kind == "" { // what somebody has decided about is known when it comes again
		of.of = talker{where: id.Conversation(s.where.Platform)} // all strangers of a channel
		flood = flood || !c.floods.room(of.of, talkEvery, s.intake.Received)
		tx.After(func() { c.floods.count(of.of, talkEvery, s.intake.Received) })
	}
	if flood {
		if counted, err := tx.CountDrop(ctx, s.intake.Seq, c.floods.row(of, 0), why); err != nil || counted {
			return err
		}
		tx.After(func() { c.floods.row(of, s.intake.Seq) })
	}
	c.Log.Info("something that was said in a conversation is dropped", "channel", s.where.Platform, "conversation", s.where.ID, "sender",
		s.by.Identity, "reason", why)
	return tx.DropIntake(ctx, s.intake.Seq, why)
}
