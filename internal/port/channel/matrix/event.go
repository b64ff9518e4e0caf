package matrix

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix/id"

	"sallyport/internal/port/channel"
)

// raw is an event as the server sent it. Whoever is in a room may have sent it, with a server of their own.
type raw struct {
	data json.RawMessage
	read time.Time // when it came from the server
}

func (r *raw) UnmarshalJSON(data []byte) error {
	r.data, r.read = append(json.RawMessage(nil), data...), time.Now()
	return nil
}

// envelope is what is read of an event; a field of another type is as if it were not there.
type envelope struct {
	Type     string
	ID       string
	Sender   string
	StateKey *string
	At       time.Time
	Came     time.Time // by our clock: its sender had sent it by then
	Content  json.RawMessage
	Before   json.RawMessage // the content that a piece of state had before
}

// event reads an event; false if it is none.
func (r raw) event() (envelope, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.data, &fields) != nil {
		return envelope{}, false
	}
	e := envelope{Content: fields["content"]}
	read(fields["type"], &e.Type)
	read(fields["event_id"], &e.ID)
	read(fields["sender"], &e.Sender)
	if key, is := fields["state_key"]; is {
		var text string
		if read(key, &text) {
			e.StateKey = &text
		}
	}
	var ms int64
	if read(fields["origin_server_ts"], &ms) && ms > 0 && ms < 1<<43 {
		e.At = time.UnixMilli(ms)
	}
	var unsigned map[string]json.RawMessage
	if read(fields["unsigned"], &unsigned) {
		e.Before = unsigned["prev_content"]
	}
	e.Came = r.read
	if age := int64(0); read(unsigned["age"], &age) && age >= 0 && age < 1<<43 { // by the server's clock alone
		e.Came = r.read.Add(-time.Duration(age) * time.Millisecond)
	} else if !e.At.IsZero() && e.At.Before(r.read) {
		e.Came = e.At
	}
	return e, e.Type != ""
}

// read reads a field; false if it is not of the type.
func read[T any](data json.RawMessage, into *T) bool {
	var value T
	if len(data) == 0 || json.Unmarshal(data, &value) != nil {
		return false
	}
	*into = value
	return true
}

// field reads a field of an object; the zero value if it is not there, or not of the type.
func field[T any](data json.RawMessage, name string) (value T) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) == nil {
		read(fields[name], &value)
	}
	return value
}

// member is what an m.room.member says.
type member struct {
	Membership, Name string
	Direct           bool
}

func memberOf(content json.RawMessage) member {
	return member{Membership: field[string](content, "membership"), Name: field[string](content, "displayname"), Direct: field[bool](content, "is_direct")}
}

func (e envelope) member() member { return memberOf(e.Content) }

// note takes in what a piece of state says of a room.
func (s *session) note(room id.RoomID, e envelope) {
	if e.StateKey == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(room)
	switch e.Type {
	case "m.room.member":
		if len(r.names) >= namesMax {
			clear(r.names)
		}
		r.names[id.UserID(*e.StateKey)] = e.member().Name
		r.private = nil
	case "m.room.name":
		r.name, r.named = field[string](e.Content, "name"), true
	case "m.room.encryption":
		hidden := true
		r.hidden = &hidden
	}
}

// hear makes of an event what was said; false if nothing was.
func (s *session) hear(ctx context.Context, room id.RoomID, e envelope) (channel.Event, bool, error) {
	if e.Type == "m.room.encrypted" && e.Sender != string(s.client.UserID) {
		return channel.Event{}, false, s.sayHidden(ctx, room)
	}
	if e.Type != "m.room.message" || e.StateKey != nil || e.Sender == string(s.client.UserID) || e.ID == "" {
		return channel.Event{}, false, nil
	}
	user := id.UserID(e.Sender)
	if _, _, err := user.Parse(); err != nil {
		return channel.Event{}, false, nil
	}
	place, err := s.place(ctx, room)
	if err != nil {
		return channel.Event{}, false, err
	}
	said := channel.Event{
		ID: e.ID, Place: place, At: e.At, Came: e.Came, Mention: s.mentioned(e.Content),
		Sender: channel.Sender{Account: e.Sender, Handle: e.Sender, Name: s.nameOf(room, user)},
	}
	content := e.Content
	switch relation := field[json.RawMessage](content, "m.relates_to"); field[string](relation, "rel_type") {
	case "m.replace":
		said.Edited = true
		if changed := field[json.RawMessage](content, "m.new_content"); changed != nil {
			content = changed
		}
	case "m.thread":
		said.Thread = field[string](relation, "event_id")
		if !field[bool](relation, "is_falling_back") {
			said.Quote = s.quote(ctx, room, relation)
		}
	default:
		said.Quote = s.quote(ctx, room, relation)
	}
	kind := field[string](content, "msgtype")
	said.Text = text(content, said.Quote != nil)
	said.Sender.Bot, said.Forwarded = kind == "m.notice", !written(kind, content)
	return said, kind != "" && (said.Text != "" || said.Edited), nil
}

// written reports whether the text of a message is its sender's own. That of a file is its name, which anybody may have given it, unless it has
// its name beside a text.
func written(kind string, content json.RawMessage) bool {
	name := field[string](content, "filename")
	return kind == "m.text" || kind == "m.emote" || kind == "m.notice" || name != "" && name != field[string](content, "body")
}

// text is what a person reads of a message.
func text(content json.RawMessage, quotes bool) string {
	body := strings.ToValidUTF8(field[string](content, "body"), "\uFFFD")
	if quotes {
		body = withoutFallback(body)
	}
	if field[string](content, "msgtype") == "m.emote" {
		return "/me " + body
	}
	return body
}

// withoutFallback is a text without the quote that older clients put before it.
func withoutFallback(body string) string {
	if !strings.HasPrefix(body, "> <") && !strings.HasPrefix(body, "> * <") {
		return body
	}
	rest := body
	for strings.HasPrefix(rest, "> ") || strings.HasPrefix(rest, ">\n") {
		_, after, more := strings.Cut(rest, "\n")
		if !more {
			return body
		}
		rest = after
	}
	return strings.TrimPrefix(rest, "\n")
}

// quote is what a message answers; nil if it answers none.
func (s *session) quote(ctx context.Context, room id.RoomID, relation json.RawMessage) *channel.Quote {
	of := field[string](field[json.RawMessage](relation, "m.in_reply_to"), "event_id")
	if of == "" {
		return nil
	}
	quote := &channel.Quote{ID: of}
	var answer raw
	if err := s.get(ctx, &answer, nil, "v3", "rooms", room, "event", of); err != nil {
		return quote
	}
	if e, ok := answer.event(); ok && e.Type == "m.room.message" {
		quote.From, quote.Text = s.nameOf(room, id.UserID(e.Sender)), text(e.Content, true)
	}
	return quote
}

// mentioned reports whether a message names us, by the platform's means.
func (s *session) mentioned(content json.RawMessage) bool {
	us := string(s.client.UserID)
	if mentions := field[json.RawMessage](content, "m.mentions"); mentions != nil {
		return slices.Contains(field[[]string](mentions, "user_ids"), us)
	}
	return strings.Contains(field[string](content, "formatted_body"), `"https://matrix.to/#/`+us+`"`) // of an older client
}

// nameOf is a label of somebody in a room.
func (s *session) nameOf(room id.RoomID, user id.UserID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := s.of(room).names[user]; strings.TrimSpace(name) != "" {
		return name
	}
	return user.Localpart()
}
