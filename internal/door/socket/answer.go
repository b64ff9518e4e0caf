package socket

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// verb is a handler that returns what it answers.
type verb func(r *http.Request) (any, error)

// answer turns a verb into a handler: one JSON document, or the problem.
func (s *Server) answer(do verb) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// The time holds until the body is read: one that runs on would end a verb that takes longer.
		whole := func() { _ = control.SetReadDeadline(time.Time{}) }
		_ = control.SetReadDeadline(time.Now().Add(s.bodyTime))
		if r.ContentLength == 0 {
			whole()
		}
		r.Body = &body{http.MaxBytesReader(w, r.Body, api.BodyBytesMax), whole}
		out, err := do(r)
		whole()
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if err != nil {
			s.refuseWith(w, r, err)
			return
		}
		raw, err := json.Marshal(out)
		if err != nil {
			s.refuseWith(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(append(raw, '\n')); err != nil {
			s.Log.Debug("answer was not read", slog.Any("error", err))
		}
	}
}

// body is a request's, and tells when it has been read.
type body struct {
	io.ReadCloser
	whole func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.whole()
	}
	return n, err
}

// refuseWith answers with a problem. A fault of ours is logged too: the person sees it once, the log keeps it.
func (s *Server) refuseWith(w http.ResponseWriter, r *http.Request, err error) {
	body, status := s.problemOf(err)
	if body.Kind == string(problem.Internal) {
		s.Log.Error("verb went wrong", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	raw, _ := json.Marshal(body) // three strings
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // who went away needs no reason
}

func nowhere(r *http.Request) (any, error) {
	return nil, problem.Errorf(problem.NotFound, "sallyport version", "there is nothing at %s %q", r.Method, r.URL.Path)
}

// read decodes exactly one JSON document with known fields into body.
func read(r *http.Request, body any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(body)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("more than one document")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem.Errorf(problem.Usage, "sallyport run --help", "the request is larger than %d bytes", large.Limit)
	case err != nil:
		return problem.Errorf(problem.Usage, "sallyport --help", "the request cannot be read: %w", err)
	}
	return nil
}

// known refuses a query with a key that is not listed.
func known(r *http.Request, keys ...string) error {
	for key := range r.URL.Query() {
		if !slices.Contains(keys, key) {
			return problem.Errorf(problem.Usage, "sallyport --help", "%q is not a parameter of %s", key, r.URL.Path)
		}
	}
	return nil
}

// number reads a query parameter from 0; absent is 0.
func number(r *http.Request, key string) (int64, error) {
	v := r.URL.Query().Get(key)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, problem.Errorf(problem.Usage, "sallyport --help", "%s=%q is not a number from 0", key, v)
	}
	return n, nil
}

func changeID(r *http.Request) (id.Change, error) { return id.ParseChange(r.PathValue("id")) }

// about reads which change a request is about, and what it says of it.
func about[T any](r *http.Request) (ref id.Change, body T, err error) {
	if ref, err = changeID(r); err == nil {
		err = read(r, &body)
	}
	return ref, body, err
}
