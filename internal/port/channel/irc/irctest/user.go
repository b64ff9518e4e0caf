package irctest

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

// User is a person's client.
type User struct {
	t    *testing.T
	conn net.Conn
	Nick string

	mu   sync.Mutex
	all  []*girc.Event
	more chan struct{}
}

// Enter connects somebody, who is not logged in.
func (s *Server) Enter(t *testing.T, nick string) *User {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	u := &User{t: t, conn: conn, Nick: nick, more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.read()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	if s.Accounts {
		u.Send("CAP REQ :account-tag message-tags server-time echo-message")
		u.Send("CAP END")
	}
	u.Send("NICK " + nick)
	u.Send("USER x 0 * :x")
	u.Await("the greeting", func(e *girc.Event) bool { return e.Command == "001" })
	return u
}

// Register has the services make an account of a nick, and log in to it; they may have just started.
func (u *User) Register() *User {
	u.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		from := u.Mark()
		u.Send("PRIVMSG NickServ :REGISTER password1")
		e := u.AwaitFrom(from, "an account", func(e *girc.Event) bool { return e.Command == "900" || e.Command == "401" })
		if e.Command == "900" {
			return u
		}
		time.Sleep(50 * time.Millisecond) // the services are not there yet
	}
	u.t.Fatal("no services came")
	return u
}

func (u *User) read() {
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
			u.Send("PONG :" + e.Last())
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

func (u *User) Send(line string) {
	_ = u.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	_, _ = u.conn.Write([]byte(line + "\r\n"))
}

// Mark is how much was heard.
func (u *User) Mark() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}

func (u *User) Await(what string, is func(*girc.Event) bool) *girc.Event {
	u.t.Helper()
	return u.AwaitFrom(0, what, is)
}

// AwaitFrom waits for a line behind a mark.
func (u *User) AwaitFrom(from int, what string, is func(*girc.Event) bool) *girc.Event {
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
			u.t.Fatalf("%s: %s did not come; the last lines: %s", u.Nick, what, u.all[max(0, len(u.all)-10):])
		}
	}
}

// Settle waits until the server has done all that was sent.
func (u *User) Settle() {
	u.t.Helper()
	from := u.Mark()
	u.Send("PING :settle" + fmt.Sprint(from))
	u.AwaitFrom(from, "a PONG", func(e *girc.Event) bool { return e.Command == "PONG" })
}

// Join enters a channel.
func (u *User) Join(name string) *User {
	u.t.Helper()
	u.Send("JOIN " + name)
	u.Await(name, func(e *girc.Event) bool { return e.Command == "366" && slices.Contains(e.Params, name) })
	return u
}

// Got are the messages to a target.
func (u *User) Got(target, from string) (all []channeltest.Arrived) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.all {
		if e.Command == "PRIVMSG" && e.Params[0] == target && e.Source != nil && strings.TrimRight(e.Source.Name, "_") == from {
			all = append(all, channeltest.Arrived{Text: e.Last()})
		}
	}
	return all
}

// Identify logs somebody in to an account that has another nick.
func (u *User) Identify(account string) *User {
	u.t.Helper()
	u.Send("PRIVMSG NickServ :IDENTIFY " + account + " password1")
	u.Await("the login", func(e *girc.Event) bool { return e.Command == "900" })
	return u
}

func (u *User) Quit() {
	u.t.Helper()
	u.Send("QUIT")
	u.Await("the end", func(e *girc.Event) bool { return e.Command == "ERROR" })
}

// Each hands over all lines that came, in their order.
func (u *User) Each(do func(*girc.Event)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.all {
		do(e)
	}
}
