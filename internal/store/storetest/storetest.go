// Package storetest is what every store must do, whatever database is below it.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// Opener opens one database, empty at first. Opening it again, after the one before was
// closed or lost power, finds what was committed.
type Opener func(ops disk.Ops) (store.DB, error)

// suite is one database under test.
type suite struct {
	t     testing.TB
	fresh func(t *testing.T) Opener
	open  Opener
	db    store.DB
	made  int
}

func (s *suite) reopen(ops disk.Ops) {
	s.t.Helper()
	db, err := s.open(ops)
	if err != nil {
		s.t.Fatalf("open: %v", err)
	}
	s.db = db
}

// do runs one transaction that must succeed.
func (s *suite) do(f func(ctx context.Context, tx store.Tx) error) {
	s.t.Helper()
	ctx := context.Background()
	if err := s.db.InTx(ctx, func(tx store.Tx) error { return f(ctx, tx) }); err != nil {
		s.t.Fatalf("transaction: %v", err)
	}
}

// fails runs one transaction that must fail with want: a sentinel, or a problem.Kind.
func (s *suite) fails(want any, f func(ctx context.Context, tx store.Tx) error) {
	s.t.Helper()
	ctx := context.Background()
	err := s.db.InTx(ctx, func(tx store.Tx) error { return f(ctx, tx) })
	switch want := want.(type) {
	case problem.Kind:
		if problem.KindOf(err) != want {
			s.t.Fatalf("err = %v (%s), want a problem of kind %s", err, problem.KindOf(err), want)
		}
	case error:
		if !errors.Is(err, want) {
			s.t.Fatalf("err = %v, want %v", err, want)
		}
	}
}

// at is the nth millisecond of the tests' time.
func at(n int) time.Time {
	return time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Millisecond)
}

func oid(n int) git.OID { return git.OID(fmt.Sprintf("%040x", n)) }

var alice = audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"}

var shortTrial = 10 * time.Second

// aChange returns a row with every field set.
func (s *suite) aChange() change.Row {
	s.made++
	n := s.made
	return change.Row{
		ID: id.Change(fmt.Sprintf("chg-%08d", n)), State: "requested",
		Request: request.Request{
			Kind: request.Edit, By: alice, At: at(n), Text: "mend <it> & say \"done\"\n",
			Project: git.Project{Top: "/src/a", GitDir: "/src/a/.git", CommonDir: "/src/a/.git", ObjectFormat: "sha1", UID: 1000, GID: 100},
			Branch:  "main", CheckedOut: true, Head: oid(1), Agent: "command", Argv: []string{"sed", "-i", "s/a/b/", "-rf"},
			Script: []byte{0, 0xff, '\n'}, Workdir: "sub", Path: "/usr/bin", Home: "/home/alice",
			Allow: []string{"**/*.go"}, Forbid: []string{"go.sum"}, Checks: []string{"go test ./..."}, Shares: []string{"/opt/x"},
			Profiles: []string{"go"}, IncludeDirty: true, IncludeIgnored: []string{"gen/**"}, Approve: request.Ask, Timeout: time.Hour, Trial: &shortTrial,
		},
		Base: string(oid(2)), UID: 7, Attempts: 2, Problem: string(problem.Refused), Reason: "naïve\x1b[31m", Next: "sallyport change show",
		RevertedBy: "chg-other", Outcome: "nothing_to_do", Blocked: "budget_used_up", Chosen: "ckpt-001-0123abcd", From: string(oid(3)),
		Identity: "sh-abc12", Resumes: 1, Rollbacks: 2, Created: at(n), Moved: at(n), Due: at(n),
	}
}

// addChange stores a new row and returns it.
func (s *suite) addChange(edit ...func(*change.Row)) change.Row {
	s.t.Helper()
	c := s.aChange()
	for _, e := range edit {
		e(&c)
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddChange(ctx, c) })
	return c
}

func (s *suite) change(id id.Change) (c change.Row) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx store.Tx) (err error) { c, err = tx.Change(ctx, id); return err })
	return c
}

// addProposal stores the change's next proposal.
func (s *suite) addProposal(c id.Change, number int) proposal.Proposal {
	s.t.Helper()
	p := proposal.Proposal{
		Change: c, Number: number, Checkpoint: "ckpt-001-00000003", Base: oid(2), Tree: oid(3), Commit: oid(4),
		Edits:  []git.Edit{{Path: "a b\n\x1b.txt", Old: git.Entry{Mode: git.File, OID: oid(5)}, New: git.Entry{}}},
		Policy: "p", Digest: proposal.Sum(c, oid(2), oid(3), "p"), At: at(9),
		Card: proposal.Card{Title: "mend it", Files: []proposal.FileLine{{Path: "a", Status: "deleted"}}, FilesTotal: 1, AgentSays: "done"},
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddProposal(ctx, p) })
	return p
}

// aLanding returns a journal row of change in the repository at dir.
func (s *suite) aLanding(c id.Change, dir string) landing.Landing {
	s.made++
	return landing.Landing{
		ID: id.Landing(fmt.Sprintf("lnd-%08d", s.made)), Change: c, State: landing.Journaled,
		Project: git.Project{Top: dir, GitDir: dir + "/.git", CommonDir: dir + "/.git", ObjectFormat: "sha1"}, Branch: "main", WorkTree: true,
		Head: oid(1), Edits: []git.Edit{{Path: "x", New: git.Entry{Mode: git.Executable, OID: oid(6)}}}, Skip: []string{"y"},
		NewTree: oid(7), NewCommit: oid(8), Message: "land",
		Author:  git.Signature{Name: "A", Email: "a@b", At: at(0).In(time.FixedZone("", 3600))},
		Staging: dir + "/.git/sallyport", Started: at(11),
	}
}

func aCheckpoint(c id.Change, n int) checkpoint.Checkpoint {
	commit := oid(1000 + n)
	return checkpoint.Checkpoint{ID: id.Checkpoint(fmt.Sprintf("ckpt-%03d-%s-%.8s", n, c[4:], commit)), Change: c, Number: n, At: at(n),
		Trigger: checkpoint.AtEnd, Base: oid(2), Commit: commit, Tree: oid(2000 + n), FilesChanged: []string{"a", "b"}, Status: checkpoint.Valid}
}

// same compares as JSON, which is how these values leave the program.
func (s *suite) same(got, want any) {
	s.t.Helper()
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	if err1 != nil || err2 != nil || string(g) != string(w) {
		s.t.Errorf("got  %s\nwant %s (%v, %v)", g, w, err1, err2)
	}
}
