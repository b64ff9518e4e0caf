package socket

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/secret"
)

// Times that hold a connection which is answered; a stream's deadline moves with each write.
const (
	writeTime     = 30 * time.Second
	heartbeatTime = 15 * time.Second
)

// door is what every verb is answered through: as a document, as bytes, or with a problem.
type door struct {
	log     *slog.Logger
	secrets *secret.Scanner
}

// served is a verb of the table with what answers it.
type served struct {
	api.Spec
	handler http.HandlerFunc
}

// mount serves a verb that is answered with a document: do is given who asks and what they say.
func mount[In, Out any](d *door, v api.Verb[In, Out], do func(ctx context.Context, by audit.Actor, in In) (Out, error)) served {
	return served{v.Spec, d.answer(func(r *http.Request) (any, error) {
		var in In
		if err := v.Read(r, &in); err != nil {
			return nil, err
		}
		return do(r.Context(), by(r), in)
	})}
}

// mountBytes serves one that is answered with bytes as they are made.
func mountBytes[In any](d *door, v api.Stream[In], write func(ctx context.Context, in In, out io.Writer) error) served {
	return mountRaw(d, v, func(d *door, w http.ResponseWriter, r *http.Request, in In) {
		d.stream(w, r, v.Kind, func(out io.Writer) error { return write(r.Context(), in, out) })
	})
}

// mountBytesBy is mountBytes for one that counts on who asks.
func mountBytesBy[In any](d *door, v api.Stream[In], write func(ctx context.Context, by audit.Actor, in In, out io.Writer) error) served {
	return mountRaw(d, v, func(d *door, w http.ResponseWriter, r *http.Request, in In) {
		d.stream(w, r, v.Kind, func(out io.Writer) error { return write(r.Context(), by(r), in, out) })
	})
}

// mountRaw serves one that is answered in a way of its own.
func mountRaw[In any](d *door, v api.Stream[In], answer func(d *door, w http.ResponseWriter, r *http.Request, in In)) served {
	return served{v.Spec, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := v.Read(r, &in); err != nil {
			d.refuseWith(w, r, err)
			return
		}
		answer(d, w, r, in)
	}}
}

// answer turns what does a verb into a handler: one JSON document, or the problem.
func (d *door) answer(do func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, api.BodyBytesMax)

		out, err := do(r)

		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		if err != nil {
			d.refuseWith(w, r, err)
			return
		}
		raw, err := json.Marshal(out)
		if err != nil {
			d.refuseWith(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(append(raw, '\n')); err != nil {
			d.log.Debug("answer was not read", slog.Any("error", err))
		}
	}
}

// refuseWith answers with a problem. A fault of ours is logged too: the person sees it once, the log keeps it. That a daemon ends in the middle
// of a verb is no fault: nobody is answered then, and who asks asks the next daemon.
func (d *door) refuseWith(w http.ResponseWriter, r *http.Request, err error) {
	body, status := d.problemOf(err)
	if body.Kind == string(problem.Internal) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if body.Kind == string(problem.Internal) {
		d.log.Error("verb went wrong", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	raw, _ := json.Marshal(body) // three strings
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // who went away needs no reason
}

// problemOf returns an error as it crosses the socket. It may carry words of an agent or a tool: no secret in them goes out.
func (d *door) problemOf(err error) (api.Problem, int) {
	body, status := api.ProblemOf(err)
	body.Text, body.Next = d.secrets.Redact(body.Text), d.secrets.Redact(body.Next)
	return body, status
}

func nowhere(r *http.Request) (any, error) {
	return nil, problem.Errorf(problem.NotFound, "sallyport version", "there is nothing at %s %q", r.Method, r.URL.Path)
}
