package irc

import (
	"slices"
	"strings"
	"time"

	"github.com/lrstanley/girc"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/port/channel"
)

const (
	nicksMax   = 2000 // accounts whose nick is remembered
	replaysMax = 100
	joinedMax  = 500              // channels, also those that an operator puts us into
	splitEvery = 10 * time.Minute // a netsplit is told so often at most
)

// hear is one line of the server's.
func (s *session) hear(e *girc.Event) error {
	s.note(e)
	switch e.Command {
	case girc.PING:
		return s.write("PONG :" + e.Last())
	case girc.ERROR:
		return over(e)
	case girc.PRIVMSG:
		s.heard(e)
	case girc.RPL_WELCOME:
		s.welcomed(e)
	case girc.RPL_ISUPPORT:
		s.supports(e)
	case girc.RPL_LOGGEDIN, "901": // and out
		s.login(e)
	case "396": // our host is shown as another
		s.mu.Lock()
		s.shown = param(e, 1)
		s.mu.Unlock()
	case girc.CAP:
		return s.capabilities(e)
	case "BATCH":
		s.batch(e)
	case girc.QUIT:
		s.quit(e)
	case girc.INVITE:
		return s.invited(e)
	case girc.NICK, girc.JOIN, girc.PART, girc.KICK:
		s.moved(e)
	default:
		s.answer(e)
	}
	return nil
}

// note remembers on which nick an account was seen.
func (s *session) note(e *girc.Event) {
	if e.Source == nil || e.Source.Name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	account := s.accountOf(e)
	if account == "" {
		return
	}
	nick := e.Source.Name
	if e.Command == girc.NICK {
		nick = param(e, 0)
	}
	if len(s.nicks) >= nicksMax {
		clear(s.nicks)
	}
	s.nicks[account] = nick
}

// accountOf is who a line is of, as the server says; mu is held. Without the capability nothing on a line says so.
func (s *session) accountOf(e *girc.Event) string {
	if account := tag(e, "account"); s.caps["account-tag"] && word(account) {
		return lower(account)
	}
	return ""
}

// when is when the server says that a line was said; zero = it does not say. mu is held.
func (s *session) when(e *girc.Event) time.Time {
	if !s.caps["server-time"] {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02T15:04:05.999Z", tag(e, "time"))
	if err != nil {
		return time.Time{}
	}
	return at
}

func (s *session) welcomed(e *girc.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.welcome, s.began = true, s.when(e)
	if nick := param(e, 0); nick != "" {
		s.nick = nick
	}
}

func (s *session) supports(e *girc.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range e.Params {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "CASEMAPPING":
			s.casemap = value
		case "WHOX":
			s.whox = true
		}
	}
}

func (s *session) login(e *girc.Event) {
	s.mu.Lock()
	s.account = ""
	if e.Command == girc.RPL_LOGGEDIN {
		s.account = lower(param(e, 2))
	}
	ready := s.ready
	s.mu.Unlock()
	if ready {
		s.tellSelf()
	}
}

// batch notes which lines are a replay of what was said before, and which are a netsplit.
func (s *session) batch(e *girc.Event) {
	name, kind := param(e, 0), param(e, 1)
	s.mu.Lock()
	if ref, begins := strings.CutPrefix(name, "+"); begins && (strings.HasSuffix(kind, "chathistory") || strings.Contains(kind, "playback")) {
		if len(s.replays) >= replaysMax {
			clear(s.replays)
		}
		s.replays[ref] = true
	} else if ref, ends := strings.CutPrefix(name, "-"); ends {
		delete(s.replays, ref)
	}
	s.mu.Unlock()
	if kind == "netsplit" {
		s.split()
	}
}

// netsplit is the reason of who has gone with a server; what a person gives as a reason has words of the server's before it.
var netsplit = pattern.Of(`^[A-Za-z0-9*-]+(\.[A-Za-z0-9*-]+)+ [A-Za-z0-9*-]+(\.[A-Za-z0-9*-]+)+$`)

func (s *session) quit(e *girc.Event) {
	if netsplit().MatchString(e.Last()) {
		s.split()
	}
}

// split says that a part of the network is cut off: what is said there is not heard.
func (s *session) split() {
	s.mu.Lock()
	old := time.Since(s.splitAt) > splitEvery
	if old {
		s.splitAt = time.Now()
	}
	s.mu.Unlock()
	if old {
		s.inbox.put(item{}, "")
	}
}

// invited enters a channel again that is named in the settings; no other.
func (s *session) invited(e *girc.Event) error {
	s.mu.Lock()
	to := fold(s.casemap, e.Last())
	wanted := s.named(to) && !s.joined[to]
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	return s.write("JOIN " + e.Last())
}

// named reports whether a folded channel is among those in the settings; mu is held.
func (s *session) named(place string) bool {
	return slices.ContainsFunc(s.d.channels, func(name string) bool { return fold(s.casemap, name) == place })
}

// moved is a line that says who is where, under which nick. Of others it changes nothing here.
func (s *session) moved(e *girc.Event) {
	s.mu.Lock()
	place := fold(s.casemap, param(e, 0))
	who := ""
	if e.Source != nil {
		who = e.Source.Name
	}
	if e.Command == girc.KICK {
		who = param(e, 1)
	}
	if fold(s.casemap, who) != fold(s.casemap, s.nick) {
		s.mu.Unlock()
		return
	}
	renamed, back := false, false
	switch e.Command {
	case girc.NICK:
		s.nick, renamed = param(e, 0), s.ready
	case girc.JOIN:
		back = s.missed[place]
		if len(s.joined) < joinedMax {
			s.joined[place] = true
		}
		delete(s.missed, place)
		delete(s.refusals, place)
		s.user, s.shown = e.Source.Ident, e.Source.Host
	default:
		delete(s.joined, place)
		if len(s.missed) < joinedMax {
			s.missed[place] = true
		}
	}
	s.mu.Unlock()

	if renamed {
		s.tellSelf()
	}
	if back {
		s.inbox.put(item{lost: place}, place)
	}
}

// heard is something that a person says.
func (s *session) heard(e *girc.Event) {
	s.mu.Lock()
	event, ok := s.event(e)
	s.mu.Unlock()
	if ok {
		s.inbox.put(item{event: &event}, event.Place.Address)
	}
}

// event is what a PRIVMSG says; false if it is not for us, of the past, or of nobody. mu is held.
func (s *session) event(e *girc.Event) (channel.Event, bool) {
	if e.Source == nil || e.Source.Ident == "" && e.Source.Host == "" || len(e.Params) != 2 {
		return channel.Event{}, false // of a server
	}
	nick := e.Source.Name
	if !word(nick) || strings.ContainsAny(nick[:1], chantypes+byAccount) || fold(s.casemap, nick) == fold(s.casemap, s.nick) {
		return channel.Event{}, false
	}
	at := s.when(e)
	if s.replays[tag(e, "batch")] || !at.IsZero() && at.Before(s.began) {
		return channel.Event{}, false // said before we came: who answers it now was not asked
	}
	text, ok := said(e.Params[1])
	if !ok {
		return channel.Event{}, false
	}
	event := channel.Event{
		ID: tag(e, "msgid"), Text: text, At: at, Came: time.Now(),
		Sender: channel.Sender{Account: s.accountOf(e), Handle: nick, Name: nick, Bot: bot(e)},
	}
	if id := replied(e); id != "" {
		event.Quote = &channel.Quote{ID: id}
	}
	switch to := e.Params[0]; {
	case fold(s.casemap, to) == fold(s.casemap, s.nick):
		event.Place = channel.Place{Address: fold(s.casemap, nick), Kind: channel.Direct, Name: nick}
		if event.Sender.Account != "" {
			event.Place.Address = byAccount + event.Sender.Account
		}
	case s.joined[fold(s.casemap, to)]:
		event.Place = channel.Place{Address: fold(s.casemap, to), Kind: channel.Group, Name: to}
		event.Mention = names(s.casemap, text, s.nick)
	default:
		return channel.Event{}, false
	}
	return event, true
}

// bot reports whether a line is of a program that says so.
func bot(e *girc.Event) bool {
	for _, name := range []string{"bot", "draft/bot", "inspircd.org/bot"} {
		if _, is := e.Tags[name]; is {
			return true
		}
	}
	return false
}

// replied is the message that a line answers, by its sender's word.
func replied(e *girc.Event) string {
	if id := tag(e, "+draft/reply"); id != "" {
		return id
	}
	return tag(e, "+reply")
}

// refusal is why a channel does not let us in.
func (s *session) refusal(e *girc.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if place := fold(s.casemap, param(e, 1)); s.named(place) {
		s.refusals[place] = inert.Short(e.Last(), 200)
	}
}
