package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// people adds two persons beside the owner.
func (s *suite) people() (ann, bob person.Person) {
	s.t.Helper()
	ann, bob = person.Person{ID: "psn-0000ann0", Name: "ann"}, person.Person{ID: "psn-0000bob0", Name: "bob"}
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.SetOwner(ctx, person.Owner{ID: alice.Person, UID: 1000, Name: "alice"}), tx.AddPerson(ctx, ann), tx.AddPerson(ctx, bob))
	})
	return ann, bob
}

func testPeople(t *testing.T, s *suite) {
	ann, bob := s.people()
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error {
		return tx.AddPerson(ctx, person.Person{ID: "psn-0000ann1", Name: "ann"})
	})
	irc := person.Identity{Platform: "irc", Account: "ann_"}
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.Link(ctx, irc, ann.ID, "annie"), tx.NoteDirect(ctx, irc, "cnv-00000001"),
			tx.NoteDirect(ctx, person.Identity{Platform: "irc", Account: "no"}, "cnv-1"),
			tx.Grant(ctx, ann.ID, right.Held{Role: right.GroupAdmin, Group: "ada"}), tx.Grant(ctx, ann.ID, right.Held{Role: right.GroupAdmin, Group: "ada"}),
			tx.Grant(ctx, ann.ID, right.Held{Role: right.Member, Group: "bob"}), tx.Grant(ctx, bob.ID, right.Held{Role: right.GlobalAdmin}))
	})
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.Link(ctx, irc, bob.ID, "x") })
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error {
		return tx.Grant(ctx, bob.ID, right.Held{Role: right.Owner})
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.People(ctx)
		s.same(all, []person.Known{
			{Person: person.Person{ID: alice.Person, Name: "alice"},
				Accounts: []person.Account{{Identity: person.AtTerminal(1000), Label: "alice"}}, Held: []right.Held{{Role: right.Owner}}},
			{Person: ann, Accounts: []person.Account{{Identity: irc, Label: "annie", Direct: "cnv-00000001"}},
				Held: []right.Held{{Role: right.GroupAdmin, Group: "ada"}, {Role: right.Member, Group: "bob"}}},
			{Person: bob, Held: []right.Held{{Role: right.GlobalAdmin}}},
		})
		held, err2 := tx.Roles(ctx, ann.ID)
		nobody, err3 := tx.Roles(ctx, "psn-nobody00")
		s.same(held, all[1].Held)
		s.same(len(nobody), 0)
		return errors.Join(err, err2, err3)
	})

	// A role that nobody has, or of the wrong reach, is stored by nobody.
	for _, h := range []right.Held{{Role: "king"}, {Role: right.GroupAdmin}, {Role: right.GlobalAdmin, Group: "ada"}} {
		if err := s.db.InTx(t.Context(), func(tx store.Tx) error { return tx.Grant(t.Context(), bob.ID, h) }); err == nil {
			t.Errorf("bob has %+v", h)
		}
	}

	s.do(func(ctx context.Context, tx store.Tx) error {
		took, err := tx.Revoke(ctx, ann.ID, right.Held{Role: right.Member, Group: "bob"})
		again, err2 := tx.Revoke(ctx, ann.ID, right.Held{Role: right.Member, Group: "bob"})
		unlinked, err3 := tx.Unlink(ctx, irc)
		_, there, err4 := tx.Whose(ctx, irc)
		s.same([]bool{took, again, unlinked, there}, []bool{true, false, true, false})
		dropped, err5 := tx.DropPerson(ctx, bob.ID)
		twice, err6 := tx.DropPerson(ctx, bob.ID)
		s.same([]bool{dropped, twice}, []bool{true, false})
		all, err7 := tx.People(ctx)
		s.same(len(all), 2)
		return errors.Join(err, err2, err3, err4, err5, err6, err7)
	})
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error { _, err := tx.DropPerson(ctx, alice.Person); return err })
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Revoke(ctx, alice.Person, right.Held{Role: right.Owner})
		return err
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.AddPerson(ctx, person.Person{ID: "psn-0000bob1", Name: "bob"})
	})
}

func testCodes(t *testing.T, s *suite) {
	ann, bob := s.people()
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.PutCode(ctx, person.Code{Hash: "a", Person: ann.ID, Expires: at(10)}),
			tx.PutCode(ctx, person.Code{Hash: "b", Person: bob.ID, Expires: at(20)}))
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		both, err := tx.Codes(ctx, at(9))
		one, err2 := tx.Codes(ctx, at(10))
		s.same(both, []string{"a", "b"})
		s.same(one, []string{"b"})
		return errors.Join(err, err2)
	})
	for _, c := range []struct {
		hash string
		now  int
		want id.Person
	}{{"x", 5, ""}, {"a", 5, ann.ID}, {"a", 5, ""}, {"b", 20, ""}, {"b", 5, ""}} {
		s.do(func(ctx context.Context, tx store.Tx) error {
			who, ok, err := tx.TakeCode(ctx, c.hash, at(c.now))
			if who != c.want || ok != (c.want != "") {
				t.Errorf("%s at %d is %q, %v", c.hash, c.now, who, ok)
			}
			return err
		})
	}
}

// place is a conversation of a channel.
func (s *suite) place(channel, address string) (c conversation.Conversation) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		c, err = tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: channel, Address: address,
			Kind: conversation.Group, Name: address, Created: at(1)})
		return err
	})
	return c
}

func testChannels(t *testing.T, s *suite) {
	irc := conversation.Channel{Name: "irc", Platform: "irc", Settings: map[string]string{"server": "h.example"}, Credential: "file:/p", Added: at(1)}
	other := conversation.Channel{Name: "work", Platform: "slack", Settings: map[string]string{}, Added: at(2)}
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.PutChannel(ctx, other), tx.PutChannel(ctx, irc), tx.MoveCursor(ctx, "irc", "42"), tx.MoveCursor(ctx, "nowhere", "42"))
	})
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.PutChannel(ctx, irc) })
	irc.Cursor = "42"
	s.do(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.Channels(ctx)
		s.same(all, []conversation.Channel{irc, other})
		return err
	})
	for _, name := range []string{"terminal", "dev", "agent", "host", "home", "all", "", "a:b", "~a", "Irc", "2a", "a b", strings.Repeat("a", 33)} {
		if err := s.db.InTx(t.Context(), func(tx store.Tx) error { c := irc; c.Name = name; return tx.PutChannel(t.Context(), c) }); err == nil {
			t.Errorf("a channel is called %q", name)
		}
	}

	// The label and the kind of a place follow its platform; its policy does not.
	c := s.place("irc", "#a")
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := tx.SetPolicy(ctx, c.ID, conversation.Strict)
		again, err2 := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: "irc", Address: "#a",
			Kind: conversation.Threaded, Name: "renamed", Created: at(9)})
		want := c
		want.Name, want.Kind, want.Policy = "renamed", conversation.Threaded, conversation.Strict
		s.same(again, want)
		kept, err3 := tx.Conversation(ctx, c.ID)
		s.same(kept, want)
		return errors.Join(err, err2, err3)
	})
	s.same(c.Policy, conversation.Request)
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.SetPolicy(ctx, "cnv-nowhere0", conversation.Public)
	})

	// With a channel goes who was known there and who heard what.
	ann, _ := s.people()
	kept := s.place("work", "#a")
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.Link(ctx, person.Identity{Platform: "irc", Account: "ann"}, ann.ID, ""),
			tx.Link(ctx, person.Identity{Platform: "work", Account: "ann"}, ann.ID, ""),
			tx.PutWiring(ctx, wiring.New(c.ID, c.Kind, "ada", at(1))), tx.PutWiring(ctx, wiring.New(kept.ID, kept.Kind, "ada", at(1))))
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		dropped, err := tx.DropChannel(ctx, "irc")
		twice, err2 := tx.DropChannel(ctx, "irc")
		s.same([]bool{dropped, twice}, []bool{true, false})
		_, there, err3 := tx.Whose(ctx, person.Identity{Platform: "irc", Account: "ann"})
		_, stays, err4 := tx.Whose(ctx, person.Identity{Platform: "work", Account: "ann"})
		s.same([]bool{there, stays}, []bool{false, true})
		all, err5 := tx.Wirings(ctx, "")
		s.same(all, []wiring.Wiring{wiring.New(kept.ID, kept.Kind, "ada", at(1))})
		where, err6 := tx.Conversations(ctx, "work")
		s.same(where, []conversation.Conversation{kept})
		return errors.Join(err, err2, err3, err4, err5, err6)
	})
}

// testRemovedChannels holds that a channel of the name of one that was removed begins anew, and that nothing goes on in the places of the other.
func testRemovedChannels(_ *testing.T, s *suite) {
	irc := conversation.Channel{Name: "irc", Platform: "irc", Settings: map[string]string{}, Added: at(1)}
	every := schedule.Schedule{Group: "ada", Conversation: "c", Kind: schedule.Cron, Spec: "0 7 * * *", Zone: "UTC", Text: "x"}
	for range 2 { // the second time it is removed like the first
		s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutChannel(ctx, irc) })
		before := s.place("irc", "#a")
		s.do(func(ctx context.Context, tx store.Tx) error {
			err := tx.SetPolicy(ctx, before.ID, conversation.Public)
			chat, err2 := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "ada", Conversation: before.ID, Created: at(1)})
			task := message.In{ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.Task, Trigger: true, Text: "x", At: at(1), Due: at(9),
				Status: message.Pending, Task: id.NewTask(), Recurrence: &every}
			done := message.In{ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.Task, Trigger: true, Text: "x", At: at(1), Due: at(2),
				Status: message.Processing, Task: id.NewTask(), Recurrence: &every}
			_, err3 := tx.PutIn(ctx, task)
			_, err4 := tx.PutIn(ctx, done)
			_, _, err5 := tx.AddIntake(ctx, message.Intake{Conversation: before.ID, PlatformID: "1", Received: at(1), Outcome: message.Stored})
			out, err6 := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Turn: 1, Text: "x", At: at(1)})
			_, err7 := tx.DropChannel(ctx, "irc")

			task, err8 := tx.In(ctx, task.ID)
			running, err9 := tx.In(ctx, done.ID)
			s.same([]any{task.Status, task.Reason, task.Recurrence == nil, task.Ended != nil, running.Status, running.Recurrence == nil},
				[]any{message.Dead, "the channel was removed", true, true, message.Processing, true})
			d, there, err10 := tx.Delivery(ctx, out.ID)
			s.same([]any{there, d.Status}, []any{true, message.Undelivered})
			due, err11 := tx.DueChats(ctx, at(100))
			s.same(len(due), 0)
			return errors.Join(err, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11)
		})

		s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutChannel(ctx, irc) })
		after := s.place("irc", "#a")
		s.do(func(ctx context.Context, tx store.Tx) error {
			_, fresh, err := tx.AddIntake(ctx, message.Intake{Conversation: after.ID, PlatformID: "1", Received: at(2), Outcome: message.Stored})
			counts, err2 := tx.CountDeliveries(ctx, "irc", at(0))
			s.same([]any{after.ID != before.ID, after.Policy, fresh, len(counts)}, []any{true, conversation.Request, true, 0})
			old, err3 := tx.Conversation(ctx, before.ID)
			s.same(old.Platform, fmt.Sprintf("irc (removed, %s)", before.ID))
			_, err4 := tx.DropChannel(ctx, "irc")
			return errors.Join(err, err2, err3, err4)
		})
	}
}

// testLately holds that a conversation is found in which something was said lately and which a group hears.
func testLately(_ *testing.T, s *suite) {
	busy, quiet, unheard, elsewhere := s.place("irc", "#busy"), s.place("irc", "#quiet"), s.place("irc", "#unheard"), s.place("work", "#busy")
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		for n, c := range []conversation.Conversation{busy, quiet, unheard, elsewhere} {
			if c.ID != unheard.ID {
				err = errors.Join(err, tx.PutWiring(ctx, wiring.New(c.ID, c.Kind, "ada", at(1))))
			}
			when := at(10)
			if n == 1 {
				when = at(9)
			}
			_, _, err2 := tx.AddIntake(ctx, message.Intake{Conversation: c.ID, Received: when, Outcome: message.Stored})
			err = errors.Join(err, err2)
		}
		all, err2 := tx.Lately(ctx, "irc", at(10))
		s.same(all, []conversation.Conversation{busy})
		return errors.Join(err, err2)
	})
}

// testUnused holds that a place of a platform goes with its chats once nothing belongs to it, and that everything which does keeps it.
func testUnused(_ *testing.T, s *suite) {
	ann, _ := s.people()
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.PutChannel(ctx, conversation.Channel{Name: "irc", Platform: "irc", Settings: map[string]string{}, Added: at(1)})
	})
	s.talks("1000/echo", "echo") // at the terminal
	chatIn := func(ctx context.Context, tx store.Tx, c conversation.Conversation, thread string) (conversation.Chat, error) {
		return tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "ada", Conversation: c.ID, Thread: thread, Created: at(1)})
	}
	uses := map[string]func(context.Context, store.Tx, conversation.Conversation, conversation.Chat) error{
		"wired": func(ctx context.Context, tx store.Tx, c conversation.Conversation, _ conversation.Chat) error {
			return tx.PutWiring(ctx, wiring.New(c.ID, c.Kind, "ada", at(1)))
		},
		"strict": func(ctx context.Context, tx store.Tx, c conversation.Conversation, _ conversation.Chat) error {
			return tx.SetPolicy(ctx, c.ID, conversation.Strict)
		},
		"heard lately": func(ctx context.Context, tx store.Tx, c conversation.Conversation, _ conversation.Chat) error {
			_, _, err := tx.AddIntake(ctx, message.Intake{Conversation: c.ID, Received: at(1), Outcome: message.Stored})
			return err
		},
		"somebody's": func(ctx context.Context, tx store.Tx, c conversation.Conversation, _ conversation.Chat) error {
			i := person.Identity{Platform: "irc", Account: "ann"}
			return errors.Join(tx.Link(ctx, i, ann.ID, ""), tx.NoteDirect(ctx, i, c.ID))
		},
		"told": func(ctx context.Context, tx store.Tx, _ conversation.Conversation, chat conversation.Chat) error {
			_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Text: "x", At: at(1)})
			return errors.Join(err, tx.Stick(ctx, chat.Conversation, chat.Thread, chat.Group))
		},
		"asked": func(ctx context.Context, tx store.Tx, _ conversation.Conversation, chat conversation.Chat) error {
			return tx.AddQuestion(ctx, question.New(chat.ID.Subject(), "?", nil, at(1)))
		},
	}
	places := map[string]conversation.Conversation{}
	for name, use := range uses {
		c := s.place("irc", name)
		places[name] = c
		s.do(func(ctx context.Context, tx store.Tx) error {
			chat, err := chatIn(ctx, tx, c, "t1")
			return errors.Join(err, use(ctx, tx, c, chat))
		})
	}
	gone, bare := s.place("irc", "gone"), s.place("irc", "bare")
	drop := func(before int) (n int64, left []conversation.Conversation) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			if n, err = tx.DropUnused(ctx, at(before)); err == nil {
				left, err = tx.Conversations(ctx, "")
			}
			return err
		})
		return n, left
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		_, err := chatIn(ctx, tx, gone, "t1")
		return errors.Join(err, tx.Stick(ctx, gone.ID, "t1", "ada"))
	})
	if n, left := drop(1); n != 1 || len(left) != len(uses)+3 { // whom the thread engages, of which nothing is kept
		s.t.Errorf("%d rows go of what is young; left are %+v", n, left)
	}
	// The chats of the first four go, and nothing else of them.
	if n, left := drop(2); n != 2*4+2+2 || len(left) != len(uses)+1 {
		s.t.Errorf("%d rows go; left are %+v", n, left)
	}
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { _, err := tx.Conversation(ctx, gone.ID); return err })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { _, err := tx.Conversation(ctx, bare.ID); return err })
	s.do(func(ctx context.Context, tx store.Tx) error {
		stuck, err := tx.Stuck(ctx, places["told"].ID, "t1")
		s.same(len(stuck), 1)
		chats, err2 := tx.Chats(ctx, "ada")
		s.same(len(chats), 2)
		return errors.Join(err, err2)
	})
	if n, _ := drop(2); n != 0 {
		s.t.Errorf("%d rows go the second time", n)
	}
}

func testWirings(t *testing.T, s *suite) {
	c := s.place("irc", "#a")
	ada, bob := wiring.New(c.ID, conversation.Direct, "ada", at(2)), wiring.New(c.ID, conversation.Group, "bob", at(1))
	bob.Scope, bob.Ignored = wiring.Known, wiring.Accumulate
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.PutWiring(ctx, ada), tx.PutWiring(ctx, bob), tx.Stick(ctx, c.ID, "t1", "ada"),
			tx.Stick(ctx, c.ID, "t1", "ada"), tx.Stick(ctx, c.ID, "t2", "bob"))
	})
	again := ada
	again.Mode, again.Pattern, again.Created = wiring.Sticky, "", at(9)
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := tx.PutWiring(ctx, again)
		again.Created = ada.Created
		all, err2 := tx.Wirings(ctx, c.ID)
		s.same(all, []wiring.Wiring{bob, again})
		none, err3 := tx.Wirings(ctx, "cnv-nowhere0")
		s.same(len(none), 0)
		stuck, err4 := tx.Stuck(ctx, c.ID, "t1")
		s.same(stuck, map[group.Folder]bool{"ada": true})
		dropped, err5 := tx.DropWiring(ctx, c.ID, "ada")
		twice, err6 := tx.DropWiring(ctx, c.ID, "ada")
		s.same([]bool{dropped, twice}, []bool{true, false})
		stuck, err7 := tx.Stuck(ctx, c.ID, "t1")
		s.same(len(stuck), 0)
		return errors.Join(err, err2, err3, err4, err5, err6, err7)
	})
	for _, bad := range []wiring.Wiring{{Mode: "loud", Scope: wiring.All, Ignored: wiring.Drop},
		{Mode: wiring.Mention, Scope: "some", Ignored: wiring.Drop}, {Mode: wiring.Mention, Scope: wiring.All, Ignored: "keep"}} {
		bad.Conversation, bad.Group = c.ID, "eve"
		if err := s.db.InTx(t.Context(), func(tx store.Tx) error { return tx.PutWiring(t.Context(), bad) }); err == nil {
			t.Errorf("stored: %+v", bad)
		}
	}
}

func testPending(t *testing.T, s *suite) {
	chat := s.talks("1000/host", "host")
	ask := func(title string) question.Question {
		q := question.New(chat.ID.Subject(), title, []string{"allow", "deny"}, at(1))
		s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddQuestion(ctx, q) })
		return q
	}
	c := s.place("irc", "#a")
	p := wiring.Pending{Question: ask("1").ID, About: wiring.AboutSender, Conversation: c.ID, Identity: "irc:eve", Group: "ada",
		Sender: "eve", Event: json.RawMessage(`{"a":1}`), Created: at(2)}
	second := p
	second.Question, second.Event = ask("2").ID, json.RawMessage(`{"a":2}`)
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := tx.PutPending(ctx, p)
		s.same(problem.KindOf(tx.PutPending(ctx, second)), problem.Conflict)
		there, _, err2 := tx.PendingOf(ctx, wiring.AboutSender, c.ID, "irc:eve")
		s.same(there, p)
		_, other, err8 := tx.PendingOf(ctx, wiring.AboutChannel, c.ID, "irc:eve")
		s.same(other, false)
		for channel, want := range map[string]int{"": 1, "irc": 1, "work": 0} {
			all, err := tx.PendingQuestions(ctx, channel)
			if len(all) != want || err != nil {
				t.Errorf("%d questions wait about the channel %q, not %d; %v", len(all), channel, want, err)
			}
		}
		got, ok, err3 := tx.Pending(ctx, p.Question)
		s.same(got, p)
		s.same(ok, true)
		err4 := tx.ReplacePending(ctx, p.Question, second.Event)
		got, _, err5 := tx.Pending(ctx, p.Question)
		s.same([]string{got.Sender, string(got.Event)}, []string{"eve", `{"a":2}`})
		err6 := tx.DropPending(ctx, p.Question)
		_, ok, err7 := tx.Pending(ctx, p.Question)
		s.same(ok, false)
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8)
	})
}

func testDeliveries(t *testing.T, s *suite) {
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.PutChannel(ctx, conversation.Channel{Name: "irc", Platform: "irc", Settings: map[string]string{}, Added: at(1)})
	})
	a, b := s.place("irc", "#a"), s.place("irc", "#b")
	say := func(where id.Conversation, g group.Folder, lane message.Lane, when int) (o message.Out) {
		s.do(func(ctx context.Context, tx store.Tx) error {
			chat, err := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: g, Conversation: where, Created: at(1)})
			if err != nil {
				return err
			}
			o, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: lane, Text: "x", At: at(when)})
			return err
		})
		return o
	}
	first, behind := say(a.ID, "ada", message.Talk, 1), say(a.ID, "bob", message.Talk, 2)
	notice, other := say(a.ID, "ada", message.Notice, 3), say(b.ID, "ada", message.Talk, 9)
	here := s.talks("1000/echo", "echo")
	s.do(func(ctx context.Context, tx store.Tx) error {
		_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: here.ID, Lane: message.Talk, Text: "at the terminal", At: at(1)})
		return err
	})
	due := func(now int) (all []id.Out) {
		s.do(func(ctx context.Context, tx store.Tx) error {
			ds, err := tx.DueDeliveries(ctx, at(now))
			for _, d := range ds {
				all = append(all, d.Out)
			}
			return err
		})
		return all
	}
	s.same(due(5), []id.Out{first.ID, notice.ID})
	s.same(due(9), []id.Out{first.ID, notice.ID, other.ID})

	move := func(of id.Out, change func(message.Delivery) message.Delivery) {
		s.t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			d, ok, err := tx.Delivery(ctx, of)
			s.same(ok, true)
			return errors.Join(err, tx.MoveDelivery(ctx, change(d)))
		})
	}
	move(first.ID, func(d message.Delivery) message.Delivery { return d.Again("no", at(20)) })
	s.same(due(9), []id.Out{notice.ID, other.ID})
	s.do(func(ctx context.Context, tx store.Tx) error {
		next, any, err := tx.NextDelivery(ctx, at(9))
		s.same(any, true)
		s.same(next, at(20).Add(time.Second))
		return err
	})
	move(first.ID, func(d message.Delivery) message.Delivery { return d.Arrived("p1", 2, at(21)) })
	s.same(due(30), []id.Out{notice.ID, other.ID, first.ID})
	move(first.ID, func(d message.Delivery) message.Delivery { return d.Arrived("p2", 2, at(22)) })
	s.same(due(30), []id.Out{behind.ID, notice.ID, other.ID})
	move(behind.ID, func(d message.Delivery) message.Delivery { return d.Dead("gone", at(23)) })
	s.fails(message.ErrMoved, func(ctx context.Context, tx store.Tx) error {
		d, _, err := tx.Delivery(ctx, first.ID)
		return errors.Join(err, tx.MoveDelivery(ctx, d.Dead("late", at(24))))
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		counts, err := tx.CountDeliveries(ctx, "irc", at(0))
		s.same(counts, map[message.DeliveryStatus]int{message.Sent: 1, message.Undelivered: 1, message.Waiting: 2})
		lately, err4 := tx.CountDeliveries(ctx, "irc", at(23))
		s.same(lately, map[message.DeliveryStatus]int{message.Undelivered: 1, message.Waiting: 2})
		dead, err2 := tx.Deliveries(ctx, "irc", message.Undelivered, 9)
		s.same(len(dead), 1)
		s.same(dead[0].Reason, "gone")
		o, err3 := tx.Out(ctx, first.ID)
		s.same(o, first)
		return errors.Join(err, err2, err3, err4)
	})

	// What waits is not forgotten; what left long ago is.
	s.do(func(ctx context.Context, tx store.Tx) error {
		_, err := tx.DropMessages(ctx, at(1000))
		counts, err2 := tx.CountDeliveries(ctx, "irc", at(0))
		s.same(counts, map[message.DeliveryStatus]int{message.Waiting: 2})
		return errors.Join(err, err2)
	})
	testOldCards(s, a.ID)
	testEndedCards(t, s, a.ID)
}

// testOldCards holds that a part of a card which has not arrived is not forgotten while the card waits, however long that is (SM-909).
func testOldCards(s *suite, where id.Conversation) {
	var card message.Out
	var q question.Question
	c := s.addChange()
	whole := func(ctx context.Context, tx store.Tx, want bool) error {
		_, err := tx.DropMessages(ctx, at(1000))
		got, err2 := tx.Whole(ctx, card)
		s.same(got, want)
		return errors.Join(err, err2)
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		chat, err := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "ida", Conversation: where, Created: at(1)})
		q = question.New(c.ID.Subject(), "?", []string{"a", "b"}, at(1))
		err2 := tx.AddQuestion(ctx, q)
		diff, err3 := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardDiff, Change: c.ID, Text: "+x", At: at(1)})
		var err4 error
		card, err4 = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardApproval, Change: c.ID,
			Question: q.ID, Text: "?", At: at(1)})
		d, _, err5 := tx.Delivery(ctx, diff.ID)
		err6 := tx.MoveDelivery(ctx, d.Dead("refused", at(2)))
		d, _, err7 := tx.Delivery(ctx, card.ID)
		err8 := tx.MoveDelivery(ctx, d.Arrived("p2", 1, at(2)))
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8, whole(ctx, tx, false))
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.EndQuestion(ctx, q.ID, question.Void, "over", at(3)), whole(ctx, tx, true))
	})
}

// testEndedCards holds that a card that has left and whose question has ended is found until it shows that.
func testEndedCards(t *testing.T, s *suite, where id.Conversation) {
	s.owned()
	var card message.Out
	var q question.Question
	s.do(func(ctx context.Context, tx store.Tx) error {
		chat, err := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "eve", Conversation: where, Created: at(1)})
		q = question.New(chat.ID.Subject(), "?", []string{"a", "b"}, at(1))
		err2 := tx.AddQuestion(ctx, q)
		var err3 error
		card, err3 = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardQuestion,
			Question: q.ID, Text: "?", At: at(1)})
		d, _, err4 := tx.Delivery(ctx, card.ID)
		err5 := tx.MoveDelivery(ctx, d.Arrived("p", 1, at(2)))
		ended, err6 := tx.EndedCards(ctx, "irc", 9)
		s.same(len(ended), 0)
		return errors.Join(err, err2, err3, err4, err5, err6)
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := tx.EndQuestion(ctx, q.ID, question.Void, "over", at(3))
		ended, err2 := tx.EndedCards(ctx, "irc", 9)
		s.same(len(ended), 1)
		s.same(ended[0].Out, card.ID)
		other, err5 := tx.EndedCards(ctx, "slack", 9)
		s.same(len(other), 0)
		err3 := tx.NoteTold(ctx, card.ID)
		ended, err4 := tx.EndedCards(ctx, "irc", 9)
		s.same(len(ended), 0)
		told, _, err6 := tx.Delivery(ctx, card.ID)
		s.same(told.Told, true)
		return errors.Join(err, err2, err3, err4, err5, err6)
	})

	// What was sent by a channel that was removed shows nothing more.
	s.do(func(ctx context.Context, tx store.Tx) error {
		q := question.New(q.Subject, "?", []string{"a", "b"}, at(4))
		err := tx.AddQuestion(ctx, q)
		card, err2 := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: card.Chat, Lane: message.Notice, Card: message.CardQuestion,
			Question: q.ID, Text: "?", At: at(4)})
		d, _, err3 := tx.Delivery(ctx, card.ID)
		err4 := tx.MoveDelivery(ctx, d.Arrived("p", 1, at(5)))
		err5 := tx.EndQuestion(ctx, q.ID, question.Void, "over", at(6))
		ended, err6 := tx.EndedCards(ctx, "irc", 9)
		s.same(len(ended), 1)
		_, err7 := tx.DropChannel(ctx, "irc")
		ended, err8 := tx.EndedCards(ctx, "irc", 9)
		s.same(len(ended), 0)
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8)
	})
}
