package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/budget"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/question"
)

// talks stores a chat of a group, in a conversation of its own.
func (s *suite) talks(address string, with group.Folder) (c conversation.Chat) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx store.Tx) error {
		where, err := tx.PutConversation(ctx, conversation.Conversation{
			ID: id.NewConversation(), Platform: "terminal", Address: address, Kind: conversation.Direct, Name: "n", Created: at(1),
		})
		if err != nil {
			return err
		}
		c, err = tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: with, Conversation: where.ID, Created: at(2)})
		return err
	})
	return c
}

// hears stores a message of a chat.
func (s *suite) hears(chat id.Chat, text string, change func(*message.In)) (m message.In) {
	s.t.Helper()
	m = message.In{ID: id.NewMessage(), Chat: chat, Kind: prompt.Chat, Trigger: true, Text: text, At: at(3), Status: message.Pending, Due: at(3)}
	if change != nil {
		change(&m)
	}
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		m, err = tx.PutIn(ctx, m)
		return err
	})
	return m
}

func testConversations(t *testing.T, s *suite) {
	c := s.talks("1000/echo", "echo")
	if again := s.talks("1000/echo", "echo"); again.ID != c.ID || again.Conversation != c.Conversation {
		t.Errorf("the same place is %+v, it was %+v", again, c)
	}
	other := s.talks("1000/echo", "other")
	if other.ID == c.ID || other.Conversation != c.Conversation {
		t.Errorf("two groups in one conversation are %+v and %+v", c, other)
	}

	// A claim is good until the next one, and only who has it may write.
	s.do(func(ctx context.Context, tx store.Tx) error {
		first, err := tx.ClaimChat(ctx, c.ID)
		if err != nil {
			return err
		}
		second, err := tx.ClaimChat(ctx, c.ID)
		if err != nil {
			return err
		}
		if second.Fence <= first.Fence {
			t.Errorf("fences %d and %d", first.Fence, second.Fence)
		}
		second.Identity, second.Agent, second.Tree, second.Turn = "echo-abcde", "echo", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", 7
		second.Tool = &conversation.Tool{ID: "t", Name: "execute", Title: "make", Started: at(4), Declared: time.Minute}
		if err := tx.MoveChat(ctx, second); err != nil {
			return err
		}
		first.Turn = 9
		if err := tx.MoveChat(ctx, first); !errors.Is(err, message.ErrMoved) {
			t.Errorf("a claim that is not good any more: %v", err)
		}
		c = second
		return nil
	})
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Chat(ctx, c.ID)
		s.same(got, c)
		all, err2 := tx.Chats(ctx, "other")
		s.same(len(all), 1)
		every, err3 := tx.Chats(ctx, "")
		s.same(len(every), 2)
		return errors.Join(err, err2, err3)
	})
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { _, err := tx.Chat(ctx, "cht-nowhere0"); return err })
	for name, find := range map[string]func(ctx context.Context, tx store.Tx) error{
		"msg-nowhere000": func(ctx context.Context, tx store.Tx) error { _, err := tx.In(ctx, "msg-nowhere000"); return err },
		"out-nowhere000": func(ctx context.Context, tx store.Tx) error { _, err := tx.Out(ctx, "out-nowhere000"); return err },
		"cnv-nowhere0": func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Conversation(ctx, "cnv-nowhere0")
			return err
		},
	} {
		s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
			err := find(ctx, tx)
			if strings.Count(err.Error(), name) != 1 || strings.Count(err.Error(), "no such")+strings.Count(err.Error(), "there is no") != 1 {
				s.t.Errorf("it is not said once: %v", err)
			}
			return err
		})
	}

	// A chat is what sessions and uses may belong to.
	s.do(func(ctx context.Context, tx store.Tx) error {
		run := session.Session{ID: "echo-abcde", Chat: c.ID, Attempt: 1, Agent: "echo", Started: at(5), Dir: "d"}
		err := tx.PutSession(ctx, run)
		got, err2 := tx.Sessions(ctx, c.ID.Subject())
		s.same(got, []session.Session{run})
		use := budget.Use{Subject: c.ID.Subject(), Session: run.ID, Model: "m", Minute: budget.At(at(0)), Requests: 1, Tokens: budget.Tokens{Input: 5}}
		err3 := tx.AddUse(ctx, use)
		use.Subject = other.ID.Subject()
		err4 := tx.AddUse(ctx, use)
		return errors.Join(err, err2, err3, err4)
	})
	swap := s.addChange(func(c *change.Row) { c.Request.Kind, c.Request.Group = request.Swap, "echo" })
	edit := s.addChange()
	s.do(func(ctx context.Context, tx store.Tx) error {
		use := budget.Use{Subject: swap.ID.Subject(), Session: "dev", Model: "m", Minute: budget.At(at(0)), Requests: 1, Tokens: budget.Tokens{Output: 7}}
		err := tx.AddUse(ctx, use)
		use.Subject = edit.ID.Subject()
		err2 := tx.AddUse(ctx, use)
		of, err3 := tx.SpentOfGroup(ctx, "echo", budget.At(at(0)))
		s.same(of.Tokens, 12) // of its chat, and of what changes what it runs
		later, err4 := tx.SpentOfGroup(ctx, "echo", budget.At(at(0)).Add(time.Minute))
		s.same(later.Tokens, 0)
		return errors.Join(err, err2, err3, err4)
	})

	// A group has one uid.
	s.do(func(ctx context.Context, tx store.Tx) error {
		_, there, err := tx.Resident(ctx, "echo")
		s.same(there, false)
		err2 := tx.PutResident(ctx, "echo", 4711)
		uid, there, err3 := tx.Resident(ctx, "echo")
		s.same(uid, 4711)
		s.same(there, true)
		n, err4 := tx.CountResidents(ctx)
		s.same(n, 1)
		return errors.Join(err, err2, err3, err4)
	})
	if err := s.db.InTx(t.Context(), func(tx store.Tx) error { return tx.PutResident(t.Context(), "echo", 1) }); err == nil {
		t.Error("a group has a second uid")
	}
}

func testMessages(t *testing.T, s *suite) {
	c, other := s.talks("1000/echo", "echo"), s.talks("1000/other", "other")

	// An event that comes again is known, and one without a name of its own never is.
	s.do(func(ctx context.Context, tx store.Tx) error {
		i := message.Intake{Conversation: c.Conversation, PlatformID: "n1", Received: at(1), Outcome: message.Stored}
		first, fresh, err := tx.AddIntake(ctx, i)
		s.same(fresh, true)
		again, fresh, err2 := tx.AddIntake(ctx, i)
		s.same(fresh, false)
		s.same(again.Seq, first.Seq)
		i.PlatformID = ""
		a, fresh, err3 := tx.AddIntake(ctx, i)
		s.same(fresh, true)
		b, fresh, err4 := tx.AddIntake(ctx, i)
		s.same(fresh, true)
		if a.Seq == b.Seq {
			t.Error("two events without a name are one")
		}
		none, err5 := tx.CountDrops(ctx)
		s.same(len(none), 0)
		for _, reason := range []string{"a stranger", "no mention", "no mention"} {
			i.Outcome, i.Reason = message.Dropped, reason
			_, _, dropped := tx.AddIntake(ctx, i)
			err5 = errors.Join(err5, dropped)
		}
		drops, err6 := tx.CountDrops(ctx)
		s.same(drops, []message.Drop{{Reason: "no mention", Count: 2}, {Reason: "a stranger", Count: 1}})
		for _, c := range []struct {
			seq, with int64
			reason    string
			want      bool
		}{{b.Seq, a.Seq, "no mention", false}, {a.Seq, b.Seq + 2, "a stranger", false}, {a.Seq, b.Seq + 2, "no mention", true},
			{a.Seq, b.Seq + 2, "no mention", true}, {b.Seq + 2, b.Seq + 2, "no mention", false}, {b.Seq, 999, "no mention", false}} {
			counted, err := tx.CountDrop(ctx, c.seq, c.with, c.reason)
			s.same(counted, c.want)
			err6 = errors.Join(err6, err)
		}
		drops, err9 := tx.CountDrops(ctx)
		s.same(drops, []message.Drop{{Reason: "no mention", Count: 4}, {Reason: "a stranger", Count: 1}})
		err6 = errors.Join(err6, err9)
		n, err7 := tx.DropIntakes(ctx, at(2))
		s.same(n, 5)
		drops, err8 := tx.CountDrops(ctx)
		s.same(len(drops), 0)
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8)
	})

	m := s.hears(c.ID, "one", func(m *message.In) {
		m.Quote, m.Identity, m.Sender, m.Intake = prompt.Quote{From: "Bob", Text: "no?"}, "terminal:1000", "ann", 7
		m.Recurrence = &schedule.Schedule{Kind: schedule.Cron, Spec: "0 9 * * *", NextRun: at(9)}
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.In(ctx, m.ID)
		s.same(got, m)
		of, there, err2 := tx.InOf(ctx, c.ID, 7)
		s.same(there, true)
		s.same(of.ID, m.ID)
		_, there, err3 := tx.InOf(ctx, other.ID, 7)
		s.same(there, false)
		return errors.Join(err, err2, err3)
	})
	if err := s.db.InTx(t.Context(), func(tx store.Tx) error {
		again := m
		again.ID = id.NewMessage()
		_, err := tx.PutIn(t.Context(), again)
		return err
	}); err == nil {
		t.Error("one event reaches a chat twice")
	}

	// It moves once from where it stood, and only for who has it.
	s.do(func(ctx context.Context, tx store.Tx) error {
		next := m
		next.Status, next.Fence, next.Turn = message.Processing, 3, 1
		err := tx.MoveIn(ctx, message.Pending, 0, next)
		if again := tx.MoveIn(ctx, message.Pending, 0, next); !errors.Is(again, message.ErrMoved) {
			t.Errorf("it moves twice: %v", again)
		}
		done, end := next, at(8)
		done.Status, done.Ended, done.Recurrence = message.Completed, &end, nil
		if late := tx.MoveIn(ctx, message.Processing, 2, done); !errors.Is(late, message.ErrMoved) {
			t.Errorf("an older claim completes it: %v", late)
		}
		err2 := tx.MoveIn(ctx, message.Processing, 3, done)
		got, err3 := tx.In(ctx, m.ID)
		s.same(got, done)
		return errors.Join(err, err2, err3)
	})

	// What wakes and is due is found, the longest due first.
	s.hears(c.ID, "context", func(m *message.In) { m.Trigger = false })
	s.hears(c.ID, "later", func(m *message.In) { m.Due = at(50) })
	s.hears(other.ID, "now", func(m *message.In) { m.Due = at(20) })
	s.do(func(ctx context.Context, tx store.Tx) error {
		none, err := tx.DueChats(ctx, at(19))
		s.same(len(none), 0)
		due, err2 := tx.DueChats(ctx, at(60))
		s.same(due, []id.Chat{other.ID, c.ID})
		next, any, err3 := tx.NextDueChat(ctx, at(20))
		s.same(any, true)
		s.same(next, at(50))
		_, any, err4 := tx.NextDueChat(ctx, at(50))
		s.same(any, false)
		waits, err7 := tx.WaitingUntil(ctx, at(20))
		s.same(len(waits) == 1 && waits[0].Text == "later", true)
		counts, err5 := tx.CountIns(ctx, "")
		s.same(counts, map[message.Status]int{message.Pending: 3, message.Completed: 1})
		of, err6 := tx.CountIns(ctx, other.ID)
		s.same(of, map[message.Status]int{message.Pending: 1})
		along, err8 := tx.CountAlong(ctx, c.ID)
		nothing, err9 := tx.CountAlong(ctx, other.ID)
		s.same([]int{along, nothing}, []int{1, 0})
		return errors.Join(err, err2, err3, err4, err5, err6, err7, err8, err9)
	})
	for _, q := range []struct {
		f    message.Filter
		want []string
	}{
		{message.Filter{Chat: c.ID}, []string{"one", "context", "later"}},
		{message.Filter{Group: "other"}, []string{"now"}},
		{message.Filter{Status: []message.Status{message.Completed, message.Dead}}, []string{"one"}},
		{message.Filter{Newest: true, Limit: 2}, []string{"later", "now"}},
		{message.Filter{Limit: 2}, []string{"one", "context"}},
		{message.Filter{After: m.Seq, Chat: c.ID}, []string{"context", "later"}},
		{message.Filter{Tasks: true}, nil},
		{message.Filter{Wakes: true}, []string{"one", "later", "now"}},
		{message.Filter{Fills: true}, []string{"context"}},
	} {
		var texts []string
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Ins(ctx, q.f)
			for _, m := range all {
				texts = append(texts, m.Text)
			}
			return err
		})
		s.same(texts, q.want)
	}

	// A task is left out until its time comes, and takes no place among the newest.
	s.hears(other.ID, "planned", func(m *message.In) { m.Task, m.Due = "tsk-00000001", at(60) })
	for due, want := range map[int]string{59: "now", 60: "planned"} {
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Ins(ctx, message.Filter{Due: at(due), Newest: true, Limit: 1})
			s.same(len(all) == 1 && all[0].Text == want, true)
			return err
		})
	}

	// What has come to its end goes after a time; what waits or comes again stays.
	done := func(at time.Time, more func(*message.In)) id.Message {
		m := s.hears(other.ID, "done", more)
		s.do(func(ctx context.Context, tx store.Tx) error {
			m.Status, m.Ended = message.Dead, &at
			return tx.MoveIn(ctx, message.Pending, 0, m)
		})
		return m.ID
	}
	old := done(at(10), nil)
	again := done(at(10), func(m *message.In) { m.Recurrence = &schedule.Schedule{Kind: schedule.Interval, Spec: "1h"} })
	fresh := done(at(30), nil)
	s.do(func(ctx context.Context, tx store.Tx) error {
		n, err := tx.DropMessages(ctx, at(20))
		s.same(n, 2) // it, and the one that was completed
		_, err2 := tx.In(ctx, again)
		_, err3 := tx.In(ctx, fresh)
		if _, gone := tx.In(ctx, old); problem.KindOf(gone) != problem.NotFound {
			t.Errorf("what ended long ago: %v", gone)
		}
		return errors.Join(err, err2, err3)
	})

	// What words decide is kept with them, and how that ended.
	end := at(6)
	word := s.hears(c.ID, "confirm", func(m *message.In) {
		m.Trigger, m.Status = false, message.Processing
		m.Decides = &message.Decision{Kind: decide.Decided, Does: decide.Confirm, Card: "out-00000001", Asks: message.CardTrial,
			Change: "chg-00000001", By: alice}
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.In(ctx, word.ID)
		s.same(got, word)
		closed := word.Closed("too late", end)
		closed.Decides = &message.Decision{Kind: decide.Decided, Problem: problem.Conflict}
		err2 := tx.MoveIn(ctx, message.Processing, 0, closed)
		got, err3 := tx.In(ctx, word.ID)
		s.same(got, closed)
		return errors.Join(err, err2, err3)
	})
	whole := s.hears(c.ID, "approve", func(m *message.In) {
		m.Trigger, m.Decides = false, &message.Decision{Kind: decide.Which}
		*m = m.Closed("which?", end)
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.In(ctx, whole.ID)
		s.same(got, whole)
		return err
	})

	// What leaves is numbered within its turn and lane, and a call sends once.
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		put := func(o message.Out) message.Out {
			o.ID, o.Chat, o.At = id.NewOut(), c.ID, at(9)
			out, e := tx.PutOut(ctx, o)
			err = errors.Join(err, e)
			return out
		}
		first := put(message.Out{Lane: message.Talk, Turn: 1, Text: "a", Call: "k"})
		again := put(message.Out{Lane: message.Talk, Turn: 2, Text: "a", Call: "k"})
		second := put(message.Out{Lane: message.Talk, Turn: 1, Text: "b", Question: "qst-00000001"})
		notice := put(message.Out{Lane: message.Notice, Turn: 1, Text: "c"})
		third := put(message.Out{Lane: message.Talk, Turn: 2, Text: "d"})
		s.same([]int{first.Number, second.Number, notice.Number, third.Number}, []int{1, 2, 1, 1})
		s.same(again, first)
		all, e := tx.Outs(ctx, c.ID, 0, 0, 10)
		s.same(all, []message.Out{first, second, notice, third})
		of, e2 := tx.Outs(ctx, c.ID, first.Seq, 1, 10)
		s.same(of, []message.Out{second, notice})
		newest, e3 := tx.NewestOuts(ctx, c.ID, 2)
		s.same(newest, []message.Out{notice, third})
		return errors.Join(err, e, e2, e3)
	})
}

// testCards holds that cards have a name of two digits in their chat, which comes again after ninety, and that their first delivery counts.
func testCards(t *testing.T, s *suite) {
	c, other := s.talks("1000/echo", "echo"), s.talks("1000/other", "other")
	var made []message.Out
	put := func(chat id.Chat, card message.Card) {
		s.do(func(ctx context.Context, tx store.Tx) error {
			o := message.Out{ID: id.NewOut(), Chat: chat, Lane: message.Notice, Card: card, Change: "chg-00000001", Text: "?", At: at(1), Digits: 77}
			o, err := tx.PutOut(ctx, o)
			made = append(made, o)
			return err
		})
	}
	for range 91 {
		put(c.ID, message.CardTrial)
	}
	put(other.ID, message.CardApproval)
	put(c.ID, message.CardDiff)
	for i, want := range map[int]int{0: 10, 1: 11, 89: 99, 90: 10, 91: 10, 92: 0} {
		if made[i].Digits != want {
			t.Errorf("card %d is called %d, not %d", i, made[i].Digits, want)
		}
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := errors.Join(tx.NoteDelivery(ctx, made[90].ID, at(2)), tx.NoteDelivery(ctx, made[90].ID, at(3)))
		shown := at(2)
		made[90].Delivered = &shown
		cards, err2 := tx.Cards(ctx, c.Conversation, 2)
		s.same(cards, made[89:91])
		return errors.Join(err, err2)
	})

	var asked []message.Out
	s.do(func(ctx context.Context, tx store.Tx) error {
		for range 3 {
			o, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: c.ID, Lane: message.Notice, Card: message.CardQuestion, Text: "?", At: at(4)})
			if err != nil {
				return err
			}
			asked = append(asked, o)
		}
		cards, err := tx.Cards(ctx, c.Conversation, 2)
		s.same(cards, slices.Concat(made[89:91], asked[1:]))
		return err
	})
	testOpenCards(t, s)
	testTalk(t, s)
}

// testTalk holds that what any agent says or asks where a card stands is found once the card is there, and shortly before; not what is said
// before that, elsewhere or by the host.
func testTalk(t *testing.T, s *suite) {
	c, beside, elsewhere := s.talks("1000/talked", "echo"), s.talks("1000/talked", "other"), s.talks("1000/quiet", "echo")
	now := 5
	put := func(chat id.Chat, lane message.Lane, card message.Card, text string) (o message.Out) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			o, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat, Lane: lane, Card: card, Text: text, At: at(now)})
			return err
		})
		return o
	}
	talked := func(after message.Out, want ...string) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			got, err := tx.Talk(ctx, after.ID, at(5), 2)
			s.same(got, want)
			return err
		})
	}
	put(beside.ID, message.Talk, "", "too soon")
	card := put(c.ID, message.Notice, message.CardTrial, "?")
	put(c.ID, message.Notice, "", "of the host")
	put(c.ID, message.Talk, message.CardTrial, "?")
	put(elsewhere.ID, message.Talk, "", "elsewhere")
	talked(card)
	put(beside.ID, message.Talk, "", "one")
	talked(card, "one")

	card = put(c.ID, message.Notice, message.CardApproval, "?")
	talked(card)
	put(c.ID, message.Talk, message.CardQuestion, "two")
	talked(card, "two")

	now = 6
	put(c.ID, message.Talk, "", "three")
	card = put(c.ID, message.Notice, message.CardApproval, "?")
	talked(card, "three") // shortly before
	put(beside.ID, message.Talk, "", "four")
	put(c.ID, message.Talk, "", "five")
	talked(card, "five", "four") // as many as are asked for
}

// testOpenCards holds that no flood pushes a card of the host's out that waits, or takes its name; and that one which has its answer is
// like any other.
func testOpenCards(t *testing.T, s *suite) {
	c, tried := s.talks("1000/flood", "flood"), s.addTrial("/src/flood")
	s.owned()
	q := question.New(c.ID.Subject(), "May it?", []string{"a", "b"}, at(1))
	put := func(o message.Out) message.Out {
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			o.ID, o.Chat, o.Lane, o.Text, o.At = id.NewOut(), c.ID, message.Notice, "?", at(1)
			o, err = tx.PutOut(ctx, o)
			return err
		})
		return o
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddQuestion(ctx, q) })
	waits := []message.Out{put(message.Out{Card: message.CardAdmission, Question: q.ID}), put(message.Out{Card: message.CardTrial, Change: tried.Change})}
	var flood []message.Out
	for range 92 {
		flood = append(flood, put(message.Out{Card: message.CardQuestion}))
	}
	for _, o := range flood {
		if o.Digits == waits[0].Digits || o.Digits == waits[1].Digits {
			t.Errorf("two cards are called %d", o.Digits)
		}
	}
	is := func(want ...message.Out) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			cards, err := tx.Cards(ctx, c.Conversation, 1)
			s.same(cards, want)
			return err
		})
	}
	is(waits[0], waits[1], flood[91])
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.EndQuestion(ctx, q.ID, question.Void, "over", at(3))
	})
	is(waits[1], flood[91])
}
