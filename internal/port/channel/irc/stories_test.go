package irc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lrstanley/girc"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/irc"
	"sallyport/internal/port/channel/irc/irctest"
)

// host is the host's side of a session.
type host struct {
	t      *testing.T
	driver channel.Driver

	mu     sync.Mutex
	closed bool // takes nothing
	events []channel.Event
	lost   []string
	selves []channel.Self
	err    error // of the session that is over
	over   bool
	moved  chan struct{}
}

// listen runs one session, until the test ends.
func listen(t *testing.T, d channel.Driver, cursor string) *host {
	t.Helper()
	h := &host{t: t, driver: d, moved: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	change := func(f func()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		f()
		select {
		case h.moved <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(done)
		err := d.Run(ctx, channel.Listener{
			Cursor: cursor,
			Ready:  func(s channel.Self) { change(func() { h.selves = append(h.selves, s) }) },
			Move:   func(context.Context, string) error { return nil },
			Lost:   func(_ context.Context, place string) { change(func() { h.lost = append(h.lost, place) }) },
			Take: func(_ context.Context, e channel.Event) (err error) {
				change(func() {
					if h.closed {
						err = errors.New("not now")
						return
					}
					h.events = append(h.events, e)
				})
				return err
			},
		})
		change(func() { h.err, h.over = err, true })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return h
}

// await waits until something is true of it; is is called with mu held.
func (h *host) await(what string, is func() bool) {
	h.t.Helper()
	limit := time.After(time.Minute)
	for {
		h.mu.Lock()
		ok := is()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.moved:
		case <-limit:
			h.mu.Lock()
			defer h.mu.Unlock()
			h.t.Fatalf("%s did not come: %d events, lost %q, %+v, %v", what, len(h.events), h.lost, h.selves, h.err)
		}
	}
}

func (h *host) ready() *host {
	h.t.Helper()
	h.await("the session", func() bool { return len(h.selves) > 0 || h.over })
	if h.over {
		h.t.Fatal(h.err)
	}
	return h
}

// said waits for a text.
func (h *host) said(text string) (e channel.Event) {
	h.t.Helper()
	h.await(text, func() bool {
		i := slices.IndexFunc(h.events, func(e channel.Event) bool { return e.Text == text })
		if i >= 0 {
			e = h.events[i]
		}
		return i >= 0
	})
	return e
}

// open returns a driver with further settings.
func open(t *testing.T, s *irctest.Server, nick, credential string, more ...string) channel.Driver {
	t.Helper()
	settings := map[string]string{"server": s.Addr, "nick": nick, "tls": "no", "pace": "1ms"}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		settings[name] = value
	}
	var read func() (string, error)
	if credential != "" {
		read = func() (string, error) { return credential + "\n", nil }
	}
	d, err := irc.Open(settings, read)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAnAccountIsNotItsNick holds what a stolen nick, absent services and a login are worth, on a real network.
func TestAnAccountIsNotItsNick(t *testing.T) {
	t.Parallel()
	s := irctest.Network(t)
	s.Enter(t, "port").Register().Quit()
	ann := s.Enter(t, "ann").Register()

	wrong := listen(t, open(t, s, "port", "a-wrong-one", "account=port"), "")
	wrong.await("the refusal", func() bool { return wrong.over })
	if problem.KindOf(wrong.err) != problem.Denied || strings.Contains(wrong.err.Error(), "a-wrong-one") {
		t.Errorf("a wrong password: %v, %v", problem.KindOf(wrong.err), wrong.err)
	}

	h := listen(t, open(t, s, "port", "password1", "account=port"), "").ready()
	if self := h.selves[0]; self.Account != "port" || !slices.Equal(self.Names, []string{"port"}) {
		t.Errorf("we are %+v", self)
	}
	card := channel.Message{Place: "=ann", Account: "ann", Text: "your card"}
	say := func(u *irctest.User, text string) channel.Event {
		u.Send("PRIVMSG port :" + text)
		return h.said(text)
	}
	unreachable := func(when string, who ...*irctest.User) {
		t.Helper()
		if _, err := h.driver.Deliver(t.Context(), card); err == nil || errors.Is(err, channel.ErrDead) {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := h.driver.Direct(t.Context(), "ann"); !errors.Is(err, channel.ErrDead) {
			t.Errorf("%s, the place: %v", when, err)
		}
		for _, u := range who {
			u.Settle()
			if got := u.Got(u.Nick, "port"); len(got) > 0 {
				t.Errorf("%s: %s has %+v", when, u.Nick, got)
			}
		}
	}
	if e := say(ann, "it is me"); e.Sender.Account != "ann" || e.Place.Address != "=ann" {
		t.Errorf("ann: %+v", e)
	}

	ann.Quit()
	mallory := s.Enter(t, "ann")
	if e := say(mallory, "confirm"); e.Sender.Account != "" || e.Place.Address != "ann" || e.Sender.Handle != "ann" {
		t.Errorf("who took the nick: %+v", e)
	}
	unreachable("the nick is stolen", mallory)
	if _, err := h.driver.Deliver(t.Context(), channel.Message{Place: "ann", Account: "ann", Text: "your card"}); err == nil {
		t.Error("a message to an account went to its nick alone")
	}

	back := s.Enter(t, "annie").Identify("ann")
	if e := say(back, "from elsewhere"); e.Sender.Account != "ann" || e.Place.Address != "=ann" || e.Sender.Handle != "annie" {
		t.Errorf("ann with another nick: %+v", e)
	}
	if _, err := h.driver.Deliver(t.Context(), card); err != nil {
		t.Error(err)
	}
	back.Settle()
	if got := back.Got("annie", "port"); len(got) != 1 || got[0].Text != "your card" {
		t.Errorf("annie has %+v", got)
	}

	irctest.Stop(s.Services)
	for gone := false; !gone; {
		from := back.Mark()
		back.Send("WHO NickServ")
		gone = back.AwaitFrom(from, "NickServ", func(e *girc.Event) bool { return e.Command == "352" || e.Command == "315" }).Command == "315"
	}
	back.Quit()
	again := s.Enter(t, "annie")
	if e := say(again, "it is me still"); e.Sender.Account != "" || e.Place.Address != "annie" {
		t.Errorf("without services: %+v", e)
	}
	unreachable("the services are away", again)
	away := listen(t, open(t, s, "port2", "password1", "account=port"), "")
	away.await("the end", func() bool { return away.over })
	if problem.KindOf(away.err) != problem.Unavailable {
		t.Errorf("a login while services are away: %v", away.err)
	}
}

// TestASplitAndAFloodLoseNothingUnsaid holds what is said of a part of the network that is cut off, of more than can be taken, and of what
// a server repeats.
func TestASplitAndAFloodLoseNothingUnsaid(t *testing.T) {
	t.Parallel()
	irctest.Tool(t, "inspircd")
	p := irctest.Ports(t, 4)
	a := irctest.Inspircd(t, "a", "1AA", p[0], p[1], "b", p[3])
	b := irctest.Inspircd(t, "b", "2BB", p[2], p[3], "a", p[1])
	ann, carol := a.Enter(t, "ann"), b.Enter(t, "carol")
	ann.Send("OPER root pw")
	ann.Send("CONNECT b.test")
	ann.Join("#team")
	ann.Send("MODE #team +H 50:1h")
	d := open(t, a, "port", "", "channels=#team")
	h := listen(t, d, "before").ready()
	if !slices.Equal(h.lost, []string{""}) {
		t.Errorf("after a cut, lost is %q", h.lost)
	}
	for joined := false; !joined; { // until the servers are linked
		carol.Send("JOIN #team")
		carol.Settle()
		from := ann.Mark()
		ann.Send("NAMES #team")
		joined = strings.Contains(ann.AwaitFrom(from, "names", func(e *girc.Event) bool { return e.Command == "353" }).Last(), "carol")
		carol.Send("PART #team")
	}
	carol.Join("#team").Send("PRIVMSG #team :hello from b")
	h.said("hello from b")

	ann.Send("SQUIT b.test")
	h.await("the split", func() bool { return len(h.lost) == 2 })
	ann.Send("PRIVMSG #team :still here")
	h.said("still here")

	floods(t, ann, h)
	repeats(t, ann, d)
}

// floods has somebody say more than waits, while the host takes nothing.
func floods(t *testing.T, ann *irctest.User, h *host) {
	h.mu.Lock()
	h.closed, h.lost, h.events = true, nil, nil
	h.mu.Unlock()
	const all = 2000
	for i := range all {
		ann.Send(fmt.Sprintf("PRIVMSG #team :flood %d", i))
	}
	ann.Settle()
	if _, err := h.driver.Deliver(t.Context(), channel.Message{Place: "#team", Text: "I am still there"}); err != nil { // the server has answered behind the flood
		t.Error(err)
	}
	h.mu.Lock()
	h.closed = false
	h.mu.Unlock()
	h.await("that something is lost", func() bool { return len(h.lost) > 0 })
	ann.Send("PRIVMSG #team :after the flood")
	h.said("after the flood")
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.events); n < 100 || n > 1000 || !slices.Equal(h.lost, []string{"#team"}) {
		t.Errorf("of %d, %d were taken; lost %q", all, n, h.lost)
	}
	for i, e := range h.events[:len(h.events)-1] {
		if e.Text != fmt.Sprintf("flood %d", i) {
			t.Fatalf("number %d is %q", i, e.Text)
		}
	}
}

// repeats has the server say once more what was said, to who enters.
func repeats(t *testing.T, ann *irctest.User, d channel.Driver) {
	ann.Send("PRIVMSG #team :confirm")
	ann.Settle()
	ann.Send("KILL port :out")
	ann.Await("the kill", func(e *girc.Event) bool { return e.Command == "QUIT" && e.Source.Name == "port" })
	again := listen(t, d, "").ready()
	if len(again.lost) == 0 {
		t.Error("what was said meanwhile is lost, and nothing says so")
	}
	ann.Send("PRIVMSG #team :now")
	again.said("now")
	again.mu.Lock()
	defer again.mu.Unlock()
	if len(again.events) != 1 {
		t.Errorf("what was said before came again: %+v", again.events)
	}
}

// TestATakenNickIsNotOurs holds that another nick is taken, and told, while somebody has ours.
func TestATakenNickIsNotOurs(t *testing.T) {
	t.Parallel()
	s := irctest.Ngircd(t)
	other := s.Enter(t, "port").Join("#team")
	h := listen(t, open(t, s, "port", "", "channels=#team,#closed"), "").ready()
	if !slices.Equal(h.selves[0].Names, []string{"port_"}) {
		t.Errorf("we are %+v", h.selves)
	}
	other.Send("PRIVMSG #team :port_: you are called otherwise")
	if e := h.said("port_: you are called otherwise"); !e.Mention {
		t.Errorf("%+v", e)
	}
	other.Send("PRIVMSG #team :port: that is me")
	if e := h.said("port: that is me"); e.Mention {
		t.Errorf("%+v", e)
	}
	other.Send("KICK #team port_ :out")
	other.Send("MODE #team +i")
	other.Send("PRIVMSG port_ :that was that")
	h.said("that was that")
	if _, err := h.driver.Deliver(t.Context(), channel.Message{Place: "#team", Text: "x"}); err == nil || errors.Is(err, channel.ErrDead) {
		t.Errorf("to where we were thrown out: %v", err)
	}
	other.Send("INVITE port_ #team")
	other.Await("us", func(e *girc.Event) bool { return e.Command == "JOIN" && e.Source.Name == "port_" })
	h.await("what was said meanwhile", func() bool { return slices.Contains(h.lost, "#team") })
}
