package api

import (
	"errors"
	"net/http"

	"sallyport/internal/base/problem"
)

// Problem is the body of every answer that is not a success.
type Problem struct {
	Kind string `json:"kind"`           // a problem.Kind
	Text string `json:"text"`           // what is wrong, naming the thing
	Next string `json:"next,omitempty"` // a command to run
}

// statuses is the whole mapping from a kind to HTTP.
var statuses = map[problem.Kind]int{
	problem.Usage:       http.StatusBadRequest,
	problem.NotFound:    http.StatusNotFound,
	problem.Conflict:    http.StatusConflict,
	problem.Denied:      http.StatusForbidden,
	problem.Refused:     http.StatusUnprocessableEntity,
	problem.AgentFailed: http.StatusFailedDependency,
	problem.Unavailable: http.StatusServiceUnavailable,
	problem.Internal:    http.StatusInternalServerError,
}

// ProblemOf returns err as it crosses the socket, with its status. A fault of the machine's that names no way on has the one
// that looks at the machine.
func ProblemOf(err error) (Problem, int) {
	p := problem.Of(err)
	if p.Next == "" && (p.Kind == problem.Internal || p.Kind == problem.Unavailable) {
		p.Next = "sallyport doctor"
	}
	status, ok := statuses[p.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	return Problem{Kind: string(p.Kind), Text: p.Text, Next: p.Next}, status
}

// Err returns p as an error of its kind; one of a kind that is not known is internal.
func (p Problem) Err() error {
	kind := problem.Kind(p.Kind)
	if _, ok := statuses[kind]; !ok {
		kind = problem.Internal
	}
	text := p.Text
	if text == "" {
		text = "the daemon gave no reason"
	}
	return problem.Errorf(kind, p.Next, "%w", errors.New(text))
}
