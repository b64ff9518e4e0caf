package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// TestAHandleEndsNoTrial holds that whoever takes the nick of somebody who has asked for a change is not taken for them, and neither are they
// themselves: nothing says that it is they. An account asks, and ends what it asked for.
func TestAHandleEndsNoTrial(t *testing.T) {
	b := open(t)
	ctx := t.Context()
	for identity, want := range map[string]right.Party{
		"irc:mia":        {Identity: "irc:mia"},
		"irc:~mia":       {},
		"telegram:7":     {Person: "psn-bob", Identity: "telegram:7"},
		"irc:~bob":       {},
		"agent:chg-1":    {},
		"irc:":           {},
		"":               {},
		"irc":            {},
		"slack:T1/U1:~x": {Identity: "slack:T1/U1:~x"},
	} {
		var chat conversation.Chat
		row := b.add(change.InTrial, func(r *change.Row) { r.Request.Kind = request.Swap })
		b.do(func(tx store.Tx) (err error) {
			if _, there, _ := tx.Whose(ctx, person.Identity{Platform: "telegram", Account: "7"}); !there {
				if err := tx.AddPerson(ctx, person.Person{ID: "psn-bob", Name: "bob"}); err != nil {
					return err
				}
				for _, i := range []person.Identity{{Platform: "telegram", Account: "7"}, {Platform: "irc", Account: "~bob"}} {
					if err := tx.Link(ctx, i, "psn-bob", "bob"); err != nil {
						return err
					}
				}
			}
			chat, row.Request.Wish, err = said(ctx, tx, identity)
			row.Request.Chat = chat.ID
			return err
		})
		b.do(func(tx store.Tx) error {
			if got, err := ledger.Requester(ctx, tx, row.Request); err != nil || got != want {
				t.Errorf("%q asked: %+v (%v), want %+v", identity, got, err, want)
			}
			tried, err := ledger.Tried(ctx, tx, row)
			by := audit.Actor{Kind: "person", Name: "somebody", UID: -1, Person: want.Person, Identity: identity}
			if may := tried.EndedBy(ledger.PartyOf(by)) != ""; may != (want != right.Party{}) {
				t.Errorf("%q may end the trial: %t", identity, may)
			}
			return err
		})
	}
}

// Whoever answers the agent's question wishes what it asked them about, and no task and no word of the host's is anybody's.
func TestAnAnswerIsAWishAndNothingElseThatWakesIs(t *testing.T) {
	b := open(t)
	for kind, want := range map[prompt.Kind]right.Party{
		prompt.Chat: {Identity: "irc:mia"}, prompt.Answer: {Identity: "irc:mia"}, prompt.Task: {}, prompt.System: {},
	} {
		b.do(func(tx store.Tx) error {
			chat, wish, err := said(t.Context(), tx, "irc:mia", kind)
			if err != nil {
				return err
			}
			got, err := ledger.Requester(t.Context(), tx, request.Request{Kind: request.Swap, Chat: chat.ID, Wish: wish})
			if got != want {
				t.Errorf("%s: %+v, not %+v", kind, got, want)
			}
			elsewhere, err2 := ledger.Requester(t.Context(), tx, request.Request{Kind: request.Swap, Chat: "cht-other000", Wish: wish})
			if elsewhere != (right.Party{}) {
				t.Errorf("%s, said in another conversation: %+v", kind, elsewhere)
			}
			return errors.Join(err, err2)
		})
	}
}

// said puts a message of somebody into a chat of its own.
func said(ctx context.Context, tx store.Tx, identity string, kinds ...prompt.Kind) (chat conversation.Chat, of id.Message, err error) {
	where, err := tx.PutConversation(ctx, conversation.Conversation{
		ID: id.NewConversation(), Platform: "irc", Address: string(id.NewChat()), Kind: conversation.Direct, Name: "echo", Created: ledger.Now(),
	})
	if err != nil {
		return chat, "", err
	}
	if chat, err = tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "echo", Conversation: where.ID, Created: ledger.Now()}); err != nil {
		return chat, "", err
	}
	in, _, err := tx.AddIntake(ctx, message.Intake{Conversation: where.ID, Received: ledger.Now(), Outcome: message.Stored})
	if err != nil {
		return chat, "", err
	}
	m, err := tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: in.Seq, Kind: append(kinds, prompt.Chat)[0], Trigger: true, Identity: identity, Sender: "x", Text: "change yourself", At: ledger.Now(),
		Status: message.Pending, Due: ledger.Now(),
	})
	return chat, m.ID, err
}

func TestAHandleAndAnAgentAreNobody(t *testing.T) {
	for who, want := range map[audit.Actor]right.Party{
		{Kind: "person", Person: "psn-bob", Identity: "telegram:7"}: {Person: "psn-bob", Identity: "telegram:7"},
		{Kind: "person", Person: "psn-bob", Identity: "irc:~bob"}:   {},
		{Kind: "agent", Person: "psn-bob", Identity: "telegram:7"}:  {},
	} {
		if got := ledger.PartyOf(who); got != want {
			t.Errorf("%+v is %+v, not %+v", who, got, want)
		}
	}
}

// Everybody whom a group's agent answered may have wished what it asks for: each once, whoever it names first, and no handle.
func TestWhoeverWasHeardMayHaveWished(t *testing.T) {
	b := open(t)
	b.do(func(tx store.Tx) error {
		chat, wish, err := said(t.Context(), tx, "irc:mia")
		if err != nil {
			return err
		}
		all, err := ledger.Wishers(t.Context(), tx, request.Request{Kind: request.Swap, Chat: chat.ID, Wish: wish, Heard: []string{"irc:mia", "irc:~bob", "irc:bob", "irc:bob", ""}})
		if want := []right.Party{{Identity: "irc:mia"}, {Identity: "irc:bob"}}; !slices.Equal(all, want) {
			t.Errorf("%+v, not %+v", all, want)
		}
		return err
	})
}

func TestWhatBecameOfSomebodyIsInTheLog(t *testing.T) {
	b := open(t)
	b.do(func(tx store.Tx) error {
		return ledger.NotePerson(t.Context(), tx, alice, "psn-bob", "forgotten", "they asked for it")
	})
	if got := b.entries(); !slices.Equal(got, []string{"alice||psn-bob|forgotten|they asked for it|"}) {
		t.Errorf("the log has %q", got)
	}
}
