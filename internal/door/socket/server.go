package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/door/api"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

// Options say whom a server speaks for, and what does what it is asked.
type Options struct {
	Home string      // absolute
	Open func() bool // permissions are switched off at this moment; nil: never
	// Unloaded are the files of the home that do not load at this moment; nil: none.
	Unloaded func() []api.Unloaded
	// Quiet is why nothing but the trial of the host is done at this moment; nil, or an answer of nil: all is, or of is that change.
	Quiet  func(of string) error
	Keeper *api.Keeper // of the daemon; nil: none
	Owner  int         // uid of the home's owner; root is heard too
	Log    *slog.Logger
	Meter  *metric.Set // nil measured nothing
	Host   Host

	Requests    Requests
	Changes     Changes
	Courses     Courses
	Trials      Trials
	Work        Work
	Sessions    Sessions
	Checkpoints Checkpoints
	Approvals   Approvals
	Audit       Audit
	Spending    Spending
	Chats       Chats
	Afresh      Afresh
	Drops       Drops
	Places      Places
	Storage     Storage
	Agents      Agents
	Targets     Targets
	People      People
	Groups      Groups
	Members     Members
	Scan        SecretScan

	Secrets *secret.Scanner // takes secrets out of problems; nil = by the built-in rules
}

// Server answers on one home's socket.
type Server struct {
	Options
	*door
	started  time.Time
	bodyTime time.Duration
	shells   sync.WaitGroup // connections that http.Server has let go of
	active   atomic.Int64   // requests under way
	came     atomic.Int64   // requests that came since Busy was last asked
}

// Times that hold a connection.
const (
	headerTime   = 10 * time.Second
	bodyTime     = 30 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 5 * time.Second
)

// New returns a server; nothing runs before Serve.
func New(o Options) *Server {
	if o.Secrets == nil {
		o.Secrets = secret.Default()
	}
	return &Server{Options: o, door: &door{o.Log, o.Secrets}, started: time.Now(), bodyTime: bodyTime}
}

// Busy reports how many requests (a watch and a shell too) are under way or came since it was last asked.
func (s *Server) Busy() int { return int(s.active.Load() + s.came.Swap(0)) }

// Serve answers on l until ctx ends; then it ends every stream and shell, closes l and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.Handler())
}

func (s *Server) serve(ctx context.Context, l net.Listener, verbs http.Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{
		Handler:           verbs,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		cancel(err)
		s.shells.Wait()
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer done()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	s.shells.Wait()
	if err != nil {
		return fmt.Errorf("close %s: %w", l.Addr(), err)
	}
	return nil
}

// unlessQuiet refuses what would move anything else while the host is on trial with a database of another schema. What is looked at, said to a
// group and decided about a change goes on; who may speak is no row that comes back.
func (s *Server) unlessQuiet(v api.Spec, next http.HandlerFunc) http.HandlerFunc {
	if s.Quiet == nil || v.Method == http.MethodGet || v.Again != "" && v.Path != api.ApprovalAnswer.Path || v.Path == api.ChatSay.Path ||
		v.Path == api.CardAnswer.Path {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		of := ""
		if v.Path == api.ChangeRollback.Path {
			of = r.PathValue("change")
		}
		if err := s.Quiet(of); err != nil {
			s.refuseWith(w, r, err)
			return
		}
		next(w, r)
	}
}

// Handler returns every verb behind the checks of peer and version.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, v := range s.verbs() {
		h := v.handler
		if !v.Bare {
			h = s.sameVersion(v.Spec, s.recognized(v.Spec, s.unlessQuiet(v.Spec, h)))
		}
		mux.HandleFunc(v.Pattern(), h)
	}
	mux.HandleFunc("/", s.answer(nowhere))
	return s.timed(s.onlyOwner(s.counted(mux)))
}

func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.came.Add(1)
		s.active.Add(1)
		defer s.active.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// timed bounds how long a request's body may take to come. net/http lifts that once it is read, so a verb may take longer, and otherwise
// reads what is left before it answers: also of who is refused before anybody has read a byte.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTime))
		}
		next.ServeHTTP(w, r)
	})
}
