package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

// Host is what the daemon tells of itself.
type Host interface {
	// Doctor probes what works on this machine for this home.
	Doctor(ctx context.Context) (api.Doctor, error)
	// Sandbox says what holds programs here; it tries nothing.
	Sandbox() api.Sandbox
	// Stop asks the daemon to end; it returns at once.
	Stop()
	// Keep writes what write writes to the file of a checkpoint's diff, whole or not at all, and returns its absolute path (SV-041).
	Keep(ctx context.Context, change id.Change, ref id.Checkpoint, write func(io.Writer) error) (string, error)
}

// Options say whom a server speaks for.
type Options struct {
	Verbs control.Verbs
	Host  Host
	Home  string // absolute
	Owner int    // uid of the home's owner; root is heard too
	Log   *slog.Logger
	Meter *metric.Set // nil measured nothing

	Storage Storage         // what `gc` and `status --disk` ask; nil has none
	Agents  Agents          // what is known of agents on this machine; nil knows none
	Targets Targets         // what restarts and probes; nil shows and trusts nothing
	Scan    SecretScan      // what `secret scan` asks; nil scans nothing
	Secrets *secret.Scanner // takes secrets out of problems; nil = by the built-in rules
}

// Server answers on one home's socket.
type Server struct {
	Options
	started  time.Time
	bodyTime time.Duration
	shells   sync.WaitGroup // connections that http.Server has let go of
	active   atomic.Int64   // requests under way
	came     atomic.Int64   // requests that came since Busy was last asked
}

// Times that hold a connection; a stream's write deadline moves with each write.
const (
	headerTime    = 10 * time.Second
	bodyTime      = 30 * time.Second
	writeTime     = 30 * time.Second
	idleTime      = 2 * time.Minute
	heartbeatTime = 15 * time.Second
	shutdownTime  = 5 * time.Second
)

// New returns a server; nothing runs before Serve.
func New(o Options) *Server {
	if o.Secrets == nil {
		o.Secrets = secret.Default()
	}
	return &Server{Options: o, started: time.Now(), bodyTime: bodyTime}
}

// Busy reports how many requests (a watch and a shell too) are under way or came since it was last asked.
func (s *Server) Busy() int { return int(s.active.Load() + s.came.Swap(0)) }

// Serve answers on l until ctx ends; then it ends every stream and shell, closes l and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{
		Handler:           s.Handler(),
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

// Handler returns every verb behind the checks of peer and version.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/metrics", s.metrics()) // to any version: it is no client of ours
	// These two answer any version: they are the way out of a mismatch.
	mux.HandleFunc("GET /v1/daemon", s.answer(s.daemon))
	mux.HandleFunc("POST /v1/daemon/stop", s.answer(s.stop))

	verb := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, s.sameVersion(h)) }
	verb("GET /v1/doctor", s.answer(s.doctor))
	verb("GET /v1/stats", s.answer(s.stats))
	verb("POST /v1/changes", s.answer(s.run))
	verb("GET /v1/changes", s.answer(s.list))
	verb("GET /v1/changes/{id}", s.answer(s.show))
	verb("GET /v1/changes/{id}/watch", s.watch)
	verb("POST /v1/changes/{id}/cancel", s.answer(s.cancel))
	verb("POST /v1/changes/{id}/pause", s.answer(s.pause))
	verb("POST /v1/changes/{id}/resume", s.answer(s.resume))
	verb("POST /v1/changes/{id}/redo", s.answer(s.redo))
	verb("POST /v1/changes/{id}/branch", s.answer(s.branch))
	verb("POST /v1/changes/{id}/checkpoint", s.answer(s.checkpointNow))
	verb("POST /v1/changes/{id}/tell", s.answer(s.tell))
	verb("POST /v1/changes/{id}/put-back", s.answer(s.putBack))
	verb("POST /v1/changes/{id}/rollback", s.answer(s.rollback))
	verb("POST /v1/changes/{id}/confirm", s.answer(s.confirm))
	verb("GET /v1/changes/{id}/diff", s.diff)
	verb("GET /v1/changes/{id}/export", s.export)
	verb("GET /v1/changes/{id}/transcript", s.transcript)
	verb("POST /v1/changes/{id}/shell", s.shell)
	verb("GET /v1/changes/{id}/checkpoints", s.answer(s.checkpoints))
	verb("GET /v1/checkpoints/{id}", s.answer(s.checkpoint))
	verb("GET /v1/checkpoints/{id}/diff", s.checkpointDiff)
	verb("POST /v1/checkpoints/{id}/export", s.answer(s.checkpointExport))
	verb("POST /v1/checkpoints/{id}/restore", s.answer(s.restore))
	verb("POST /v1/sessions/{id}/resume", s.answer(s.resumeSession))
	verb("GET /v1/approvals", s.answer(s.approvals))
	verb("GET /v1/approvals/{ref}", s.answer(s.approval))
	verb("POST /v1/approvals/{id}/approve", s.answer(s.approve))
	verb("POST /v1/approvals/{id}/refuse", s.answer(s.refuse))
	verb("POST /v1/changes/{id}/keys", s.answer(s.giveKeys))
	verb("GET /v1/repository", s.answer(s.examine))
	verb("GET /v1/wanted", s.answer(s.wanted))
	verb("GET /v1/agents", s.answer(s.agents))
	verb("POST /v1/agents/test", s.answer(s.testAgent))
	verb("GET /v1/targets", s.answer(s.target))
	verb("POST /v1/targets/trust", s.answer(s.trustTarget))
	verb("POST /v1/targets/distrust", s.answer(s.distrustTarget))
	verb("GET /v1/secrets", s.secretScan)
	verb("GET /v1/storage", s.answer(s.stored))
	verb("POST /v1/gc", s.answer(s.gc))
	verb("GET /v1/audit", s.answer(s.audit))
	verb("GET /v1/audit/verify", s.answer(s.auditVerify))
	mux.HandleFunc("/", s.answer(nowhere))
	return s.onlyOwner(s.counted(mux))
}

func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.came.Add(1)
		s.active.Add(1)
		defer s.active.Add(-1)
		next.ServeHTTP(w, r)
	})
}
