package channels_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/people"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// TestAPlaceThatIsWiredByHandHearsWhatWasSaid holds that the command line answers the question about a place (CH-066, CH-074): what was said
// there last is heard, whom the card names becomes a member, and the card says who has wired it.
func TestAPlaceThatIsWiredByHandHearsWhatWasSaid(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "first")
		s.mentions(bob, hallway, "last")
		card := s.newest(olgaDM).ID
		if _, err := (channels.Places{Channels: s.channels}).Wire(t.Context(), s.where(hallway).ID, channels.Wish{Group: "notes"}, s.By()); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", s.heard(), "notes: last")
		if k, _ := s.person(bob); len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "notes"}) {
			t.Errorf("bob holds %+v", k.Held)
		}
		if shown := s.now(olgaDM, card); len(shown.Buttons) > 0 || !strings.Contains(shown.Text, s.Owner.Name+" wired it to notes") || len(s.questions(hallway)) > 0 {
			t.Errorf("the card shows %+v; %d questions wait", shown, len(s.questions(hallway)))
		}
		s.mentions(bob, hallway, "and this")
		same(t, "heard", s.heard(), "notes: last", "notes: and this")
	})
}

// TestAStrictPlaceThatIsWiredLetsNobodyIn holds that a place which was made strict in the meantime makes nobody a member.
func TestAStrictPlaceThatIsWiredLetsNobodyIn(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "hello")
		all, where := channels.Places{Channels: s.channels}, s.where(hallway).ID
		if _, err := all.SetPolicy(t.Context(), where, conversation.Strict, s.By()); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Wire(t.Context(), where, channels.Wish{Group: "notes"}, s.By()); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", s.heard())
		if k, known := s.person(bob); known || len(s.questions(hallway)) > 0 || s.drops()[string(wiring.PolicyStrict)] != 1 {
			t.Errorf("bob is %+v; dropped %v", k, s.drops())
		}
	})
}

// TestWiringsThatAreImportedHearWhatWasSaid holds that all groups of the import hear it.
func TestWiringsThatAreImportedHearWhatWasSaid(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "hello")
		row := channels.OldRow{Old: wiring.Old{Scope: "all"}, Where: chatName + ":" + hallway.Address, Group: "echo"}
		other := row
		other.Group = "notes"
		if _, err := (channels.Places{Channels: s.channels}).Import(t.Context(), []channels.OldRow{row, other}, s.By()); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", slices.Sorted(slices.Values(s.heard())), "echo: hello", "notes: hello")
		if n := len(s.questions(hallway)); n > 0 {
			t.Errorf("%d questions wait", n)
		}
	})
}

// TestAWiringIsImportedBeforeAnythingWasSaidThere holds that older data is taken over at once: the place is heard from its first word, and is
// of the kind that its platform says (CH-005).
func TestAWiringIsImportedBeforeAnythingWasSaidThere(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.lives()
		row := channels.OldRow{Old: wiring.Old{Scope: "all"}, Where: chatName + ":" + room.Address, Group: "echo"}
		all, err := (channels.Places{Channels: s.channels}).Import(t.Context(), []channels.OldRow{row, row}, s.By())
		if err != nil || len(all) != 1 || len(all[0].Wirings) != 1 || all[0].Address != room.Address {
			t.Fatalf("%+v, %v", all, err)
		}
		s.says(dan, room, "hello")
		same(t, "heard", s.heard(), "echo: hello")
		if is := s.where(room); is.ID != all[0].ID || is.Kind != room.Kind || is.Name != room.Name {
			t.Errorf("the place is %+v", is)
		}

		for where, want := range map[string]problem.Kind{chatName + ":": problem.Usage, chatName + ":a\x00b": problem.Usage, "none:room": problem.NotFound, chatName: problem.Usage} {
			row.Where = where
			if _, err := (channels.Places{Channels: s.channels}).Import(t.Context(), []channels.OldRow{row}, s.By()); problem.KindOf(err) != want {
				t.Errorf("%q: %v", where, err)
			}
		}
	})
}

// TestWhoIsGivenARoleIsHeard holds that a role given at the command line lets in who waits for it, and nobody else.
func TestWhoIsGivenARoleIsHeard(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.know(bob, right.Held{Role: right.Member, Group: "notes"})
		s.know(cyd)
		for _, p := range []channeltest.Person{bob, cyd} {
			s.wire(channeltest.DirectOf(p), "echo")
		}
		s.lives()
		s.tells(bob, "it is bob")
		s.tells(cyd, "it is cyd")
		home := people.People{Ledger: s.control.Ledger, Groups: s.channels.Groups, Granted: s.channels.HearKnown}
		if _, err := home.Grant(t.Context(), s.By(), "bob", right.Held{Role: right.Member, Group: "echo"}); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", s.heard(), "echo: it is bob")
		if bobs, cyds := len(s.questions(channeltest.DirectOf(bob))), len(s.questions(channeltest.DirectOf(cyd))); bobs != 0 || cyds != 1 {
			t.Errorf("%d questions wait about bob, %d about cyd", bobs, cyds)
		}
	})
}

// TestWhoLinksTheirAccountIsHeard holds that a code settles what waits about its account as a role does, and nothing about others.
func TestWhoLinksTheirAccountIsHeard(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		who, code := id.NewPerson(), person.NewCode()
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			return errors.Join(tx.AddPerson(ctx, person.Person{ID: who, Name: "robert"}), tx.Grant(ctx, who, right.Held{Role: right.Member, Group: "echo"}),
				tx.PutCode(ctx, person.Code{Hash: code.Hash(), Person: who, Expires: time.Now().Add(person.CodeFor)}))
		})
		bobDM, cydDM := channeltest.DirectOf(bob), channeltest.DirectOf(cyd)
		s.wire(bobDM, "echo")
		s.wire(cydDM, "echo")
		s.lives()
		s.tells(bob, "it is bob")
		card := s.newest(olgaDM).ID
		s.tells(cyd, "it is cyd")
		s.tells(bob, code.String())
		same(t, "heard", s.heard(), "echo: it is bob")
		if shown := s.now(olgaDM, card); len(shown.Buttons) > 0 || !strings.Contains(shown.Text, "bob is known by this account now") {
			t.Errorf("the card shows %+v", shown)
		}
		if bobs, cyds := len(s.questions(bobDM)), len(s.questions(cydDM)); bobs != 0 || cyds != 1 {
			t.Errorf("%d questions wait about bob, %d about cyd", bobs, cyds)
		}
	})
}

// TestWhoSpokeBeforeThePlaceWasWiredIsAskedAbout holds that a place which is wired because its owner speaks there (CH-062) leaves no question
// about itself, and makes a member of nobody.
func TestWhoSpokeBeforeThePlaceWasWiredIsAskedAbout(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "it is bob")
		s.mentions(olga, hallway, "it is olga")
		same(t, "heard", s.heard(), "echo: it is olga")
		if open := s.questions(hallway); len(open) != 1 || open[0].Kind != question.Sender {
			t.Errorf("these wait: %+v", open)
		}
		s.press(olga, olgaDM, channels.Allow)
		same(t, "heard", s.heard(), "echo: it is olga", "echo: it is bob")
	})
}

// TestAChannelThatIsRemovedWithdrawsItsQuestions holds CH-901 and CH-904: no card waits for an answer that nobody can give.
func TestAChannelThatIsRemovedWithdrawsItsQuestions(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.addChannel("other")
		s.others["other"] = channeltest.NewScripted()
		s.lives()
		s.others["other"].Say(t, channeltest.Saying{By: bob, Place: hallway, Text: "hello", Mention: true})
		card := s.newest(olgaDM)
		var open []question.Question
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.PendingQuestions(ctx, "other")
			for _, of := range all {
				q, wrong := tx.Question(ctx, of)
				open, err = append(open, q), wrong
			}
			return err
		})
		if len(open) != 1 || len(card.Buttons) == 0 {
			t.Fatalf("these wait: %+v, on %+v", open, card)
		}

		if _, err := (channels.Places{Channels: s.channels}).Remove(t.Context(), "other", s.By()); err != nil {
			t.Fatal(err)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			q, err := tx.Question(ctx, open[0].ID)
			if q.Outcome != question.Void || q.Reason != "the channel other was removed" {
				t.Errorf("%+v", q)
			}
			return err
		})
		if shown := s.now(olgaDM, card.ID); len(shown.Buttons) > 0 || !strings.Contains(shown.Text, "the channel other was removed") {
			t.Errorf("the card shows %+v", shown)
		}
	})
}

// TestWhoLetSomebodyInIsInTheAudit is CH-058: who was let in, where, by whom, and what was answered.
func TestWhoLetSomebodyInIsInTheAudit(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.press(olga, olgaDM, channels.WireTo+"notes")
		k, _ := s.person(bob)
		same(t, "the audit has", s.audited(), "answered: agent-group-notes", "wired: group notes: mention, all, drop", "added: "+k.Name, "linked: chat:U2",
			"was given a role: member of notes")
	})
}

// TestWhoWiresAPlaceBySpeakingThereIsInTheAudit holds it for a place that is wired without a question (CH-062).
func TestWhoWiresAPlaceBySpeakingThereIsInTheAudit(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.lives()
		s.tells(olga, "good morning")
		same(t, "the audit has", s.audited(), "wired: group echo: pattern ., all, drop")
	})
}

// audited is what the owner did, as the audit has it.
func (s *scene) audited() (all []string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		entries, err := tx.Entries(ctx, "", 0, 100)
		for _, e := range entries {
			if e.Actor.Person == s.Owner.ID {
				all = append(all, e.Verb+": "+e.Reason)
			}
		}
		return err
	})
	return all
}
