package discord

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/bwmarrin/discordgo"

	"sallyport/internal/port/channel"
)

// outgoing is a message as Discord takes it. It calls nobody, and shows no preview of links.
type outgoing struct {
	Text    string                           `json:"content"`
	Calls   discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Rows    []discordgo.MessageComponent     `json:"components"`
	Flags   discordgo.MessageFlags           `json:"flags"`
	Nonce   string                           `json:"nonce,omitempty"`
	Once    bool                             `json:"enforce_nonce,omitempty"`
	ReplyTo *reference                       `json:"message_reference,omitempty"`
}

type reference struct {
	ID        string `json:"message_id"`
	MustExist bool   `json:"fail_if_not_exists"`
}

// Deliver sends a message.
func (d *driver) Deliver(ctx context.Context, m channel.Message) (string, error) {
	token, err := d.token.Session()
	if err != nil {
		return "", err
	}
	path, err := path(m)
	if err != nil {
		return "", err
	}
	if err := channel.Alone(ctx, d, m); err != nil {
		return "", err
	}
	out := written(m)
	out.Nonce, out.Once = nonce(m.Nonce), m.Nonce != ""
	// What a person edited or pressed has a name that is no message's: then it answers to none.
	if number().MatchString(m.ReplyTo) {
		out.ReplyTo = &reference{ID: m.ReplyTo}
	}
	var sent struct {
		ID string `json:"id"`
	}
	if err := d.call(ctx, token, http.MethodPost, path, out, &sent); err != nil {
		return "", err
	}
	return sent.ID, nil
}

// Update has a message show something else.
func (d *driver) Update(ctx context.Context, id string, m channel.Message) error {
	token, err := d.token.Session()
	if err != nil {
		return err
	}
	path, err := path(m)
	if err != nil {
		return err
	}
	if !number().MatchString(id) {
		return fmt.Errorf("%w: it has no message %q", channel.ErrDead, id)
	}
	return d.call(ctx, token, http.MethodPatch, path+"/"+id, written(m), nil)
}

// Direct returns the place of somebody alone, which is opened for it.
func (d *driver) Direct(ctx context.Context, account string) (string, error) {
	token, err := d.token.Session()
	if err != nil {
		return "", err
	}
	if !number().MatchString(account) {
		return "", fmt.Errorf("%w: %q is no account", channel.ErrDead, account)
	}
	if is, ok := d.rooms.get("direct " + account); ok {
		return is.ID, nil
	}
	var is room
	if err := d.call(ctx, token, http.MethodPost, "/users/@me/channels", map[string]string{"recipient_id": account}, &is); err != nil {
		return "", err
	}
	d.rooms.set("direct "+account, is)
	return is.ID, nil
}

// path is where the messages of a place or thread are. Errors: channel.ErrDead.
func path(m channel.Message) (string, error) {
	to := m.Place
	if m.Thread != "" {
		to = m.Thread
	}
	if !number().MatchString(to) {
		return "", fmt.Errorf("%w: %q is no place", channel.ErrDead, to)
	}
	return "/channels/" + to + "/messages", nil
}

// nonce is one of the length that Discord takes.
func nonce(of string) string {
	if len(of) <= nonceMax {
		return of
	}
	sum := sha256.Sum256([]byte(of))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:nonceMax]
}

func written(m channel.Message) outgoing {
	out := outgoing{
		Text: escape(m.Text), Calls: discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
		Rows: []discordgo.MessageComponent{}, Flags: discordgo.MessageFlagsSuppressEmbeds,
	}
	var buttons []discordgo.MessageComponent
	for i, word := range m.Card.Words(wordMax, rowMax*rowMax) {
		buttons = append(buttons, discordgo.Button{Label: m.Card.Options[i].Short(labelMax), Style: discordgo.SecondaryButton, CustomID: word})
	}
	for row := range slices.Chunk(buttons, rowMax) {
		out.Rows = append(out.Rows, discordgo.ActionsRow{Components: row})
	}
	return out
}
