package socket

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"sallyport/internal/door/api"
)

// stream answers with bytes as they are made. A problem before the first byte is an
// ordinary answer; after it, a trailer, and a client that reads it knows the stream is not whole.
func (d *door) stream(w http.ResponseWriter, r *http.Request, kind string, write func(io.Writer) error) {
	out := &streamWriter{w: w, control: http.NewResponseController(w), kind: kind}
	err := write(out)
	if err == nil {
		out.begin()
		return
	}
	if !out.begun {
		d.refuseWith(w, r, err)
		return
	}
	d.log.Warn("stream broke", slog.String("path", r.URL.Path), slog.Any("error", err))
	body, _ := d.problemOf(err)
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
