package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

const (
	intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages | discordgo.IntentMessageContent

	helloMax   = 30 * time.Second
	queueMax   = 1000 // events that wait to be taken
	answersMax = 16   // presses that are answered at a time
	version    = "?v=10&encoding=json"
)

// Numbers of what is said at the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opBeatHeard = 11
)

// packet is what is said at the gateway.
type packet struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// said is a packet of ours.
type said struct {
	Op   int `json:"op"`
	Data any `json:"d"`
}

// mark is a place in a session: it can be gone on from there.
type mark struct {
	id  string
	seq int64 // of the last event that was taken
	url string
}

// nowhere is the cursor of a session that has ended for good.
const nowhere = "ended"

func (m mark) String() string { return fmt.Sprintf("%s %d %s", m.id, m.seq, m.url) }

// parse reads a cursor; the zero mark is none that can be gone on from.
func parse(cursor string) mark {
	words := strings.Fields(cursor)
	if len(words) != 3 {
		return mark{}
	}
	seq, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || seq < 0 {
		return mark{}
	}
	return mark{id: words[0], seq: seq, url: words[2]}
}

// session is one time of listening; it may have several connections, one after the other.
type session struct {
	driver   *driver
	token    string
	me       user
	listener channel.Listener
	at       mark
	begun    bool
	alive    bool // this connection has begun
	answers  sync.WaitGroup
	slots    chan struct{}
}

// connection is one to the gateway. Its reader hears beats and ends at once, also while an event waits to be taken.
type connection struct {
	socket *web.Socket
	seq    atomic.Int64 // of the last event that came
	heard  atomic.Bool  // the last beat was
	events chan packet
	ended  chan error
}

var (
	errAgain = errors.New("discord wants another connection")
	errGone  = errors.New("discord has ended the session")
)

// connect listens by one connection until it ends; again says that the next one may follow at once.
func (s *session) connect(ctx context.Context) (again bool, err error) {
	where, err := s.where(ctx)
	if err != nil {
		return false, err
	}
	s.alive = false
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	socket, err := web.Dial(ctx, strings.TrimRight(where, "/")+"/"+version)
	switch {
	case err != nil && s.at.url != "": // where it was to be resumed is nobody any more; ask for another
		s.at.url = ""
		return true, nil
	case err != nil:
		return false, fmt.Errorf("connect to Discord: %w", err)
	}
	s.at.url = where
	defer socket.Close() // without a code the session can be resumed

	beat, err := s.greet(socket)
	if err != nil {
		return false, err
	}
	c := &connection{socket: socket, events: make(chan packet, queueMax), ended: make(chan error, 2)}
	c.seq.Store(s.at.seq)
	c.heard.Store(true)
	parts.Go(func() { c.read(ctx, 2*beat+helloMax) })
	parts.Go(func() { c.beat(ctx, beat) })

	err = s.listen(ctx, c)
	if errors.Is(err, errGone) {
		if err := s.listener.Move(ctx, nowhere); err != nil {
			return false, err
		}
	}
	return errors.Is(err, errAgain) && s.alive, err
}

// where is where the session can be resumed; else it asks for the gateway.
func (s *session) where(ctx context.Context) (string, error) {
	where := s.at.url
	if where == "" {
		var gateway struct {
			URL   string `json:"url"`
			Limit struct {
				Remaining *int    `json:"remaining"`
				Reset     float64 `json:"reset_after"` // milliseconds
			} `json:"session_start_limit"`
		}
		if err := s.driver.call(ctx, s.token, http.MethodGet, "/gateway/bot", nil, &gateway); err != nil {
			return "", fmt.Errorf("ask Discord where its gateway is: %w", err)
		}
		if left := gateway.Limit.Remaining; left != nil && *left <= 0 && s.at.id == "" {
			return "", web.Later(gateway.Limit.Reset/1000, true)
		}
		where = gateway.URL
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "wss" && (u.Scheme != "ws" || strings.HasPrefix(s.driver.api, "https:")) {
		return "", fmt.Errorf("discord names a gateway that is not a safe one (wss://)")
	}
	return where, nil
}

// greet says who listens, and returns how often the gateway wants to hear of it.
func (s *session) greet(socket *web.Socket) (beat time.Duration, err error) {
	text, err := socket.Read(helloMax)
	if err != nil {
		return 0, closed(err)
	}
	var p packet
	var hello struct {
		Interval int64 `json:"heartbeat_interval"` // milliseconds
	}
	if json.Unmarshal(text, &p) != nil || p.Op != opHello || json.Unmarshal(p.Data, &hello) != nil || hello.Interval <= 0 ||
		hello.Interval > time.Hour.Milliseconds() {
		return 0, errors.New("discord's gateway does not greet")
	}
	out := said{Op: opResume, Data: map[string]any{"token": s.token, "session_id": s.at.id, "seq": s.at.seq}}
	if s.at.id == "" {
		out = said{Op: opIdentify, Data: map[string]any{
			"token": s.token, "intents": intents, "properties": map[string]string{"os": "linux", "browser": "sallyport", "device": "sallyport"},
		}}
	}
	if err := socket.Write(out); err != nil {
		return 0, closed(err)
	}
	return time.Duration(hello.Interval) * time.Millisecond, nil
}

// read hears what the gateway says until the connection ends.
func (c *connection) read(ctx context.Context, silence time.Duration) {
	for {
		text, err := c.socket.Read(silence)
		if err == nil {
			err = c.hear(ctx, text)
		} else {
			err = closed(err)
		}
		if err != nil {
			c.ended <- err
			return
		}
	}
}

func (c *connection) hear(ctx context.Context, text []byte) error {
	var p packet
	if err := json.Unmarshal(text, &p); err != nil {
		return errors.New("discord's gateway says something that is not in its form")
	}
	switch p.Op {
	case opDispatch:
		c.seq.Store(p.Seq)
		select {
		case c.events <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
	case opHeartbeat:
		return c.socket.Write(said{Op: opHeartbeat, Data: c.seq.Load()})
	case opBeatHeard:
		c.heard.Store(true)
	case opReconnect:
		return errAgain
	case opInvalid:
		if resumable := false; json.Unmarshal(p.Data, &resumable) == nil && resumable {
			return errors.New("discord does not resume the session now")
		}
		return errGone
	}
	return nil
}

// beat tells the gateway that somebody listens, until ctx ends or a beat was not heard.
func (c *connection) beat(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !c.heard.Swap(false) {
			c.ended <- errors.New("discord's gateway does not answer any more")
			return
		}
		if err := c.socket.Write(said{Op: opHeartbeat, Data: c.seq.Load()}); err != nil {
			return // the reader says why
		}
	}
}

// closed says why a connection has ended, and what helps.
func closed(err error) error {
	refused := func(why string) error {
		return problem.Errorf(problem.Refused, "", "discord does not let the bot listen: %s", why)
	}
	switch web.Closed(err) {
	case 4004:
		return problem.Errorf(problem.Denied, "", "the token of the channel is none that Discord knows")
	case 4007, 4009:
		return errGone
	case 4010, 4011:
		return refused("it is in so many servers that it would have to listen in parts")
	case 4012:
		return refused("this version of the gateway is no more")
	case 4013, 4014:
		return refused(`switch on "Message Content Intent" for it, in the Developer Portal under Bot`)
	}
	return web.Broken("Discord", err)
}

// listen hands over what happens until the connection ends. What still waits then comes again when the session is resumed.
func (s *session) listen(ctx context.Context, c *connection) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.ended:
			return err
		case p := <-c.events:
			if err := s.happened(ctx, p); err != nil {
				return err
			}
			s.at.seq = p.Seq
		}
	}
}

// happened does what an event asks for.
func (s *session) happened(ctx context.Context, p packet) error {
	switch p.Type {
	case "READY":
		var ready struct {
			ID  string `json:"session_id"`
			URL string `json:"resume_gateway_url"`
		}
		if err := json.Unmarshal(p.Data, &ready); err != nil || ready.ID == "" || strings.ContainsAny(ready.ID+ready.URL, " \t\n") {
			return errors.New("discord begins a session without a name")
		}
		if s.listener.Cursor != "" || s.begun {
			s.listener.Lost(ctx, "")
		}
		s.at = mark{id: ready.ID, seq: p.Seq, url: ready.URL}
		if err := s.listener.Move(ctx, s.at.String()); err != nil {
			return err
		}
		s.begin()
	case "RESUMED":
		s.begin()
	case "CHANNEL_UPDATE", "THREAD_UPDATE", "CHANNEL_DELETE", "THREAD_DELETE":
		var r room
		if json.Unmarshal(p.Data, &r) == nil {
			s.driver.rooms.forget(r.ID)
		}
	}
	return s.heard(ctx, p)
}

func (s *session) begin() {
	s.alive = true
	if !s.begun {
		s.begun = true
		s.driver.begin(s)
	}
}

// heard hands over what somebody said or pressed.
func (s *session) heard(ctx context.Context, p packet) error {
	e, ok, err := s.event(ctx, p)
	switch {
	case errors.Is(err, errUnread):
		s.listener.Lost(ctx, "")
		return nil
	case err != nil || !ok:
		return err
	}
	next := s.at
	next.seq = p.Seq
	e.Cursor = next.String()
	return s.listener.Give(ctx, e)
}
