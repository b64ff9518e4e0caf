// Package matrix speaks with a Matrix homeserver as one user of it.
//
// An account is a user id. What is said comes by /sync, whose position is the cursor; where the server leaves something out, the gap is
// read. Messages go as plain text that names nobody, each with its nonce as transaction. A room that is encrypted cannot be read: it is told
// so once, and nothing is sent there that somebody believes to be hidden.
//
// Requests, addresses and errors are mautrix's. Its sync is not used: one event with a field of another type than it expects makes the
// whole answer unreadable, for ever.
package matrix

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

// Settings are what a person says of a homeserver.
var Settings = []channel.Setting{
	{Name: "server", About: "address of the homeserver's client API: https://matrix.h.example", Required: true},
	{Name: "invites", About: "whose invitations are accepted: all, server (people of the same homeserver) or none", Default: "all"},
}

const (
	// textMax is how long a text may be: twice in an edit, each letter up to two bytes, and half of Matrix's 64 KiB free for the rest.
	textMax    = 12000
	answerMax  = 32 << 20 // bytes of an answer
	requestMax = time.Minute
	pollMax    = 30 * time.Second // the server waits so long for something to be said
)

// Driver is a user of a homeserver.
type Driver struct {
	server     *url.URL
	invites    string
	credential func() (string, error)
	now        channel.Now[*session] // that is ready
}

// Open returns the driver of a user. Its credential is an access token. Errors: problem.Usage, which names the setting.
func Open(settings map[string]string, credential func() (string, error)) (channel.Driver, error) {
	said, err := channel.Check(Settings, settings)
	if err != nil {
		return nil, err
	}
	if credential == nil {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "a user of Matrix needs an access token: give --credential file:PATH")
	}
	server, err := url.Parse(said["server"])
	if err != nil || server.Host == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" ||
		server.Scheme != "https" && server.Scheme != "http" {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help",
			"the setting server: %q is no address such as https://matrix.h.example", inert.Short(said["server"], 80))
	}
	if ip := net.ParseIP(server.Hostname()); server.Scheme == "http" && server.Hostname() != "localhost" && !ip.IsLoopback() {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help",
			"the setting server: over http:// the token would go to %s for everybody to read: use https://", inert.Short(server.Host, 60))
	}
	server.Path = strings.TrimRight(server.Path, "/")
	switch said["invites"] {
	case "all", "server", "none":
	default:
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "the setting invites: %q is none of all, server, none",
			inert.Short(said["invites"], 40))
	}
	return &Driver{server: server, invites: said["invites"], credential: credential}, nil
}

// Can says what Matrix takes.
func (d *Driver) Can() channel.Can {
	return channel.Can{Threads: true, Edits: true, Direct: true, History: true, TextMax: textMax}
}

// Run listens until the session is lost.
func (d *Driver) Run(ctx context.Context, l channel.Listener) error {
	return d.now.While(ctx, func() error { return d.listen(ctx, l) })
}

func (d *Driver) listen(ctx context.Context, l channel.Listener) error {
	s, err := d.connect(ctx, l)
	if err != nil {
		return err
	}
	cursor, err := s.begin(ctx, l.Cursor)
	if err != nil {
		return err
	}
	d.now.Set(s)
	l.Ready(channel.Self{Account: string(s.client.UserID), Names: s.ownNames(ctx)})

	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.joinAll(ctx)
	}()
	defer func() {
		end()
		<-done
	}()
	for {
		if cursor, err = s.poll(ctx, cursor); err != nil {
			return err
		}
	}
}

// connect asks the server who we are.
func (d *Driver) connect(ctx context.Context, l channel.Listener) (*session, error) {
	token, err := web.Token(d.credential)
	if err != nil {
		return nil, err
	}
	s := &session{
		l: l, invites: d.invites, pending: make(chan invite, invitesMax), rooms: map[id.RoomID]*room{}, joined: map[id.RoomID]struct{}{},
		client: &mautrix.Client{HomeserverURL: d.server, AccessToken: token,
			Client: &http.Client{Timeout: requestMax + pollMax, CheckRedirect: web.Client.CheckRedirect}, ResponseSizeLimit: answerMax, IgnoreRateLimit: true},
	}
	who := mautrix.RespWhoami{}
	if err := s.get(ctx, &who, nil, "v3", "account", "whoami"); err != nil {
		return nil, err
	}
	s.client.UserID = who.UserID
	return s, nil
}
