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

// TestACodeThatIsSeenElsewhereIsUsedUp holds that whoever reads a code where it counts for nothing cannot be somebody by it, and that nobody
// but who sent it is told.
func TestACodeThatIsSeenElsewhereIsUsedUp(t *testing.T) {
	for name, c := range map[string]struct {
		say  channeltest.Saying
		told *channel.Place
	}{
		"in a group by somebody known": {say: channeltest.Saying{By: dan, Place: stream, Mention: true}, told: &danDM},
		"in a group by a stranger":     {say: channeltest.Saying{By: bob, Place: stream, Mention: true}},
		"by whom it is no use to":      {say: channeltest.Saying{By: dan, Place: danDM}, told: &danDM},
		"passed on":                    {say: channeltest.Saying{By: dan, Place: danDM, Forwarded: true}, told: &danDM},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.know(dan, right.Held{Role: right.Member, Group: "echo"})
				s.wire(stream, "echo")
				s.wire(danDM, "echo")
				code := person.NewCode()
				s.Tx(func(ctx context.Context, tx store.Tx) error {
					return tx.PutCode(ctx, person.Code{Hash: code.Hash(), Person: s.Owner.ID, Expires: time.Now().Add(person.CodeFor)})
				})
				s.lives()
				c.say.Text = code.String()
				s.platform.Say(t, c.say)
				synctest.Wait()

				for _, at := range []channel.Place{stream, danDM, olgaDM} {
					all := s.texts(at)
					if c.told != nil && at == *c.told {
						if len(all) != 1 || !strings.HasPrefix(all[0], "This code links nothing here") || !strings.Contains(all[0], "sallyport person unlink chat:"+dan.Account) {
							t.Errorf("told in %s: %q", at.Name, all)
						}
					} else if len(all) > 0 {
						t.Errorf("told in %s: %q", at.Name, all)
					}
				}
				same(t, "stored", s.stored("echo"))
				s.tells(cyd, code.String())
				if k, known := s.person(cyd); known {
					t.Errorf("who read the code is %+v", k)
				}
			})
		})
	}
}

// TestWhoTriesTooManyCodesIsToldOnce holds that a right code which comes too soon after wrong ones is not dropped without a word, and that no
// stranger has the host talk.
func TestWhoTriesTooManyCodesIsToldOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		const wrong = 5
		s.lives()
		sends := func() {
			code := person.NewCode()
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				return tx.PutCode(ctx, person.Code{Hash: code.Hash(), Person: s.Owner.ID, Expires: time.Now().Add(person.CodeFor)})
			})
			s.tells(dan, code.String())
		}
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
