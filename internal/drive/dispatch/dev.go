package dispatch

import (
	"context"
	"fmt"
	"path/filepath"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// A dev agent makes one change of what its group runs, in that change's own session. Once this is over it can still be spoken with, until
// the group asks for another change (SM-023): it has a chat of its own, whose sessions see no workspace, and in which it goes on as who it
// was. What it says there its group's agent hears.

// maker is the agent that made a change, in its own chat.
type maker struct {
	*Dispatcher
	change.Row
}

// devOf is the change that the agent of a chat has made; false for a chat with people.
func devOf(ctx context.Context, tx store.Tx, c conversation.Chat) (row change.Row, is bool, err error) {
	where, err := tx.Conversation(ctx, c.Conversation)
	if err != nil || where.Platform != conversation.Dev {
		return row, false, err
	}
	row, err = tx.Change(ctx, id.Change(where.Address))
	return row, true, err
}

// tellDev hands words of a group's agent to its dev agent: into the session that makes the change, or, once that is over, into its chat.
func (w wisher) tellDev(ctx context.Context, name, words, key string) (told string, err error) {
	swap, err := w.Swaps.LastSwap(ctx, w.group)
	if err != nil {
		return "", err
	}
	if swap.Request.Dev != name {
		return "", problem.Errorf(problem.NotFound, "", "no dev agent %q works for you; it ends when another change is asked for", inert.Short(name, 60))
	}
	if swap.State.WithAgent() {
		return name + " has it.", w.Swaps.TellDev(ctx, swap, words)
	}

	err = w.DB.InTx(ctx, func(tx store.Tx) error {
		chat, err := ledger.DevChat(ctx, tx, swap)
		if err != nil {
			return err
		}
		return hear(ctx, tx, chat, heard{key: key, from: string(w.group), identity: message.AgentPlatform + string(w.group), words: words})
	})
	return name + " has it; its change is " + swap.State.Words() + ", so it can change nothing more.", err
}

// heard is what one agent says to another.
type heard struct{ key, from, identity, words string }

// hear stores words of an agent as a message of a chat. The same key stores them once.
func hear(ctx context.Context, tx store.Tx, chat conversation.Chat, h heard) error {
	now := ledger.Now()
	intake, fresh, err := tx.AddIntake(ctx, message.Intake{Conversation: chat.Conversation, PlatformID: h.key, Received: now, Outcome: message.Stored})
	if err != nil || !fresh {
		return err
	}
	_, err = tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake.Seq, Kind: prompt.Chat, Trigger: true,
		Identity: h.identity, Sender: h.from, Text: h.words, At: now, Status: message.Pending, Due: now,
	})
	return err
}

// DevAgents are the dispatcher as those see it who run the agents of swaps.
type DevAgents struct{ *Dispatcher }

// Hear puts words of a swap's agent before the agent of the group that wished for the change, in the conversation where it did.
func (d DevAgents) Hear(ctx context.Context, swap change.Row, words, key string) error {
	if words = d.Secrets.Redact(prompt.Strip(words)); words == "" {
		return nil
	}
	return d.DB.InTx(ctx, func(tx store.Tx) error { return hearDev(ctx, tx, swap, words, key) })
}

// hearDev is Hear in a transaction, of words without secrets.
func hearDev(ctx context.Context, tx store.Tx, swap change.Row, words, key string) error {
	chat, err := tx.Chat(ctx, swap.Request.Chat)
	if err != nil {
		return err
	}
	return hear(ctx, tx, chat, heard{key: key, from: swap.Request.Dev, identity: message.AgentPlatform + string(swap.ID), words: words})
}

// Yield ends the session of a dev agent's chat, since the agent works at its change again, and gives its home to the session at dir.
func (d DevAgents) Yield(ctx context.Context, swap change.Row, dir string) error {
	var chats []conversation.Chat
	err := d.DB.Read(ctx, func(tx store.Tx) error {
		chats = nil
		all, err := tx.Chats(ctx, group.Folder(swap.Request.Group))
		for _, c := range all {
			if of, is, found := devOf(ctx, tx, c); found == nil && is && of.ID == swap.ID {
				chats = append(chats, c)
			}
		}
		return err
	})
	for _, c := range chats {
		if _, err = d.Stop(ctx, c.ID, audit.Host); err != nil {
			return err
		}
		if c.Identity != "" && c.Agent == swap.Request.Agent && !path.HasHome(dir) {
			_, err = path.MoveHome(d.Ops, d.Runtime.Dir(c.Identity), dir)
		}
	}
	return err
}

// elsewhere says why a dev agent hears nothing in its own chat now; "" if it does. One that works at its change again hears there what is
// wanted, and one whose group has asked for another change has ended (SM-021).
func (m maker) elsewhere(ctx context.Context, tx store.Tx) (why string, err error) {
	if m.State.WithAgent() {
		return m.Request.Dev + " works at " + string(m.ID) + " again", nil
	}
	last, found, err := ledger.LastSwap(ctx, tx, group.Folder(m.Request.Group))
	if err != nil || !found || last.ID == m.ID {
		return "", err
	}
	return m.Request.Dev + " has ended: the group asked for another change, " + string(last.ID), nil
}

// closeWaiting closes what waits in the chat of a dev agent that does not hear it.
func closeWaiting(ctx context.Context, tx store.Tx, chat id.Chat, why string) error {
	waiting, err := tx.Ins(ctx, message.Filter{Chat: chat, Status: []message.Status{message.Pending}, Limit: waitingMax})
	for _, m := range waiting {
		if err == nil {
			err = tx.MoveIn(ctx, message.Pending, m.Fence, m.Closed(why, ledger.Now()))
		}
	}
	return err
}

// handlers are the tools of a dev agent whose change is over.
func (m maker) handlers(s *session) map[tool.Name]live.Handler {
	has := live.ToOriginator(func(ctx context.Context, words, key string) error {
		return DevAgents{m.Dispatcher}.Hear(ctx, m.Row, words, key)
	})
	has[tool.SendMessage] = live.Counted(s.number, has[tool.SendMessage])
	return has
}

// system is what a dev agent is told in its own chat.
func (m maker) system() string {
	return fmt.Sprintf("You are %s. You have changed what the group %s runs; that change, %s, is %s now, and you can change nothing more: you see no "+
		"files of it. You speak with the group's agent alone, which tells you what is wanted. It can ask its host for another change.",
		m.Request.Dev, m.Request.Group, m.ID, m.State.Words())
}

// comeHome gives a session of a dev agent's chat what the session that made the change has kept, if that has worked since.
func (m maker) comeHome(ctx context.Context, to path.Session) error {
	if path.HasHome(to.Dir) {
		return nil
	}
	all, err := m.Sessions(ctx, m.ID)
	if err != nil || len(all) == 0 {
		return err
	}
	_, err = path.MoveHome(m.Ops, m.Runtime.Dir(all[len(all)-1].ID), to.Dir)
	return err
}

// devShown is what a session of a dev agent's chat sees of its group: what it runs, and nothing that the group's agent remembers.
func devShown(tree string) []sandbox.Bind {
	return []sandbox.Bind{{Source: filepath.Join(tree, "runner"), Target: RunnerFolder}}
}

// retire ends the dev agents of a group that have made other changes than the one of now.
func (w wisher) retire(ctx context.Context, now id.Change) {
	var others []id.Chat
	err := w.DB.Read(ctx, func(tx store.Tx) error {
		others = nil
		chats, err := tx.Chats(ctx, w.group)
		for _, c := range chats {
			if swap, is, found := devOf(ctx, tx, c); found == nil && is && swap.ID != now {
				others = append(others, c.ID)
			}
		}
		return err
	})
	if err != nil {
		w.Log.Warn("the dev agent before this one may go on", "group", w.group, "error", err)
	}
	for _, chat := range others {
		w.ending.Go(func() { _, _ = w.Stop(context.WithoutCancel(ctx), chat, audit.Host) }) // one that is gone already is as good
	}
}
