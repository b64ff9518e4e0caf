package socket

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

// Work is what a person does with an agent that works.
type Work interface {
	// Pause stops the agent of a change where it stands, until Resume. Errors: conflict if none runs.
	Pause(ctx context.Context, change id.Change, by audit.Actor, reason string) error
	// Resume lets a paused or blocked change go on: its agent if it still stands there, else a new session.
	Resume(ctx context.Context, change id.Change, by audit.Actor) error
	// Tell hands a person's words to a running agent (SV-086). Errors: conflict if none runs or it reads no messages.
	Tell(ctx context.Context, change id.Change, by audit.Actor, text string) (session.Delivery, error)
	// PutBack returns files of a working change to its last valid checkpoint: the paths that are named (files, or folders
	// with all below), or, with violating, those that break a rule now (SV-049).
	PutBack(ctx context.Context, change id.Change, by audit.Actor, paths []string, violating bool) (supervise.PutBack, error)
	// CheckpointNow takes a checkpoint of a running agent's workspace at once (SV-043).
	CheckpointNow(ctx context.Context, change id.Change, by audit.Actor) (checkpoint.Checkpoint, error)
}

// work answers what a person wants of an agent that works.
type work struct{ part Work }

func (n work) pause(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, n.part.Pause(ctx, id.Change(in.Of), by, in.Reason)
}

func (n work) resume(ctx context.Context, by audit.Actor, of string) (out api.Nothing, err error) {
	return out, n.part.Resume(ctx, id.Change(of), by)
}

func (n work) tell(ctx context.Context, by audit.Actor, in api.Tell) (out api.Delivery, err error) {
	const next = "sallyport change tell --help"
	switch {
	case strings.TrimSpace(in.Text) == "":
		return out, problem.Errorf(problem.Usage, next, "there is nothing to tell the agent of %s", in.Of)
	case len(in.Text) > request.TextBytesMax:
		return out, problem.Errorf(problem.Usage, next, "the message to %s has %d bytes; at most %d are taken", in.Of, len(in.Text), request.TextBytesMax)
	case !utf8.ValidString(in.Text):
		return out, problem.Errorf(problem.Usage, next, "the message to %s is not valid UTF-8", in.Of)
	}

	d, err := n.part.Tell(ctx, id.Change(in.Of), by, in.Text)
	return api.Delivery{Delivered: d.Delivered, Acknowledged: d.Acknowledged, AgentResponse: text(d.AgentResponse)}, err
}

func (n work) putBack(ctx context.Context, by audit.Actor, in api.PutBack) (out api.Returned, err error) {
	paths, err := named(in)
	if err != nil {
		return out, err
	}
	done, err := n.part.PutBack(ctx, id.Change(in.Of), by, paths, in.Violating)
	return api.Returned{Checkpoint: checkpointOf(done.Checkpoint), Reverted: texts(done.Reverted), Kept: done.Kept}, err
}

// named returns the paths that are to go back, cleaned; each lies in the repository.
func named(in api.PutBack) ([]string, error) {
	const next = "sallyport rollback --help"
	switch {
	case in.Violating && len(in.Paths) > 0:
		return nil, problem.Errorf(problem.Usage, next, "name files, or ask for those that break a rule; not both")
	case !in.Violating && len(in.Paths) == 0:
		return nil, problem.Errorf(problem.Usage, next, "no file is named")
	case len(in.Paths) > request.ListMax:
		return nil, problem.Errorf(problem.Usage, next, "%d files are named; at most %d are taken at once", len(in.Paths), request.ListMax)
	}
	var out []string
	for _, p := range in.Paths {
		clean := path.Clean(p)
		if p == "" || path.IsAbs(p) || strings.ContainsRune(p, 0) || slices.Contains(strings.Split(p, "/"), "..") || clean == "." {
			return nil, problem.Errorf(problem.Usage, next, "%q is not the path of a file from the top of the repository", p)
		}
		out = append(out, clean)
	}
	return out, nil
}

func (n work) checkpoint(ctx context.Context, by audit.Actor, of string) (api.Checkpoint, error) {
	c, err := n.part.CheckpointNow(ctx, id.Change(of), by)
	return checkpointOf(c), err
}
