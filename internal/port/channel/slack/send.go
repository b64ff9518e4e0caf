package slack

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"sallyport/internal/port/channel"
)

// outgoing is a message as chat.postMessage and chat.update take it. People see the blocks; the text is what a notification shows.
type outgoing struct {
	Channel string        `json:"channel"`
	TS      string        `json:"ts,omitempty"`
	Thread  string        `json:"thread_ts,omitempty"`
	Text    string        `json:"text"`
	Blocks  []slack.Block `json:"blocks"`
	Markup  bool          `json:"mrkdwn"`
	Parse   string        `json:"parse"`
	Links   bool          `json:"unfurl_links"`
	Media   bool          `json:"unfurl_media"`
}

// Deliver sends a message.
func (d *driver) Deliver(ctx context.Context, m channel.Message) (string, error) {
	bot, err := d.bot.Session()
	if err != nil {
		return "", err
	}
	if err := channel.Alone(ctx, d, m); err != nil {
		return "", err
	}
	var sent struct {
		TS string `json:"ts"`
	}
	out := written(m)
	out.Thread = m.Thread
	if err := d.call(ctx, bot, "chat.postMessage", out, &sent); err != nil {
		return "", err
	}
	return sent.TS, nil
}

// Update has a message show something else.
func (d *driver) Update(ctx context.Context, id string, m channel.Message) error {
	bot, err := d.bot.Session()
	if err != nil {
		return err
	}
	out := written(m)
	out.TS = id
	return d.call(ctx, bot, "chat.update", out, nil)
}

// Direct returns the place of somebody alone, which is opened for it.
func (d *driver) Direct(ctx context.Context, account string) (string, error) {
	bot, err := d.bot.Session()
	if err != nil {
		return "", err
	}
	_, user, ok := strings.Cut(account, "/")
	if !ok || user == "" || strings.ContainsAny(user, ",/ ") {
		return "", fmt.Errorf("%w: %q is no account", channel.ErrDead, account)
	}
	if to, ok := d.names.get("direct " + user); ok {
		return to, nil
	}
	var opened struct {
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
	}
	if err := d.call(ctx, bot, "conversations.open", map[string]any{"users": user}, &opened); err != nil {
		return "", err
	}
	d.names.set("direct "+user, opened.Channel.ID)
	return opened.Channel.ID, nil
}

// written is a message in blocks. A rich text is what it is: in it Slack looks for no markup, no names and no smileys. Links are named as
// such, so that people can follow them.
func written(m channel.Message) outgoing {
	var parts []slack.RichTextSectionElement
	add := func(text string) {
		if text != "" {
			parts = append(parts, slack.NewRichTextSectionTextElement(text, nil))
		}
	}
	at := 0
	for _, f := range links().FindAllStringIndex(m.Text, -1) {
		add(m.Text[at:f[0]])
		link := m.Text[f[0]:f[1]]
		parts = append(parts, slack.NewRichTextSectionLinkElement(link, link, nil))
		at = f[1]
	}
	add(m.Text[at:])

	out := outgoing{Channel: m.Place, Text: escapes.Replace(m.Text), Parse: "none",
		Blocks: []slack.Block{slack.NewRichTextBlock("", slack.NewRichTextSection(parts...))}}
	if words := m.Card.Words(wordMax, buttonsMax); words != nil {
		var buttons []slack.BlockElement
		for i, o := range m.Card.Options {
			label := slack.NewTextBlockObject(slack.PlainTextType, o.Short(labelMax), false, false)
			buttons = append(buttons, slack.NewButtonBlockElement("option"+strconv.Itoa(i), words[i], label))
		}
		out.Blocks = append(out.Blocks, slack.NewActionBlock("", buttons...))
	}
	return out
}
