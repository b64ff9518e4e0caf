package irc_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lrstanley/girc"

	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/irc"
)

// platform is a channel of its own on a real server, with two people in it.
type platform struct {
	server *ircd
	nick   string // the assistant's
	room   string
	users  map[string]*user // by handle at the beginning
	people [2]channeltest.Person
}

var platforms atomic.Int32

// open makes a channel in which two people are; they are the same in each.
func (s *ircd) open(t *testing.T) *platform {
	t.Helper()
	n := platforms.Add(1)
	p := &platform{server: s, nick: fmt.Sprintf("port%d", n), room: fmt.Sprintf("#room%d", n), users: map[string]*user{}}
	for i, u := range s.people {
		p.people[i] = channeltest.Person{Handle: u.nick, Name: u.nick}
		if s.accounts {
			p.people[i].Account = u.nick
		}
		p.users[u.nick] = u.join(p.room)
	}
	return p
}

// settings are the driver's, as a person says them.
func (p *platform) settings() map[string]string {
	return map[string]string{"server": p.server.addr, "nick": p.nick, "channels": p.room, "tls": "no", "pace": "1ms"}
}

func (p *platform) Driver(t *testing.T) channel.Driver {
	t.Helper()
	d, err := irc.Open(p.settings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (p *platform) Place() channel.Place {
	return channel.Place{Address: p.room, Kind: channel.Group, Name: p.room}
}

func (p *platform) Direct() channel.Place {
	who := p.people[0]
	place := channel.Place{Address: who.Handle, Kind: channel.Direct, Name: who.Name}
	if who.Account != "" {
		place.Address = "=" + who.Account
	}
	return place
}

func (p *platform) People() [2]channeltest.Person { return p.people }

func (p *platform) Say(t *testing.T, s channeltest.Saying) string {
	t.Helper()
	u := p.users[s.By.Handle]
	to, text, tags := s.Place.Address, s.Text, ""
	if s.Place.Kind == channel.Direct {
		to = p.nick
	}
	if s.Mention {
		text = p.nick + ": " + text
	}
	if s.Quote != nil && s.Quote.ID != "" {
		tags = "@+draft/reply=" + s.Quote.ID + " "
	}
	if s.Bot {
		u.send("MODE " + u.nick + " +B")
		defer u.send("MODE " + u.nick + " -B")
	}
	from := u.mark()
	u.send(tags + "PRIVMSG " + to + " :" + text)
	if !p.server.accounts {
		u.settle()
		return ""
	}
	echo := u.awaitFrom(from, "the echo", func(e *girc.Event) bool { return e.Command == "PRIVMSG" && e.Last() == text && e.Params[0] == to })
	return echo.Tags["msgid"]
}

func (p *platform) Arrived(_ *testing.T, place string) []channeltest.Arrived {
	ann := p.users[p.people[0].Handle]
	if place == p.Direct().Address {
		return ann.got(ann.nick, p.nick)
	}
	return ann.got(p.room, p.nick)
}

func (p *platform) Rename(t *testing.T, who channeltest.Person, name string) channeltest.Person {
	t.Helper()
	u := p.users[who.Handle]
	u.send("NICK " + name)
	u.await("the nick", func(e *girc.Event) bool { return e.Command == "NICK" && e.Last() == name })
	p.users[name] = u
	t.Cleanup(func() {
		u.send("NICK " + who.Handle)
		u.settle()
	})
	return channeltest.Person{Account: who.Account, Handle: name, Name: name}
}

// Refuse has only those speak who may.
func (p *platform) Refuse(t *testing.T, place string) {
	t.Helper()
	ann := p.users[p.people[0].Handle]
	ann.send("MODE " + place + " +m")
	ann.settle()
}

// Cut has an operator kill the assistant.
func (p *platform) Cut(t *testing.T) {
	t.Helper()
	bob := p.users[p.people[1].Handle]
	bob.send("OPER root pw")
	bob.send("KILL " + p.nick + " :out")
	bob.await("the kill", func(e *girc.Event) bool {
		return e.Command == "QUIT" && strings.HasPrefix(e.Source.Name, p.nick)
	})
}

// marking is a platform where programs say that they are some.
type marking struct{ *platform }

func (marking) HasBots() {}

func TestInspircdKeepsWhatChannelsPromise(t *testing.T) {
	t.Parallel()
	s := network(t)
	s.people = [2]*user{s.enter(t, "ann").register(), s.enter(t, "bob").register()}
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return marking{s.open(t)} })
}

func TestNgircdKeepsWhatChannelsPromise(t *testing.T) {
	t.Parallel()
	s := ngircd(t)
	s.people = [2]*user{s.enter(t, "ann"), s.enter(t, "bob")}
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return s.open(t) })
}
