package channels_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/channels"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
)

// updating has changing a card fail as a test says, which is told how often it was tried; nil changes it.
func (s *scene) updating(fails func(try int) error) (tries func() int) {
	var n atomic.Int64
	s.oddly(func(o *odd) {
		o.update = func(ctx context.Context, id string, m channel.Message) error {
			if err := fails(int(n.Add(1))); err != nil {
				return err
			}
			return o.Driver.Update(ctx, id, m)
		}
	})
	return func() int { return int(n.Load()) }
}

// TestACardThatCouldNotShowItsOutcomeIsTriedAgain is CH-904 where the platform limits, is away, or fails: the buttons go, and it is not asked
// before it may be.
func TestACardThatCouldNotShowItsOutcomeIsTriedAgain(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		tries := s.updating(func(try int) error {
			switch {
			case try == 1:
				return &channel.Later{Until: time.Now().Add(30 * time.Second)}
			case try == 2:
				return channel.ErrAway
			case try < 6:
				return errors.New("a bad gateway")
			}
			return nil
		})
		s.lives()
		s.mentions(bob, hallway, "hello")
		card := s.newest(olgaDM).ID
		s.press(olga, olgaDM, channels.Ignore)
		time.Sleep(29 * time.Second)
		if n := tries(); n != 1 || len(s.now(olgaDM, card).Buttons) == 0 {
			t.Errorf("tried %d times before it may be", n)
		}

		time.Sleep(5 * time.Minute)
		shown := s.now(olgaDM, card)
		if n := tries(); n != 6 || len(shown.Buttons) > 0 || !strings.Contains(shown.Text, "ann answered already") {
			t.Errorf("tried %d times: %+v", n, shown)
		}
	})
}

// TestACardForSomebodyAloneIsForThemAloneAlsoWhereOthersHaveCome holds that a platform is told whom it is for, with its question and its answer.
func TestACardForSomebodyAloneIsForThemAloneAlsoWhereOthersHaveCome(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		var meant []string
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				if m.Card != nil {
					meant = append(meant, "sent to "+m.Account)
				}
				return o.Driver.Deliver(ctx, m)
			}
			o.update = func(ctx context.Context, id string, m channel.Message) error {
				meant = append(meant, "changed for "+m.Account)
				return o.Driver.Update(ctx, id, m)
			}
		})
		s.lives()
		shared := olgaDM
		shared.Kind = channel.Group
		s.says(bob, shared, "she has asked me in")
		s.mentions(bob, hallway, "hello")
		s.press(olga, olgaDM, channels.Ignore)
		synctest.Wait()
		same(t, "whom the card is for", meant, "sent to "+olga.Account, "changed for "+olga.Account)
	})
}

// TestACardThatWasFoundBeforeItWasToldIsToldOnce holds that a look whose answer is old by the time it acts on it changes no card once more.
func TestACardThatWasFoundBeforeItWasToldIsToldOnce(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		old := &lagging{DB: s.Parts.DB}
		s.Parts.DB = old
		tries := s.updating(func(int) error {
			time.Sleep(time.Second)
			return nil
		})
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.press(olga, olgaDM, channels.Ignore)
		time.Sleep(2500 * time.Millisecond) // it is being changed
		s.says(olga, olgaDM, "good morning")
		time.Sleep(time.Minute)
		if n, found := tries(), old.found.Load(); n != 1 || found < 2 {
			t.Errorf("changed %d times, found %d times", n, found)
		}
	})
}

// lagging is a store of which those who look for cards that have ended hear two seconds later.
type lagging struct {
	store.DB
	found atomic.Int64
}

func (l *lagging) Read(ctx context.Context, do func(store.Tx) error) error {
	before := l.found.Load()
	err := l.DB.Read(ctx, func(tx store.Tx) error { return do(endedTx{tx, l}) })
	if l.found.Load() > before {
		time.Sleep(2 * time.Second)
	}
	return err
}

type endedTx struct {
	store.Tx
	of *lagging
}

func (t endedTx) EndedCards(ctx context.Context, channel string, limit int) ([]message.Delivery, error) {
	all, err := t.Tx.EndedCards(ctx, channel, limit)
	if len(all) > 0 {
		t.of.found.Add(1)
	}
	return all, err
}

// TestAPlaceThatTakesNothingIsNotAskedForEachOfItsCards holds that cards which end together wait together.
func TestAPlaceThatTakesNothingIsNotAskedForEachOfItsCards(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		until := time.Now().Add(time.Hour)
		tries := s.updating(func(int) error {
			if time.Now().Before(until) {
				return &channel.Later{Until: until}
			}
			return nil
		})
		s.lives()
		var cards []string
		for _, at := range []channel.Place{hallway, stream, room} {
			s.mentions(bob, at, "hello")
			cards = append(cards, s.newest(olgaDM).ID)
		}
		for _, card := range cards {
			s.platform.Press(t, olgaDM.Address, card, olga, channels.Ignore)
			synctest.Wait()
		}
		time.Sleep(30 * time.Minute)
		if n := tries(); n != 1 {
			t.Errorf("asked %d times before it may be", n)
		}
		time.Sleep(time.Hour)
		for _, a := range s.arrived(olgaDM) {
			if len(a.Buttons) > 0 {
				t.Errorf("this has buttons still: %s", a.Text)
			}
		}
	})
}

// TestACardThatCannotBeChangedIsGivenUp holds that one which the platform refuses is tried once, and one that never works not for ever.
func TestACardThatCannotBeChangedIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{"refused": {channel.ErrDead, 1}, "broken": {errors.New("a bad gateway"), message.DeliveryTriesMax}} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
				tries := s.updating(func(int) error { return c.err })
				s.lives()
				s.mentions(bob, hallway, "hello")
				s.press(olga, olgaDM, channels.Ignore)
				time.Sleep(2 * time.Hour)
				n := tries()
				time.Sleep(2 * time.Hour)
				if n != c.want || tries() != n {
					t.Errorf("tried %d times, then %d", n, tries())
				}
			})
		})
	}
}
