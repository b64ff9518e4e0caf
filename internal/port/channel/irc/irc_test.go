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
	"sallyport/internal/port/channel/irc/irctest"
)

// platform is a channel of its own on a real server, with two people in it.
type platform struct {
	server *network
	nick   string // the assistant's
	room   string
	users  map[string]*irctest.User // by handle at the beginning
	people [2]channeltest.Person
}

var platforms atomic.Int32

// network is a server, and who is in each channel that is opened.
type network struct {
	*irctest.Server
	people [2]*irctest.User
}

// open makes a channel in which two people are; they are the same in each.
func (s *network) open(t *testing.T) *platform {
	t.Helper()
	n := platforms.Add(1)
	p := &platform{server: s, nick: fmt.Sprintf("port%d", n), room: fmt.Sprintf("#room%d", n), users: map[string]*irctest.User{}}
	for i, u := range s.people {
		p.people[i] = channeltest.Person{Handle: u.Nick, Name: u.Nick}
		if s.Accounts {
			p.people[i].Account = u.Nick
		}
		p.users[u.Nick] = u.Join(p.room)
		t.Cleanup(func() { u.Send("PART " + p.room) }) // a server lets a user be on so many channels at a time
	}
	return p
}

// settings are the driver's, as a person says them.
func (p *platform) settings() map[string]string {
	return map[string]string{"server": p.server.Addr, "nick": p.nick, "channels": p.room, "tls": "no", "pace": "1ms"}
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
		u.Send("MODE " + u.Nick + " +B")
		defer u.Send("MODE " + u.Nick + " -B")
	}
	from := u.Mark()
	u.Send(tags + "PRIVMSG " + to + " :" + text)
	if !p.server.Accounts {
		u.Settle()
		return ""
	}
	echo := u.AwaitFrom(from, "the echo", func(e *girc.Event) bool { return e.Command == "PRIVMSG" && e.Last() == text && e.Params[0] == to })
	return echo.Tags["msgid"]
}

func (p *platform) Arrived(_ *testing.T, place string) []channeltest.Arrived {
	ann := p.users[p.people[0].Handle]
	if place == p.Direct().Address {
		return ann.Got(ann.Nick, p.nick)
	}
	return ann.Got(p.room, p.nick)
}

func (p *platform) Rename(t *testing.T, who channeltest.Person, name string) channeltest.Person {
	t.Helper()
	u := p.users[who.Handle]
	u.Send("NICK " + name)
	u.Await("the nick", func(e *girc.Event) bool { return e.Command == "NICK" && e.Last() == name })
	p.users[name] = u
	t.Cleanup(func() {
		u.Send("NICK " + who.Handle)
		u.Settle()
	})
	return channeltest.Person{Account: who.Account, Handle: name, Name: name}
}

// Refuse has only those speak who may.
func (p *platform) Refuse(t *testing.T, place string) {
	t.Helper()
	ann := p.users[p.people[0].Handle]
	ann.Send("MODE " + place + " +m")
	ann.Settle()
}

// Cut has an operator kill the assistant.
func (p *platform) Cut(t *testing.T) {
	t.Helper()
	bob := p.users[p.people[1].Handle]
	bob.Send("OPER root pw")
	bob.Send("KILL " + p.nick + " :out")
	bob.Await("the kill", func(e *girc.Event) bool {
		return e.Command == "QUIT" && strings.HasPrefix(e.Source.Name, p.nick)
	})
}

// marking is a platform where programs say that they are some.
type marking struct{ *platform }

func (marking) HasBots() {}

func TestInspircdKeepsWhatChannelsPromise(t *testing.T) {
	t.Parallel()
	s := &network{Server: irctest.Network(t)}
	s.people = [2]*irctest.User{s.Enter(t, "ann").Register(), s.Enter(t, "bob").Register()}
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return marking{s.open(t)} })
}

func TestNgircdKeepsWhatChannelsPromise(t *testing.T) {
	t.Parallel()
	s := &network{Server: irctest.Ngircd(t)}
	s.people = [2]*irctest.User{s.Enter(t, "ann"), s.Enter(t, "bob")}
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return s.open(t) })
}
