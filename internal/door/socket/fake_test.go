package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/credential"
)

// verbs is every part of a server by hand: it remembers what it was asked and answers from its fields.
type verbs struct {
	mu       sync.Mutex
	asked    request.Request
	keys     credential.Keys
	wanted   live.Wanted
	calls    []string
	by       audit.Actor
	row      change.Row
	left     []string
	trial    *trial.Trial
	notices  chan change.Notice
	patch    string
	patchErr error
	spending live.Spending
	shell    func(ctx context.Context, slave *os.File) (int, error)
	err      error
	asks     map[string]int // who may answer about what, by uid
}

func (v *verbs) note(by audit.Actor, format string, args ...any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, fmt.Sprintf(format, args...))
	v.by = by
	return v.err
}

func (v *verbs) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.calls) == 0 {
		return ""
	}
	return v.calls[len(v.calls)-1]
}

func (v *verbs) TakeRequest(_ context.Context, r request.Request, keys credential.Keys) (accept.Receipt, error) {
	v.mu.Lock()
	v.asked, v.keys = r, keys
	v.mu.Unlock()
	row := v.row
	row.Request = r
	return accept.Receipt{Change: row, Uncommitted: v.left}, v.note(r.By, "request")
}

func (v *verbs) List(_ context.Context, f change.Filter) ([]change.Row, error) {
	return []change.Row{v.row}, v.note(audit.Actor{}, "list %s %v %d", f.Top, f.States, f.Limit)
}

func (v *verbs) Show(_ context.Context, c id.Change) (view.Detail, error) {
	return view.Detail{Change: v.row, Trial: v.trial}, v.note(audit.Actor{}, "show %s", c)
}

func (v *verbs) Watch(ctx context.Context, c id.Change) (<-chan change.Notice, error) {
	if err := v.note(audit.Actor{}, "watch %s", c); err != nil {
		return nil, err
	}
	return v.notices, nil
}

func (v *verbs) Cancel(_ context.Context, c id.Change, by audit.Actor, reason string) error {
	return v.note(by, "cancel %s %q", c, reason)
}

func (v *verbs) Pause(_ context.Context, c id.Change, by audit.Actor, reason string) error {
	return v.note(by, "pause %s %q", c, reason)
}

func (v *verbs) Resume(_ context.Context, c id.Change, by audit.Actor) error {
	return v.note(by, "resume %s", c)
}

func (v *verbs) CheckpointNow(_ context.Context, c id.Change, by audit.Actor) (checkpoint.Checkpoint, error) {
	return checkpoint.Checkpoint{ID: "ckpt-001-0123abcd", Change: c}, v.note(by, "checkpoint now %s", c)
}

func (v *verbs) Tell(_ context.Context, c id.Change, by audit.Actor, text string) (session.Delivery, error) {
	return session.Delivery{Delivered: true}, v.note(by, "tell %s %s", c, text)
}

func (v *verbs) RestoreTo(_ context.Context, ref id.Checkpoint, by audit.Actor) (checkpoint.Checkpoint, error) {
	return checkpoint.Checkpoint{ID: "ckpt-003-0123abcd"}, v.note(by, "restore %s", ref)
}

func (v *verbs) PutBack(_ context.Context, c id.Change, by audit.Actor, paths []string, violating bool) (supervise.PutBack, error) {
	return supervise.PutBack{Reverted: paths, Kept: 2}, v.note(by, "put back %s %q %t", c, paths, violating)
}

func (v *verbs) Examine(_ context.Context, folder string) (accept.Examined, error) {
	return accept.Examined{Top: folder, Branch: "main", Ignored: []string{"one thing"}}, v.note(audit.Actor{}, "examine %s", folder)
}

func (v *verbs) Wanting(_ context.Context, r request.Request) (live.Wanted, error) {
	return v.wanted, v.note(audit.Actor{}, "wanting %q in %s on %q", r.Agent, r.Project.Top, r.Branch)
}

func (v *verbs) WantedBy(_ context.Context, ref string) (live.Wanted, error) {
	return v.wanted, v.note(audit.Actor{}, "wanted by %s", ref)
}

func (v *verbs) Spending(_ context.Context, c id.Change) (live.Spending, error) {
	return v.spending, v.err
}

func (v *verbs) Give(_ context.Context, c id.Change, by audit.Actor, keys credential.Keys) error {
	v.mu.Lock()
	v.keys = keys
	v.mu.Unlock()
	return v.note(by, "give %s %d", c, len(keys))
}

func (v *verbs) Redo(_ context.Context, c id.Change, by audit.Actor, keys credential.Keys) (change.Row, error) {
	v.mu.Lock()
	v.keys = keys
	v.mu.Unlock()
	return v.row, v.note(by, "redo %s", c)
}

func (v *verbs) Branch(_ context.Context, c id.Change, name string, by audit.Actor) (view.Branched, error) {
	return view.Branched{Name: name, Commit: "1234"}, v.note(by, "branch %s %s", c, name)
}

func (v *verbs) ResumeSession(_ context.Context, s id.Session, by audit.Actor, keys credential.Keys) (change.Row, error) {
	v.mu.Lock()
	v.keys = keys
	v.mu.Unlock()
	return v.row, v.note(by, "resume session %s", s)
}

func (v *verbs) Diff(_ context.Context, _ id.Change, w io.Writer) error {
	if _, err := io.WriteString(w, v.patch); err != nil {
		return err
	}
	return v.patchErr
}

func (v *verbs) Export(ctx context.Context, c id.Change, w io.Writer) error { return v.Diff(ctx, c, w) }

func (v *verbs) Transcript(_ context.Context, c id.Change, s id.Session) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("{\"line\":1}\n")), v.note(audit.Actor{}, "transcript %s %s", c, s)
}

func (v *verbs) Shell(ctx context.Context, c id.Change, by audit.Actor, t supervise.Terminal) (int, error) {
	if err := v.note(by, "shell %s", c); err != nil {
		return 0, err
	}
	return v.shell(ctx, t.Slave)
}

func (v *verbs) Approvals(_ context.Context, pendingOnly bool, limit int) ([]approval.Approval, error) {
	return []approval.Approval{{ID: "apr-00000001", Decision: approval.Pending}}, v.note(audit.Actor{}, "approvals %t, %d", pendingOnly, limit)
}

func (v *verbs) Requested(_ context.Context, of []id.Change) (map[id.Change]request.Request, error) {
	out := map[id.Change]request.Request{}
	for _, c := range of {
		out[c] = request.Request{Text: "Tell the minutes\nand more", Project: git.Project{Top: "/srv/clock"}, Branch: "main"}
	}
	return out, nil
}

func (v *verbs) Approval(_ context.Context, ref string) (approval.Approval, proposal.Proposal, error) {
	return approval.Approval{ID: "apr-00000001", Digest: "d1"},
		proposal.Proposal{Digest: "d1", Card: proposal.Card{Title: "t", Files: []proposal.FileLine{{Path: "a\xff"}}}}, v.note(audit.Actor{}, "approval %s", ref)
}

func (v *verbs) Approve(_ context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w approve.Words) error {
	return v.note(by, "approve %s %s %s%s", ref, read, w.Via, w.Message)
}

func (v *verbs) Refuse(_ context.Context, ref id.Approval, by audit.Actor, reason string) error {
	return v.note(by, "refuse %s %q", ref, reason)
}

func (v *verbs) AskedOf(_ context.Context, ref string, by audit.Actor) (string, error) {
	if by.UID == v.asks[ref] && by.UID != 0 {
		return "ada", nil
	}
	return "", nil
}

func (v *verbs) Rework(_ context.Context, ref id.Approval, by audit.Actor, via, words string) error {
	return v.note(by, "rework %s %q, %s", ref, words, via)
}

func (v *verbs) Confirm(_ context.Context, c id.Change, by audit.Actor, code string) error {
	return v.note(by, "confirm %s %s", c, code)
}

func (v *verbs) GiveCode(_ context.Context, _ id.Approval, _ audit.Actor, hand func(id.Change, string) (string, error)) bool {
	_, err := hand("chg-00000001", "ABCD-EFGH-JKLM")
	return err == nil
}

func (v *verbs) Rollback(_ context.Context, c id.Change, by audit.Actor, reason string, approve request.Approve) (change.Row, error) {
	return v.row, v.note(by, "rollback %s %q %s", c, reason, approve)
}

func (v *verbs) Checkpoints(_ context.Context, c id.Change) ([]checkpoint.Checkpoint, error) {
	return nil, v.note(audit.Actor{}, "checkpoints %s", c)
}

func (v *verbs) Checkpoint(_ context.Context, ref id.Checkpoint) (checkpoint.Checkpoint, error) {
	return checkpoint.Checkpoint{ID: ref, Change: "chg-00000009"}, v.note(audit.Actor{}, "checkpoint %s", ref)
}

func (v *verbs) CheckpointDiff(ctx context.Context, from, to id.Checkpoint, w io.Writer) error {
	if err := v.note(audit.Actor{}, "checkpoint diff %s %s", from, to); err != nil {
		return err
	}
	return v.Diff(ctx, "", w)
}

func (v *verbs) CheckpointExport(ctx context.Context, ref id.Checkpoint, w io.Writer) error {
	if err := v.note(audit.Actor{}, "checkpoint export %s", ref); err != nil {
		return err
	}
	return v.Diff(ctx, "", w)
}

func (v *verbs) Audit(_ context.Context, c id.Change, after int64, limit int) ([]audit.Entry, error) {
	e := audit.Entry{Seq: 1, At: time.UnixMilli(1700000000123).UTC(), Actor: audit.Host, Change: string(c), Verb: "landed"}
	e.Hash = e.Sum()
	return []audit.Entry{e}, v.note(audit.Actor{}, "audit %s %d %d", c, after, limit)
}

func (v *verbs) AuditVerify(_ context.Context, expected *audit.Mark) (audit.Report, error) {
	return audit.Report{Entries: 7}, v.note(audit.Actor{}, "audit verify %s", expected)
}

var errPlain = errors.New("disk on fire")

var errRefused = problem.Errorf(problem.Refused, "sallyport change show chg-00000001", "path %q is forbidden", "x")
