package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/bwmarrin/discordgo"

	"sallyport/internal/base/pattern"
	"sallyport/internal/port/channel"
)

type (
	user struct {
		ID     string `json:"id"`
		Handle string `json:"username"`
		Global string `json:"global_name"`
		Bot    bool   `json:"bot"`
	}
	member struct {
		Nick string `json:"nick"`
		User user   `json:"user"`
	}
	message struct {
		ID        string                `json:"id"`
		Channel   string                `json:"channel_id"`
		Type      discordgo.MessageType `json:"type"`
		Text      string                `json:"content"`
		Author    *user                 `json:"author"`
		Member    *member               `json:"member"`
		Webhook   string                `json:"webhook_id"`
		Mentions  []user                `json:"mentions"`
		At        time.Time             `json:"timestamp"`
		Edited    *time.Time            `json:"edited_timestamp"`
		Flags     int                   `json:"flags"`
		Files     []json.RawMessage     `json:"attachments"`
		Stickers  []json.RawMessage     `json:"sticker_items"`
		Reference *struct {
			Type discordgo.MessageReferenceType `json:"type"`
			ID   string                         `json:"message_id"`
		} `json:"message_reference"`
		Answers   *message `json:"referenced_message"`
		Forwarded []struct {
			Message message `json:"message"`
		} `json:"message_snapshots"`
	}
	interaction struct {
		ID      string `json:"id"`
		Type    int    `json:"type"`
		Token   string `json:"token"`
		Channel string `json:"channel_id"`
		Data    struct {
			Word string `json:"custom_id"`
		} `json:"data"`
		Member *member `json:"member"` // in a server
		User   *user   `json:"user"`   // alone with the bot
	}
)

// errUnread says that something was said which cannot be read.
var errUnread = errors.New("discord says something that cannot be read")

// event reads what happened; false if nobody said anything. Errors: errUnread; else it can be read later.
func (s *session) event(ctx context.Context, p packet) (e channel.Event, ok bool, err error) {
	switch p.Type {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m message
		if json.Unmarshal(p.Data, &m) != nil {
			return e, false, errUnread
		}
		return s.said(ctx, m, p.Type == "MESSAGE_UPDATE")
	case "INTERACTION_CREATE":
		var i interaction
		if json.Unmarshal(p.Data, &i) != nil {
			return e, false, nil // nothing was said, and whoever pressed sees that nothing became of it
		}
		return s.pressed(ctx, i)
	}
	return e, false, nil
}

// said reads a message, or an edit. Discord tells of a change as well when it has looked at a link; then nothing says that it was edited, or
// that is told once more under the same name.
func (s *session) said(ctx context.Context, m message, changed bool) (e channel.Event, ok bool, err error) {
	if m.Author == nil || m.Author.ID == s.me.ID || m.ID == "" || changed && m.Edited == nil {
		return e, false, nil
	}
	if m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply {
		return e, false, nil // somebody came, pinned, began a thread
	}
	e = channel.Event{ID: m.ID, Sender: sender(m), Text: plain(m.Text, m.Mentions), Mention: m.names(s.me.ID), Edited: changed, At: m.At}
	if changed {
		e.ID += " edit " + m.Edited.UTC().Format(time.RFC3339Nano)
	}
	m.quote(&e)
	if e.Text == "" && len(m.Files)+len(m.Stickers)+len(m.Forwarded) == 0 {
		return e, false, nil
	}
	e.Place, e.Thread, err = s.place(ctx, m.Channel, e.Sender.Name)
	return e, err == nil, err
}

func (m message) names(account string) bool {
	for _, u := range m.Mentions {
		if u.ID == account {
			return true
		}
	}
	return false
}

// crossposted marks a message that another channel has handed on.
const crossposted = int(discordgo.MessageFlagsIsCrossPosted)

// quote tells what a message answers to, and whose words it hands on.
func (m message) quote(e *channel.Event) {
	e.Forwarded = m.Flags&crossposted != 0 || len(m.Forwarded) > 0
	if m.Reference == nil {
		return
	}
	if m.Reference.Type == discordgo.MessageReferenceTypeForward {
		e.Forwarded = true
		if e.Text == "" && len(m.Forwarded) > 0 {
			e.Text = plain(m.Forwarded[0].Message.Text, m.Forwarded[0].Message.Mentions)
		}
		return
	}
	if m.Type != discordgo.MessageTypeReply {
		return
	}
	e.Quote = &channel.Quote{ID: m.Reference.ID}
	if m.Answers != nil {
		e.Quote.Text = plain(m.Answers.Text, m.Answers.Mentions)
		if m.Answers.Author != nil {
			e.Quote.From = sender(*m.Answers).Name
		}
	}
}

// sender is who wrote a message. Who writes by a web hook calls themselves as they like, and has no account.
func sender(m message) channel.Sender {
	if m.Webhook != "" {
		return channel.Sender{Handle: "webhook " + m.Webhook, Name: m.Author.name(), Bot: true}
	}
	who := by(*m.Author)
	if m.Member != nil {
		who.Name = cmp.Or(m.Member.Nick, who.Name)
	}
	return who
}

func by(u user) channel.Sender {
	return channel.Sender{Account: u.ID, Handle: u.ID, Name: u.name(), Bot: u.Bot}
}

func (u user) name() string { return cmp.Or(u.Global, u.Handle) }

// pressed reads a button that was pressed, and answers: Discord waits three seconds for that, whatever becomes of it.
func (s *session) pressed(ctx context.Context, i interaction) (e channel.Event, ok bool, err error) {
	if i.Type != int(discordgo.InteractionMessageComponent) {
		return e, false, nil
	}
	s.answer(ctx, i)
	e = channel.Event{ID: "press " + i.ID, Press: channel.PressOf(i.Data.Word)}
	switch {
	case e.Press == nil:
		return e, false, nil
	case i.Member != nil:
		e.Sender = by(i.Member.User)
		e.Sender.Name = cmp.Or(i.Member.Nick, e.Sender.Name)
	case i.User != nil:
		e.Sender = by(*i.User)
	default:
		return e, false, nil
	}
	e.Place, e.Thread, err = s.place(ctx, i.Channel, e.Sender.Name)
	return e, err == nil, err
}

// answer ends the wait that a button shows. Nothing depends on it, and it holds up nobody.
func (s *session) answer(ctx context.Context, i interaction) {
	if !number().MatchString(i.ID) || !word().MatchString(i.Token) {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	s.answers.Go(func() {
		later := map[string]any{"type": discordgo.InteractionResponseDeferredMessageUpdate}
		_ = s.driver.call(ctx, s.token, http.MethodPost, "/interactions/"+i.ID+"/"+i.Token+"/callback", later, nil)
		<-s.slots
	})
}

var (
	number = pattern.Of(`^[0-9]{1,20}$`)
	word   = pattern.Of(`^[A-Za-z0-9_.=-]+$`)
)
