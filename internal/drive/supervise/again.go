package supervise

import (
	"context"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
)

// lastHome is the folder of the last of a change's sessions that has left its agent a home to go on from; "" if none has.
func (ss *Supervisors) lastHome(all []session.Session) string {
	for _, s := range slices.Backward(all) {
		if dir := ss.Runtime.Dir(s.ID); session.HasHome(dir) {
			return dir
		}
	}
	return ""
}

// goesOn reports whether the next session takes up the tree that the last one left: its agent has a home to go on from, and
// nobody has chosen another tree since it began.
func (ss *Supervisors) goesOn(row change.Row, last session.Session, all []session.Session) bool {
	return !last.ToGoOn() && last.Interrupted != session.NotRestored && last.From == row.From && ss.lastHome(all) != ""
}

// goOn returns the tree that an agent goes on with: the one that it left, and under a shadow the last valid one if that is not.
func (ss *Supervisors) goOn(ctx context.Context, w work.Work, ws workspace.Workspace, left checkpoint.Checkpoint) (workspace.Workspace, error) {
	if left.Status == checkpoint.Valid || w.Mode().Strategy != session.Shadow {
		return ws, ss.Workspaces.Unlock(ws)
	}
	to, err := ss.Takes.Valid(ctx, w)
	if err != nil {
		return ws, err
	}
	return ss.Workspaces.Renew(ctx, ws.Spec, w.Host, to)
}

// program is what a change's agent is started as. One that keeps what it knows is told why it begins again, and the end
// of what was said, in case it has lost it.
func (ss *Supervisors) program(ctx context.Context, row change.Row, e live.Outfit, last session.Session, all []session.Session) (agent.Program, error) {
	p, err := e.Program()
	if err != nil || !p.Keeps || last.ID == "" {
		return p, err
	}
	said := ""
	for _, s := range slices.Backward(all) {
		if said, err = session.Tail(ss.Runtime.Dir(s.ID), agent.TranscriptBytesMax); err != nil {
			return p, err
		}
		if said != "" {
			break
		}
	}
	if said == "" && ss.lastHome(all) == "" {
		return p, nil // none has run
	}
	why := interruption(last)
	if last.Interrupted == session.NotRestored { // nobody has told it why
		broken, err := ss.lastBroken(ctx, row.ID, last.ID)
		if err != nil {
			return p, err
		}
		why += broken
	}
	e.Task.Resumed = &agent.Resumed{Why: why, Transcript: said}
	if e.Task.Resumed.Files, err = ss.redoWords(ctx, row, last); err != nil {
		return p, err
	}
	return e.Program()
}

// redoWords say to the next session what has become of its files; "" if nothing has. Of what a swap's agent has proposed they hold until it
// proposes again, however often it is started until then.
func (ss *Supervisors) redoWords(ctx context.Context, row change.Row, last session.Session) (string, error) {
	if last.Interrupted != session.Redone && (row.Request.Kind != request.Swap || last.ID == "") {
		return "", nil
	}
	return ss.RedoWords(ctx, row)
}

// lastBroken says which rules the last checkpoint of a session broke; "" if it broke none.
func (ss *Supervisors) lastBroken(ctx context.Context, changeID id.Change, s id.Session) (string, error) {
	all, err := ss.Checkpoints(ctx, changeID)
	if err != nil {
		return "", err
	}
	for _, cp := range slices.Backward(all) {
		switch {
		case cp.Session != s || cp.Trigger == checkpoint.Interrupted:
		case cp.Status == checkpoint.Invalid:
			return ", for " + grounds.Refusal(change.Row{ID: changeID}, cp.Violations).Error(), nil
		default:
			return "", nil
		}
	}
	return "", nil
}

// interruption says to an agent why it begins again.
func interruption(last session.Session) string {
	switch last.Interrupted {
	case session.Redone:
		return "the branch that you work on has moved, a check failed there, or a person wants something else in what you proposed"
	case session.Resumed:
		return "a person has asked you to go on"
	case session.NotRestored:
		return "your files were restored to an earlier state, and that could not be done while you worked"
	case session.HostStopped, "":
		return "the host that you work on was stopped"
	}
	return "you could not be run to the end"
}

// takeHome gives a session the home folder of its agent's last one. It comes after the session has its row: a folder that
// lies in none is nobody's.
func (ss *Supervisors) takeHome(ctx context.Context, change id.Change, s session.Session) error {
	all, err := ss.Sessions(ctx, change)
	if err != nil {
		return err
	}
	from := ss.lastHome(all)
	if from == "" {
		return nil
	}
	_, err = session.MoveHome(ss.Runtime.Ops, from, ss.Runtime.Dir(s.ID))
	return err
}

// tellRedo says to a program that reads messages and keeps nothing what has become of its files. The function it returns waits
// until that was said, or cannot be any more.
func (ss *Supervisors) tellRedo(ctx context.Context, row change.Row, last session.Session, run *session.Running) (wait func(), err error) {
	if run.Talk == nil || run.Program.Keeps {
		return func() {}, nil
	}
	words, err := ss.redoWords(ctx, row, last)
	if err != nil || words == "" {
		return func() {}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ss.recordDelivery(context.WithoutCancel(ctx), row.ID, string(run.Session.ID), request.FirstLine(words), audit.Host, run.Talk.Tell(ctx, words))
	}()
	return func() { <-done }, nil
}
