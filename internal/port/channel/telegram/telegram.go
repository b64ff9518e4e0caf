// Package telegram speaks with Telegram as a bot, over the Bot API by long polling.
//
// The types of what comes in are github.com/go-telegram/bot's. Its loop is not used: it asks for the next updates, which tells Telegram that
// the last ones were taken, before anybody has taken them, and one update that it cannot read stops it for ever. Here an update is confirmed
// once it was taken, and one that cannot be read is told as lost. Its requests are not used either: each of its buttons says that it copies
// something, and a message that was sent counts as failed when the answer cannot be read in full.
//
// Telegram keeps updates for a day while nobody listens.
package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot/models"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

const (
	pollWait  = 50 * time.Second // how long Telegram waits for something to tell
	answerMax = 20 * time.Second // how long any other answer may take
	textMax   = 4096             // UTF-16 units of a message
	wordMax   = 64               // bytes that a button keeps
	labelMax  = 64               // letters that a button shows on a narrow screen
	batchMax  = 100

	buttonsMax = 100
)

// Settings are what a person may say of a channel of Telegram.
var Settings = []channel.Setting{
	{Name: "api", About: "where the Bot API is; another one than Telegram's is a Bot API server of your own", Default: "https://api.telegram.org"},
}

type driver struct {
	api        string
	credential func() (string, error)
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

// Can says what Telegram takes. It has no nonces: a message whose answer was lost is sent again.
func (d *driver) Can() channel.Can {
	return channel.Can{Buttons: true, Threads: true, Edits: true, Direct: true, History: true, TextMax: textMax, Length: channel.Units, Before: channel.Counted}
}

// Run polls until ctx ends.
func (d *driver) Run(ctx context.Context, l channel.Listener) error {
	return d.token.While(ctx, func() error { return d.run(ctx, l) })
}

func (d *driver) run(ctx context.Context, l channel.Listener) error {
	token, err := web.Token(d.credential)
	if err != nil {
		return err
	}
	var me models.User
	if err := d.call(ctx, token, "getMe", nil, &me); err != nil {
		return fmt.Errorf("ask Telegram who the bot is: %w", err)
	}
	d.token.Set(token)
	l.Ready(channel.Self{Account: number(me.ID), Names: []string{me.Username}})

	s := session{driver: d, token: token, me: me, listener: l, slots: make(chan struct{}, answersMax)}
	s.next, _ = strconv.ParseInt(l.Cursor, 10, 64)
	ctx, cancel := context.WithCancel(ctx)
	defer s.answers.Wait()
	defer cancel()
	for {
		if err := s.poll(ctx); err != nil {
			return err
		}
	}
}

// session is one time of listening.
type session struct {
	driver   *driver
	token    string
	me       models.User
	listener channel.Listener
	next     int64 // the first update that was not taken yet; 0 = whichever Telegram has
	answers  sync.WaitGroup
	slots    chan struct{}
}

// poll waits for updates and hands them over. Asking from the next one on confirms those before it.
func (s *session) poll(ctx context.Context) error {
	var updates []json.RawMessage
	ask := map[string]any{"timeout": int(pollWait.Seconds()), "limit": batchMax, "allowed_updates": []string{"message", "edited_message", "callback_query"}}
	if s.next != 0 {
		ask["offset"] = s.next
	}
	if err := s.driver.callWithin(ctx, pollWait+answerMax, s.token, "getUpdates", ask, &updates); err != nil {
		return fmt.Errorf("ask Telegram for what was said: %w", err)
	}
	for _, u := range updates {
		if err := s.hand(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// hand gives what an update says to the host until it is taken.
func (s *session) hand(ctx context.Context, raw json.RawMessage) error {
	var id struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(raw, &id); err != nil || id.ID == 0 {
		return errors.New("telegram sends an update without a number")
	}
	cursor := number(id.ID + 1)

	var u models.Update
	e, ok := channel.Event{}, false
	if err := json.Unmarshal(raw, &u); err != nil {
		s.listener.Lost(ctx, "")
	} else {
		e, ok = event(u, s.me)
	}
	err := error(nil)
	if ok {
		e.Cursor = cursor
		err = s.listener.Give(ctx, e)
	} else {
		err = s.listener.Move(ctx, cursor)
	}
	if err != nil {
		return err
	}

	s.next = id.ID + 1
	if u.CallbackQuery != nil {
		s.answer(ctx, u.CallbackQuery.ID)
	}
	return nil
}

// answersMax is how many presses are answered at a time; one more is not.
const answersMax = 16

// answer ends the wait that a button shows. Nothing depends on it, and it holds up nobody.
func (s *session) answer(ctx context.Context, query string) {
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	s.answers.Go(func() {
		_ = s.driver.call(ctx, s.token, "answerCallbackQuery", map[string]any{"callback_query_id": query}, nil)
		<-s.slots
	})
}

// reply is what the Bot API says to anything.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"`
		Migrated   int64   `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call asks for a method. Errors: *channel.Later at a limit; *refusal; else nobody knows whether it was done.
func (d *driver) call(ctx context.Context, token, method string, ask, result any) error {
	return d.callWithin(ctx, answerMax, token, method, ask, result)
}

func (d *driver) callWithin(ctx context.Context, wait time.Duration, token, method string, ask, result any) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answer, err := web.Ask(ctx, http.MethodPost, d.api+"/bot"+token+"/"+method, nil, ask)
	if err != nil {
		return err
	}

	var r reply
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		return fmt.Errorf("telegram answers with HTTP status %d, and not in its form", answer.Status)
	}
	switch {
	case !r.OK && r.Code == http.StatusTooManyRequests:
		return web.Later(r.Parameters.RetryAfter, false)
	case !r.OK:
		return &refusal{code: r.Code, why: web.Said(r.Description, token)}
	case result == nil:
		return nil
	}
	return json.Unmarshal(r.Result, result)
}

// refusal is a no of Telegram's.
type refusal struct {
	code int
	why  string
}

func (r *refusal) Error() string { return fmt.Sprintf("telegram refuses: %s (%d)", r.why, r.code) }

// Unwrap says what a person has to mend: a token that is not one, or another program that listens by a web hook. Two that poll with one
// token end each other; the last of a host that was started again goes away by itself.
func (r *refusal) Unwrap() error {
	switch {
	case r.code == http.StatusUnauthorized || r.code == http.StatusNotFound:
		return problem.New(problem.Denied, "the token of the channel is none that Telegram knows")
	case r.code == http.StatusConflict && strings.Contains(r.why, "webhook"):
		return problem.New(problem.Refused, "another program listens for this bot by a web hook")
	}
	return nil
}

// number is an id in decimal.
func number(id int64) string { return strconv.FormatInt(id, 10) }
