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
	"sallyport/internal/drive/control"
)

// watch sends a change's notices as server-sent events: id, event, data. The last
// event of a stream that ended by itself is `end`; a stream without it was cut.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	ref, err := changeID(r)
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	// The reader going away ends the controller's side too.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	notices, err := s.Verbs.Watch(ctx, ref)
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if err := sendEvents(ctx, w, notices); err != nil {
		s.Log.Debug("watch ended early", slog.String("change", string(ref)), slog.Any("error", err))
	}
}

// sendEvents writes until the channel is closed (then `end` follows), ctx ends or the reader is gone.
func sendEvents(ctx context.Context, w http.ResponseWriter, notices <-chan control.Notice) error {
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
	return s.w.Write(p)
}

const (
	diffKind  = "text/x-diff"
	linesKind = "application/x-ndjson"
)

func (s *Server) diff(w http.ResponseWriter, r *http.Request) {
	ref, err := changeID(r)
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	s.stream(w, r, diffKind, func(out io.Writer) error { return s.Verbs.Diff(r.Context(), ref, out) })
}

func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	ref, err := changeID(r)
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	s.stream(w, r, diffKind, func(out io.Writer) error { return s.Verbs.Export(r.Context(), ref, out) })
}

func (s *Server) checkpointDiff(w http.ResponseWriter, r *http.Request) {
	to, err := id.ParseCheckpoint(r.PathValue("id"))
	if err == nil {
		err = known(r, "from")
	}
	var from id.Checkpoint
	if v := r.URL.Query().Get("from"); err == nil && v != "" {
		from, err = id.ParseCheckpoint(v)
	}
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	s.stream(w, r, diffKind, func(out io.Writer) error { return s.Verbs.CheckpointDiff(r.Context(), from, to, out) })
}

func (s *Server) transcript(w http.ResponseWriter, r *http.Request) {
	ref, err := changeID(r)
	if err == nil {
		err = known(r, "session")
	}
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	s.stream(w, r, linesKind, func(out io.Writer) error {
		log, err := s.Verbs.Transcript(r.Context(), ref, id.Session(r.URL.Query().Get("session")))
		if err != nil {
			return err
		}
		defer log.Close() // read only
		_, err = io.Copy(out, log)
		return err
	})
}
