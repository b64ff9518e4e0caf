// Package discord speaks with Discord as a bot: it listens at the gateway, and speaks by the HTTP API.
//
// The types of what goes out, and the numbers of the gateway, are github.com/bwmarrin/discordgo's. Its session is not used: it counts an event
// as received before anybody has taken it, so that a session that is resumed begins behind it; it reconnects without end where nobody hears of
// it, and waits at limits without an end that a caller could set. Its message is not used for what comes in: one with a kind of component that
// it does not know cannot be read at all.
//
// A session can be resumed for some minutes, also by a host that was started again: the cursor is the session and the last event that was
// taken. When Discord begins another session, what was said meanwhile is lost, and told so.
package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

const (
	answerMax = 20 * time.Second
	textMax   = 2000
	wordMax   = 100 // bytes that a button keeps
	labelMax  = 80
	rowMax    = 5 // buttons in a row, and rows
	nonceMax  = 25
)

// Settings are what a person may say of a channel of Discord.
var Settings = []channel.Setting{
	{Name: "api", About: "where the HTTP API is", Default: "https://discord.com/api/v10"},
}

type driver struct {
	api        string
	credential func() (string, error)
	rooms      rooms
	token      channel.Now[string]
}

// Open returns the driver of a bot. Its credential is the bot's token. Errors: problem.Usage, which names the setting.
func Open(settings map[string]string, credential func() (string, error)) (channel.Driver, error) {
	api, err := web.API(Settings, settings)
	if err != nil {
		return nil, err
	}
	return &driver{api: api, credential: credential}, nil
}

// Can says what Discord takes. A nonce counts for some minutes, and what is said meanwhile comes for some minutes too.
func (d *driver) Can() channel.Can {
	return channel.Can{Buttons: true, Threads: true, Edits: true, Direct: true, TextMax: textMax, Length: length, Before: channel.Counted}
}

// length is how Discord counts a text, with what keeps it from being markup.
func length(text string) int { return channel.Units(escape(text)) }

// Run listens until ctx ends.
func (d *driver) Run(ctx context.Context, l channel.Listener) error {
	return d.token.While(ctx, func() error { return d.run(ctx, l) })
}

func (d *driver) run(ctx context.Context, l channel.Listener) error {
	token, err := web.Token(d.credential)
	if err != nil {
		return err
	}
	var me user
	if err := d.call(ctx, token, http.MethodGet, "/users/@me", nil, &me); err != nil {
		return fmt.Errorf("ask Discord who the bot is: %w", err)
	}
	s := &session{driver: d, token: token, me: me, listener: l, at: parse(l.Cursor), slots: make(chan struct{}, answersMax)}
	defer s.answers.Wait()
	for {
		if again, err := s.connect(ctx); !again {
			return err
		}
	}
}

// begin makes the session one that messages go out by.
func (d *driver) begin(s *session) {
	d.token.Set(s.token)
	s.listener.Ready(channel.Self{Account: s.me.ID, Names: []string{s.me.name()}})
}

// refusal is a no of Discord's.
type refusal struct {
	status, code int
	why          string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("discord refuses: %s (%d, %d)", r.why, r.status, r.code)
}

// Unwrap says whether trying again helps. A no without a number of Discord's comes from something before it, which may let the next one
// through.
func (r *refusal) Unwrap() error {
	switch {
	case r.status == http.StatusUnauthorized:
		return problem.New(problem.Denied, "the token of the channel is none that Discord knows")
	case r.code != 0 && (r.status == http.StatusBadRequest || r.status == http.StatusForbidden || r.status == http.StatusNotFound):
		return channel.ErrDead
	}
	return nil
}

// call asks for a path of the API. Errors: *channel.Later at a limit; *refusal; else nobody knows whether it was done.
func (d *driver) call(ctx context.Context, token, verb, path string, ask, result any) error {
	ctx, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	header := http.Header{"Authorization": {"Bot " + token}, "User-Agent": {"DiscordBot (sallyport, 1)"}}
	answer, err := web.Ask(ctx, verb, d.api+path, header, ask)
	if err != nil {
		return err
	}

	var no struct {
		Code    int     `json:"code"`
		Message string  `json:"message"`
		Wait    float64 `json:"retry_after"`
		Global  bool    `json:"global"`
	}
	switch {
	case answer.Status == http.StatusTooManyRequests:
		if json.Unmarshal(answer.Body, &no) != nil || no.Wait <= 0 {
			no.Wait = max(web.Seconds(answer.Header), 1)
		}
		return web.Later(no.Wait, no.Global)
	case answer.Status >= 200 && answer.Status < 300 && result == nil:
		return nil
	case answer.Status >= 200 && answer.Status < 300:
		return json.Unmarshal(answer.Body, result)
	}
	if json.Unmarshal(answer.Body, &no) != nil && answer.Status != http.StatusUnauthorized {
		return fmt.Errorf("discord answers with HTTP status %d, and not in its form", answer.Status)
	}
	return &refusal{status: answer.Status, code: no.Code, why: web.Said(no.Message, token)}
}
