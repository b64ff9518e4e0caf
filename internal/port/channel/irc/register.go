package irc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lrstanley/girc"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// wanted are the capabilities that are asked for. What people say comes back to us by none of them.
var wanted = []string{"account-tag", "message-tags", "server-time", "batch"}

const (
	saslPiece = 400 // of a password on the wire
	nickTries = 4
)

// register makes the server know us; it returns when the greeting is over.
func (s *session) register() error {
	password, err := s.password()
	if err != nil {
		return err
	}
	hello := []string{"CAP LS 302", "NICK " + s.nick, "USER " + userName(s.d.nick) + " 0 * :" + s.d.nick}
	if s.d.account == "" && password != "" {
		hello = slices.Insert(hello, 0, "PASS :"+password)
	}
	for _, line := range hello {
		if err := s.write(line); err != nil {
			return err
		}
	}
	for {
		line, err := s.read()
		if err != nil {
			return err
		}
		e := parse(line)
		if e == nil {
			continue
		}
		done, err := s.greet(e, password)
		if done || err != nil {
			return err
		}
	}
}

// password reads the credential; "" = there is none.
func (s *session) password() (string, error) {
	if s.d.credential == nil {
		return "", nil
	}
	password, err := s.d.credential()
	if err != nil {
		return "", fmt.Errorf("read the password for %s: %w", s.d.address, err)
	}
	if password = strings.TrimRight(password, "\r\n"); password == "" || strings.ContainsAny(password, "\r\n\x00") {
		return "", problem.Errorf(problem.Denied, "", "the file of the password for %s is empty, or has more than one line", s.d.address)
	}
	return password, nil
}

// userName is the user part of our prefix.
func userName(nick string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, lower(nick))
	return name[:min(len(name), 9)] + strings.Repeat("x", max(0, 1-len(name)))
}

// greet is one line of the greeting; done when it is over.
func (s *session) greet(e *girc.Event, password string) (done bool, err error) {
	switch e.Command {
	case "CAP":
		return false, s.capabilities(e)
	case "AUTHENTICATE":
		return false, s.authenticate(password)
	case girc.RPL_SASLSUCCESS:
		return false, s.write("CAP END")
	case girc.RPL_NICKLOCKED, girc.ERR_SASLFAIL, girc.ERR_SASLTOOLONG, girc.ERR_SASLABORTED:
		return false, problem.Errorf(problem.Denied, "", "%s does not let the account %s in: %s", s.d.address, s.d.account, inert.Short(e.Last(), 200))
	case girc.ERR_PASSWDMISMATCH, girc.ERR_YOUREBANNEDCREEP:
		return false, problem.Errorf(problem.Denied, "", "%s does not let us in: %s", s.d.address, inert.Short(e.Last(), 200))
	case girc.ERR_NICKNAMEINUSE, girc.ERR_UNAVAILRESOURCE, girc.ERR_NICKCOLLISION:
		return false, s.otherNick()
	case girc.ERR_ERRONEUSNICKNAME:
		return false, problem.Errorf(problem.Refused, "", "%s does not take the nick %s: %s", s.d.address, s.nick, inert.Short(e.Last(), 200))
	case girc.RPL_ENDOFMOTD, girc.ERR_NOMOTD:
		return s.greeted()
	}
	return false, s.hear(e)
}

// greeted reports whether the server knows us, and us as who we are to be.
func (s *session) greeted() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.welcome {
		return false, nil
	}
	if s.d.account != "" && s.account == "" {
		return false, problem.Errorf(problem.Unavailable, "", "%s has let us in, but not as the account %s", s.d.address, s.d.account)
	}
	s.ready = true
	return true, nil
}

// otherNick takes another nick for as long as somebody has ours.
func (s *session) otherNick() error {
	s.mu.Lock()
	s.nick += "_"
	nick := s.nick
	s.mu.Unlock()
	if len(nick) > len(s.d.nick)+nickTries {
		return problem.Errorf(problem.Unavailable, "", "the nick %s is taken on %s, and those with _ behind it are too", s.d.nick, s.d.address)
	}
	return s.write("NICK " + nick)
}

// capabilities is a line about what the server can do.
func (s *session) capabilities(e *girc.Event) error {
	names := strings.Fields(e.Last())
	switch verb := strings.ToUpper(param(e, 1)); {
	case verb == "LS" && !s.ready:
		for _, name := range names {
			name, _, _ = strings.Cut(name, "=")
			s.offered[name] = true
		}
		if param(e, 2) == "*" && len(e.Params) > 3 {
			return nil // there are more
		}
		return s.request()
	case verb == "ACK" || verb == "DEL":
		s.mu.Lock()
		for _, name := range names {
			s.caps[strings.TrimPrefix(name, "-")] = verb == "ACK" && !strings.HasPrefix(name, "-")
		}
		sasl := s.caps["sasl"]
		s.mu.Unlock()
		if s.ready || verb == "DEL" {
			return nil
		}
		if sasl {
			return s.write("AUTHENTICATE PLAIN")
		}
		return s.write("CAP END")
	case verb == "NAK" && !s.ready:
		return s.write("CAP END")
	}
	return nil
}

// request asks for what is wanted of what is offered.
func (s *session) request() error {
	var names []string
	for _, name := range wanted {
		if s.offered[name] {
			names = append(names, name)
		}
	}
	if s.d.account != "" {
		if !s.offered["sasl"] {
			return problem.Errorf(problem.Unavailable, "", "%s takes no login now: it has none, or its services are away", s.d.address)
		}
		names = append(names, "sasl")
	}
	if len(names) == 0 {
		return s.write("CAP END")
	}
	return s.write("CAP REQ :" + strings.Join(names, " "))
}

// authenticate sends the account and its password.
func (s *session) authenticate(password string) error {
	all := (&girc.SASLPlain{User: s.d.account, Pass: password}).Encode([]string{"+"})
	for ; len(all) >= saslPiece; all = all[saslPiece:] {
		if err := s.write("AUTHENTICATE " + all[:saslPiece]); err != nil {
			return err
		}
	}
	if all == "" {
		all = "+"
	}
	return s.write("AUTHENTICATE " + all)
}
