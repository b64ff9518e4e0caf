package channels_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/store"
)

const lostWords = "had no connection to chat for a while"

// TestAPlatformThatIsAwayHoldsUpNoOther holds that one platform being down for ten minutes costs the others no second, and that nothing is
// lost that it kept, in its order.
func TestAPlatformThatIsAwayHoldsUpNoOther(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		s.addChannel("other")
		other := channeltest.NewScripted()
		s.others["other"] = other
		s.lives()
		s.tells(dan, "before")

		s.platform.Leave(t)
		synctest.Wait()
		if st := s.channels.States()[chatName]; st.Connected || st.Reason == "" {
			t.Errorf("it stands as %+v", st)
		}
		for n := range 10 {
			s.tells(dan, fmt.Sprint("meanwhile ", n))
			s.sends(danDM, message.Notice, fmt.Sprint("waits ", n))
			s.sendsBy("other", stream, fmt.Sprint("other ", n))
			if got := other.Arrived(t, stream.Address); len(got) != n+1 {
				t.Errorf("minute %d: %d have arrived by the other platform", n, len(got))
			}
			time.Sleep(time.Minute)
		}
		same(t, "while it is away", s.texts(danDM), "heard: before")

		s.platform.Return()
		time.Sleep(3 * time.Minute)
		want := []string{"before"}
		for n := range 10 {
			want = append(want, fmt.Sprint("meanwhile ", n))
		}
		same(t, "heard", s.stored("echo"), want...)
		var waited []string
		for _, text := range s.texts(danDM) {
			if strings.HasPrefix(text, "waits") {
				waited = append(waited, text)
			}
			if strings.Contains(text, lostWords) {
				t.Errorf("nothing is lost, and they are told %q", text)
			}
		}
		if len(waited) != 10 || waited[0] != "waits 0" || waited[9] != "waits 9" {
			t.Errorf("arrived %q", waited)
		}
	})
}

// sendsBy has the host say something in a place of another channel.
func (s *scene) sendsBy(name string, at channel.Place, text string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: name, Address: at.Address, Kind: at.Kind, Name: at.Name, Created: time.Now()})
		if err != nil {
			return err
		}
		chat, err := ledger.HostChat(ctx, tx, where.ID)
		if err != nil {
			return err
		}
		_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Text: text, At: time.Now()})
		return err
	})
	synctest.Wait()
}

// TestWhatAPlatformDidNotKeepIsSaid holds that conversations that are used are told once that something is lost, again once
// somebody has spoken there since, and that others are not.
func TestWhatAPlatformDidNotKeepIsSaid(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.platform.Forgetful()
		s.member()
		s.wire(danDM, "echo")
		s.wire(stream, "echo")
		end := s.lives()
		s.tells(dan, "hello")
		same(t, "before anything is lost", s.texts(danDM), "heard: hello")
		told := func() (n int) {
			for _, text := range s.texts(danDM) {
				if strings.Contains(text, lostWords) {
					n++
				}
			}
			return n
		}

		s.platform.Leave(t)
		s.tells(dan, "into the void")
		time.Sleep(10 * time.Minute)
		s.platform.Return()
		time.Sleep(3 * time.Minute)
		same(t, "heard", s.stored("echo"), "hello")
		if n := told(); n != 1 || len(s.texts(stream)) != 0 || s.channels.States()[chatName].Lost.IsZero() {
			t.Errorf("told %d times; where nobody spoke %q", n, s.texts(stream))
		}

		s.platform.Cut(t)
		time.Sleep(10 * time.Second)
		end()
		end = s.lives()
		if n := told(); n != 1 {
			t.Errorf("told %d times within the hour", n)
		}
		s.tells(dan, "hello again")
		time.Sleep(time.Second)
		s.platform.Cut(t)
		time.Sleep(10 * time.Second)
		if n := told(); n != 2 {
			t.Errorf("told %d times, and somebody had spoken since the first", n)
		}
		time.Sleep(time.Hour)
		s.platform.Cut(t)
		time.Sleep(10 * time.Second)
		if n := told(); n != 3 {
			t.Errorf("told %d times", n)
		}
		end() // who is away sees nothing of the days that pass, and looks at nothing every few seconds
		time.Sleep(47 * time.Hour)
		s.lives()
		time.Sleep(time.Hour)
		s.platform.Cut(t)
		time.Sleep(10 * time.Minute)
		if n := told(); n != 3 {
			t.Errorf("told %d times, once in a conversation that nobody uses any more", n)
		}
	})
}

// TestAChannelMayBeAddedAndRemovedAtAnyTime holds CH-116, and that what was on its way out ends with its channel.
func TestAChannelMayBeAddedAndRemovedAtAnyTime(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		hangs := false
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				if hangs {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.lives()
		added := channeltest.NewScripted()
		s.others["late"] = added
		s.addChannel("late")
		s.channels.Look()
		s.sendsBy("late", stream, "welcome")
		if got := added.Arrived(t, stream.Address); len(got) != 1 || !s.channels.States()["late"].Connected {
			t.Errorf("arrived %+v; it stands as %+v", got, s.channels.States()["late"])
		}

		hangs = true
		all := s.sends(danDM, message.Talk, "on its way", "behind it")
		s.drop(chatName)
		for _, of := range all {
			if d := s.delivery(of); d.Status != message.Undelivered {
				t.Errorf("%+v", d)
			}
		}
		s.tells(dan, "to nobody")
		if _, there := s.channels.States()[chatName]; there || len(s.stored("echo")) != 0 {
			t.Errorf("a channel that was removed hears %q", s.stored("echo"))
		}

		// Who comes back by the name is another: with its own cursor, and nobody known.
		hangs = false
		s.addChannel(chatName)
		s.channels.Look()
		synctest.Wait()
		s.sends(danDM, message.Talk, "back")
		same(t, "arrived", s.texts(danDM), "back")
	})
}

// drop removes a channel.
func (s *scene) drop(name string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		_, err := tx.DropChannel(ctx, name)
		return err
	})
	s.channels.Look()
	synctest.Wait()
}

// TestAChannelThatWasRemovedAndAddedBetweenTwoLooksIsAnother holds that it speaks by its new settings.
func TestAChannelThatWasRemovedAndAddedBetweenTwoLooksIsAnother(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		opened := 0
		s.oddly(func(*odd) { opened++ })
		s.lives()
		time.Sleep(time.Second)
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.DropChannel(ctx, chatName)
			return err
		})
		s.addChannel(chatName)
		s.channels.Look()
		synctest.Wait()
		if opened != 2 || !s.channels.States()[chatName].Connected {
			t.Errorf("opened %d times; %+v", opened, s.channels.States())
		}
		s.channels.Look()
		synctest.Wait()
		if opened != 2 {
			t.Errorf("opened %d times, once for nothing", opened)
		}
	})
}

// TestAChannelThatIsAddedAgainWaitsForTheEndOfTheOneBefore holds that no two sessions run by one credential, also where the first look has ended
// one and the second begins the other.
func TestAChannelThatIsAddedAgainWaitsForTheEndOfTheOneBefore(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var running, runs atomic.Int32
		s.oddly(func(o *odd) {
			o.run = func(ctx context.Context, l channel.Listener) error {
				if running.Add(1) > 1 {
					t.Error("two sessions run beside each other")
				}
				defer running.Add(-1)
				runs.Add(1)
				l.Ready(channel.Self{Account: "B1"})
				<-ctx.Done()
				time.Sleep(5 * time.Second) // it says goodbye
				return nil
			}
		})
		s.lives()
		s.drop(chatName)
		s.addChannel(chatName)
		s.channels.Look()
		time.Sleep(10 * time.Second)
		if runs.Load() != 2 || !s.channels.States()[chatName].Connected {
			t.Errorf("run %d times: %+v", runs.Load(), s.channels.States())
		}
	})
}

// TestWhoIsAskedAboutAChannelThatCannotBeOpenedCanAnswer holds that its driver is wanted for no answer.
func TestWhoIsAskedAboutAChannelThatCannotBeOpenedCanAnswer(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		end := s.lives()
		s.mentions(bob, hallway, "hello")
		end()
		s.parts = func(p *channels.Parts) {
			p.Open = func(conversation.Channel) (channel.Driver, error) {
				return nil, errors.New("its settings are no good any more")
			}
		}
		s.lives()
		asked := s.questions(hallway)
		if len(asked) != 1 {
			t.Fatalf("%+v", asked)
		}
		if _, err := (channels.Places{Channels: s.channels}).Answer(t.Context(), asked[0].ID, channels.WireTo+"echo", s.By()); err != nil || len(s.questions(hallway)) > 0 {
			t.Error(err)
		}
		same(t, "heard", s.heard(), "echo: hello")
	})
}

// TestASessionThatCrashesOrNeverEndsIsBegunAgainOrLeft holds that a driver ends neither the host nor another session.
func TestASessionThatCrashesOrNeverEndsIsBegunAgainOrLeft(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		stays := make(chan struct{})
		var runs atomic.Int32
		var left atomic.Pointer[channel.Listener]
		s.oddly(func(o *odd) {
			o.run = func(ctx context.Context, l channel.Listener) error {
				if runs.Add(1) == 1 {
					panic("a driver is broken")
				}
				left.Store(&l)
				l.Ready(channel.Self{Account: "B1"})
				<-stays
				return nil
			}
		})
		end := s.lives()
		if st := s.channels.States()[chatName]; st.Connected || !strings.Contains(st.Reason, "crashed") {
			t.Errorf("it stands as %+v", st)
		}
		time.Sleep(time.Minute)
		if runs.Load() != 2 || !s.channels.States()[chatName].Connected {
			t.Errorf("run %d times: %+v", runs.Load(), s.channels.States())
		}

		at := time.Now()
		end()
		if took := time.Since(at); took > time.Minute {
			t.Errorf("the host ended after %s", took)
		}
		if err := left.Load().Take(context.Background(), channel.Event{ID: "1", Place: danDM, Sender: channel.Sender{Account: dan.Account}, Text: "late"}); err == nil || len(s.stored("echo")) != 0 {
			t.Errorf("what a session says that was left behind is taken: %v", err)
		}
		close(stays)
		synctest.Wait()
	})
}

// TestASessionThatIsRefusedIsNotTriedUntilItIsLockedOut holds that what a person has to mend is tried again seldom, and what mends itself soon.
func TestASessionThatIsRefusedIsNotTriedUntilItIsLockedOut(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		least int32
		most  int32
	}{
		"a wrong token":    {problem.New(problem.Denied, "the token is none"), 4, 5},
		"a refusal":        {problem.New(problem.Refused, "switch it on"), 4, 5},
		"a bad connection": {problem.New(problem.Unavailable, "a bad gateway"), 25, 60},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				var runs atomic.Int32
				s.oddly(func(o *odd) {
					o.run = func(context.Context, channel.Listener) error {
						runs.Add(1)
						return c.err
					}
				})
				s.lives()
				time.Sleep(time.Hour)
				if n := runs.Load(); n < c.least || n > c.most {
					t.Errorf("tried %d times in an hour", n)
				}
			})
		})
	}
}
