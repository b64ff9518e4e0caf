package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/port/channel"
)

type (
	// payload is what the Events API tells.
	payload struct {
		Team  string          `json:"team_id"`
		Event json.RawMessage `json:"event"`
	}
	// happened is an event of it. What a message says stands in it too, but for a change, which has two messages.
	happened struct {
		Type    string          `json:"type"`
		User    json.RawMessage `json:"user"` // an id; of user_change all of the user
		Channel string          `json:"channel"`
		Kind    string          `json:"channel_type"`
		TS      string          `json:"event_ts"`
		Message message         `json:"message"`
		Before  message         `json:"previous_message"`
	}
	message struct {
		Subtype     string       `json:"subtype"`
		TS          string       `json:"ts"`
		Thread      string       `json:"thread_ts"`
		Author      string       `json:"-"`
		Team        string       `json:"team"`
		UserTeam    string       `json:"user_team"`
		Bot         string       `json:"bot_id"`
		Name        string       `json:"username"` // which a bot gave itself
		Text        string       `json:"text"`
		Attachments []attachment `json:"attachments"`
	}
	attachment struct {
		Shared   bool   `json:"is_share"`
		Unfurled bool   `json:"is_msg_unfurl"`
		Author   string `json:"author_name"`
		Text     string `json:"text"`
		Fallback string `json:"fallback"`
	}
	// pressed is what tells of buttons.
	pressed struct {
		Type string `json:"type"`
		Team struct {
			ID string `json:"id"`
		} `json:"team"`
		User struct {
			ID   string `json:"id"`
			Team string `json:"team_id"`
		} `json:"user"`
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
		Message message `json:"message"`
		Actions []struct {
			Value string `json:"value"`
			At    string `json:"action_ts"`
		} `json:"actions"`
	}
)

// UnmarshalJSON reads a message with who wrote it, which is another thing in other events.
func (m *message) UnmarshalJSON(text []byte) error {
	type bare message
	var b bare
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	var by struct {
		User json.RawMessage `json:"user"`
	}
	if err := json.Unmarshal(text, &by); err != nil {
		return err
	}
	*m = message(b)
	_ = json.Unmarshal(by.User, &m.Author) // else nobody wrote it
	return nil
}

// spoken are the subtypes of messages that somebody said. The others tell who came, or what became of the place.
var spoken = map[string]bool{"": true, "bot_message": true, "file_share": true, "thread_broadcast": true, "me_message": true}

// said reads a message, or an edit; false if nobody said anything. Errors: of what cannot be read.
func (s *session) said(ctx context.Context, p payload) (e channel.Event, ok bool, err error) {
	var h happened
	if err := json.Unmarshal(p.Event, &h); err != nil {
		return e, false, err
	}
	switch {
	case h.Type == "user_change":
		s.renamed(h.User)
		return e, false, nil
	case h.Type != "message" && h.Type != "app_mention", h.Channel == "":
		return e, false, nil
	}
	var m message
	if err := json.Unmarshal(p.Event, &m); err != nil {
		return e, false, err
	}
	edited := m.Subtype == "message_changed"
	if edited {
		m = h.Message
		if m.Text == h.Before.Text {
			return e, false, nil // a preview came, or an answer was counted
		}
	}
	if !spoken[m.Subtype] || m.TS == "" || m.Author == "" && m.Bot == "" || m.Author == s.me.User || m.Bot != "" && m.Bot == s.me.Bot {
		return e, false, nil
	}

	e = channel.Event{
		ID: m.TS, Thread: thread(m), Sender: s.sender(ctx, m, p.Team), Mention: calls(m.Text, s.me.User), Edited: edited, At: moment(m.TS), Cursor: h.TS,
	}
	e.Place = s.place(ctx, h.Channel, h.Kind, e.Sender.Name)
	if edited {
		e.ID += " edit " + h.TS
		e.Thread = begun(e.Place, m)
	}
	e.Text = s.plain(ctx, m.Text) // last: who speaks, and where, has its name before those in a text
	s.shared(ctx, m, &e)
	return e, true, nil
}

// shared reads what somebody handed on of another's.
func (s *session) shared(ctx context.Context, m message, e *channel.Event) {
	for _, a := range m.Attachments {
		if !a.Shared && !a.Unfurled {
			continue
		}
		e.Forwarded = true
		text := s.plain(ctx, cmp.Or(a.Text, a.Fallback))
		if e.Text == "" {
			e.Text = text
		} else {
			e.Quote = &channel.Quote{From: a.Author, Text: text}
		}
		return
	}
}

// thread is the one that a message is an answer in. The first message of a thread stands in the place itself.
func thread(m message) string {
	if m.Thread == m.TS {
		return ""
	}
	return m.Thread
}

// begun is the thread that a message is in or begins. Of an edit and of a press it is told as such: their names are no message's, and no thread
// begins with them.
func begun(p channel.Place, m message) string {
	if p.Kind == channel.Direct {
		return thread(m)
	}
	return cmp.Or(m.Thread, m.TS)
}

func (s *session) sender(ctx context.Context, m message, team string) channel.Sender {
	if m.Author == "" {
		return channel.Sender{Handle: m.Bot, Name: cmp.Or(m.Name, m.Bot), Bot: true}
	}
	return channel.Sender{
		Account: account(cmp.Or(m.UserTeam, m.Team, team), m.Author), Handle: m.Author,
		Name: s.user(ctx, m.Author), Bot: m.Bot != "" || m.Subtype == "bot_message",
	}
}

func (s *session) place(ctx context.Context, id, kind, with string) channel.Place {
	if kind == "im" || strings.HasPrefix(id, "D") {
		return channel.Place{Address: id, Kind: channel.Direct, Name: with}
	}
	return channel.Place{Address: id, Kind: channel.Threaded, Name: s.room(ctx, id)}
}

// presses reads the buttons that somebody pressed.
func (s *session) presses(ctx context.Context, p pressed) (all []channel.Event) {
	if p.Type != "block_actions" || p.Channel.ID == "" || p.User.ID == "" {
		return nil
	}
	name := s.user(ctx, p.User.ID)
	for _, a := range p.Actions {
		press := channel.PressOf(a.Value)
		if press == nil {
			continue
		}
		place := s.place(ctx, p.Channel.ID, "", name)
		all = append(all, channel.Event{
			ID: "press " + a.At + " " + p.User.ID + " " + a.Value, Place: place, Thread: begun(place, p.Message), Press: press,
			Sender: channel.Sender{Account: account(cmp.Or(p.User.Team, p.Team.ID), p.User.ID), Handle: p.User.ID, Name: name}, At: moment(a.At), Cursor: a.At,
		})
	}
	return all
}

// moment reads a time of Slack's, which is a message's name as well; zero if it is none.
func moment(ts string) time.Time {
	whole, part, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micros, _ := strconv.ParseInt((part + "000000")[:6], 10, 64)
	return time.Unix(seconds, micros*1000)
}
