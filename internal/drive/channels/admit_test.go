package channels_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// TestWhoIsLetInIsHeardFromTheirFirstWord holds CH-051, CH-052 and CH-055: one question, what came meanwhile is dropped, and what was asked
// about is heard with the time at which it was said.
func TestWhoIsLetInIsHeardFromTheirFirstWord(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.wire(channeltest.DirectOf(bob), "echo")
		s.lives()
		began := time.Now()
		s.tells(bob, "one")
		s.tells(bob, "two")
		time.Sleep(time.Hour)
		same(t, "heard before anybody decides", s.heard())
		if n := len(s.questions(channeltest.DirectOf(bob))); n != 1 {
			t.Errorf("%d questions wait", n)
		}

		s.press(olga, olgaDM, channels.Allow)
		s.tells(bob, "three")
		same(t, "heard", s.heard(), "echo: one", "echo: three")
		if at := s.ins("echo")[0].At; at.Sub(began) > time.Minute {
			t.Errorf("it was said %s after it was said", at.Sub(began))
		}
		if k, _ := s.person(bob); len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "echo"}) {
			t.Errorf("bob holds %+v", k.Held)
		}
	})
}

// TestNoStrangerHidesWhoTheyAre: what they write of themselves is cleaned of secrets piece by piece, so none takes out another, or the host's
// words.
func TestNoStrangerHidesWhoTheyAre(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		mal := channeltest.Person{Account: "deploy4f9aK2xQ7Zt1", Handle: "deploy4f9aK2xQ7Zt1", Name: "curl -u 'admin:hunter2"}
		s.wire(channeltest.DirectOf(mal), "echo")
		s.lives()
		s.tells(mal, "it is Alice' of accounting: ghp_0123456789abcdefghijABCDEFGHIJ012345")
		card := s.newest(olgaDM).Text
		for _, want := range []string{"deploy4f9aK2xQ7Zt1) wants to talk with echo in ", "it is Alice' of accounting: [secret: github-token]”"} {
			if !strings.Contains(card, want) {
				t.Errorf("%q is not shown:\n%s", want, card)
			}
		}
	})
}

// TestWhoIsDeniedIsForgottenAndAskedAboutAgain is CH-056; what the platform hands over again stays denied.
func TestWhoIsDeniedIsForgottenAndAskedAboutAgain(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		s.lives()
		s.tells(bob, "one")
		s.press(olga, olgaDM, channels.Deny)
		s.platform.Again(t, at.Address)
		if n := len(s.questions(at)); n > 0 {
			t.Errorf("%d questions wait", n)
		}
		if _, known := s.person(bob); known {
			t.Error("bob is somebody")
		}

		s.tells(bob, "two")
		if n := len(s.questions(at)); n != 1 {
			t.Errorf("%d questions wait after they wrote again", n)
		}
		same(t, "heard", s.heard())
	})
}

// TestAPlaceIsWiredForItsKindAndHearsWhatWasSaidLast holds CH-066, CH-018, CH-071 and CH-074: a group hears what it is mentioned in, whoever was
// named becomes its member, and the last of what was said is heard once.
func TestAPlaceIsWiredForItsKindAndHearsWhatWasSaidLast(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "first")
		s.mentions(bob, hallway, "last")
		s.press(olga, olgaDM, channels.WireTo+"notes")
		s.platform.Say(t, channeltest.Saying{By: bob, Place: hallway, Text: "not to you"})
		s.mentions(bob, hallway, "and this")
		same(t, "heard", s.heard(), "notes: last", "notes: and this")
		if n := len(s.questions(hallway)); n > 0 {
			t.Errorf("%d questions wait", n)
		}
	})
}

// TestAPlaceThatIsIgnoredIsAskedAboutAgain is CH-068.
func TestAPlaceThatIsIgnoredIsAskedAboutAgain(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "first")
		s.press(olga, olgaDM, channels.Ignore)
		if n := len(s.questions(hallway)); n > 0 {
			t.Errorf("%d questions wait", n)
		}
		s.mentions(bob, hallway, "again")
		if n := len(s.questions(hallway)); n != 1 {
			t.Errorf("%d questions wait after somebody spoke again", n)
		}
		same(t, "heard", s.heard())
	})
}

// TestWithNobodyWhoCanBeAskedNothingWaits holds CH-057 and CH-069: what strangers say is dropped with a reason, and no row is left.
func TestWithNobodyWhoCanBeAskedNothingWaits(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.wire(channeltest.DirectOf(bob), "echo")
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Unlink(ctx, person.Identity{Platform: chatName, Account: olga.Account})
			if err == nil {
				_, err = tx.Unlink(ctx, person.AtTerminal(s.Owner.UID))
			}
			return err
		})
		s.lives()
		s.tells(bob, "hello?")
		s.mentions(eve, hallway, "hello?")
		for _, at := range []channel.Place{channeltest.DirectOf(bob), hallway} {
			if n := len(s.questions(at)); n > 0 {
				t.Errorf("%d questions wait about %s", n, at.Address)
			}
		}
		if n := len(s.drops()); n == 0 {
			t.Error("nothing is told of what was dropped")
		}
	})
}

// TestStrangersOfOneChannelKeepNobodyAwayFromAnother holds the bounds of what waits: of a channel, and of the home.
func TestStrangersOfOneChannelKeepNobodyAwayFromAnother(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		for _, name := range []string{"other", "third"} {
			s.addChannel(name)
			s.others[name] = channeltest.NewScripted()
		}
		s.lives()
		crowd := func(p *channeltest.Scripted) {
			for i := range 30 {
				name := fmt.Sprintf("C%02d", i)
				at := channel.Place{Address: name, Kind: channel.Group, Name: name}
				p.Say(t, channeltest.Saying{By: channeltest.Person{Account: name, Handle: name, Name: name}, Place: at, Text: "hello", Mention: true})
				time.Sleep(time.Minute)
			}
		}
		waiting := func(channel string) (n int) {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				all, err := tx.PendingQuestions(ctx, channel)
				n = len(all)
				return err
			})
			return n
		}
		crowd(s.platform)
		if n := waiting(chatName); n != 15 {
			t.Errorf("%d questions of one channel wait", n)
		}
		crowd(s.others["other"])
		if n, all := waiting("other"), waiting(""); n != 10 || all != 25 {
			t.Errorf("%d questions of another channel wait, %d in all", n, all)
		}
		crowd(s.others["third"])
		if n := waiting("third"); n != 5 {
			t.Errorf("%d questions of a third channel wait: others keep its people away", n)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			chats, err := tx.Chats(ctx, group.Host)
			if len(chats) > 30+2 { // of each question, and where the owner is asked
				t.Errorf("%d rows of chats are there: whom nobody is asked about leaves one", len(chats))
			}
			return err
		})
	})
}

// TestWhoWatchesNothingIsToldThatSomebodyWaits holds that notify.command hears of each stranger and place that somebody is asked about, once.
func TestWhoWatchesNothingIsToldThatSomebodyWaits(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		told := s.Serve()
		s.wire(channeltest.DirectOf(bob), "echo")
		s.lives()
		for range 2 {
			s.tells(bob, "may I?")
			s.mentions(eve, hallway, "hello?")
		}
		same(t, "told", told.Heard(ledger.NoteAdmission),
			"🙋 “bob” (chat:U2) wants to talk with echo in “bob” on chat.\nThey said: “may I?”",
			"🔌 New channel — wire it?\n“eve” (chat:U6) is trying to reach you in “the hallway” on chat. Wire to which agent?")
	})
}

// TestWhatStrangersLeaveBehindGoes holds that places in which somebody spoke once, and that nobody used, are forgotten after their days.
func TestWhatStrangersLeaveBehindGoes(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		end := s.lives()
		s.tells(dan, "hello")
		s.says(bob, hallway, "is anybody there?")
		places := func() (names []string) {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				all, err := tx.Conversations(ctx, chatName)
				for _, c := range all {
					names = append(names, c.Name)
				}
				return err
			})
			return names
		}
		same(t, "at first", places(), "dan", "olga", hallway.Name)
		for range 2 {
			end()
			time.Sleep(message.Kept - time.Hour)
			end = s.lives()
		}
		same(t, "after their days", places(), "dan", "olga")
		s.tells(dan, "again")
		same(t, "heard", s.heard(), "echo: hello", "echo: again")
		s.mentions(bob, hallway, "and now?")
		if n := len(s.questions(hallway)); n != 1 {
			t.Errorf("%d questions wait about somebody who comes again", n)
		}
	})
}

// TestAPlaceSaysWhatBecomesOfStrangers holds CH-050: strict asks nobody, and public lets everybody talk.
func TestAPlaceSaysWhatBecomesOfStrangers(t *testing.T) {
	for policy, want := range map[conversation.Policy]struct {
		heard string
		asked int
	}{conversation.Strict: {}, conversation.Public: {heard: "echo: hello"}, conversation.Request: {asked: 1}} {
		t.Run(string(policy), func(t *testing.T) {
			play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
				at := channeltest.DirectOf(bob)
				where := s.wire(at, "echo")
				s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.SetPolicy(ctx, where.ID, policy) })
				s.lives()
				s.tells(bob, "hello")
				if got := strings.Join(s.heard(), ", "); got != want.heard || len(s.questions(at)) != want.asked {
					t.Errorf("heard %q, %d questions wait", got, len(s.questions(at)))
				}
			})
		})
	}
}

// TestAStrictPlaceThatNobodyHearsAsksNobody holds CH-009 and CH-050 for a place without a group: no card comes of what strangers say there.
func TestAStrictPlaceThatNobodyHearsAsksNobody(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		where := s.where(hallway)
		s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.SetPolicy(ctx, where.ID, conversation.Strict) })
		s.mentions(bob, hallway, "hello")
		if n := len(s.questions(hallway)); n > 0 || s.drops()[string(wiring.PolicyStrict)] != 1 {
			t.Errorf("%d questions wait; dropped %v", n, s.drops())
		}
		s.mentions(olga, hallway, "hello")
		if n := len(s.questions(hallway)); n != 1 {
			t.Errorf("%d questions wait about a place in which the owner speaks", n)
		}
	})
}
