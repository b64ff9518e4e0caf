package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/path/change"
)

// watch sends a change's notices as server-sent events: id, event, data. The last
// event of a stream that ended by itself is `end`; a stream without it was cut.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, of string) {
	// The reader going away ends the controller's side too.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	notices, err := s.Changes.Watch(ctx, id.Change(of))
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", api.EventsKind)
	w.WriteHeader(http.StatusOK)
	if err := sendEvents(ctx, w, notices); err != nil {
		s.Log.Debug("watch ended early", slog.String("change", of), slog.Any("error", err))
	}
}

// sendEvents writes until the channel is closed (then `end` follows), ctx ends or the reader is gone.
func sendEvents(ctx context.Context, w http.ResponseWriter, notices <-chan change.Notice) error {
	control := http.NewResponseController(w)
	send := func(format string, args ...any) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return control.Flush()
	}
	if err := send(": sallyport\n\n"); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeatTime)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			// Whoever only went away does not hear it.
			return errors.Join(context.Cause(ctx), send("event: %s\ndata: {}\n\n", api.NoticeStopped))
		case <-beat.C:
			if err := send(": beat\n\n"); err != nil {
				return err
			}
		case n, open := <-notices:
			if !open {
				if err := ctx.Err(); err != nil { // closed because we are leaving, not because the change came to rest
					return errors.Join(err, send("event: %s\ndata: {}\n\n", api.NoticeStopped))
				}
				return send("event: %s\ndata: {}\n\n", api.NoticeEnd)
			}
			raw, err := json.Marshal(noticeOf(n))
			if err != nil {
				return err
			}
			if err := send("id: %d\nevent: %s\ndata: %s\n\n", n.Seq, n.Kind, raw); err != nil {
				return err
			}
		}
	}
}

// stream answers with bytes as they are made. A problem before the first byte is an
// ordinary answer; after it, a trailer, and a client that reads it knows the stream is not whole.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, kind string, write func(io.Writer) error) {
	out := &streamWriter{w: w, control: http.NewResponseController(w), kind: kind}
	err := write(out)
	if err == nil {
		out.begin()
		return
	}
	if !out.begun {
		s.refuseWith(w, r, err)
		return
	}
	s.Log.Warn("stream broke", slog.String("path", r.URL.Path), slog.Any("error", err))
	body, _ := s.problemOf(err)
	raw, _ := json.Marshal(body) // three strings; json escapes newlines, so it is one header line
	w.Header().Set(api.TrailerProblem, string(raw))
}

// streamWriter announces the trailer with its first byte and moves the deadline with each write.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	kind    string
	begun   bool
}

func (s *streamWriter) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.w.Header().Set("Content-Type", s.kind)
	s.w.Header().Set("Trailer", api.TrailerProblem)
	s.w.WriteHeader(http.StatusOK)
}

func (s *streamWriter) Write(p []byte) (int, error) {
	s.begin()
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil && s.kind == api.LinesKind { // who reads lines waits for the next
		err = s.control.Flush()
	}
	return n, err
}
