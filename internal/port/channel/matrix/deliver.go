package matrix

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"maunium.net/go/mautrix/id"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

// body is a message: plain text that names nobody.
type body struct {
	Kind     string    `json:"msgtype"`
	Text     string    `json:"body"`
	Mentions struct{}  `json:"m.mentions"` // empty, and there: so that no name in the text is one
	Relation *relation `json:"m.relates_to,omitempty"`
	New      *body     `json:"m.new_content,omitempty"`
}

type relation struct {
	Kind        string   `json:"rel_type,omitempty"`
	Event       string   `json:"event_id,omitempty"`
	Answers     *answers `json:"m.in_reply_to,omitempty"`
	FallingBack bool     `json:"is_falling_back,omitempty"`
}

type answers struct {
	Event string `json:"event_id"`
}

// plain is a text without what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// compose is what is sent of a message.
func compose(m channel.Message) body {
	b := body{Kind: "m.text", Text: plain(m.Text)}
	if m.ReplyTo != "" {
		b.Relation = &relation{Answers: &answers{m.ReplyTo}}
	}
	if m.Thread != "" {
		b.Relation = &relation{Kind: "m.thread", Event: m.Thread, Answers: &answers{m.ReplyTo}}
		if m.ReplyTo == "" {
			b.Relation.Answers.Event, b.Relation.FallingBack = m.Thread, true
		}
	}
	return b
}

// Deliver sends a message, with its nonce as transaction.
func (d *Driver) Deliver(ctx context.Context, m channel.Message) (string, error) {
	return d.send(ctx, m, compose(m))
}

// Update has a message show another text.
func (d *Driver) Update(ctx context.Context, message string, m channel.Message) error {
	now := compose(channel.Message{Text: m.Text})
	b := body{Kind: now.Kind, Text: "* " + now.Text, Relation: &relation{Kind: "m.replace", Event: message}, New: &now}
	_, err := d.send(ctx, m, b)
	return err
}

func (d *Driver) send(ctx context.Context, m channel.Message, b body) (string, error) {
	s, err := d.now.Session()
	if err != nil {
		return "", err
	}
	room := id.RoomID(m.Place)
	if !strings.HasPrefix(m.Place, "!") {
		return "", problem.Case(channel.ErrDead, "", "%q is no room of Matrix", inert.Short(m.Place, 60))
	}
	if hidden, err := s.isHidden(ctx, room); err != nil || hidden {
		if err == nil {
			err = problem.Case(channel.ErrDead, "", "the room %s is encrypted, and what we say there is not", inert.Short(m.Place, 80))
		}
		return "", err
	}
	if err := s.alone(ctx, room, m.Account); err != nil {
		return "", err
	}
	return s.put(ctx, room, m.Nonce, b)
}

// put sends a message into a room.
func (s *session) put(ctx context.Context, room id.RoomID, nonce string, b body) (string, error) {
	if nonce == "" {
		nonce = rand.Text()
	}
	var sent struct {
		ID string `json:"event_id"`
	}
	err := s.request(ctx, http.MethodPut, b, &sent, nil, "v3", "rooms", room, "send", "m.room.message", nonce)
	return sent.ID, err
}

// alone refuses a room in which an account is not, or others are, or that somebody else made, for what is meant for the account alone.
func (s *session) alone(ctx context.Context, room id.RoomID, account string) error {
	if account == "" {
		return nil
	}
	others, err := s.others(ctx, room)
	switch {
	case err != nil:
		return err
	case !slices.Contains(others, id.UserID(account)):
		return problem.Errorf(problem.NotFound, "", "%s is not in the room %s now", inert.Short(account, 80), inert.Short(string(room), 80))
	case len(others) > 1:
		return problem.Errorf(problem.Refused, "", "%s is not alone in the room %s", inert.Short(account, 80), inert.Short(string(room), 80))
	}
	theirs, err := s.theirs(ctx, room, id.UserID(account))
	if err == nil && !theirs {
		err = problem.Errorf(problem.Refused, "", "somebody else than %s has made the room %s, and may have it read",
			inert.Short(account, 80), inert.Short(string(room), 80))
	}
	return err
}

// hiddenText is what people are told who write where we cannot read.
const hiddenText = "I cannot read this room, because it is encrypted. Please write to me in a room without encryption."

// sayHidden tells a room once that we cannot read it.
func (s *session) sayHidden(ctx context.Context, name id.RoomID) error {
	s.mu.Lock()
	r := s.of(name)
	told := r.told
	hidden := true
	r.told, r.hidden = true, &hidden
	s.mu.Unlock()
	if told {
		return nil
	}
	b := compose(channel.Message{Text: hiddenText})
	b.Kind = "m.notice"
	_, err := s.put(ctx, name, "", b)
	var wait *channel.Later
	if errors.Is(err, channel.ErrDead) || errors.As(err, &wait) {
		return nil
	}
	return err
}

// Direct returns a room with an account alone; if there is none, a new one, to which it is asked. Errors: channel.ErrDead if nobody has it.
func (d *Driver) Direct(ctx context.Context, account string) (string, error) {
	s, err := d.now.Session()
	if err != nil {
		return "", err
	}
	user := id.UserID(account)
	if _, _, err := user.Parse(); err != nil || user == s.client.UserID {
		return "", problem.Case(channel.ErrDead, "", "%q is nobody's user id on Matrix", inert.Short(account, 80))
	}
	s.mu.Lock()
	rooms := slices.Clone(s.direct[user])
	s.mu.Unlock()
	for _, room := range rooms {
		hidden, err := s.isHidden(ctx, room)
		if err == nil && !hidden {
			err = s.alone(ctx, room, account)
		}
		if err == nil && !hidden {
			return string(room), nil
		}
		if kind := problem.KindOf(err); err != nil && kind != problem.NotFound && kind != problem.Refused {
			return "", err
		}
	}
	return s.invite(ctx, user)
}

// invite makes a room and asks somebody in.
func (s *session) invite(ctx context.Context, user id.UserID) (string, error) {
	var profile struct{}
	if err := s.get(ctx, &profile, nil, "v3", "profile", user); err != nil && (!errors.Is(err, channel.ErrDead) || errors.Is(err, errNone)) {
		return "", err
	}
	var made struct {
		Room id.RoomID `json:"room_id"`
	}
	ask := map[string]any{"preset": "private_chat", "is_direct": true, "invite": []id.UserID{user}}
	if err := s.request(ctx, http.MethodPost, ask, &made, nil, "v3", "createRoom"); err != nil {
		return "", err
	}
	return string(made.Room), s.addDirect(ctx, user, made.Room)
}
