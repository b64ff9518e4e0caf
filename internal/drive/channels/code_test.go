package channels_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// TestACodeThatIsSeenElsewhereIsUsedUp holds that whoever reads a code where it counts for nothing cannot be somebody by it, whatever was said
// beside it, that no agent and no card has it, and that nobody but who sent it is told.
func TestACodeThatIsSeenElsewhereIsUsedUp(t *testing.T) {
	unlink, link := "sallyport person unlink chat:"+dan.Account, "next: sallyport person link"
	bobDM := channeltest.DirectOf(bob)
	for name, c := range map[string]struct {
		say  channeltest.Saying // ONE and TWO stand for codes
		told *channel.Place
		next string
	}{
		"in a group by somebody known": {channeltest.Saying{By: dan, Place: stream, Mention: true, Text: "ONE"}, &danDM, unlink},
		"in a group by a stranger":     {channeltest.Saying{By: bob, Place: stream, Mention: true, Text: "ONE"}, nil, ""},
		"by whom it is no use to":      {channeltest.Saying{By: dan, Place: danDM, Text: "ONE"}, &danDM, unlink},
		"passed on":                    {channeltest.Saying{By: dan, Place: danDM, Forwarded: true, Text: "ONE"}, &danDM, unlink},
		"behind a mention":             {channeltest.Saying{By: dan, Place: stream, Mention: true, Text: "<@99887766> ONE"}, &danDM, unlink},
		"behind a nick":                {channeltest.Saying{By: bob, Place: stream, Mention: true, Text: "port: ONE"}, nil, ""},
		"behind a mention, alone":      {channeltest.Saying{By: bob, Place: bobDM, Mention: true, Text: "@port ONE"}, &bobDM, link},
		"in a sentence, alone":         {channeltest.Saying{By: bob, Place: bobDM, Text: "hi, take ONE."}, &bobDM, link},
		"in a longer word, alone":      {channeltest.Saying{By: bob, Place: bobDM, Text: "codeONEx"}, &bobDM, link},
		"two of them":                  {channeltest.Saying{By: dan, Place: danDM, Text: "is it (ONE) or `TWO`?"}, &danDM, unlink},
		"quoted": {
			channeltest.Saying{By: dan, Place: stream, Mention: true, Text: "@port what is this?", Quote: &channel.Quote{From: "olga", Text: "mine:ONE"}}, &danDM, unlink,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.know(dan, right.Held{Role: right.Member, Group: "echo"})
				s.wire(stream, "echo")
				s.wire(danDM, "echo")
				one, two := s.code(), s.code()
				fill := strings.NewReplacer("ONE", one, "TWO", two).Replace
				s.lives()
				if c.say.Text = fill(c.say.Text); c.say.Quote != nil {
					c.say.Quote = &channel.Quote{From: c.say.Quote.From, Text: fill(c.say.Quote.Text)}
				}
				s.platform.Say(t, c.say)
				synctest.Wait()

				for _, at := range []channel.Place{stream, danDM, bobDM, olgaDM} {
					all := s.texts(at)
					if c.told != nil && at == *c.told {
						if len(all) != 1 || !strings.HasPrefix(all[0], "This code links nothing here") || !strings.Contains(all[0], c.next) {
							t.Errorf("told in %s: %q", at.Name, all)
						}
					} else if len(all) > 0 {
						t.Errorf("told in %s: %q", at.Name, all)
					}
				}
				same(t, "stored", s.stored("echo"))
				if n := s.drops()["a code where it links nobody"]; n != 1 {
					t.Errorf("dropped %d times: %v", n, s.drops())
				}
				s.tells(cyd, one)
				if strings.Contains(c.say.Text, two) {
					s.tells(cyd, two)
				}
				if k, known := s.person(cyd); known {
					t.Errorf("who read the code is %+v", k)
				}
			})
		})
	}
}

// TestWordsThatOnlyLookLikeACodeAreHeard holds that what looks like a code and is none is said as anything else, however often, and takes
// nothing from a code that is good.
func TestWordsThatOnlyLookLikeACodeAreHeard(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		const often = 7
		s.member()
		s.wire(danDM, "echo")
		s.lives()
		code := s.code()
		var said []string
		for range often {
			said = append(said, "take "+person.NewCode().String()+", that eats chapters")
			s.tells(dan, said[len(said)-1])
		}
		same(t, "stored", s.stored("echo"), said...)
		s.tells(cyd, code)
		if k, _ := s.person(cyd); k.ID != s.Owner.ID {
			t.Errorf("after that cyd is %+v", k)
		}
	})
}

// code is a new one, good for the owner.
func (s *scene) code() string {
	s.T.Helper()
	code := person.NewCode()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		return tx.PutCode(ctx, person.Code{Hash: code.Hash(), Person: s.Owner.ID, Expires: time.Now().Add(person.CodeFor)})
	})
	return code.String()
}

// TestWhoTriesTooManyCodesIsToldOnce holds that a right code which comes too soon after wrong ones is not dropped without a word, and that no
// stranger has the host talk.
func TestWhoTriesTooManyCodesIsToldOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		const wrong = 5
		s.lives()
		sends := func() { s.tells(dan, s.code()) }
		for range wrong {
			s.tells(dan, person.NewCode().String())
		}
		sends()
		sends()
		same(t, "told", s.texts(danDM), "Too many codes were tried from this account. Send yours again in 10 minutes.")
		if _, known := s.person(dan); known || s.drops()["too many codes were tried"] != 2 {
			t.Errorf("known: %v; dropped %v", known, s.drops())
		}
		time.Sleep(10 * time.Minute)
		sends()
		if k, _ := s.person(dan); k.ID != s.Owner.ID {
			t.Errorf("after that dan is %+v", k)
		}
	})
}
