package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"sallyport/internal/base/pattern"
	"sallyport/internal/port/channel"
)

type (
	// message is one as sendMessage and editMessageText take it. There is no parse_mode: a text is what it is.
	message struct {
		Chat     int64                  `json:"chat_id"`
		ID       int                    `json:"message_id,omitempty"`
		Topic    int                    `json:"message_thread_id,omitempty"`
		Text     string                 `json:"text"`
		Entities []models.MessageEntity `json:"entities,omitempty"`
		Preview  preview                `json:"link_preview_options"`
		ReplyTo  *replyTo               `json:"reply_parameters,omitempty"`
		Buttons  *keyboard              `json:"reply_markup,omitempty"`
	}
	preview struct {
		Off bool `json:"is_disabled"`
	}
	replyTo struct {
		ID      int  `json:"message_id"`
		Without bool `json:"allow_sending_without_reply"`
	}
	keyboard struct {
		Rows [][]button `json:"inline_keyboard"`
	}
	button struct {
		Label string `json:"text"`
		Word  string `json:"callback_data"`
	}
)

// Deliver sends a message.
func (d *driver) Deliver(ctx context.Context, m channel.Message) (string, error) {
	out, err := outgoing(m)
	if err != nil {
		return "", err
	}
	var sent struct {
		ID int `json:"message_id"`
	}
	if err := d.ask(ctx, "sendMessage", out, &sent); err != nil {
		return "", err
	}
	return strconv.Itoa(sent.ID), nil
}

// Update has a message show something else.
func (d *driver) Update(ctx context.Context, id string, m channel.Message) error {
	out, err := outgoing(m)
	if err != nil {
		return err
	}
	if out.ID, err = strconv.Atoi(id); err != nil || out.ID <= 0 {
		return fmt.Errorf("%w: it has no message %q", channel.ErrDead, id)
	}
	out.Topic, out.ReplyTo = 0, nil
	err = d.ask(ctx, "editMessageText", out, nil)
	if no := (*refusal)(nil); errors.As(err, &no) && strings.Contains(no.why, "message is not modified") {
		return nil
	}
	return err
}

// Direct returns the chat of an account, which has its number. Telegram knows it for the bot once that person has written to the bot.
func (d *driver) Direct(ctx context.Context, account string) (string, error) {
	id, err := strconv.ParseInt(account, 10, 64)
	if err != nil || id <= 0 || number(id) != account {
		return "", fmt.Errorf("%w: %q is no account", channel.ErrDead, account)
	}
	if err := d.ask(ctx, "getChat", map[string]any{"chat_id": id}, nil); err != nil {
		return "", err
	}
	return account, nil
}

// ask calls a method for somebody who delivers. Errors: as of Deliver.
func (d *driver) ask(ctx context.Context, method string, ask, result any) error {
	token, err := d.token.Session()
	if err != nil {
		return err
	}
	err = d.call(ctx, token, method, ask, result)
	if no := (*refusal)(nil); errors.As(err, &no) && (no.code == http.StatusForbidden || no.code == http.StatusBadRequest) {
		return fmt.Errorf("%w: %w", channel.ErrDead, err)
	}
	return err
}

// outgoing is a message as Telegram takes it. Errors: channel.ErrDead.
func outgoing(m channel.Message) (message, error) {
	chat, err := strconv.ParseInt(m.Place, 10, 64)
	if err != nil {
		return message{}, fmt.Errorf("%w: %q is no chat", channel.ErrDead, m.Place)
	}
	if m.Account != "" && m.Account != m.Place {
		return message{}, fmt.Errorf("%w: %s is not alone in chat %s", channel.ErrDead, m.Account, m.Place)
	}
	out := message{Chat: chat, Text: m.Text, Entities: quiet(m.Text), Preview: preview{Off: true}}
	if m.Thread != "" {
		if out.Topic, err = strconv.Atoi(m.Thread); err != nil {
			return message{}, fmt.Errorf("%w: %q is no topic", channel.ErrDead, m.Thread)
		}
	}
	// What a person edited or pressed has a name that is no message's: then it answers to none.
	if id, err := strconv.Atoi(m.ReplyTo); err == nil && id > 0 {
		out.ReplyTo = &replyTo{ID: id, Without: true}
	}
	if words := m.Card.Words(wordMax, buttonsMax); words != nil {
		out.Buttons = &keyboard{}
		for i, o := range m.Card.Options {
			out.Buttons.Rows = append(out.Buttons.Rows, []button{{Label: o.Short(labelMax), Word: words[i]}})
		}
	}
	return out, nil
}

// calls is what Telegram may take for the name of somebody, which it would then call.
var calls = pattern.Of(`@[A-Za-z0-9_]+`)

// entitiesMax is how many entities Telegram heeds in a message.
const entitiesMax = 100

// quiet marks what may be the name of somebody as code: Telegram looks for no names there, and the text stays as it is, also when it is
// copied. If there are too many, all from the first to the last is marked.
func quiet(text string) (entities []models.MessageEntity) {
	found := calls().FindAllStringIndex(text, -1)
	if len(found) > entitiesMax {
		found = [][]int{{found[0][0], found[len(found)-1][1]}}
	}
	at, offset := 0, 0
	for _, f := range found {
		offset += channel.Units(text[at:f[0]])
		length := channel.Units(text[f[0]:f[1]])
		entities = append(entities, models.MessageEntity{Type: models.MessageEntityTypeCode, Offset: offset, Length: length})
		at, offset = f[1], offset+length
	}
	return entities
}
