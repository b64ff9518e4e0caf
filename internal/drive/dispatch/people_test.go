package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/mount"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// somebody is a person of the home, as a platform has authenticated them, and where they are alone with the assistant.
type somebody struct {
	by     audit.Actor
	direct id.Conversation
}

// knows makes somebody a person with roles.
func (s *changing) knows(name, platform string, held ...right.Held) (p somebody) {
	s.T.Helper()
	i := person.Identity{Platform: platform, Account: "U-" + name}
	p.by = audit.Actor{Kind: "person", Name: name, UID: -1, Person: id.Person("psn-0000" + name + "0"), Identity: i.String()}
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		if err := tx.AddPerson(ctx, person.Person{ID: p.by.Person, Name: name}); err != nil {
			return err
		}
		if err := tx.Link(ctx, i, p.by.Person, name); err != nil {
			return err
		}
		where, err := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: platform, Address: name, Kind: conversation.Direct, Name: name, Created: time.Now()})
		if err != nil {
			return err
		}
		p.direct = where.ID
		for _, h := range held {
			if err := tx.Grant(ctx, p.by.Person, h); err != nil {
				return err
			}
		}
		return tx.NoteDirect(ctx, i, where.ID)
	})
	return p
}

// origin is the conversation in which the change was asked for.
func (s *changing) origin() id.Conversation { return s.scene.chat(s.chat).Conversation }

// cards are those of a conversation, which have arrived there.
func (s *changing) cards(in id.Conversation) (all []message.Out) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		if all, err = tx.Cards(ctx, in, 100); err != nil {
			return err
		}
		for _, o := range all {
			if err := tx.NoteDelivery(ctx, o.ID, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	time.Sleep(time.Second)
	return all
}

// texts are what a conversation was sent.
func (s *changing) texts(in id.Conversation) (all []string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		cards, err := tx.Cards(ctx, in, 1)
		if err != nil || len(cards) == 0 {
			return err
		}
		outs, err := tx.Outs(ctx, cards[0].Chat, 0, 0, 1000)
		for _, o := range outs {
			all = append(all, o.Text)
		}
		return err
	})
	return all
}

// hears has words come in from a platform; they are done if they decide.
func (s *changing) hears(p somebody, in id.Conversation, said dispatch.Said) (m message.In, decides bool) {
	s.T.Helper()
	m, decides = s.reads(p, in, said)
	if m.Open() {
		if err := (dispatch.Voices{Dispatcher: s.d}).CarryOut(s.T.Context(), m, m.Text); err != nil {
			s.T.Fatal(err)
		}
		m = s.now(m.ID)
	}
	synctest.Wait()
	return m, decides
}

// reads has words come in, and what they decide not be done yet.
func (s *changing) reads(p somebody, in id.Conversation, said dispatch.Said) (m message.In, decides bool) {
	s.T.Helper()
	s.cards(in)
	said.By, said.Name = p.by, p.by.Name
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		i, _, err := tx.AddIntake(ctx, message.Intake{Conversation: in, Received: time.Now(), Outcome: message.Stored})
		if err == nil {
			m, decides, err = dispatch.Voices{Dispatcher: s.d}.Decide(ctx, tx, in, i, said)
		}
		return err
	})
	return m, decides
}

func words(text string) dispatch.Said { return dispatch.Said{Text: text} }

func admin(of string) right.Held  { return right.Held{Role: right.GroupAdmin, Group: of} }
func member(of string) right.Held { return right.Held{Role: right.Member, Group: of} }

// A change is approved by who has the role, where the card reached them, and confirmed where it was asked for (SM-080, SM-140, CH-905).
func TestAGroupsAdminApprovesOnAnotherPlatformAndConfirmsWhereItWasAskedFor(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada, gil, may := s.knows("ada", "slack", admin("echo")), s.knows("gil", "irc", admin("other")), s.knows("may", "irc", member("echo"))
		nobody := somebody{by: audit.Actor{Kind: "person", Name: "x", UID: -1, Identity: "irc:~ada"}}
		s.askAgain(right.Group)
		name := string(s.change)
		if got := s.texts(ada.direct); len(got) != 3 || !strings.HasPrefix(got[0], "The group echo asks for this in “echo” on terminal.\n"+name+"  Greet people by name\n") || got[2] != "May "+name+" land?\n1. approve\n2. refuse" {
			t.Errorf("the admin is shown %q", got)
		}
		if other := len(s.cards(gil.direct)) + len(s.cards(may.direct)); other != 0 {
			t.Errorf("%d others are asked", other)
		}

		for _, who := range []somebody{gil, may, nobody} {
			for _, in := range []id.Conversation{s.origin(), ada.direct} {
				for _, text := range []string{"approve", "refuse", "1"} {
					if m, decides := s.hears(who, in, words(text)); decides {
						t.Errorf("%s says %q: %+v", who.by.Name, text, m.Decides)
					}
				}
			}
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		if m, decides := s.hears(ada, ada.direct, words("approve")); !decides || m.Decides.Problem != "" {
			t.Errorf("the admin approves: %+v", m)
		}
		s.Asked(s.control, s.change)
		for _, in := range []id.Conversation{s.origin(), ada.direct} {
			if n := drivetest.Count(s.texts(in), "ada approved "+name+". sallyport lands it now."); n != 1 {
				t.Errorf("that it was approved is told %d times: %q", n, s.texts(in))
			}
		}

		if got := s.texts(ada.direct); got[len(got)-1] != "This is about the group echo, in “echo” on terminal.\n"+trial.Message1 {
			t.Errorf("message 1 is shown to who approved it as %q", got)
		}
		if other := len(s.cards(gil.direct)) + len(s.cards(may.direct)); other != 0 {
			t.Errorf("%d others are shown message 1", other)
		}
		for _, who := range []somebody{gil, may, nobody} {
			for _, in := range []id.Conversation{s.origin(), ada.direct} {
				if m, decides := s.hears(who, in, words("confirm")); decides {
					t.Errorf("%s confirms: %+v", who.by.Name, m.Decides)
				}
			}
		}
		for how, said := range map[string]dispatch.Said{
			"quoted": {Text: "confirm", Quote: prompt.Quote{From: "ada", Text: "confirm"}}, "forwarded": {Text: "confirm", Forwarded: true},
			"a reply": {Text: "confirm", Answers: true}, "edited": {Text: "confirm", Edited: true}, "of a bot": {Text: "confirm", Bot: true},
		} {
			if m, decides := s.hears(ada, s.origin(), said); decides {
				t.Errorf("%s: %+v", how, m.Decides)
			}
		}
		s.Is(s.control, s.change, change.InTrial)
		if m, decides := s.hears(ada, s.origin(), words("confirm")); !decides || m.Decides.Problem != "" {
			t.Errorf("who approved it confirms: %+v", m)
		}
		s.Is(s.control, s.change, change.Finalized)
		if got := s.texts(ada.direct); got[len(got)-1] != name+" is landed and kept: confirmed by ada" {
			t.Errorf("who was asked is told %q", got)
		}
	})
}

// Who approved a change in a conversation of their own ends its trial there, and is told how it ended (SM-140).
func TestWhoApprovedAChangeElsewhereEndsItsTrialThere(t *testing.T) {
	for word, end := range map[string]change.State{"confirm": change.Finalized, "rollback": change.RolledBack} {
		asksThere(t, "", func(t *testing.T, s *changing) {
			ada := s.knows("ada", "slack", admin("echo"))
			s.askAgain(right.Group)
			s.hears(ada, ada.direct, words("approve"))
			s.Asked(s.control, s.change)
			if m, decides := s.hears(ada, ada.direct, words(word)); !decides || m.Decides.Problem != "" {
				t.Errorf("%s: %+v", word, m)
			}
			d := s.Is(s.control, s.change, end)
			told := d.Change.Reason
			if end == change.Finalized {
				told = string(s.change) + " is landed and kept: confirmed by ada"
			}
			for _, in := range []id.Conversation{s.origin(), ada.direct} {
				if n := drivetest.Count(s.texts(in), told); n != 1 {
					t.Errorf("%q is told %d times: %q", told, n, s.texts(in))
				}
			}
		})
	}
}

// What the template is to have is said by who approved the change, or the owner, and what cannot be done is told as that, with the way to
// have it done after all (SM-150, SM-152).
func TestAPromotionThatFailsIsToldAndNotLost(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada, bea := s.knows("ada", "slack", admin("echo")), s.knows("bea", "irc", admin("echo"))
		s.askAgain(right.Group)
		s.hears(ada, ada.direct, words("approve"))
		s.Asked(s.control, s.change)
		s.hears(ada, ada.direct, words("confirm"))
		s.Is(s.control, s.change, change.Finalized)
		s.Tx(func(ctx context.Context, tx store.Tx) error { // of what is no group's, so nothing can be promoted
			q := question.New(s.change.Subject(), "To the template?", []string{"Apply to template", "Keep local to echo"}, time.Now())
			q.Kind, q.Words = question.Promote, false
			err := question.Put(ctx, tx, q)
			for _, in := range []id.Conversation{ada.direct, bea.direct} {
				chat, err2 := ledger.HostChat(ctx, tx, in)
				_, err3 := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardPromote, Question: q.ID, Change: s.change, Text: q.Text(), At: time.Now()})
				err = errors.Join(err, err2, err3)
			}
			return err
		})
		if m, decides := s.hears(bea, bea.direct, words("apply to template")); decides && m.Decides.Kind == decide.Decided {
			t.Errorf("by who has not approved it: %+v", m)
		}
		s.d.Quiet = func() string { return "a host change is on trial" }
		m, decides := s.hears(ada, ada.direct, words("apply to template"))
		if want := "Nothing is decided: a host change is on trial, and no other change begins meanwhile; answer again after that"; !decides || m.Reason != want {
			t.Errorf("while the host is quiet: told %q: %+v", m.Reason, m.Decides)
		}
		s.d.Quiet = nil
		m, decides = s.hears(ada, ada.direct, words("apply to template"))
		want := "The template was not changed: " + string(s.change) + " has nothing that the template could have: it is finalized; next: sallyport change show " + string(s.change) +
			"\nTo have it changed after that: sallyport group promote " + string(s.change)
		if !decides || m.Decides.Problem != problem.Conflict || m.Reason != want {
			t.Errorf("told %q: %+v", m.Reason, m.Decides)
		}
		for _, in := range []id.Conversation{s.origin(), ada.direct, bea.direct} {
			if drivetest.Count(s.texts(in), want) != 1 {
				t.Errorf("what became of it is told as %q", s.texts(in))
			}
		}
	})
}

// How a folder is shown is said by who would approve the change, where it was asked for or where they are alone with the assistant (CH-026).
func TestAGroupsAdminSaysHowAFolderIsShown(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		s.end()
		told := &wishes{s: s.scene}
		s.swaps = told
		s.begin(t)
		ada, gil := s.knows("ada", "slack", admin("echo")), s.knows("gil", "irc", admin("other"))
		s.askAgain(right.Group)
		row := s.Show(s.control, s.change).Change
		asks := func(write bool) error {
			return s.control.SettleMounts(gittest.Context(t), row, []group.NewWish{{Wish: mount.Wish{Path: "/srv/box", Write: write}, Of: "echo"}})
		}
		if err := asks(true); !errors.Is(err, ledger.ErrAsked) {
			t.Errorf("it is shown without a word: %v", err)
		}
		if m, decides := s.hears(gil, ada.direct, words("read-write")); decides {
			t.Errorf("by who may not: %+v", m.Decides)
		}
		if got := s.texts(ada.direct); !strings.HasPrefix(got[len(got)-1], "The group echo asks for this in “echo” on terminal.\n"+string(s.change)+" is to show the agent of echo this folder") {
			t.Errorf("it is asked as %q", got)
		}
		if m, decides := s.hears(ada, ada.direct, words("read-write")); !decides || m.Decides.Problem != "" {
			t.Errorf("the admin says: %+v", m)
		}
		if err := asks(true); err != nil || len(told.told) != 1 {
			t.Errorf("afterwards: %v, the dev agent is told %q", err, told.told)
		}
		if got := s.texts(s.origin()); !strings.HasPrefix(got[len(got)-1], "The folder is to be read-write") {
			t.Errorf("it is told as %q", got)
		}
	})
}

// What another group is shown by a change is not said by the admin of the group that changes, nor by its own, but by the owner (CH-026, SM-070).
func TestTheOwnerSaysHowAnotherGroupIsShownAFolder(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		s.end()
		told := &wishes{s: s.scene}
		s.swaps = told
		s.begin(t)
		ada, gil := s.knows("ada", "slack", admin("echo")), s.knows("gil", "irc", admin("other"))
		s.askAgain(right.Group)
		row, before := s.Show(s.control, s.change).Change, len(s.texts(ada.direct))
		asks := func(write bool) error {
			return s.control.SettleMounts(gittest.Context(t), row, []group.NewWish{{Wish: mount.Wish{Path: "/srv/box", Write: write}, Of: "other"}})
		}
		if err := asks(true); !errors.Is(err, ledger.ErrAsked) {
			t.Errorf("it is shown without a word: %v", err)
		}
		if n := len(s.texts(ada.direct)); n != before {
			t.Errorf("the admin of the group that changes is asked: %q", s.texts(ada.direct))
		}
		want := string(s.change) + " is to show the agent of other this folder"
		if got := s.texts(s.origin()); !strings.HasPrefix(got[len(got)-1], want) {
			t.Errorf("it is asked as %q", got[len(got)-1])
		}
		for _, who := range []somebody{ada, gil} {
			if m, decides := s.hears(who, s.origin(), words("read-write")); decides {
				t.Errorf("by %s, who may not: %+v", who.by.Name, m.Decides)
			}
		}
		if m, decides := s.hears(somebody{by: s.By()}, s.origin(), words("read-only")); !decides || m.Decides.Problem != "" {
			t.Errorf("the owner says: %+v", m)
		}
		if err := asks(true); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "in mounts of runner.yaml of the group other") {
			t.Errorf("it is written all the same: %v", err)
		}
		if err := asks(false); err != nil {
			t.Errorf("as the owner says: %v", err)
		}
	})
}

// A role that was taken away counts no more, whenever that was (SM-911).
func TestARoleThatWasTakenAwayApprovesNothing(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada := s.knows("ada", "slack", admin("echo"))
		s.askAgain(right.Group)
		revoke := func() {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Revoke(ctx, ada.by.Person, admin("echo"))
				return err
			})
		}
		m, decides := s.reads(ada, ada.direct, words("approve"))
		revoke()
		if err := (dispatch.Voices{Dispatcher: s.d}).CarryOut(t.Context(), m, m.Text); err != nil || !decides {
			t.Error(decides, err)
		}
		if m = s.now(m.ID); !strings.HasPrefix(m.Reason, "Nothing is decided: ") || m.Decides.Problem == "" {
			t.Errorf("taken away before it was done: %+v", m)
		}
		if m, decides := s.hears(ada, ada.direct, words("approve")); decides {
			t.Errorf("taken away before it was said: %+v", m.Decides)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
	})
}

// Where the policy wants two people, the first yes is told and the second lands it; one no ends it (SM-911, SM-912).
func TestWhereTwoApproveTheFirstIsToldAndTheSecondLandsIt(t *testing.T) {
	for _, second := range []string{"approve", "refuse"} {
		asksThere(t, "", func(t *testing.T, s *changing) {
			s.end()
			s.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Approvals: right.Rules{People: 2}}}
			s.begin(t)
			ada, gil := s.knows("ada", "slack", admin("echo")), s.knows("gil", "irc", right.Held{Role: right.GlobalAdmin})
			s.askAgain(right.Group)
			for range 2 {
				s.hears(ada, ada.direct, words("approve"))
			}
			s.Is(s.control, s.change, change.AwaitingApproval)
			for _, in := range []id.Conversation{s.origin(), ada.direct, gil.direct} {
				if n := drivetest.Count(s.texts(in), "ada approved "+string(s.change)+": 1 of 2. It lands once another has approved it."); n != 1 {
					t.Errorf("the first yes is told %d times: %q", n, s.texts(in))
				}
			}
			s.hears(gil, gil.direct, words(second))
			if second == "refuse" {
				s.Is(s.control, s.change, change.Rejected)
				return
			}
			s.Asked(s.control, s.change)
			if m, decides := s.hears(ada, s.origin(), words("confirm")); !decides || m.Decides.Problem != "" {
				t.Errorf("the first of those who approved confirms: %+v", m)
			}
			s.Is(s.control, s.change, change.Finalized)
		})
	}
}

// failing has every approval fail.
type failing struct{ dispatch.Changes }

func (failing) Approve(context.Context, id.Approval, proposal.Digest, audit.Actor, approve.Words) error {
	return problem.New(problem.Unavailable, "no way with ghp_"+"9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi")
}

// Why an answer decided nothing may be words of git or of a disk.
func TestWhyAnAnswerDecidedNothingIsKeptWithoutSecrets(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada := s.knows("ada", "slack", admin("echo"))
		s.askAgain(right.Group)
		m, _ := s.reads(ada, ada.direct, words("approve"))
		s.d.Changes = failing{s.d.Changes}
		if err := (dispatch.Voices{Dispatcher: s.d}).CarryOut(t.Context(), m, m.Text); err != nil {
			t.Fatal(err)
		}
		if m = s.now(m.ID); m.Reason != "Nothing is decided: no way with [secret: github-token]" {
			t.Errorf("%q", m.Reason)
		}
	})
}

// Two who answer in the same second on two platforms are one decision, and the later hears who was first (SM-911, CH-904).
func TestTwoAnswersFromTwoPlatformsAtOnceAreOneDecision(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada, bea := s.knows("ada", "slack", admin("echo")), s.knows("bea", "irc", admin("echo"))
		s.askAgain(right.Group)
		first, _ := s.reads(ada, ada.direct, words("approve"))
		second, _ := s.reads(bea, bea.direct, words("refuse"))
		for _, m := range []message.In{first, second} {
			if err := (dispatch.Voices{Dispatcher: s.d}).CarryOut(t.Context(), m, m.Text); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if m := s.now(second.ID); !strings.HasPrefix(m.Reason, "Nothing is decided: ") || !strings.Contains(m.Reason, "ada approved") {
			t.Errorf("the later one hears %q", m.Reason)
		}
		s.Asked(s.control, s.change)
		if v := s.Verbs(s.control, s.change); drivetest.Count(v, "approved") != 1 || drivetest.Count(v, "refused") != 0 {
			t.Errorf("the audit log says %q", v)
		}
	})
}

// A change is not approved where a part of what its card shows has not arrived, however it is said; it is refused there.
func TestAChangeIsNotApprovedWhereAPartOfItsDiffHasNotArrived(t *testing.T) {
	for name, lost := range map[string]func(message.Delivery) message.Delivery{
		"refused by the platform": func(d message.Delivery) message.Delivery { return d.Dead("a word that is not allowed", time.Now()) },
		"still waiting":           func(d message.Delivery) message.Delivery { return d.Again("a bad gateway", time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			asksThere(t, "", func(t *testing.T, s *changing) {
				s.Tx(func(ctx context.Context, tx store.Tx) error {
					return tx.PutChannel(ctx, conversation.Channel{Name: "slack", Platform: "slack", Settings: map[string]string{}, Added: time.Now()})
				})
				ada := s.knows("ada", "slack", admin("echo"))
				arrive := func(piece func(message.Delivery) message.Delivery) (card message.Out) {
					cards := s.cards(ada.direct)
					card = cards[len(cards)-1]
					s.Tx(func(ctx context.Context, tx store.Tx) error {
						outs, err := tx.Outs(ctx, card.Chat, 0, 0, 100)
						for i, o := range outs {
							d, _, err2 := tx.Delivery(ctx, o.ID)
							switch {
							case err2 != nil || d.Status != message.Waiting:
								err = errors.Join(err, err2)
							case i == len(outs)-2: // the last piece of the diff
								err = errors.Join(err, tx.MoveDelivery(ctx, piece(d)))
							default:
								err = errors.Join(err, tx.MoveDelivery(ctx, d.Arrived("p", 1, time.Now())))
							}
						}
						return err
					})
					return card
				}
				show := func(card message.Out) (text string, keys []string) {
					s.Tx(func(ctx context.Context, tx store.Tx) error {
						told, options, _, err := dispatch.Voices{Dispatcher: s.d}.Show(ctx, tx, card)
						text = told
						for _, o := range options {
							keys = append(keys, o.Key)
						}
						return err
					})
					return text, keys
				}

				s.askAgain(right.Group)
				card := arrive(lost)
				next := "sallyport approve " + string(s.change)
				if text, keys := show(card); !slices.Equal(keys, []string{"refuse"}) || !strings.Contains(text, next) || strings.Contains(text, "1. approve") {
					t.Errorf("it is shown with %q: %q", keys, text)
				}
				for _, said := range []dispatch.Said{words("approve"), words(strconv.Itoa(card.Digits) + " approve"), {Card: card.ID, Text: "approve"}} {
					if m, _ := s.hears(ada, ada.direct, said); m.Open() || m.Decides != nil && m.Decides.Kind == decide.Decided {
						t.Errorf("%+v: %+v", said, m.Decides)
					}
				}
				if m, decides := s.hears(ada, ada.direct, words("approve")); !decides || !strings.Contains(m.Reason, "has not arrived here") || !strings.HasSuffix(m.Reason, next) {
					t.Errorf("told %q", m.Reason)
				}
				s.Is(s.control, s.change, change.AwaitingApproval)

				// What did not arrive of an older card says nothing of a newer one.
				s.askAgain(right.Group)
				card = arrive(func(d message.Delivery) message.Delivery { return d.Arrived("p", 1, time.Now()) })
				if text, keys := show(card); !slices.Equal(keys, []string{"approve", "refuse"}) || text != card.Text {
					t.Errorf("it is shown with %q: %q", keys, text)
				}
			})
		})
	}
}

// A button does what it shows, for who may, once; and an old card shows how it ended wherever it stands (CH-904, CH-905).
func TestAButtonIsPressedByWhoMayAndOnce(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		ada, gil := s.knows("ada", "slack", admin("echo")), s.knows("gil", "irc", admin("other"))
		s.askAgain(right.Group)
		cards := s.cards(ada.direct)
		card := cards[len(cards)-1]
		press := func(of id.Out, key string) dispatch.Said { return dispatch.Said{Card: of, Text: key} }
		for what, c := range map[string]struct {
			by somebody
			of id.Out
			in id.Conversation
		}{
			"by somebody else":            {gil, card.ID, ada.direct},
			"of a card that is none":      {ada, "out-forged000", ada.direct},
			"of a card that is not there": {ada, card.ID, s.origin()},
		} {
			if m, decides := s.hears(c.by, c.in, press(c.of, "approve")); decides {
				t.Errorf("a press %s: %+v", what, m.Decides)
			}
		}
		for _, key := range []string{"CONFIRM HOST", "1", "confirm", ""} {
			if m, decides := s.hears(ada, ada.direct, press(card.ID, key)); decides {
				t.Errorf("a press of %q, which no button has: %+v", key, m.Decides)
			}
		}

		buttons := func(of id.Out) (keys []string, outcome string) {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				o, err := tx.Out(ctx, of)
				if err != nil {
					return err
				}
				_, options, told, err := dispatch.Voices{Dispatcher: s.d}.Show(ctx, tx, o)
				for _, b := range options {
					keys = append(keys, b.Key)
				}
				outcome = told
				return err
			})
			return keys, outcome
		}
		if keys, outcome := buttons(card.ID); !slices.Equal(keys, []string{"approve", "refuse"}) || outcome != "" {
			t.Errorf("it has %q, %q", keys, outcome)
		}
		if m, decides := s.hears(ada, ada.direct, press(card.ID, "approve")); !decides || m.Decides.Problem != "" {
			t.Errorf("pressed: %+v", m)
		}
		s.Asked(s.control, s.change)
		for _, in := range []id.Conversation{ada.direct, s.origin()} {
			for _, o := range s.cards(in) {
				if o.Question != card.Question {
					continue
				}
				if keys, outcome := buttons(o.ID); len(keys) != 0 || !strings.Contains(outcome, "ada answered already") {
					t.Errorf("the old card shows %q, %q", keys, outcome)
				}
			}
		}
		if m, decides := s.hears(ada, ada.direct, press(card.ID, "refuse")); !decides || m.Decides.Kind != decide.Over {
			t.Errorf("pressed again: %+v", m)
		}
		if v := s.Verbs(s.control, s.change); drivetest.Count(v, "approved") != 1 || drivetest.Count(v, "refused") != 0 {
			t.Errorf("the audit log says %q", v)
		}
	})
}

// In the host's own chat no agent reads along: words that decide nothing are for nobody, and who says them is told what the chat is for.
func TestWordsThatDecideNothingInTheHostsOwnChatReachNoAgent(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, end := s.lives()
		defer end()
		m, err := d.Say(gittest.Context(t), dispatch.Said{Group: group.Host, Text: "hello", Account: "1000", Name: "ann", By: s.By()})
		if err != nil || m.Status != message.Completed || !strings.Contains(m.Reason, "No assistant reads along here") {
			t.Errorf("%+v, %v", m, err)
		}
		synctest.Wait()
		if s.started() != 0 {
			t.Errorf("%d agents began", s.started())
		}
	})
}
