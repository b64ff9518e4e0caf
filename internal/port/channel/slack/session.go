package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

// self is the app, as auth.test says.
type self struct {
	Team string `json:"team_id"`
	User string `json:"user_id"`
	Bot  string `json:"bot_id"`
	Name string `json:"user"`
}

// session is one time of listening. It has one connection, and for a moment two: when Slack wants another, the old one is read to its end.
type session struct {
	driver   *driver
	app, bot string
	me       self
	listener channel.Listener

	current *web.Socket
	frames  chan frame
	readers sync.WaitGroup
	begun   bool
	looks   int // names that this event has asked for
}

// frame is what a connection says; with an error, that it has ended.
type frame struct {
	from *web.Socket
	text []byte
	err  error
}

// envelope is what Slack wraps everything in.
type envelope struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`
}

// connect opens another connection, and makes it the current one.
func (s *session) connect(ctx context.Context) error {
	var open struct {
		URL string `json:"url"`
	}
	if err := s.driver.call(ctx, s.app, "apps.connections.open", map[string]any{}, &open); err != nil {
		return fmt.Errorf("ask Slack for a connection: %w", err)
	}
	u, err := url.Parse(open.URL)
	if err != nil || u.Scheme != "wss" && (u.Scheme != "ws" || strings.HasPrefix(s.driver.api, "https:")) {
		return fmt.Errorf("slack names a connection that is not a safe one (wss://)")
	}
	socket, err := web.Dial(ctx, open.URL)
	if err != nil {
		return fmt.Errorf("connect to Slack: %w", err)
	}
	s.current = socket
	s.readers.Go(func() { s.read(ctx, socket) })
	return nil
}

// read hands on what a connection says, until it ends.
func (s *session) read(ctx context.Context, socket *web.Socket) {
	defer socket.Close()
	for {
		text, err := socket.Read(silenceMax)
		select {
		case s.frames <- frame{from: socket, text: text, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// listen hears until the current connection ends.
func (s *session) listen(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-s.frames:
			if err := s.hear(ctx, f); err != nil {
				return err
			}
		}
	}
}

func (s *session) hear(ctx context.Context, f frame) error {
	if f.err != nil {
		if f.from != s.current {
			return nil
		}
		return web.Broken("Slack", f.err)
	}
	var e envelope
	if json.Unmarshal(f.text, &e) != nil {
		return nil // no envelope: nothing that could be acknowledged
	}
	switch e.Type {
	case "hello":
		if !s.begun {
			s.begun = true
			s.driver.begin(ctx, s)
		}
		return nil
	case "disconnect":
		return s.refresh(ctx, f.from, e.Reason)
	}
	if e.ID == "" {
		return nil
	}

	for _, said := range s.events(ctx, e) {
		if err := s.listener.Give(ctx, said); err != nil {
			return err
		}
	}
	// What is not acknowledged comes again, under its name: nothing is lost when this does not arrive.
	_ = f.from.Write(map[string]string{"envelope_id": e.ID})
	return nil
}

// refresh opens the next connection. The old one is read until Slack ends it, which it does within seconds.
func (s *session) refresh(ctx context.Context, from *web.Socket, reason string) error {
	switch {
	case reason == "link_disabled":
		return problem.Errorf(problem.Refused, "", "socket mode is switched off for the app of the channel: switch it on in the app's settings at Slack")
	case from != s.current:
		return nil
	case !s.begun:
		return fmt.Errorf("slack ends the connection before it has begun: %s", web.Said(reason))
	}
	return s.connect(ctx)
}

// events reads what an envelope says.
func (s *session) events(ctx context.Context, e envelope) []channel.Event {
	s.looks = 0
	switch e.Type {
	case "events_api":
		var p payload
		err := json.Unmarshal(e.Payload, &p)
		said, ok := channel.Event{}, false
		if err == nil {
			said, ok, err = s.said(ctx, p)
		}
		if err != nil {
			s.listener.Lost(ctx, "")
		}
		if ok {
			return []channel.Event{said}
		}
	case "interactive":
		var p pressed
		if json.Unmarshal(e.Payload, &p) == nil {
			return s.presses(ctx, p)
		}
	}
	return nil
}
