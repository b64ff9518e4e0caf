// Package slack speaks with Slack as an app, in socket mode: the host opens the connection, and nothing of it has to be reachable.
//
// The types of what goes out are github.com/slack-go/slack's. Its loop for socket mode is not used: an event that it cannot read is never
// acknowledged there, so that Slack hands it over again and in the end switches the app's events off, and it closes the old connection before
// the next one is open when Slack wants another. Its requests are not used either: a message that was sent counts as failed there when the
// echo of it cannot be read, and a limit without a time counts as a fault.
//
// An event is acknowledged once it was taken. Slack hands over again what was not, three times within some minutes; what is said while nobody
// listens for longer is lost, and told so.
package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

const (
	answerMax  = 20 * time.Second
	lookMax    = 5 * time.Second // for a name, which an event waits for
	silenceMax = 2 * time.Minute // Slack pings more often
	limitWait  = 30.0            // seconds at a limit without a time

	textMax    = 3000 // letters; Slack takes more, and folds it
	wordMax    = 2000 // bytes that a button keeps
	labelMax   = 75
	buttonsMax = 25
)

// Settings are what a person may say of a channel of Slack.
var Settings = []channel.Setting{
	{Name: "api", About: "where the Web API is", Default: "https://slack.com/api"},
}

type driver struct {
	api        string
	credential func() (string, error)
	names      names
	bot        channel.Now[string] // the bot's token
	heard      atomic.Bool         // there was a session before
}

// Open returns the driver of an app. Its credential is two lines: the app-level token (xapp-…) and the bot's token (xoxb-…). Errors:
// problem.Usage, which names the setting.
func Open(settings map[string]string, credential func() (string, error)) (channel.Driver, error) {
	api, err := web.API(Settings, settings)
	if err != nil {
		return nil, err
	}
	return &driver{api: api, credential: credential}, nil
}

// Can says what Slack takes. It has no nonces, and what is said meanwhile is not kept.
func (d *driver) Can() channel.Can {
	return channel.Can{Buttons: true, Threads: true, Edits: true, Direct: true, Roots: true, TextMax: textMax,
		Length: utf8.RuneCountInString, Before: channel.Counted}
}

// tokens reads the two tokens, in whichever order they stand.
func (d *driver) tokens() (app, bot string, err error) {
	text, err := d.credential()
	if err != nil {
		return "", "", err
	}
	for line := range strings.FieldsSeq(text) {
		word, err := web.Word(line)
		switch {
		case err != nil:
			return "", "", err
		case strings.HasPrefix(word, "xapp-"):
			app = word
		case strings.HasPrefix(word, "xoxb-"):
			bot = word
		}
	}
	if app == "" || bot == "" {
		return "", "", problem.Errorf(problem.Refused, "",
			"the credential of the channel has to be two lines: the app-level token (xapp-…) and the bot's token (xoxb-…)")
	}
	return app, bot, nil
}

// Run listens until ctx ends.
func (d *driver) Run(ctx context.Context, l channel.Listener) error {
	return d.bot.While(ctx, func() error { return d.run(ctx, l) })
}

func (d *driver) run(ctx context.Context, l channel.Listener) error {
	app, bot, err := d.tokens()
	if err != nil {
		return err
	}
	var me self
	if err := d.call(ctx, bot, "auth.test", map[string]any{}, &me); err != nil {
		return fmt.Errorf("ask Slack who the app is: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	s := &session{driver: d, app: app, bot: bot, me: me, listener: l, frames: make(chan frame)}
	defer s.readers.Wait()
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.listen(ctx)
}

// begin makes the session one that messages go out by.
func (d *driver) begin(ctx context.Context, s *session) {
	d.bot.Set(s.bot)
	if before := d.heard.Swap(true); before || s.listener.Cursor != "" {
		s.listener.Lost(ctx, "")
	}
	s.listener.Ready(channel.Self{Account: account(s.me.Team, s.me.User), Names: []string{s.me.Name}})
}

// account is who somebody is: a user's id counts within their team.
func account(team, user string) string {
	if user == "" || team == "" {
		return ""
	}
	return team + "/" + user
}

// refusal is a no of Slack's.
type refusal struct{ why string }

func (r *refusal) Error() string { return "slack refuses: " + r.why }

// mended are the refusals that a person has to mend, and dead those of messages that will never arrive.
var (
	mended = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission",
		"not_allowed_token_type", "org_login_required", "team_access_not_granted", "access_denied", "ekm_access_denied",
	}
	dead = []string{
		"channel_not_found", "is_archived", "not_in_channel", "user_not_found", "users_not_found", "user_disabled", "user_not_visible", "cannot_dm_bot",
		"msg_too_long", "msg_blocks_too_long", "no_text", "invalid_blocks", "invalid_blocks_format", "message_not_found", "cant_update_message",
		"edit_window_closed", "cannot_reply_to_message", "thread_not_found", "restricted_action", "restricted_action_read_only_channel",
		"restricted_action_thread_only_channel", "restricted_action_non_threadable_channel", "restricted_action_thread_locked",
		"messages_tab_disabled", "invalid_arguments", "method_not_supported_for_channel_type",
	}
)

// Unwrap says whether trying again helps, and whom.
func (r *refusal) Unwrap() error {
	switch {
	case slices.Contains(mended, r.why):
		return problem.New(problem.Denied, "the token of the channel is refused by Slack, or a right is missing")
	case slices.Contains(dead, r.why):
		return channel.ErrDead
	}
	return nil
}

// call asks for a method that takes JSON. Errors: *channel.Later at a limit; *refusal; else nobody knows whether it was done.
func (d *driver) call(ctx context.Context, token, method string, ask, result any) error {
	return d.ask(ctx, token, http.MethodPost, method, ask, result)
}

// look asks for a method that takes words alone.
func (d *driver) look(ctx context.Context, token, method string, ask url.Values, result any) error {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	return d.ask(ctx, token, http.MethodGet, method+"?"+ask.Encode(), nil, result)
}

func (d *driver) ask(ctx context.Context, token, verb, method string, ask, result any) error {
	ctx, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	answer, err := web.Ask(ctx, verb, d.api+"/"+method, http.Header{"Authorization": {"Bearer " + token}}, ask)
	if err != nil {
		return err
	}

	var reply struct {
		OK  bool   `json:"ok"`
		Why string `json:"error"`
	}
	err = json.Unmarshal(answer.Body, &reply)
	switch {
	case answer.Status == http.StatusTooManyRequests || err == nil && !reply.OK && (reply.Why == "ratelimited" || reply.Why == "rate_limited"):
		wait := web.Seconds(answer.Header)
		if wait <= 0 {
			wait = limitWait
		}
		return web.Later(wait, false)
	case answer.Status != http.StatusOK || err != nil:
		return fmt.Errorf("slack answers with HTTP status %d, and not in its form", answer.Status)
	case !reply.OK:
		return &refusal{why: web.Said(reply.Why, token)}
	case result == nil:
		return nil
	}
	return json.Unmarshal(answer.Body, result)
}
