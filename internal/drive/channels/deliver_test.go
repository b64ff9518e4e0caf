package channels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// odd is a driver that does something else where a test says so.
type odd struct {
	channel.Driver
	deliver func(ctx context.Context, m channel.Message) (string, error) // nil = as it does
	update  func(ctx context.Context, id string, m channel.Message) error
	run     func(ctx context.Context, l channel.Listener) error
	can     func(channel.Can) channel.Can
}

func (o *odd) Deliver(ctx context.Context, m channel.Message) (string, error) {
	if o.deliver == nil {
		return o.Driver.Deliver(ctx, m)
	}
	return o.deliver(ctx, m)
}

func (o *odd) Update(ctx context.Context, id string, m channel.Message) error {
	if o.update == nil {
		return o.Driver.Update(ctx, id, m)
	}
	return o.update(ctx, id, m)
}

func (o *odd) Run(ctx context.Context, l channel.Listener) error {
	if o.run == nil {
		return o.Driver.Run(ctx, l)
	}
	return o.run(ctx, l)
}

func (o *odd) Can() channel.Can {
	if o.can == nil {
		return o.Driver.Can()
	}
	return o.can(o.Driver.Can())
}

// oddly has the channel "chat" be spoken with by another driver.
func (s *scene) oddly(change func(*odd)) {
	s.parts = func(p *channels.Parts) {
		open := p.Open
		p.Open = func(c conversation.Channel) (channel.Driver, error) {
			d, err := open(c)
			if err != nil || c.Name != chatName {
				return d, err
			}
			o := &odd{Driver: d}
			change(o)
			return o, nil
		}
	}
}

// sends has the host say something in a place, in a lane.
func (s *scene) sends(at channel.Place, lane message.Lane, texts ...string) (all []id.Out) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := s.place(ctx, tx, at)
		if err != nil {
			return err
		}
		chat, err := ledger.HostChat(ctx, tx, where.ID)
		for _, text := range texts {
			o := message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: lane, Text: text, At: time.Now()}
			_, err2 := tx.PutOut(ctx, o)
			all, err = append(all, o.ID), errors.Join(err, err2)
		}
		return err
	})
	synctest.Wait()
	return all
}

// delivery is how a message leaves, or has left.
func (s *scene) delivery(of id.Out) (d message.Delivery) {
	s.T.Helper()
	synctest.Wait()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		d, _, err = tx.Delivery(ctx, of)
		return err
	})
	return d
}

// TestOrderHoldsAlsoAfterTriesThatFailed holds that nothing overtakes in its lane, that a notice waits for no talk, and that each arrives once.
func TestOrderHoldsAlsoAfterTriesThatFailed(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		failed := 0
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				if strings.HasPrefix(m.Text, "talk 1") && failed < 6 {
					failed++
					return "", errors.New("a bad gateway")
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.lives()
		s.sends(stream, message.Talk, "talk 0", "talk 1", "talk 2", "talk 3")
		s.sends(stream, message.Notice, "notice 0", "notice 1")
		s.sends(room, message.Talk, "elsewhere")
		got := s.texts(stream)
		slices.Sort(got)
		same(t, "at once", got, "notice 0", "notice 1", "talk 0")
		same(t, "elsewhere", s.texts(room), "elsewhere")
		time.Sleep(time.Hour)
		talk := slices.DeleteFunc(s.texts(stream), func(text string) bool { return strings.HasPrefix(text, "notice") })
		same(t, "talk", talk, "talk 0", "talk 1", "talk 2", "talk 3")
		if failed != 6 {
			t.Errorf("failed %d times", failed)
		}
	})
}

// TestWhatThePlatformRefusesIsDeadAtOnceAndHoldsUpNothing holds that a 4xx is not tried again, and that other failures end too.
func TestWhatThePlatformRefusesIsDeadAtOnceAndHoldsUpNothing(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var mu sync.Mutex
		counts := map[string]int{}
		tried := func(text string) int {
			mu.Lock()
			defer mu.Unlock()
			return counts[text]
		}
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				mu.Lock()
				counts[m.Text]++
				mu.Unlock()
				switch m.Text {
				case "refused":
					return "", fmt.Errorf("no such member: %w", channel.ErrDead)
				case "broken":
					return "", errors.New("a bad gateway")
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.lives()
		all := s.sends(stream, message.Talk, "refused", "after", "broken", "last")
		same(t, "arrived", s.texts(stream), "after")
		if d := s.delivery(all[0]); d.Status != message.Undelivered || tried("refused") != 1 || d.Reason == "" {
			t.Errorf("tried %d times: %+v", tried("refused"), d)
		}
		time.Sleep(time.Hour)
		same(t, "arrived", s.texts(stream), "after", "last")
		if d := s.delivery(all[2]); d.Status != message.Undelivered || tried("broken") != message.DeliveryTriesMax {
			t.Errorf("tried %d times: %+v", tried("broken"), d)
		}
	})
}

// A platform's error may quote the request, and with it the channel's token.
func TestWhatAPlatformSaysOfAFailureIsStoredAndShownWithoutSecrets(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var away atomic.Bool
		s.oddly(func(o *odd) {
			o.deliver = func(context.Context, channel.Message) (string, error) {
				return "", fmt.Errorf("no such member for %s: %w", planted, channel.ErrDead)
			}
			o.run = func(ctx context.Context, l channel.Listener) error {
				if !away.Load() {
					l.Ready(channel.Self{Account: "B1"})
					<-ctx.Done()
				}
				return problem.New(problem.Unavailable, "no way with "+planted)
			}
		})
		end := s.lives()
		why := s.delivery(s.sends(stream, message.Talk, "hello")[0]).Reason
		end()
		away.Store(true)
		s.lives()
		for what, said := range map[string]string{"a message that is dead": why, "a channel that is away": s.channels.States()[chatName].Reason} {
			if strings.Contains(said, planted) || !strings.Contains(said, "[secret: ") {
				t.Errorf("%s: %q", what, said)
			}
		}
	})
}

// TestOnlyWhatThePlatformLimitsWaits holds Retry-After: of one place, of the whole platform, and of none other.
func TestOnlyWhatThePlatformLimitsWaits(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var tries atomic.Int64
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				tries.Add(1)
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.addChannel("other")
		s.others["other"] = channeltest.NewScripted()
		s.lives()

		s.platform.Limit(t, stream.Address, 1500*time.Millisecond)
		s.sends(stream, message.Talk, "limited")
		s.sends(room, message.Talk, "free")
		same(t, "in the limited place", s.texts(stream))
		same(t, "in another", s.texts(room), "free")
		time.Sleep(1500*time.Millisecond + 2*time.Millisecond)
		same(t, "then", s.texts(stream), "limited")

		s.platform.Limit(t, "", 90*time.Second)
		before := tries.Load()
		one := s.sends(stream, message.Talk, "two")
		s.sends(room, message.Talk, "two")
		time.Sleep(89 * time.Second)
		same(t, "of a limited platform", append(s.texts(stream), s.texts(room)...), "limited", "free")
		if n := tries.Load() - before; n > 2 {
			t.Errorf("the platform was asked %d times before it may be", n)
		}
		if d := s.delivery(one[0]); d.Tries != 0 {
			t.Errorf("to wait is no try: %+v", d)
		}
		time.Sleep(time.Second + 2*time.Millisecond)
		same(t, "of the platform, then", append(s.texts(stream), s.texts(room)...), "limited", "two", "free", "two")
	})
}

// TestALongTextGoesOnAtThePieceThatHasNotArrived ends the host between two pieces.
func TestALongTextGoesOnAtThePieceThatHasNotArrived(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var end func()
		var sent []string
		var nonces []string
		s.oddly(func(o *odd) {
			o.can = func(c channel.Can) channel.Can { c.TextMax = 20; return c }
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				if len(sent) == 2 && end != nil {
					<-ctx.Done() // the host ends before it has arrived
					return "", ctx.Err()
				}
				sent, nonces = append(sent, m.Text), append(nonces, m.Nonce)
				return o.Driver.Deliver(ctx, m)
			}
		})
		end = s.lives()
		text := "one two three four five six seven eight nine ten eleven twelve thirteen"
		all := s.sends(stream, message.Talk, text)
		if d := s.delivery(all[0]); d.Pieces != 2 || d.Status != message.Waiting {
			t.Errorf("%+v", d)
		}
		end()
		end = nil
		s.lives()
		same(t, "words", strings.Fields(strings.Join(s.texts(stream), " ")), strings.Fields(text)...)
		slices.Sort(nonces)
		if n := len(sent); n < 4 || len(slices.Compact(nonces)) != n {
			t.Errorf("%d pieces by the nonces %q", n, nonces)
		}
		if d := s.delivery(all[0]); d.Pieces != len(sent) || d.Status != message.Sent {
			t.Errorf("%+v", d)
		}
	})
}

// TestNoPlatformBeginsALineInTheMiddleOfOneOfACards has words of an agent stand on a card where a platform would cut.
func TestNoPlatformBeginsALineInTheMiddleOfOneOfACards(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.oddly(func(o *odd) {
			o.can = func(c channel.Can) channel.Can { c.TextMax = 320; return c }
		})
		s.lives()
		long := "  > " + strings.Repeat("x", 236) + "1. approve" + strings.Repeat(" x", 200)
		s.sends(stream, message.Talk, long)
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			where, err := s.place(ctx, tx, room)
			if err != nil {
				return err
			}
			chat, err := ledger.HostChat(ctx, tx, where.ID)
			if err != nil {
				return err
			}
			_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardDiff, Text: long, At: time.Now()})
			return err
		})
		synctest.Wait()
		for _, row := range strings.Split(strings.Join(s.texts(room), "\n"), "\n") {
			if !strings.HasPrefix(row, "  > ") && !strings.HasPrefix(row, "… ") {
				t.Errorf("a line of the card begins with %q", row)
			}
		}
		if got := strings.Join(s.texts(stream), " "); strings.Contains(got, "…") {
			t.Errorf("talk is marked: %q", got)
		}
	})
}

// TestWhatArrivedAndCouldNotBeKeptIsSentAgainByItsNonce holds that a platform with nonces shows it once.
func TestWhatArrivedAndCouldNotBeKeptIsSentAgainByItsNonce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		broken := s.breaks("move-delivery")
		var tries atomic.Int64
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				tries.Add(1)
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.lives()
		all := s.sends(stream, message.Talk, "once", "then")
		time.Sleep(time.Minute)
		same(t, "arrived", s.texts(stream), "once", "then")
		if d := s.delivery(all[0]); broken() != 1 || tries.Load() != 3 || d.Status != message.Sent {
			t.Errorf("broken %d times, tried %d: %+v", broken(), tries.Load(), d)
		}
	})
}

// TestADriverThatCrashesOrNeverReturnsHoldsUpNothingElse holds that the host outlives what it speaks with platforms by.
func TestADriverThatCrashesOrNeverReturnsHoldsUpNothingElse(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var began atomic.Int64
		release := make(chan struct{})
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				switch m.Text {
				case "panic":
					panic("a driver is broken: secret")
				case "hang":
					began.Add(1)
					<-release
					return "", errors.New("too late")
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		end := s.lives()
		panics := s.sends(stream, message.Talk, "panic", "after")
		hangs := s.sends(room, message.Talk, "hang", "after")
		s.sends(danDM, message.Talk, "free")
		s.sends(room, message.Notice, "notice")
		same(t, "in another place", s.texts(danDM), "free")
		same(t, "beside talk that hangs", s.texts(room), "notice")
		time.Sleep(2 * time.Minute)
		if d := s.delivery(panics[0]); d.Tries == 0 || !strings.Contains(d.Reason, "crashed") {
			t.Errorf("%+v", d)
		}
		if d := s.delivery(hangs[0]); d.Tries == 0 || !strings.Contains(d.Reason, "does not come back") {
			t.Errorf("%+v", d)
		}
		time.Sleep(2 * time.Hour)
		same(t, "after it was given up", s.texts(stream), "after")
		same(t, "after it was given up", s.texts(room), "notice", "after")
		if n := began.Load(); n != message.DeliveryTriesMax {
			t.Errorf("%d calls hang", n)
		}

		began.Store(0)
		at := time.Now()
		s.sends(room, message.Talk, "hang")
		end()
		if took := time.Since(at); began.Load() != 1 || took > time.Minute {
			t.Errorf("%d calls; the host ended after %s", began.Load(), took)
		}
		close(release)
		synctest.Wait()
	})
}

// TestACardIsShownInTheTransactionInWhichItHasArrived holds that none has arrived and can never be answered.
func TestACardIsShownInTheTransactionInWhichItHasArrived(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		broken := s.breaks("note-delivery")
		s.lives()
		s.mentions(cyd, room, "hello")
		time.Sleep(time.Minute)
		at := channeltest.DirectOf(olga)
		if n := len(s.arrived(at)); n != 1 || broken() != 1 {
			t.Errorf("%d cards have arrived; broken %d times", n, broken())
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			where, err := s.place(ctx, tx, at)
			if err != nil {
				return err
			}
			cards, err := tx.Cards(ctx, where.ID, 9)
			if len(cards) != 1 || cards[0].Delivered == nil {
				t.Errorf("%+v", cards)
			}
			return err
		})
	})
}
