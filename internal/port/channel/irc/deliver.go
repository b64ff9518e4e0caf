package irc

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lrstanley/girc"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

// wait is a question to the server that is open: until a PONG says that all before it was answered.
type wait struct {
	target  string // folded: what is refused of it is ours; "" = nothing
	answers []*girc.Event
	done    chan struct{}
}

// answersMax is how many lines one question takes in.
const answersMax = 5000

// ask sends a line, and returns what the server says of a target before it says that it is done.
func (s *session) ask(ctx context.Context, line, target string) ([]*girc.Event, error) {
	s.mu.Lock()
	s.token++
	token := fmt.Sprintf("sp%d", s.token)
	w := &wait{target: fold(s.casemap, target), done: make(chan struct{})}
	s.waits[token] = w
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waits, token)
		s.mu.Unlock()
	}()

	for _, line := range []string{line, "PING :" + token} {
		if line == "" {
			continue
		}
		if err := s.write(line); err != nil {
			return nil, err
		}
	}
	limit := time.NewTimer(s.d.patient)
	defer limit.Stop()
	select {
	case <-w.done:
		if w.answers == nil && s.isOver() {
			return nil, channel.ErrAway
		}
		return w.answers, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-limit.C:
		return nil, problem.Errorf(problem.Unavailable, "", "%s has not answered for %s", s.d.address, s.d.patient)
	}
}

// answer is a line that belongs to an open question, or to none.
func (s *session) answer(e *girc.Event) {
	switch e.Command {
	case girc.ERR_NOSUCHCHANNEL, girc.ERR_TOOMANYCHANNELS, girc.ERR_CHANNELISFULL, girc.ERR_INVITEONLYCHAN, girc.ERR_BANNEDFROMCHAN,
		girc.ERR_BADCHANNELKEY, "477", "489":
		s.refusal(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Command == girc.PONG {
		if w := s.waits[e.Last()]; w != nil {
			delete(s.waits, e.Last())
			close(w.done)
		}
		return
	}
	if len(e.Command) != 3 { // no numeric: nothing of it answers
		return
	}
	for _, w := range s.waits {
		if len(w.answers) < answersMax && (e.Command == girc.RPL_WHOSPCRPL || w.target != "" && fold(s.casemap, param(e, 1)) == w.target) {
			w.answers = append(w.answers, e)
		}
	}
}

// giveUp ends all open questions: the session is over.
func (s *session) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, w := range s.waits {
		delete(s.waits, token)
		w.answers = nil
		close(w.done)
	}
	s.welcome = false
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.welcome
}

// Deliver sends a message: each line of it is one of IRC's. It returns once the server has taken them, and no name: IRC gives none.
func (d *Driver) Deliver(ctx context.Context, m channel.Message) (string, error) {
	s, err := d.session()
	if err != nil {
		return "", err
	}
	to, account, err := s.route(m)
	if err != nil {
		return "", err
	}
	texts := lines(m.Text, s.room(to))
	if err := s.soon(ctx, len(texts), account != ""); err != nil {
		return "", err
	}
	checked := false
	for _, text := range texts {
		began := time.Now()
		if err := s.pace.Wait(ctx); err != nil {
			return "", err
		}
		if account != "" && (!checked || time.Since(began) > time.Second) { // who waits may find another on the nick
			if to, err = s.find(ctx, account, to); err != nil {
				return "", err
			}
			checked = true
		}
		answers, err := s.ask(ctx, "PRIVMSG "+to+" :"+text, to)
		if err != nil {
			return "", err
		}
		if err := refused(answers, to); err != nil {
			return "", err
		}
	}
	return "", nil
}

// soon refuses a message whose last line could not go before ctx ends, while so much waits: half of it would have gone, and goes again. With a
// check, each line may need another one before it.
func (s *session) soon(ctx context.Context, lines int, checked bool) error {
	if checked {
		lines *= 2
	}
	wait := time.Duration((float64(lines) - s.pace.Tokens()) * float64(s.d.pace))
	if end, ends := ctx.Deadline(); ends && wait > 0 && time.Now().Add(wait).After(end) && s.pace.Tokens() < burst {
		return &channel.Later{Until: time.Now().Add(min(wait, time.Minute)), All: true}
	}
	return nil
}

// route says where a message goes: a channel or a nick; and with an account, that it is to be on the nick, "" if it is still to be found.
func (s *session) route(m channel.Message) (to, account string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, direct := strings.CutPrefix(m.Place, byAccount)
	switch {
	case !word(m.Place):
		return "", "", problem.Case(channel.ErrDead, "", "%q is no place on IRC", inert.Short(m.Place, 40))
	case direct && m.Account != "" && lower(m.Account) != name:
		return "", "", problem.Case(channel.ErrDead, "", "the place %s is not that of the account %s", m.Place, inert.Short(m.Account, 40))
	case direct:
		return "", name, nil
	case !strings.ContainsAny(m.Place[:1], chantypes):
		return m.Place, lower(m.Account), nil
	}
	place := fold(s.casemap, m.Place)
	if s.joined[place] {
		return m.Place, "", nil
	}
	if !s.named(place) {
		return "", "", problem.Case(channel.ErrDead, "", "%s is not among the channels in the settings", m.Place)
	}
	return "", "", problem.Errorf(problem.Unavailable, "", "we are not in %s: %s", m.Place, cmp.Or(s.refusals[place], "the server has not said why"))
}

// room is how many bytes of text a line to a target has, as others get it.
func (s *session) room(to string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := len(":!@ ") + max(len(s.nick), len(s.d.nick)+nickTries) + max(len(s.user), 18) + max(len(s.shown), 64)
	return max(lineMax-len("\r\n")-prefix-len("PRIVMSG  :")-max(len(to), 30), 40)
}

// refused is what the server says against a line; nil if nothing.
func refused(answers []*girc.Event, to string) error {
	for _, e := range answers {
		switch why := inert.Short(e.Last(), 200); e.Command {
		case girc.ERR_NOSUCHNICK, girc.ERR_NOSUCHCHANNEL, girc.ERR_CANNOTSENDTOCHAN, "415", "477", "486", "531", "716":
			return problem.Case(channel.ErrDead, "", "%s takes nothing from us: %s", to, why)
		case "439", "263": // too many, too fast
			return &channel.Later{Until: time.Now().Add(time.Minute)}
		}
	}
	return nil
}

// Direct returns the place of an account that is on the network now. Errors: channel.ErrDead if nobody is logged in to it.
func (d *Driver) Direct(ctx context.Context, account string) (string, error) {
	s, err := d.session()
	if err != nil {
		return "", err
	}
	account = lower(account)
	if !word(byAccount + account) {
		return "", problem.Case(channel.ErrDead, "", "%q is no name of an account on IRC", inert.Short(account, 40))
	}
	if _, err := s.find(ctx, account, ""); problem.KindOf(err) == problem.NotFound {
		return "", problem.Case(channel.ErrDead, "", "%w", err)
	} else if err != nil {
		return "", err
	}
	return byAccount + account, nil
}

// find returns a nick that an account has at this moment: the one that is named, or where none is, any. Errors: problem.NotFound.
func (s *session) find(ctx context.Context, account, nick string) (string, error) {
	s.mu.Lock()
	masks := []string{nick}
	if nick == "" {
		masks = []string{s.nicks[account], account}
		for _, name := range s.d.channels {
			if s.joined[fold(s.casemap, name)] {
				masks = append(masks, name)
			}
		}
	}
	whox := s.whox
	s.mu.Unlock()
	if !whox {
		return "", problem.Case(channel.ErrDead, "", "%s does not show who is logged in to which account (WHOX)", s.d.address)
	}
	for _, mask := range masks {
		if !word(mask) {
			continue
		}
		if found, err := s.who(ctx, mask, account); found != "" || err != nil {
			return found, err
		}
	}
	return "", problem.Errorf(problem.NotFound, "", "nobody here is logged in as %s now", inert.Short(account, 40))
}

// who asks who is behind a nick or in a channel, and returns a nick with the account; "" if none has it.
func (s *session) who(ctx context.Context, mask, account string) (string, error) {
	if err := s.pace.Wait(ctx); err != nil {
		return "", err
	}
	s.mu.Lock()
	s.token++
	kind := fmt.Sprint(1 + s.token%999)
	s.mu.Unlock()
	answers, err := s.ask(ctx, "WHO "+mask+" %tna,"+kind, "")
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range answers {
		nick := param(e, 2)
		if e.Command != girc.RPL_WHOSPCRPL || param(e, 1) != kind || len(e.Params) != 4 || lower(param(e, 3)) != account || !word(nick) {
			continue
		}
		if strings.ContainsAny(mask[:1], chantypes) || fold(s.casemap, nick) == fold(s.casemap, mask) {
			return nick, nil
		}
	}
	return "", nil
}
