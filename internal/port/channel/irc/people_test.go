package irc_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lrstanley/girc"

	"sallyport/internal/port/channel/channeltest"
)

// user is a person's client.
type user struct {
	t    *testing.T
	conn net.Conn
	nick string

	mu   sync.Mutex
	all  []*girc.Event
	more chan struct{}
}

// enter connects somebody, who is not logged in.
func (s *ircd) enter(t *testing.T, nick string) *user {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, conn: conn, nick: nick, more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.read()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	if s.accounts {
		u.send("CAP REQ :account-tag message-tags server-time echo-message")
		u.send("CAP END")
	}
	u.send("NICK " + nick)
	u.send("USER x 0 * :x")
	u.await("the greeting", func(e *girc.Event) bool { return e.Command == "001" })
	return u
}

// register has the services make an account of a nick, and log in to it; they may have just started.
func (u *user) register() *user {
	u.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		from := u.mark()
		u.send("PRIVMSG NickServ :REGISTER password1")
		e := u.awaitFrom(from, "an account", func(e *girc.Event) bool { return e.Command == "900" || e.Command == "401" })
		if e.Command == "900" {
			return u
		}
		time.Sleep(50 * time.Millisecond) // the services are not there yet
	}
	u.t.Fatal("no services came")
	return u
}

func (u *user) read() {
	in := bufio.NewReader(u.conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		e := girc.ParseEvent(line)
		if e == nil {
			continue
		}
		if e.Command == "PING" {
			u.send("PONG :" + e.Last())
			continue
		}
		u.mu.Lock()
		u.all = append(u.all, e)
		u.mu.Unlock()
		select {
		case u.more <- struct{}{}:
		default:
		}
	}
}

func (u *user) send(line string) {
	_ = u.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	_, _ = u.conn.Write([]byte(line + "\r\n"))
}

// mark is how much was heard.
func (u *user) mark() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}

func (u *user) await(what string, is func(*girc.Event) bool) *girc.Event {
	u.t.Helper()
	return u.awaitFrom(0, what, is)
}

// awaitFrom waits for a line behind a mark.
func (u *user) awaitFrom(from int, what string, is func(*girc.Event) bool) *girc.Event {
	u.t.Helper()
	limit := time.After(time.Minute)
	for {
		u.mu.Lock()
		for _, e := range u.all[from:] {
			if is(e) {
				u.mu.Unlock()
				return e
			}
		}
		u.mu.Unlock()
		select {
		case <-u.more:
		case <-limit:
			u.mu.Lock()
			defer u.mu.Unlock()
			u.t.Fatalf("%s: %s did not come; the last lines: %s", u.nick, what, u.all[max(0, len(u.all)-10):])
		}
	}
}

// settle waits until the server has done all that was sent.
func (u *user) settle() {
	u.t.Helper()
	from := u.mark()
	u.send("PING :settle" + fmt.Sprint(from))
	u.awaitFrom(from, "a PONG", func(e *girc.Event) bool { return e.Command == "PONG" })
}

// join enters a channel.
func (u *user) join(name string) *user {
	u.t.Helper()
	u.send("JOIN " + name)
	u.await(name, func(e *girc.Event) bool { return e.Command == "366" && slices.Contains(e.Params, name) })
	return u
}

// got are the messages to a target.
func (u *user) got(target, from string) (all []channeltest.Arrived) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.all {
		if e.Command == "PRIVMSG" && e.Params[0] == target && e.Source != nil && strings.TrimRight(e.Source.Name, "_") == from {
			all = append(all, channeltest.Arrived{Text: e.Last()})
		}
	}
	return all
}
