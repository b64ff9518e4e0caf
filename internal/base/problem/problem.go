// Package problem gives errors a kind, and a person a way out.
//
// A kind decides the exit code and the HTTP status; the text names the thing
// that is wrong; the next step is a command that a person can run. Absence,
// failure and refusal are three kinds, never one.
package problem

import (
	"errors"
	"fmt"
)

// Kind is the class of an error as it crosses a process border.
type Kind string

const (
	Usage       Kind = "usage"        // the words of the command are wrong
	NotFound    Kind = "not_found"    // the thing does not exist
	Conflict    Kind = "conflict"     // it moved meanwhile; look again
	Denied      Kind = "denied"       // this person may not
	Refused     Kind = "refused"      // a check said no
	AgentFailed Kind = "agent_failed" // the agent crashed, hung or broke a limit
	Unavailable Kind = "unavailable"  // something that is needed is missing here
	Internal    Kind = "internal"     // a fault of ours or of the machine
)

// Problem is an error a person can act on.
type Problem struct {
	Kind Kind
	Text string // what is wrong, naming the thing; one sentence, no secret
	Next string // a command to run next; may be empty
	err  error  // what it wraps
}

func (p *Problem) Error() string { return p.Text }
func (p *Problem) Unwrap() error { return p.err }

// New returns a sentinel.
func New(kind Kind, text string) *Problem { return &Problem{Kind: kind, Text: text} }

// Errorf returns a problem with a next step; %w works as in fmt.Errorf, also more than once.
func Errorf(kind Kind, next, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Problem{Kind: kind, Text: err.Error(), Next: next, err: err}
}

// Case returns one case of a class of problems: errors.Is finds the class, whose kind counts. The text is the case's alone, as the
// class says less, and of another case; %w works as in Errorf.
func Case(class error, next, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Problem{Kind: KindOf(class), Text: err.Error(), Next: next, err: errors.Join(err, class)}
}

// Of returns the outermost problem in err's tree. Its text is err's own, so that
// what callers wrapped around it is kept. An error without a problem is Internal, unless a full or read-only
// disk is what it is about.
func Of(err error) Problem {
	var p *Problem
	if !errors.As(err, &p) {
		if p = diskIn(err); p != nil { // that is the machine's fault, and a person can mend it
			return *p
		}
		return Problem{Kind: Internal, Text: err.Error(), err: err}
	}
	next := p.Next
	for inner := p; next == "" && inner.err != nil; next = inner.Next {
		if !errors.As(inner.err, &inner) {
			break
		}
	}
	return Problem{Kind: p.Kind, Text: err.Error(), Next: next, err: err}
}

// KindOf returns the kind of err; "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return Of(err).Kind
}
