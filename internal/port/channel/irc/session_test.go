package irc

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/channel"
)

// script is a server in memory that answers as it is told.
type script struct {
	conn  net.Conn
	heard chan string
}

// begin starts a session of a driver with a server that has greeted us as port_; it answers each PING until it is told not to.
func begin(t *testing.T, mute func() bool) (*script, chan error, chan channel.Self) {
	t.Helper()
	ours, theirs := net.Pipe()
	f := &script{conn: theirs, heard: make(chan string, 100)}
	go func() {
		in := bufio.NewReader(theirs)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimSpace(line)
			if token, is := strings.CutPrefix(line, "PING :"); is && !mute() {
				f.say(":s PONG s :" + token)
				continue
			}
			f.heard <- line
		}
	}()
	selves := make(chan channel.Self, 10)
	d := &Driver{nick: "port", pace: time.Second, patient: 30 * time.Second}
	s := d.begin(ours, channel.Listener{
		Ready: func(s channel.Self) { selves <- s },
		Take:  func(context.Context, channel.Event) error { return nil },
		Move:  func(context.Context, string) error { return nil },
		Lost:  func(context.Context, string) {},
	})
	s.nick, s.ready, s.welcome = "port_", true, true
	done := make(chan error, 1)
	go func() { done <- s.serve(t.Context()) }()
	t.Cleanup(func() { _ = theirs.Close() })
	return f, done, selves
}

func (f *script) say(line string) { _, _ = f.conn.Write([]byte(line + "\r\n")) }

func TestTheNickIsTakenBackWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done, selves := begin(t, func() bool { return false })
		if self := <-selves; self.Names[0] != "port_" {
			t.Fatalf("we are %+v", self)
		}
		began := time.Now()
		for line := range f.heard {
			if line == "NICK port" {
				break
			}
		}
		if wait := time.Since(began); wait != choreEvery {
			t.Errorf("it was asked for after %s", wait)
		}
		f.say(":port_!u@h NICK :port")
		if self := <-selves; self.Names[0] != "port" {
			t.Errorf("we are %+v", self)
		}
		_ = f.conn.Close()
		if err := <-done; err == nil {
			t.Error("the session ended, and nothing says why")
		}
	})
}

func TestAServerThatIsSilentIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mute := make(chan struct{})
		f, done, selves := begin(t, func() bool {
			select {
			case <-mute:
				return true
			default:
				return false
			}
		})
		<-selves
		close(mute)
		began := time.Now()
		err := <-done
		if wait := time.Since(began); err == nil || !strings.Contains(err.Error(), "has not answered") || wait != choreEvery+30*time.Second {
			t.Errorf("after %s: %v", wait, err)
		}
		_ = f.conn.Close()
	})
}

func TestALineWithoutEndEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done, selves := begin(t, func() bool { return false })
		<-selves
		go f.say(strings.Repeat("x", 2*readMax))
		if err := <-done; !errors.Is(err, errLong) {
			t.Error(err)
		}
		_ = f.conn.Close()
	})
}

func TestAMessageThatCannotLeaveInTimeWaitsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done, selves := begin(t, func() bool { return false })
		<-selves
		d := &Driver{nick: "port", pace: 2 * time.Second, patient: time.Minute}
		s := d.begin(f.conn, channel.Listener{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.soon(ctx, 9, false); err != nil {
			t.Errorf("nine lines in ten seconds, of which five go at once: %v", err)
		}
		s.pace.AllowN(time.Now(), burst)
		var later *channel.Later
		if err := s.soon(ctx, 9, false); !errors.As(err, &later) || !later.All {
			t.Errorf("behind five others: %v", err)
		}
		_ = f.conn.Close()
		<-done
	})
}
