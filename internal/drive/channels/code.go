package channels

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// An account tries so many codes in triesFor, its first one always. What accounts try beyond their first is bounded in all as well. So whoever
// fills that keeps nobody from linking an account, and guesses no more than one code with each of their accounts: there are 31⁸, each good for
// ten minutes.
const (
	triesOf  = 5
	triesAll = 5000
	triesFor = 10 * time.Minute
	// triersMax is how many accounts are remembered, twice. Whoever has more gains nothing by one that is forgotten.
	triersMax = 10_000
)

// Why a code is not looked at.
const (
	triedByOne = "Too many codes were tried from this account."
	triedByAll = "Too many wrong codes come from other accounts at the moment."
)

// tries counts codes that were tried. It is kept in memory: a code is good for ten minutes.
type tries struct {
	mu     sync.Mutex
	by     map[person.Identity]tried
	before map[person.Identity]tried // of accounts that came earlier
	again  tried                     // of all, beyond their first
}

// tried is how many codes were tried since a time.
type tried struct {
	n     int
	since time.Time
	told  bool // that it was too many
}

// within is what counts of it now.
func (t tried) within(now time.Time) tried {
	if t.n == 0 || now.Sub(t.since) >= triesFor {
		return tried{since: now}
	}
	return t
}

// take counts a code that an account tries, and says why it is not looked at, and whether that is news; "" if it is.
func (t *tries) take(i person.Identity, now time.Time) (why string, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, there := t.by[i]
	if !there {
		one = t.before[i]
	}
	one, t.again = one.within(now), t.again.within(now)
	switch {
	case one.n >= triesOf:
		why = triedByOne
	case one.n > 0 && t.again.n >= triesAll:
		why = triedByAll
	case one.n > 0:
		t.again.n++
	}
	if why == "" {
		one.n++
	} else {
		news, one.told = !one.told, true
	}

	if t.by == nil || !there && len(t.by) >= triersMax {
		t.before, t.by = t.by, map[person.Identity]tried{}
	}
	t.by[i] = one
	return why, news
}

// takeCode has a code link the account that sent it to a person; false if it is no code. It counts only in a direct conversation, with nothing
// beside it, from an account that the platform authenticates and nobody has, and once.
func (c *Channels) takeCode(ctx context.Context, tx store.Tx, s said) (bool, error) {
	code, is := person.ReadCode(s.Text)
	if !is || s.Place.Kind != channel.Direct || s.Sender.Account == "" || s.Sender.Bot || s.by.Person != "" || s.Edited || s.Forwarded || s.Quote != nil {
		return c.burn(ctx, tx, s)
	}
	i := s.identity()
	if why, news := c.codes.take(i, time.Now()); why != "" {
		if err := c.drop(ctx, tx, s, "too many codes were tried"); err != nil || !news {
			return true, err
		}
		return true, c.notice(ctx, tx, s.where.ID, fmt.Sprintf("%s Send yours again in %d minutes.", why, triesFor/time.Minute))
	}
	if later, err := (quiet{c}).code(ctx, tx, s, code); err != nil || later {
		return true, err
	}
	who, ok, err := tx.TakeCode(ctx, code.Hash(), ledger.Now())
	if err != nil || !ok {
		return false, err // it may be a word
	}

	if err := tx.Link(ctx, i, who, s.by.Name); err != nil {
		return true, err
	}
	if err := tx.NoteDirect(ctx, i, s.where.ID); err != nil {
		return true, err
	}
	by := s.by
	by.Person = who
	if err := tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(who), Verb: "linked"}); err != nil {
		return true, err
	}
	name := "you"
	if k, err := c.person(ctx, tx, who); err != nil {
		return true, err
	} else if k.Name != "" {
		name = k.Name
	}
	if err := c.notice(ctx, tx, s.where.ID, "This account is "+name+" from now on. What you may do here, your roles say: sallyport person list"); err != nil {
		return true, err
	}
	return true, usher{c}.hearKnown(ctx, tx, s.home, by, "is known by this account now")
}

// burn uses each good code up that was said, or quoted, where it links nobody: others may have read it, and no agent and no card is to have
// it. false if there is none. This takes no try: whoever comes upon a code in this way cannot link anything by it.
func (c *Channels) burn(ctx context.Context, tx store.Tx, s said) (bool, error) {
	w, found := s.words(), false
	codes := person.CodesIn(w.Text, w.Quote.Text)
	if len(codes) == 0 {
		return false, nil
	}
	good, err := tx.Codes(ctx, ledger.Now())
	if err != nil || len(good) == 0 {
		return false, err
	}
	for _, code := range codes {
		if !slices.Contains(good, code.Hash()) {
			continue
		}
		_, ok, err := tx.TakeCode(ctx, code.Hash(), ledger.Now())
		if err != nil {
			return false, err
		}
		found = found || ok
	}
	if !found {
		return false, nil
	}
	if err := c.drop(ctx, tx, s, "a code where it links nobody"); err != nil {
		return true, err
	}
	to := id.Conversation("") // where the sender is alone with the assistant: nobody else is told
	if s.Place.Kind == channel.Direct {
		to = s.where.ID
	}
	k, err := c.person(ctx, tx, s.by.Person)
	if err != nil {
		return true, err
	}
	for _, a := range k.Accounts {
		if to == "" && a.Identity == s.identity() {
			to = a.Direct
		}
	}
	if to == "" {
		return true, nil
	}
	text := "This code links nothing here, and is good no more. A code is sent alone with the assistant, with nothing beside it, by an account that is nobody yet; next: "
	if k.ID != "" {
		return true, c.notice(ctx, tx, to, text+fmt.Sprintf("this account is %s already: sallyport person unlink %s, and then sallyport person link", k.Name, s.identity()))
	}
	return true, c.notice(ctx, tx, to, text+"sallyport person link")
}

// person is somebody whom the home knows.
func (c *Channels) person(ctx context.Context, tx store.Tx, of id.Person) (person.Known, error) {
	all, err := tx.People(ctx)
	for _, k := range all {
		if k.ID == of {
			return k, nil
		}
	}
	return person.Known{}, err
}

// giveCode gives who has approved a change of the host the code that it is confirmed with (SM-923). It goes by the platform alone, and is
// written down nowhere.
func (c *Channels) giveCode(l *line, e channel.Event, yes message.Decision) {
	if c.Code == nil {
		return
	}
	given := c.Code(l.life, yes.Approval, yes.By, func(of id.Change, plain string) (where string, err error) {
		m := channel.Message{Place: e.Place.Address, Thread: e.Thread, Nonce: string(id.NewOut()), Text: codeText(of, plain)}
		where = "in the conversation where they approved it, on " + l.Name
		err = l.call(l.life, sendTime, func(ctx context.Context) error {
			alone, err := l.alone(ctx, e)
			if err != nil { // others read along where the yes was said
				return err
			}
			if alone != "" {
				m.Place, m.Thread, m.Account = alone, "", e.Sender.Account
				where = "where they are alone with the assistant, on " + l.Name
			}
			_, err = l.driver.Deliver(ctx, m)
			return err
		})
		return where, err
	})
	if given {
		c.Poke()
	}
}

// alone is where the sender of an event is alone with the assistant; "" if the platform has no such place.
func (l *line) alone(ctx context.Context, e channel.Event) (address string, err error) {
	switch {
	case e.Place.Kind == channel.Direct:
		return e.Place.Address, nil
	case e.Sender.Account == "" || !l.driver.Can().Direct:
		return "", nil
	}
	return l.driver.Direct(ctx, e.Sender.Account)
}

// codeText is how the code of a change is given.
func codeText(of id.Change, plain string) string {
	return fmt.Sprintf("This code keeps %s once it is on trial: %s\nThe host lands it now, starts again and asks whether it is to stay. Then reply `confirm` and this code. It is shown once: without it the host goes back by itself. "+
		"Where a platform lets its bot read what it said, it guards against a version with a mistake, and not against one that means harm.", of, plain)
}
