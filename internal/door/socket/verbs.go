package socket

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
)

// busy are the states in which something is being done; they keep a daemon from being idle.
var busy = []string{string(control.Requested), string(control.Preparing), string(control.Working),
	string(control.Submitted), string(control.Landing), string(control.InTrial)}

// doingMax bounds the changes that a daemon names when it says what it is doing.
const doingMax = 5

func (s *Server) daemon(r *http.Request) (any, error) {
	d := api.Daemon{PID: os.Getpid(), Build: api.Build(), API: api.Version, Home: s.Home, Started: s.started}
	working, err := s.Verbs.List(r.Context(), control.Filter{States: busy})
	if err != nil {
		return nil, err
	}
	waiting, err := s.Verbs.List(r.Context(), control.Filter{States: []string{string(control.AwaitingApproval)}})
	if err != nil {
		return nil, err
	}
	d.Working, d.Waiting = len(working), len(waiting)
	d.Doing = each(working[:min(len(working), doingMax)], func(c control.Row) string { return string(c.ID) + " " + c.State })
	d.Alerts = each(s.Meter.Alerts(), alertOf)
	d.Sandbox = s.Host.Sandbox()
	return d, nil
}

func (s *Server) stop(*http.Request) (any, error) {
	s.Host.Stop()
	return struct{}{}, nil
}

func (s *Server) doctor(r *http.Request) (any, error) { return s.Host.Doctor(r.Context()) }

// examine looks at the repository that a folder lies in: dir.
func (s *Server) examine(r *http.Request) (any, error) {
	if err := known(r, "dir"); err != nil {
		return nil, err
	}
	dir, err := folderOf(r.URL.Query().Get("dir"), "sallyport doctor --help")
	if err != nil {
		return nil, err
	}
	x, err := s.Verbs.Examine(r.Context(), dir)
	if err != nil {
		return nil, err
	}
	return api.Repository{Top: x.Top, Branch: x.Branch, Converts: texts(x.Converts), Ignored: texts(x.Ignored)}, nil
}

// folderOf takes the absolute path of a folder; next is what to run for one that is none.
func folderOf(dir, next string) (string, error) {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return "", problem.Errorf(problem.Usage, next, "%q is not an absolute path of a folder", dir)
	}
	return filepath.Clean(dir), nil
}

func (s *Server) run(r *http.Request) (any, error) {
	var in api.Run
	if err := read(r, &in); err != nil {
		return nil, err
	}
	req, err := requestOf(in)
	if err != nil {
		return nil, err
	}
	req.By, req.At = by(r), time.Now()
	receipt, err := s.Verbs.Request(r.Context(), req, keysOf(in.Keys))
	if err != nil {
		return nil, err
	}
	out := changeOf(receipt.Change)
	out.Uncommitted, out.Included = texts(receipt.Uncommitted), texts(receipt.Included)
	return out, nil
}

// requestOf checks what only the wire can get wrong; what is asked is judged by the controller.
func requestOf(in api.Run) (request.Request, error) {
	const next = "sallyport run --help"
	dir, err := folderOf(in.Dir, next)
	if err != nil {
		return request.Request{}, err
	}
	for _, share := range in.Shares {
		if !filepath.IsAbs(share) || strings.ContainsRune(share, 0) {
			return request.Request{}, problem.Errorf(problem.Usage, next, "share %q is not an absolute path", share)
		}
	}
	mode, err := approveMode(in.Approve)
	if err != nil {
		return request.Request{}, err
	}
	if in.TimeoutMS < 0 || in.TimeoutMS > request.TimeoutMax.Milliseconds() {
		return request.Request{}, problem.Errorf(problem.Usage, next, "--timeout %s is not between 0 and %s", time.Duration(min(in.TimeoutMS, 1<<40))*time.Millisecond, request.TimeoutMax)
	}
	strategy, err := strategyOf(in.Strategy)
	if err != nil {
		return request.Request{}, err
	}
	if err := interactive(in.ExecutionMode, next); err != nil {
		return request.Request{}, err
	}
	if in.Messages && in.Agent != "command" {
		return request.Request{}, problem.Errorf(problem.Usage, next, "--messages is for a command; %q is not one", in.Agent)
	}
	if err := agentWords(in); err != nil {
		return request.Request{}, err
	}
	return request.Request{
		Kind: request.Edit, Text: in.Text, Project: git.Project{Top: dir}, Branch: in.Branch, Onto: in.Onto,
		Agent: in.Agent, Model: in.Model, Egress: in.Egress, Bases: in.Bases, Env: in.Env, Argv: in.Argv, Script: in.Script, Path: in.Path, Home: in.Home,
		Allow: in.Allow, Forbid: in.Forbid, Checks: in.Checks, Setup: in.Setup, Shares: in.Shares, Profiles: in.Profiles,
		IncludeDirty: in.IncludeDirty, IncludeIgnored: in.IncludeIgnored,
		Approve: mode, Message: in.Message, Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Trial: lengthOf(in.TrialMS),
		Strategy: strategy, Messages: in.Messages,
	}, nil
}

// approveMode reads --approve as it crosses the socket.
func approveMode(v string) (request.Approve, error) {
	switch mode := request.Approve(v); mode {
	case request.Ask, request.Yes, request.Later:
		return mode, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport run --help", "approve %q is none of ask, yes, later", v)
}

func (s *Server) list(r *http.Request) (any, error) {
	if err := known(r, "repo", "state", "limit"); err != nil {
		return nil, err
	}
	limit, err := number(r, "limit")
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	rows, err := s.Verbs.List(r.Context(), control.Filter{Top: q.Get("repo"), States: q["state"], Limit: int(min(limit, 10_000))})
	if err != nil {
		return nil, err
	}
	return s.rowsOf(r.Context(), rows)
}

func (s *Server) show(r *http.Request) (any, error) {
	ref, err := changeID(r)
	if err != nil {
		return nil, err
	}
	d, err := s.Verbs.Show(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	return detailOf(d), nil
}

func (s *Server) cancel(r *http.Request) (any, error) {
	ref, in, err := about[api.Reason](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Verbs.Cancel(r.Context(), ref, by(r), in.Reason)
}

func (s *Server) pause(r *http.Request) (any, error) {
	ref, in, err := about[api.Reason](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Verbs.Pause(r.Context(), ref, by(r), in.Reason)
}

func (s *Server) resume(r *http.Request) (any, error) {
	ref, err := changeID(r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Verbs.Resume(r.Context(), ref, by(r))
}

func (s *Server) checkpointNow(r *http.Request) (any, error) {
	ref, err := changeID(r)
	if err != nil {
		return nil, err
	}
	c, err := s.Verbs.CheckpointNow(r.Context(), ref, by(r))
	if err != nil {
		return nil, err
	}
	return checkpointOf(c), nil
}

func (s *Server) rollback(r *http.Request) (any, error) {
	ref, in, err := about[api.Rollback](r)
	if err != nil {
		return nil, err
	}
	mode, err := approveMode(in.Approve)
	if err != nil {
		return nil, err
	}
	row, err := s.Verbs.Rollback(r.Context(), ref, by(r), in.Reason, mode)
	if err != nil {
		return nil, err
	}
	return changeOf(row), nil
}

func (s *Server) checkpoints(r *http.Request) (any, error) {
	ref, err := changeID(r)
	if err != nil {
		return nil, err
	}
	rows, err := s.Verbs.Checkpoints(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	return each(rows, checkpointOf), nil
}

func (s *Server) checkpoint(r *http.Request) (any, error) {
	ref, err := id.ParseCheckpoint(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, err := s.Verbs.Checkpoint(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	return checkpointOf(c), nil
}

func (s *Server) approvals(r *http.Request) (any, error) {
	if err := known(r, "pending"); err != nil {
		return nil, err
	}
	pending, err := number(r, "pending")
	if err != nil {
		return nil, err
	}
	rows, err := s.Verbs.Approvals(r.Context(), pending != 0)
	if err != nil {
		return nil, err
	}
	return each(rows, approvalOf), nil
}

func (s *Server) approval(r *http.Request) (any, error) {
	ref := r.PathValue("ref")
	if id.KindOf(ref) != "change" {
		if _, err := id.ParseApproval(ref); err != nil {
			return nil, err
		}
	} else if _, err := id.ParseChange(ref); err != nil {
		return nil, err
	}
	a, p, err := s.Verbs.Approval(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	return api.Question{Approval: approvalOf(a), Proposal: proposalOf(p)}, nil
}

func (s *Server) approve(r *http.Request) (any, error) {
	ref, err := id.ParseApproval(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in api.Approve
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.Digest == "" {
		return nil, problem.Errorf(problem.Usage, "sallyport approval show "+string(ref), "approving %s needs the digest that was read", ref)
	}
	return struct{}{}, s.Verbs.ApproveAs(r.Context(), ref, proposal.Digest(in.Digest), by(r),
		control.Words{Via: in.Via, Message: in.Message, Unsigned: in.Unsigned, Marked: in.Marked})
}

func (s *Server) refuse(r *http.Request) (any, error) {
	ref, err := id.ParseApproval(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in api.Reason
	if err := read(r, &in); err != nil {
		return nil, err
	}
	return struct{}{}, s.Verbs.Refuse(r.Context(), ref, by(r), in.Reason)
}

func (s *Server) audit(r *http.Request) (any, error) {
	if err := known(r, "change", "after", "limit"); err != nil {
		return nil, err
	}
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit")
	if err != nil {
		return nil, err
	}
	var ref id.Change
	if v := r.URL.Query().Get("change"); v != "" {
		if ref, err = id.ParseChange(v); err != nil {
			return nil, err
		}
	}
	rows, err := s.Verbs.Audit(r.Context(), ref, after, int(min(limit, 10_000)))
	if err != nil {
		return nil, err
	}
	return each(rows, func(e api.Entry) api.Entry { return e }), nil
}

func (s *Server) auditVerify(r *http.Request) (any, error) {
	if err := known(r, "expect"); err != nil {
		return nil, err
	}
	var expected *audit.Mark
	if v := r.URL.Query().Get("expect"); v != "" {
		m, err := audit.ParseMark(v)
		if err != nil {
			return nil, err
		}
		expected = &m
	}
	return s.Verbs.AuditVerify(r.Context(), expected)
}
