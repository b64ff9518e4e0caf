package telegram

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"sallyport/internal/port/channel"
)

// event reads an update; false if nobody said anything.
func event(u models.Update, me models.User) (e channel.Event, ok bool) {
	switch {
	case u.CallbackQuery != nil:
		return press(*u.CallbackQuery)
	case u.Message != nil:
		return said(*u.Message, me)
	case u.EditedMessage != nil:
		if e, ok = said(*u.EditedMessage, me); ok {
			// Each edit has a name of its own. Two of one second have the same date, so the update's number it is.
			e.ID, e.Edited = fmt.Sprintf("%s.%d", e.ID, u.ID), true
		}
		return e, ok
	}
	return e, false
}

// said reads a message.
func said(m models.Message, me models.User) (e channel.Event, ok bool) {
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	if text == "" && !media(m) {
		return e, false // somebody came, left, pinned
	}
	return channel.Event{
		ID: strconv.Itoa(m.ID), Place: place(m.Chat), Thread: topic(m), Sender: sender(m), Text: text, Mention: mentions(text, entities, me),
		Quote: quote(m), Forwarded: m.ForwardOrigin != nil || m.IsAutomaticForward || m.ViaBot != nil, At: time.Unix(int64(m.Date), 0),
	}, true
}

// media says whether a message without text is something that somebody sent.
func media(m models.Message) bool {
	return len(m.Photo) > 0 || m.Animation != nil || m.Audio != nil || m.Document != nil || m.PaidMedia != nil || m.Sticker != nil || m.Story != nil ||
		m.Video != nil || m.VideoNote != nil || m.Voice != nil || m.Contact != nil || m.Dice != nil || m.Poll != nil || m.Venue != nil ||
		m.Location != nil || m.Checklist != nil
}

// press reads a button that was pressed; false if it is on no message of a place.
func press(q models.CallbackQuery) (e channel.Event, ok bool) {
	p := channel.PressOf(q.Data)
	if p == nil {
		return e, false
	}
	e = channel.Event{ID: "press " + q.ID, Sender: user(q.From), Press: p}
	switch on := q.Message; {
	case on.Message != nil:
		e.Place, e.Thread = place(on.Message.Chat), topic(*on.Message)
	case on.InaccessibleMessage != nil && on.InaccessibleMessage.Chat.ID != 0:
		e.Place = place(on.InaccessibleMessage.Chat)
	default:
		return e, false
	}
	return e, true
}

func place(c models.Chat) channel.Place {
	p := channel.Place{Address: number(c.ID), Kind: channel.Group, Name: c.Title}
	switch {
	case c.Type == models.ChatTypePrivate:
		p.Kind, p.Name = channel.Direct, name(c.FirstName, c.LastName, c.Username)
	case c.IsForum:
		p.Kind = channel.Threaded
	}
	return p
}

// topic is the thread of a forum. Elsewhere a number of a thread stands at each answer to an answer, which people do not see as a place.
func topic(m models.Message) string {
	if !m.IsTopicMessage || m.MessageThreadID == 0 {
		return ""
	}
	return strconv.Itoa(m.MessageThreadID)
}

// sender is who wrote a message. Who writes as a chat (an anonymous administrator, a channel) has no account that Telegram tells of: the
// user in such a message is the same one for all of them.
func sender(m models.Message) channel.Sender {
	switch {
	case m.SenderChat != nil:
		return channel.Sender{Handle: "chat " + number(m.SenderChat.ID), Name: cmp.Or(m.SenderChat.Title, m.SenderChat.Username)}
	case m.From == nil:
		return channel.Sender{}
	}
	return user(*m.From)
}

func user(u models.User) channel.Sender {
	id := number(u.ID)
	return channel.Sender{Account: id, Handle: id, Name: name(u.FirstName, u.LastName, u.Username), Bot: u.IsBot}
}

func name(first, last, handle string) string {
	return cmp.Or(strings.TrimSpace(first+" "+last), handle)
}

// quote is what a message answers to. The first message of a topic stands as such at each message of it, and is none.
func quote(m models.Message) *channel.Quote {
	q := channel.Quote{}
	switch of := m.ReplyToMessage; {
	case of != nil && of.ForumTopicCreated != nil, of == nil && m.ExternalReply == nil && m.Quote == nil:
		return nil
	case of != nil:
		q = channel.Quote{ID: strconv.Itoa(of.ID), From: sender(*of).Name, Text: cmp.Or(of.Text, of.Caption)}
	}
	if m.Quote != nil {
		q.Text = m.Quote.Text
	}
	return &q
}

// mentions says whether a text names the bot: by its name, by its account, or as whose command it is.
func mentions(text string, entities []models.MessageEntity, me models.User) bool {
	letters := utf16.Encode([]rune(text))
	for _, e := range entities {
		if e.Offset < 0 || e.Length < 0 || e.Offset > len(letters) || e.Length > len(letters)-e.Offset {
			continue
		}
		part := string(utf16.Decode(letters[e.Offset : e.Offset+e.Length]))
		_, at, _ := strings.Cut(part, "@")
		switch e.Type {
		case models.MessageEntityTypeMention, models.MessageEntityTypeBotCommand:
			if me.Username != "" && strings.EqualFold(at, me.Username) {
				return true
			}
		case models.MessageEntityTypeTextMention:
			if e.User != nil && e.User.ID == me.ID {
				return true
			}
		}
	}
	return false
}
