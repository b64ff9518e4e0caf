package channels_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
)

// slowly has the platform take so long for each message.
func slowly(s *scene, takes time.Duration) {
	s.oddly(func(o *odd) {
		o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(takes):
				return o.Driver.Deliver(ctx, m)
			}
		}
	})
}

// said is how many texts there are.
func said(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("said ", i))
	}
	return all
}

// TestWhatIsDueLeavesBeforeTheHostGoes holds that a hand-over waits for what leaves, no longer than it may, and that all arrives once.
func TestWhatIsDueLeavesBeforeTheHostGoes(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration // each message
		says  int
		wait  time.Duration // of the host that goes
		left  int           // by then
	}{
		{takes: time.Second, says: 0, wait: 0, left: 0},
		{takes: time.Second, says: 3, wait: 3 * time.Second, left: 3},
		{takes: 3 * time.Second, says: 6, wait: 12 * time.Second, left: 4}, // the fourth had begun
		{takes: 11 * time.Second, says: 2, wait: 11 * time.Second, left: 1},
		{takes: time.Minute - 1, says: 1, wait: 15 * time.Second, left: 0}, // it is cut off, and sent anew
	} {
		t.Run(fmt.Sprint(c.says, " of ", c.takes), func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				slowly(s, c.takes)
				end := s.lives()
				s.sends(stream, message.Talk, said(c.says)...)

				began := time.Now()
				s.channels.Flush(t.Context())
				synctest.Wait()
				if took := time.Since(began).Round(100 * time.Millisecond); took != c.wait {
					t.Errorf("the host waited %s", took)
				}
				same(t, "before it went", s.texts(stream), said(c.left)...)
				if c.left > 0 {
					time.Sleep(time.Minute)
					same(t, "while it goes", s.texts(stream), said(c.left)...)
				}
				end()
				s.lives()
				time.Sleep(10 * time.Minute)
				same(t, "in the end", s.texts(stream), said(c.says)...)
			})
		})
	}
}

// TestAHostThatDoesNotGoSpeaksOn holds that a hand-over that does not come about holds nothing back.
func TestAHostThatDoesNotGoSpeaksOn(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.lives()
		resume := s.channels.Flush(t.Context())
		s.sends(stream, message.Talk, said(2)...)
		time.Sleep(time.Minute)
		same(t, "held back", s.texts(stream))
		resume()
		synctest.Wait()
		same(t, "in the end", s.texts(stream), said(2)...)
	})
}

// TestWhatCannotLeaveNowKeepsNoHostWaiting holds that a platform that is away, or wants a pause, does not delay a hand-over.
func TestWhatCannotLeaveNowKeepsNoHostWaiting(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		paused := false
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				if !paused {
					paused = true
					return "", &channel.Later{Until: time.Now().Add(time.Minute), All: true}
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		end := s.lives()
		s.sends(stream, message.Talk, said(2)...)
		s.sends(room, message.Talk, "elsewhere")
		began := time.Now()
		s.channels.Flush(t.Context())
		if took := time.Since(began); took > time.Second {
			t.Errorf("the host waited %s", took)
		}
		end()
		s.lives()
		time.Sleep(10 * time.Minute)
		same(t, "in the end", s.texts(stream), said(2)...)
		same(t, "elsewhere", s.texts(room), "elsewhere")
	})
}

// TestAShorterLimitEndsNoLongerOne holds that a platform which limits two messages on their way is asked again once both are over.
func TestAShorterLimitEndsNoLongerOne(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var tries atomic.Int64
		s.oddly(func(o *odd) {
			o.deliver = func(ctx context.Context, m channel.Message) (string, error) {
				switch try := tries.Add(1); try {
				case 1, 2:
					time.Sleep(time.Duration(try) * time.Second)
					return "", &channel.Later{Until: time.Now().Add([]time.Duration{time.Hour, time.Second}[try-1]), All: true}
				}
				return o.Driver.Deliver(ctx, m)
			}
		})
		s.lives()
		s.sends(stream, message.Talk, "one")
		s.sends(room, message.Talk, "two")
		time.Sleep(59 * time.Minute)
		if n := tries.Load(); n != 2 {
			t.Errorf("tried %d times while the platform takes nothing", n)
		}
		time.Sleep(10 * time.Minute)
		same(t, "in the end", s.texts(stream), "one")
		same(t, "elsewhere", s.texts(room), "two")
	})
}
