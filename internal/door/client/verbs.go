package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"sallyport/internal/door/api"
)

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// Daemon asks the daemon about itself; it answers any version.
func (c *Client) Daemon(ctx context.Context) (d api.Daemon, err error) {
	err = c.call(ctx, get, api.Path("daemon"), nil, nil, &d)
	return d, err
}

// Stop asks the daemon to end; it answers any version.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, post, api.Path("daemon", "stop"), nil, nil, nil)
}

// Doctor probes what works on the daemon's machine.
func (c *Client) Doctor(ctx context.Context) (d api.Doctor, err error) {
	err = c.call(ctx, get, api.Path("doctor"), nil, nil, &d)
	return d, err
}

// Repository looks at the repository that a folder lies in as a request there would. Errors: what that is refused with.
func (c *Client) Repository(ctx context.Context, dir string) (r api.Repository, err error) {
	err = c.call(ctx, get, api.Path("repository"), url.Values{"dir": {dir}}, nil, &r)
	return r, err
}

// Run asks for a change.
func (c *Client) Run(ctx context.Context, r api.Run) (out api.Change, err error) {
	err = c.call(ctx, post, api.Path("changes"), nil, r, &out)
	return out, err
}

// Filter narrows a list of changes.
type Filter struct {
	Repo   string   // top of a work tree; "" = all
	States []string // nil = all
	Limit  int      // 0 = the daemon's default
}

// Changes lists changes, newest first.
func (c *Client) Changes(ctx context.Context, f Filter) (out []api.Change, err error) {
	q := url.Values{}
	if f.Repo != "" {
		q.Set("repo", f.Repo)
	}
	if len(f.States) > 0 {
		q["state"] = f.States
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	err = c.call(ctx, get, api.Path("changes"), q, nil, &out)
	return out, err
}

// Show returns all there is to know of one change.
func (c *Client) Show(ctx context.Context, change string) (out api.Detail, err error) {
	err = c.call(ctx, get, api.Path("changes", url.PathEscape(change)), nil, nil, &out)
	return out, err
}

// Cancel withdraws a change.
func (c *Client) Cancel(ctx context.Context, change, reason string) error {
	return c.call(ctx, post, api.Path("changes", url.PathEscape(change), "cancel"), nil, api.Reason{Reason: reason}, nil)
}

// Pause stops the agent of a change where it stands.
func (c *Client) Pause(ctx context.Context, change, reason string) error {
	return c.call(ctx, post, api.Path("changes", url.PathEscape(change), "pause"), nil, api.Reason{Reason: reason}, nil)
}

// Resume lets a paused or blocked change go on.
func (c *Client) Resume(ctx context.Context, change string) error {
	return c.call(ctx, post, api.Path("changes", url.PathEscape(change), "resume"), nil, nil, nil)
}

// CheckpointNow takes a checkpoint of a running agent's workspace.
func (c *Client) CheckpointNow(ctx context.Context, change string) (out api.Checkpoint, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "checkpoint"), nil, nil, &out)
	return out, err
}

// Tell hands words to the agent of a change.
func (c *Client) Tell(ctx context.Context, change, text string) (out api.Delivery, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "tell"), nil, api.Tell{Text: text}, &out)
	return out, err
}

// PutBack returns files of a working change to its last valid checkpoint.
func (c *Client) PutBack(ctx context.Context, change string, p api.PutBack) (out api.Returned, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "put-back"), nil, p, &out)
	return out, err
}

// Restore makes an unlanded change's tree that of one of its checkpoints; it returns the one taken after it.
func (c *Client) Restore(ctx context.Context, checkpoint string) (out api.Checkpoint, err error) {
	err = c.call(ctx, post, api.Path("checkpoints", url.PathEscape(checkpoint), "restore"), nil, nil, &out)
	return out, err
}

// Redo has an unlanded change made anew on its branch as it is now.
func (c *Client) Redo(ctx context.Context, change string, r api.Redo) (out api.Change, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "redo"), nil, r, &out)
	return out, err
}

// ResumeSession lets the agent of a session go on; it returns the change it works for.
func (c *Client) ResumeSession(ctx context.Context, session string, r api.Resume) (out api.Change, err error) {
	err = c.call(ctx, post, api.Path("sessions", url.PathEscape(session), "resume"), nil, r, &out)
	return out, err
}

// Branch writes what a change offers as a branch of its repository.
func (c *Client) Branch(ctx context.Context, change string, b api.Branch) (out api.Branched, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "branch"), nil, b, &out)
	return out, err
}

// CheckpointExport has the daemon write a checkpoint's diff to a file of its home.
func (c *Client) CheckpointExport(ctx context.Context, checkpoint string) (out api.Exported, err error) {
	err = c.call(ctx, post, api.Path("checkpoints", url.PathEscape(checkpoint), "export"), nil, nil, &out)
	return out, err
}

// Rollback asks for the undoing of a change; it returns the change that does it: itself if it is on trial.
func (c *Client) Rollback(ctx context.Context, change string, r api.Rollback) (out api.Change, err error) {
	err = c.call(ctx, post, api.Path("changes", url.PathEscape(change), "rollback"), nil, r, &out)
	return out, err
}

// Confirm keeps a change that is on trial; said twice it counts once.
func (c *Client) Confirm(ctx context.Context, change string) error {
	return c.decision(ctx, change, "sallyport confirm "+change, func() error {
		return c.once(ctx, post, api.Path("changes", url.PathEscape(change), "confirm"), nil, nil, nil)
	})
}

// Diff writes the unified diff of a change.
func (c *Client) Diff(ctx context.Context, change string, w io.Writer) error {
	return c.copy(ctx, api.Path("changes", url.PathEscape(change), "diff"), nil, w)
}

// Export writes a change as a patch that `git apply` takes.
func (c *Client) Export(ctx context.Context, change string, w io.Writer) error {
	return c.copy(ctx, api.Path("changes", url.PathEscape(change), "export"), nil, w)
}

// Transcript writes a session's transcript (JSONL); session "" is the last one.
func (c *Client) Transcript(ctx context.Context, change, session string, w io.Writer) error {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	return c.copy(ctx, api.Path("changes", url.PathEscape(change), "transcript"), q, w)
}

// Checkpoints lists a change's, by number.
func (c *Client) Checkpoints(ctx context.Context, change string) (out []api.Checkpoint, err error) {
	err = c.call(ctx, get, api.Path("changes", url.PathEscape(change), "checkpoints"), nil, nil, &out)
	return out, err
}

// Checkpoint returns one.
func (c *Client) Checkpoint(ctx context.Context, checkpoint string) (out api.Checkpoint, err error) {
	err = c.call(ctx, get, api.Path("checkpoints", url.PathEscape(checkpoint)), nil, nil, &out)
	return out, err
}

// CheckpointDiff writes the unified diff between two checkpoints of one change; from "" is its base.
func (c *Client) CheckpointDiff(ctx context.Context, from, to string, w io.Writer) error {
	q := url.Values{}
	if from != "" {
		q.Set("from", from)
	}
	return c.copy(ctx, api.Path("checkpoints", url.PathEscape(to), "diff"), q, w)
}

// Approvals lists approvals, newest first.
func (c *Client) Approvals(ctx context.Context, pendingOnly bool) (out []api.Approval, err error) {
	q := url.Values{}
	if pendingOnly {
		q.Set("pending", "1")
	}
	err = c.call(ctx, get, api.Path("approvals"), q, nil, &out)
	return out, err
}

// Question returns an approval with what it is about; ref is its id, or the id of a change.
func (c *Client) Question(ctx context.Context, ref string) (out api.Question, err error) {
	err = c.call(ctx, get, api.Path("approvals", url.PathEscape(ref)), nil, nil, &out)
	return out, err
}

// Approve says yes to exactly the digest that was read; said twice it counts once.
func (c *Client) Approve(ctx context.Context, approval, digest, via string) error {
	return c.ApproveAs(ctx, approval, api.Approve{Digest: digest, Via: via})
}

// ApproveAs is Approve with what the person has the commit say.
func (c *Client) ApproveAs(ctx context.Context, approval string, yes api.Approve) error {
	return c.decision(ctx, approval, "sallyport approve "+approval, func() error {
		return c.once(ctx, post, api.Path("approvals", url.PathEscape(approval), "approve"), nil, yes, nil)
	})
}

// Refuse says no; said twice it counts once.
func (c *Client) Refuse(ctx context.Context, approval, reason string) error {
	return c.decision(ctx, approval, "sallyport approval show "+approval, func() error {
		return c.once(ctx, post, api.Path("approvals", url.PathEscape(approval), "refuse"), nil, api.Reason{Reason: reason}, nil)
	})
}

// Audit returns entries after a sequence number, oldest first; change "" is all of the home.
func (c *Client) Audit(ctx context.Context, change string, after int64, limit int) (out []api.Entry, err error) {
	q := url.Values{}
	if change != "" {
		q.Set("change", change)
	}
	if after > 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	err = c.call(ctx, get, api.Path("audit"), q, nil, &out)
	return out, err
}

// AuditVerify has the daemon read its whole audit log; expect is NUMBER:HASH as an earlier report had it, or "".
func (c *Client) AuditVerify(ctx context.Context, expect string) (out api.AuditReport, err error) {
	q := url.Values{}
	if expect != "" {
		q.Set("expect", expect)
	}
	err = c.call(ctx, get, api.Path("audit", "verify"), q, nil, &out)
	return out, err
}
