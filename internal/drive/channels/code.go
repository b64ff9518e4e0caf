package channels

import (
	"context"
	"fmt"
	"strings"
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

// Codes are tried so often in triesFor, by one account and by all. There are 31⁸ of them: what all may try guesses none, and strangers keep
// nobody from linking an account.
const (
	triesOf  = 5
	triesAll = 5000
	triesFor = 10 * time.Minute
)

// tries counts codes that were none. It is kept in memory: a code is good for ten minutes.
type tries struct {
	mu sync.Mutex
	at map[person.Identity][]time.Time
}

// may reports whether an account may try another, and whether it is the first that it may not. It counts both.
func (t *tries) may(i person.Identity, now time.Time) (may, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, of := 0, 0
	for who, at := range t.at {
		kept := at[:0]
		for _, one := range at {
			if now.Sub(one) < triesFor {
				kept = append(kept, one)
			}
		}
		if t.at[who] = kept; len(kept) == 0 {
			delete(t.at, who)
		}
		if all += len(kept); who == i {
			of = len(kept)
		}
	}
	if all >= triesAll || of > triesOf {
		return false, false
	}
	if t.at == nil {
		t.at = map[person.Identity][]time.Time{}
	}
	t.at[i] = append(t.at[i], now)
	return of < triesOf, of == triesOf
}

// takeCode has a code link the account that sent it to a person; false if it is no code. It counts only in a direct conversation, with nothing
// beside it, from an account that the platform authenticates and nobody has, and once.
func (c *Channels) takeCode(ctx context.Context, tx store.Tx, s said) (bool, error) {
	code, is := person.ReadCode(s.Text)
	if !is || s.Place.Kind != channel.Direct || s.Sender.Account == "" || s.Sender.Bot || s.by.Person != "" || s.Edited || s.Forwarded || s.Quote != nil {
		return c.burn(ctx, tx, s)
	}
	i := s.identity()
	if may, first := c.codes.may(i, ledger.Now()); !may {
		if err := c.drop(ctx, tx, s, "too many codes were tried"); err != nil || !first {
			return true, err
		}
		return true, c.notice(ctx, tx, s.where.ID, fmt.Sprintf("Too many codes were tried from this account. Send yours again in %d minutes.", triesFor/time.Minute))
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
	for _, code := range person.CodesIn(w.Text, w.Quote.Text) {
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

// notice has the host itself say something in a conversation.
func (c *Channels) notice(ctx context.Context, tx store.Tx, where id.Conversation, text string) error {
	chat, err := ledger.HostChat(ctx, tx, where)
	if err != nil {
		return err
	}
	_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Text: c.Secrets.Redact(strings.TrimSpace(text)), At: ledger.Now()})
	return err
}
