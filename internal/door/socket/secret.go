package socket

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// SecretScan looks for secrets on behalf of a person.
type SecretScan interface {
	// Scan reads the files below path (absolute), and the blobs of the last commits that many back if commits is not 0, and says
	// each what it found. An error says that the scan came to no end.
	Scan(ctx context.Context, path string, commits int, each func(api.SecretLine) error) error
}

// historyMax is how many commits one scan may look at.
const historyMax = 1_000_000

func (s *Server) secretScan(w http.ResponseWriter, r *http.Request) {
	err := known(r, "path", "history")
	path := r.URL.Query().Get("path")
	if err == nil && !filepath.IsAbs(path) {
		err = problem.Errorf(problem.Usage, "sallyport secret scan --help", "the path %q is not absolute", path)
	}
	commits := 0
	if v := r.URL.Query().Get("history"); err == nil && v != "" {
		if commits, err = strconv.Atoi(v); err != nil || commits < 1 || commits > historyMax {
			err = problem.Errorf(problem.Usage, "sallyport secret scan --help", "--history %q is not between 1 and %d", v, historyMax)
		}
	}
	if err == nil && s.Scan == nil {
		err = problem.Errorf(problem.Unavailable, "sallyport doctor", "this daemon scans no files")
	}
	if err != nil {
		s.refuseWith(w, r, err)
		return
	}
	s.stream(w, r, linesKind, func(out io.Writer) error {
		return s.Scan.Scan(r.Context(), path, commits, func(line api.SecretLine) error {
			raw, err := json.Marshal(line)
			if err == nil {
				_, err = out.Write(append(raw, '\n'))
			}
			if flusher, ok := w.(http.Flusher); ok && err == nil {
				flusher.Flush()
			}
			return err
		})
	})
}

// problemOf returns an error as it crosses the socket. It may carry words of an agent or a tool: no secret in them goes out.
func (s *Server) problemOf(err error) (api.Problem, int) {
	body, status := api.ProblemOf(err)
	body.Text, body.Next = s.Secrets.Redact(body.Text), s.Secrets.Redact(body.Next)
	return body, status
}
