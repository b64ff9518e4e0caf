package socket

import (
	"context"
	"io"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/credential"
)

// Sessions are runs of agents, and what a person does in their sandboxes.
type Sessions interface {
	// ResumeSession lets the agent of a session go on: at once if it stands, else in a new run with its identity,
	// its transcript and its last tree (RM-025). Errors: not found without state, conflict if it works or has landed.
	ResumeSession(ctx context.Context, s id.Session, by audit.Actor, keys credential.Keys) (change.Row, error)
	// Transcript opens the transcript (JSONL) of a session of the change, the last one if session is "".
	Transcript(ctx context.Context, change id.Change, session id.Session) (io.ReadCloser, error)
	// Shell runs an interactive shell in the change's sandbox; t is a pty slave. It returns its exit status.
	Shell(ctx context.Context, change id.Change, by audit.Actor, t supervise.Terminal) (int, error)
}

// sessions answers what is asked of runs of agents.
type sessions struct{ part Sessions }

func (n sessions) resume(ctx context.Context, by audit.Actor, in api.Resume) (out api.Change, err error) {
	if err := interactive(in.ExecutionMode, "sallyport resume --help"); err != nil {
		return out, err
	}
	row, err := n.part.ResumeSession(ctx, id.Session(in.Of), by, keysOf(in.Keys))
	return changeOf(row), err
}

func (n sessions) transcript(ctx context.Context, in api.Transcript, out io.Writer) error {
	log, err := n.part.Transcript(ctx, id.Change(in.Of), id.Session(in.Session))
	if err != nil {
		return err
	}
	defer log.Close() // read only
	_, err = io.Copy(out, log)
	return err
}
