package dispatch

import (
	"context"
	"io"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Seen is a chat as a person sees it.
type Seen struct {
	conversation.Chat
	Platform string
	Live     bool // a session runs
	Working  bool // a turn is under way
	Waiting  int  // messages that wake the agent
	Dead     int
	Last     *time.Time // message in
}

// List returns the chats of a group, or of all.
func (d *Dispatcher) List(ctx context.Context, of group.Folder) (all []Seen, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		chats, err := tx.Chats(ctx, of)
		if err != nil {
			return err
		}
		for _, c := range chats {
			s, err := d.seen(ctx, tx, c)
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		return nil
	})
	return all, err
}

// seen gathers what a person sees of a chat.
func (d *Dispatcher) seen(ctx context.Context, tx store.Tx, c conversation.Chat) (Seen, error) {
	s := Seen{Chat: c}
	where, err := tx.Conversation(ctx, c.Conversation)
	if err != nil {
		return s, err
	}
	s.Platform = where.Platform
	counts, err := tx.CountIns(ctx, c.ID)
	if err != nil {
		return s, err
	}
	along, err := tx.CountAlong(ctx, c.ID)
	if err != nil {
		return s, err
	}
	s.Waiting, s.Dead = counts[message.Pending]-along, counts[message.Dead]
	now := time.Now()
	last, err := tx.Ins(ctx, message.Filter{Chat: c.ID, Newest: true, Limit: tasksMax + 1})
	if err != nil {
		return s, err
	}
	for _, m := range slices.Backward(last) {
		if !m.Planned(now) {
			s.Last = &m.At
			break
		}
	}
	tasks, err := tx.Ins(ctx, message.Filter{Chat: c.ID, Status: []message.Status{message.Pending}, Tasks: true})
	if err != nil {
		return s, err
	}
	for _, m := range tasks {
		if m.Planned(now) {
			s.Waiting--
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workers[c.ID]; w != nil {
		s.Live, s.Working = true, w.turning
	}
	return s, nil
}

// Find returns the chat of an id: of a chat, or of a session of one. Errors: problem.NotFound.
func (d *Dispatcher) Find(ctx context.Context, name string) (s Seen, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		chat := id.Chat(name)
		if id.KindOf(name) != "chat" {
			of, err := tx.Session(ctx, id.Session(name))
			if err != nil {
				return err
			}
			if chat = of.Chat; chat == "" {
				return problem.Errorf(problem.NotFound, "sallyport change show "+string(of.Change),
					"the session %s works for the change %s, not for a group", inert.Short(name, 60), of.Change)
			}
		}
		c, err := tx.Chat(ctx, chat)
		if err != nil {
			return err
		}
		s, err = d.seen(ctx, tx, c)
		return err
	})
	return s, err
}

// Transcript opens what a session of a chat printed: that of an identity, or of a chat the newest. The caller closes it.
func (d *Dispatcher) Transcript(ctx context.Context, name string) (log io.ReadCloser, err error) {
	seen, err := d.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	of := id.Session(name)
	if id.KindOf(name) == "chat" {
		all, err := store.Look(ctx, d.DB, store.Tx.Sessions, seen.ID.Subject())
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, problem.Errorf(problem.NotFound, "sallyport session list", "no session has run for %s yet", seen.ID)
		}
		of = all[len(all)-1].ID
	}
	return path.OpenTranscript(d.Runtime.Dir(of))
}

// messagesShown is how many messages are listed unless somebody says otherwise.
const messagesShown = 100

// Messages returns the newest of a group, or of all, oldest first. Tasks whose time has not come are Tasks' to tell.
func (d *Dispatcher) Messages(ctx context.Context, of group.Folder, status []message.Status, limit int) (all []message.In, err error) {
	if limit <= 0 {
		limit = messagesShown
	}
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		all, err = tx.Ins(ctx, message.Filter{Group: of, Status: status, Due: ledger.Now(), Newest: true, Limit: limit})
		return err
	})
	return all, err
}

// Drops is what was dropped before it was a message (CH-906).
type Drops struct{ *ledger.Ledger }

// Count counts it by reason, the most first.
func (d Drops) Count(ctx context.Context) (all []message.Drop, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		all, err = tx.CountDrops(ctx)
		return err
	})
	return all, err
}

// Message returns one, and what the turn that answered it has sent; nothing while it is not answered.
func (d *Dispatcher) Message(ctx context.Context, of id.Message) (m message.In, answer []message.Out, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		if m, err = tx.In(ctx, of); err != nil || m.Turn == 0 || m.Status != message.Completed && m.Status != message.Folded {
			return err
		}
		answer, err = tx.Outs(ctx, m.Chat, 0, m.Turn, historyMax)
		answer = slices.DeleteFunc(answer, func(o message.Out) bool { return o.Lane != message.Talk })
		return err
	})
	return m, answer, err
}
