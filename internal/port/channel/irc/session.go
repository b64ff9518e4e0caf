package irc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/lrstanley/girc"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

const (
	dialMax    = 12 * time.Second // to connect, with TLS: who adds a channel waits for its first try
	greetMax   = time.Minute      // until the server knows us
	writeMax   = 30 * time.Second // for one line
	silenceMax = 3 * time.Minute  // of a server that is asked every minute whether it is there
	choreEvery = time.Minute
	burst      = 5 // lines that may go at once
)

// session is one connection.
type session struct {
	*wire
	d     *Driver
	l     channel.Listener
	pace  *rate.Limiter
	inbox *inbox

	mu       sync.Mutex
	caps     map[string]bool // that the server has granted
	offered  map[string]bool // of a list that is not at its end
	nick     string
	user     string // of our prefix; "" = not known yet
	shown    string // the host of our prefix; "" = not known yet
	account  string // ours, with the services
	casemap  string
	whox     bool
	welcome  bool              // 001 has come
	ready    bool              // the greeting is over
	began    time.Time         // by the server's clock; zero = it does not say
	joined   map[string]bool   // folded
	missed   map[string]bool   // folded: we were in it, and are not any more
	refusals map[string]string // folded channel → why it does not let us in
	replays  map[string]bool   // batches of what was said before
	nicks    map[string]string // account → nick it was last seen on: where to look first, never who it is
	waits    map[string]*wait  // by token
	splitAt  time.Time
	token    int
}

// connect opens a connection, and returns once the server has greeted us.
func (d *Driver) connect(ctx context.Context, l channel.Listener) (*session, error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := d.begin(conn, l)
	greeting, cancel := context.WithTimeout(ctx, greetMax)
	defer cancel()
	stop := context.AfterFunc(greeting, func() { _ = conn.Close() })
	defer stop()
	if err := s.register(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// begin returns a session that has said nothing yet.
func (d *Driver) begin(conn net.Conn, l channel.Listener) *session {
	return &session{
		wire:  &wire{address: d.address, conn: conn, in: bufio.NewReaderSize(conn, readMax)},
		inbox: &inbox{queue: make(chan item, queueMax), begun: make(chan struct{}), lost: map[string]struct{}{}},
		d:     d, l: l, pace: rate.NewLimiter(rate.Every(d.pace), burst), nick: d.nick, casemap: "rfc1459",
		caps: map[string]bool{}, offered: map[string]bool{}, joined: map[string]bool{}, missed: map[string]bool{},
		refusals: map[string]string{}, replays: map[string]bool{}, nicks: map[string]string{}, waits: map[string]*wait{},
	}
}

// dial opens the connection.
func (d *Driver) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialMax)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "", "connect to %s: %w", d.address, err)
	}
	if !d.tls {
		return conn, nil
	}
	secure := tls.Client(conn, d.trust())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) || ctx.Err() != nil {
			err = fmt.Errorf("%w; is TLS spoken on that port? A server that has none is added with --set tls=no", err)
		}
		return nil, problem.Errorf(problem.Unavailable, "", "speak TLS with %s: %w", d.address, err)
	}
	return secure, nil
}

// trust says whose certificate is good: that which the authorities vouch for, or the one that was named.
func (d *Driver) trust() *tls.Config {
	c := &tls.Config{ServerName: d.host, MinVersion: tls.VersionTLS12}
	if d.certificate == nil {
		return c
	}
	c.InsecureSkipVerify = true // VerifyConnection looks instead
	c.VerifyConnection = func(state tls.ConnectionState) error {
		for _, cert := range state.PeerCertificates[:min(1, len(state.PeerCertificates))] {
			if sum := sha256.Sum256(cert.Raw); bytes.Equal(sum[:], d.certificate) {
				return nil
			}
		}
		return errors.New("its certificate is another one than the setting certificate names")
	}
	return c
}

// serve joins, listens and hands over until the session is lost.
func (s *session) serve(host context.Context) error {
	g, ctx := errgroup.WithContext(host)
	stop := context.AfterFunc(ctx, s.leave)
	defer stop()
	g.Go(func() error {
		defer close(s.inbox.queue)
		return s.listen()
	})
	g.Go(func() error { return s.inbox.handOver(host, s.l, ctx.Done()) })
	g.Go(func() error { return s.chores(ctx) })
	err := g.Wait()
	_ = s.conn.Close()

	s.d.mu.Lock()
	if s.d.now == s {
		s.d.now = nil
	}
	s.d.mu.Unlock()
	s.giveUp()
	return err
}

// listen reads lines until the connection ends.
func (s *session) listen() error {
	for {
		line, err := s.read()
		if err != nil {
			return err
		}
		if e := parse(line); e != nil {
			if err := s.hear(e); err != nil {
				return err
			}
		}
	}
}

// chores joins, says that we are ready, and then looks after the connection, the nick and the channels.
func (s *session) chores(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(choreEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.mend(); err != nil {
			return err
		}
		if _, err := s.ask(ctx, "", ""); err != nil {
			return err
		}
	}
}

// begin joins, and says what was lost and that we are ready.
func (s *session) begin(ctx context.Context) error {
	if err := s.join(); err != nil {
		return err
	}
	if _, err := s.ask(ctx, "", ""); err != nil {
		return err
	}
	s.d.mu.Lock()
	again := s.d.ran || s.l.Cursor != ""
	s.d.ran = true
	s.d.mu.Unlock()
	if again {
		s.l.Lost(ctx, "")
	} else if err := s.l.Move(ctx, "heard"); err != nil {
		return fmt.Errorf("note that we have listened: %w", err)
	}
	s.d.mu.Lock()
	s.d.now = s
	s.d.mu.Unlock()
	s.tellSelf()
	close(s.inbox.begun)
	return nil
}

// tellSelf says who we are.
func (s *session) tellSelf() {
	s.mu.Lock()
	self := channel.Self{Account: s.account, Names: []string{s.nick}}
	s.mu.Unlock()
	s.l.Ready(self)
}

// missing are the channels that we are to be in, and are not.
func (s *session) missing() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.d.channels {
		if !s.joined[fold(s.casemap, name)] {
			names = append(names, name)
		}
	}
	return names
}

// join enters the channels that we are to be in.
func (s *session) join() error {
	for _, name := range s.missing() {
		if err := s.write("JOIN " + name); err != nil {
			return err
		}
	}
	return nil
}

// mend takes back what was lost: the nick, and channels that let nobody in a while ago.
func (s *session) mend() error {
	s.mu.Lock()
	stolen := fold(s.casemap, s.nick) != fold(s.casemap, s.d.nick)
	s.mu.Unlock()
	if stolen {
		if err := s.write("NICK " + s.d.nick); err != nil {
			return err
		}
	}
	return s.join()
}

// over is why a server ends a session.
func over(e *girc.Event) error {
	return problem.Errorf(problem.Unavailable, "", "the server has ended the session: %s", inert.Short(e.Last(), 200))
}
