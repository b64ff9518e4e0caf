package socket

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/policy"
)

// each maps a list; never nil, so that JSON has [] and not null.
func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

// maybe maps what may not be there.
func maybe[A, B any](in *A, f func(A) B) *B {
	if in == nil {
		return nil
	}
	out := f(*in)
	return &out
}

// text makes s survive JSON: a byte that is not UTF-8 becomes \xNN instead of being lost.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func texts(in []string) []string { return each(in, text) }

func actorOf(a audit.Actor) api.Actor { return api.Actor{Kind: a.Kind, Name: a.Name, UID: a.UID} }

func changeOf(c change.Row) api.Change {
	r := c.Request
	out := api.Change{
		ID: string(c.ID), Kind: string(r.Kind), State: string(c.State), Text: text(r.Text), By: actorOf(r.By), Group: r.Group,
		Dev: text(r.Dev), Release: r.Release,
		Repo: text(r.Project.Top), Branch: r.Branch, Base: string(c.Onto()), Agent: text(r.Agent), Model: r.Model, Egress: r.Egress, Argv: texts(r.Argv),
		Allow: texts(r.Allow), Forbid: texts(r.Forbid), Checks: texts(r.Checks), Setup: texts(r.Setup),
		Strategy: r.Strategy, Messages: r.Messages,
		Approve: string(r.Approve), TimeoutMS: r.Timeout.Milliseconds(),
		Chosen: string(c.Chosen), Rollbacks: c.Rollbacks,
		Problem: c.Problem, Reason: text(c.Reason), Next: text(c.Next), WayOut: control.WayOut(c, time.Now()),
		Reverts: string(r.Reverts), RevertedBy: string(c.RevertedBy), Outcome: c.Outcome, Cancelling: c.Cancel,
		Created: c.Created, Moved: c.Moved,
	}
	out.BlockedReason, out.NeedsPerson = c.Blocked, c.Blocked != "" // SV-091
	return out
}

func detailOf(d view.Detail) api.Detail {
	out := api.Detail{
		Change: changeOf(d.Change), Sessions: each(d.Sessions, sessionOf),
		Checkpoints: each(d.Checkpoints, checkpointOf), Progress: maybe(d.Progress, progressOf), Asked: each(d.Asked, askedOf),
		Usage: each(d.Uses, useOf), Proposal: maybe(d.Proposal, proposalOf), Approval: maybe(d.Approval, approvalOf), Landing: maybe(d.Landing, landedOf),
	}
	out.Change.Trial = trialOf(d.Trial, d.Change.State)
	return out
}

func sessionOf(s session.Session) api.Session {
	out := api.Session{ID: string(s.ID), Attempt: s.Attempt, Agent: s.Agent, Started: s.Started, Ended: s.Ended, Reason: s.Reason, Proposed: s.Proposed()}
	if s.Exit != nil {
		out.Exit = &api.Exit{Code: s.Exit.Code, Signal: s.Exit.Signal}
		if l := s.Exit.Limit; l != nil {
			out.Exit.Limit = &api.Limit{Name: l.Name, Value: l.Value, Observed: l.Observed, Setting: l.Setting()}
		}
	}
	return out
}

func leftOf(l workspace.LeftOver) api.LeftOver {
	return api.LeftOver{Folder: text(l.Folder), Files: l.Files, Bytes: l.Bytes}
}

func violationOf(v policy.Violation) policy.Violation {
	v.File, v.Message, v.Suggestion = text(v.File), text(v.Message), text(v.Suggestion)
	return v
}

func checkpointOf(c checkpoint.Checkpoint) api.Checkpoint {
	return api.Checkpoint{
		ID: string(c.ID), Name: string(c.ID), Change: string(c.Change), Number: c.Number, Previous: string(c.Previous), At: c.At,
		Trigger: string(c.Trigger), Base: string(c.Base), Commit: string(c.Commit), Tree: string(c.Tree),
		Files: texts(c.FilesChanged), SinceLast: c.SinceLast, Total: c.Total(), Status: string(c.Status), Violations: each(c.Violations, violationOf),
		Severity: string(c.Severity), LeftOver: each(c.LeftOver, leftOf), Session: string(c.Session),
	}
}

func proposalOf(p proposal.Proposal) api.Proposal {
	return api.Proposal{
		Change: string(p.Change), Number: p.Number, Checkpoint: string(p.Checkpoint), Base: string(p.Base),
		Tree: string(p.Tree), Commit: string(p.Commit), Policy: p.Policy, Digest: string(p.Digest),
		Card: cardOf(p.Card), At: p.At,
	}
}

func cardOf(c proposal.Card) api.Card {
	return api.Card{
		Title: text(c.Title), Wish: text(c.Wish), Kind: c.Kind, Repo: text(c.Repo), Branch: c.Branch,
		Files: each(c.Files, func(f proposal.FileLine) api.FileLine {
			return api.FileLine{Path: text(f.Path), Status: f.Status, From: text(f.From), Added: f.Added,
				Removed: f.Removed, Binary: f.Binary, Uncounted: f.Uncounted, Note: text(f.Note)}
		}),
		FilesTotal: c.FilesTotal, Added: c.Added, Removed: c.Removed, Class: c.Class, Typed: c.Typed, Banner: texts(c.Banner), Reach: texts(c.Reach),
		Marks: each(c.Marks, func(m policy.Mark) api.Mark {
			return api.Mark{Path: text(m.Path), Kind: string(m.Kind), Says: text(m.Says)}
		}),
		ThinkMS: c.Think.Milliseconds(), MarksTotal: c.MarksTotal, MarksWord: c.MarksWord, MarksOn: maybe(c.MarksOn, groundOf),
		Checks: each(c.Checks, func(k proposal.CheckResult) api.CheckResult {
			return api.CheckResult{Command: text(k.Command), OK: k.OK, TookMS: k.Took.Milliseconds(), Why: text(k.Why), Tail: text(k.Tail), With: text(k.With)}
		}),
		ChecksOn: maybe(c.ChecksOn, groundOf), Moved: maybe(c.Moved, movedOf),
		LeftOver: each(c.LeftOver, leftOf), Drift: texts(c.Drift), Note: text(c.Note), Then: texts(c.Then), Network: texts(c.Network),
		Setup: texts(c.Setup), Made: text(c.Made), Used: text(c.Used),
		Subject: text(c.Subject), CommitBy: text(c.CommitBy), Reworks: c.Reworks, AgentSays: text(c.AgentSays), Host: maybe(c.Host, rehearsedOf),
	}
}

func rehearsedOf(h proposal.Host) api.Rehearsed {
	return api.Rehearsed{
		Release: h.Release, Build: text(h.Build), Schema: h.Schema, Was: h.Was, Tried: texts(h.Rehearsed), Not: texts(h.Not),
		TookMS: h.Took.Milliseconds(), MigrationMS: h.Migration.Milliseconds(), Runs: text(h.Runs()),
	}
}

func groundOf(g proposal.Ground) api.Ground {
	return api.Ground{Head: string(g.Head), Tree: string(g.Tree)}
}

func movedOf(m proposal.Moved) api.Moved {
	return api.Moved{Head: string(m.Head), Commits: m.Commits, Rewritten: m.Rewritten, Subjects: texts(m.Subjects), Paths: texts(m.Paths),
		PathsTotal: m.PathsTotal}
}

func approvalOf(a approval.Approval) api.Approval {
	return api.Approval{
		ID: string(a.ID), Change: string(a.Change), Kind: string(a.Kind), Proposal: a.Proposal, Digest: string(a.Digest),
		Asked: a.Asked, Decision: string(a.Decision), By: maybe(a.By, actorOf), At: a.At, Via: a.Via, Reason: text(a.Reason),
		Message: text(a.Message), Unsigned: a.Unsigned,
	}
}

func landedOf(l landing.Landing) api.Landed {
	return api.Landed{
		ID: string(l.ID), State: string(l.State), Branch: l.Branch, WorkTree: l.WorkTree, Head: string(l.Head),
		Commit: string(l.NewCommit), Tree: string(l.NewTree), Checked: string(l.Checked), Paths: len(l.Edits),
		Started: l.Started, Ended: l.Ended, Reason: text(l.Reason),
	}
}

func askedOf(a session.Asked) api.Asked {
	return api.Asked{Host: text(a.Host), Port: a.Port, Method: text(a.Method), Route: text(a.Route), Verdict: a.Verdict,
		Why: text(a.Why), Count: a.Count, First: a.First, Last: a.Last}
}

func useOf(u budget.Use) api.Usage {
	return api.Usage{Model: text(u.Model), Requests: u.Requests, Estimated: u.Estimated, Unpriced: u.Unpriced,
		Input: u.Input, Cached: u.Cached, Output: u.Output, Cost: u.Cost}
}

func progressOf(p change.Progress) api.Progress {
	return api.Progress{FilesChanged: p.FilesChanged, OutputBytes: p.OutputBytes, Since: p.Since}
}

func noticeOf(n change.Notice) api.Notice {
	return api.Notice{
		Seq: n.Seq, Change: string(n.Change), At: n.At, Kind: n.Kind, State: string(n.State),
		Text: text(n.Text), Progress: maybe(n.Progress, progressOf), Asked: maybe(n.Asked, askedOf), Checkpoint: maybe(n.Checkpoint, checkpointOf),
	}
}
