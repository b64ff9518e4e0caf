package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/store"
)

func (o *owned) do(f func(tx store.Tx) error) {
	o.t.Helper()
	if err := o.DB.InTx(o.t.Context(), f); err != nil {
		o.t.Fatal(err)
	}
}

// bare stores a change in a project that has ended before anything was made for it.
func (o *owned) bare(p git.Project) id.Change {
	o.t.Helper()
	row := change.Row{ID: id.NewChange(), State: change.Failed, Created: time.Now().UTC(), Moved: time.Now().UTC(), Request: request.Request{Kind: request.Edit, By: ann, Project: p}}
	o.do(func(tx store.Tx) error { return tx.AddChange(o.t.Context(), row) })
	return row.ID
}

// worked gives a change a checkpoint of as many files.
func (o *owned) worked(c id.Change, files ...string) {
	o.t.Helper()
	o.do(func(tx store.Tx) error {
		return tx.AddCheckpoint(o.t.Context(), checkpoint.Checkpoint{
			ID: id.Checkpoint("ckpt-001-" + strings.TrimPrefix(string(c), "chg-")), Change: c, Number: 1, At: time.Now().UTC().Truncate(time.Millisecond), Trigger: checkpoint.AtEnd,
			Base: o.base, Commit: o.base, Tree: o.base, Status: checkpoint.Valid, FilesChanged: files,
		})
	})
}

// offered gives a change a proposal.
func (o *owned) offered(c id.Change) {
	o.t.Helper()
	o.do(func(tx store.Tx) error {
		p := proposal.Proposal{Change: c, Number: 1, Base: o.base, Tree: o.base, Commit: o.base, Policy: "p", At: time.Now().UTC().Truncate(time.Millisecond)}
		p.Digest = p.Sum()
		return tx.AddProposal(o.t.Context(), p)
	})
}

// landed gives a change a landing, closed as it is said, or open.
func (o *owned) landed(c id.Change, name id.Landing, end landing.State) {
	o.t.Helper()
	o.do(func(tx store.Tx) error {
		at := time.Now().UTC().Truncate(time.Millisecond)
		l := landing.Landing{ID: name, Change: c, State: landing.Journaled, Project: o.project, Branch: "main", Started: at, Edits: []git.Edit{{Path: "a.txt"}}}
		err := tx.AddLanding(o.t.Context(), l)
		if end != landing.Journaled {
			l.State, l.Ended = end, &at
			err = errors.Join(err, tx.CloseLanding(o.t.Context(), l))
		}
		return err
	})
}

// desk makes a folder as a landing has one, with something in it.
func desk(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "index"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsLeftBehindBeforeEveryChangeHasEnded(t *testing.T) {
	for state, verb := range map[change.State]string{change.Working: "cancel", change.Landing: "show", change.InTrial: "show", change.RollbackFailed: "show"} {
		o := newOwned(t)
		o.add(change.Failed, time.Hour)
		first, _ := o.add(state, time.Hour)
		_, err := o.Leave(t.Context(), "", ann)
		if want := fmt.Sprintf("nothing is removed before every change has ended: %s has not ended (%s)", first, state.Words()); problem.KindOf(err) != problem.Conflict || err.Error() != want || problem.Of(err).Next != "sallyport change "+verb+" "+string(first) {
			t.Errorf("%s: %v, next %q", state, err, problem.Of(err).Next)
		}
		second, _ := o.add(change.Paused, time.Hour)
		if _, err := o.Leave(t.Context(), o.project.Top, ann); err == nil || !strings.Contains(err.Error(), string(first)) || !strings.Contains(err.Error(), string(second)) {
			t.Errorf("two that are open: %v", err)
		}
	}
}

// With the home goes what was worked and has not landed: it is named before.
func TestWorkThatHasNotLandedIsNamedBeforeItGoes(t *testing.T) {
	o := newOwned(t)
	written, _ := o.add(change.Failed, time.Hour)
	o.worked(written, "a.txt")
	offered, _ := o.add(change.Rejected, time.Hour)
	o.offered(offered)
	bare, _ := o.add(change.Cancelled, time.Hour)
	o.worked(bare)
	for _, state := range []change.State{change.Finalized, change.RolledBack} {
		c, _ := o.add(state, time.Hour)
		o.worked(c, "a.txt")
	}
	o.offered(o.bare(git.Project{})) // of what never had a base nothing is kept
	out, err := o.Leave(t.Context(), "", ann)
	if want := []id.Change{written, offered}; err != nil || !sameSet(out.Unlanded, want) {
		t.Errorf("it names %q, want %q, %v", out.Unlanded, want, err)
	}
	if out, err := o.Leave(t.Context(), o.project.Top, ann); err != nil || len(out.Unlanded) > 0 {
		t.Errorf("of one repository, whose home stays, it names %q, %v", out.Unlanded, err)
	}
}

func sameSet[T ~string](a, b []T) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// What goes from a repository is what this home's changes have left there; what looks like it and cannot be proven to be stays, and is told.
func TestFromARepositoryGoesWhatChangesOfThisHomeLeftThere(t *testing.T) {
	o := newOwned(t)
	c, _ := o.add(change.Finalized, time.Hour)
	other := id.NewChange()
	workspacetest.Git(t, o.project.Top, "update-ref", repository.BaseRef(other), string(o.base))
	workspacetest.Git(t, o.project.Top, "update-ref", "refs/sallyport/odd", string(o.base))
	beside := o.project // another work tree of the same repository
	beside.Top, beside.GitDir = filepath.Join(t.TempDir(), "beside"), filepath.Join(o.project.GitDir, "worktrees", "beside")
	workspacetest.Git(t, o.project.Top, "worktree", "add", "-q", beside.Top)
	here := o.project
	o.project = beside
	o.add(change.Finalized, time.Hour)
	o.project = here
	far := here
	far.Top, far.GitDir, far.CommonDir = "/nowhere", "/nowhere/.git", "/nowhere/.git"
	o.bare(far)
	desks := map[string]bool{"lnd-0000done.old": true, "lnd-0000open": false, "lnd-0strange": false, "lnd-0000kept": false}
	for name := range desks {
		desk(t, filepath.Join(here.GitDir, "sallyport-"+name))
	}
	if err := os.Mkdir(filepath.Join(here.Top, ".sallyport-kept-lnd-0000kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Lander = &landing.Lander{Ops: o.Ops}
	o.landed(c, "lnd-0000done", landing.Landed)
	o.landed(c, "lnd-0000open", landing.Journaled)
	out, err := o.Leave(t.Context(), "", ann)
	if err != nil {
		t.Fatal(err)
	}
	refs, folders := 0, 0
	for _, p := range out.Pieces {
		switch p.What {
		case "ref":
			refs++
		case "desk":
			folders++
			if p.Bytes == 0 || filepath.Base(p.Path) != "sallyport-lnd-0000done.old" {
				t.Errorf("a desk that goes is %+v", p)
			}
		default:
			t.Errorf("what goes is %+v", p)
		}
	}
	if refs != 2 || folders != 1 {
		t.Errorf("%d refs go and %d folders: %+v", refs, folders, out.Pieces)
	}
	for _, want := range []string{
		"refs/sallyport/" + string(other) + " in ", "refs/sallyport/odd in ", `"/nowhere/.git" is gone, or closed to you`, "no landing of this home has that id", "it holds your own version of a file",
	} {
		if !slices.ContainsFunc(out.Stays, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nobody is told of %q: %q", want, out.Stays)
		}
	}
	for _, p := range out.Pieces {
		if err := p.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	left, err := here.Common(o.Ops).Refs(t.Context(), "refs/sallyport/")
	if err != nil || len(left) != 2 || left[repository.BaseRef(other)] == "" {
		t.Errorf("left are the refs %v, %v", left, err)
	}
	for name, gone := range desks {
		if _, err := os.Lstat(filepath.Join(here.GitDir, "sallyport-"+name)); (err != nil) != gone {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.do(func(tx store.Tx) error {
		all, err := tx.Entries(t.Context(), string(c), 0, 10)
		if len(all) != 1 || all[0].Verb != "forgotten" || all[0].Actor.Name != "ann" || all[0].Digests["commit"] != string(o.base) {
			t.Errorf("the log has %+v", all)
		}
		return err
	})

	// Of one work tree goes what is in that one.
	out, err = o.Leave(t.Context(), far.Top, ann)
	if err != nil || len(out.Pieces) > 0 || len(out.Stays) != 1 {
		t.Errorf("of another one goes %+v, and stays %q, %v", out.Pieces, out.Stays, err)
	}
}

// A round takes a desk away whose landing has ended, and objects that git was killed over; what is open, strange or a person's stays.
func TestARoundClearsTheDesksOfLandingsThatHaveEnded(t *testing.T) {
	o := newOwned(t)
	c, _ := o.add(change.Finalized, time.Hour)
	desks := map[string]bool{"sallyport-lnd-0000done.old": true, "sallyport-lnd-0000open": false, "sallyport-lnd-0strange": false, "objects/tmp_objdir-sallyport-lnd-0strange": true}
	for name := range desks {
		desk(t, filepath.Join(o.project.GitDir, name))
	}
	o.Lander = &landing.Lander{Ops: o.Ops}
	o.landed(c, "lnd-0000done", landing.Undone)
	o.landed(c, "lnd-0000open", landing.Journaled)
	report, err := o.Collect(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	for name, gone := range desks {
		if _, err := os.Lstat(filepath.Join(o.project.GitDir, name)); (err != nil) != gone {
			t.Errorf("%s: %v, notes %q", name, err, report.Notes)
		}
	}
	for _, row := range report.Rows {
		if row.Kind == Orphans && (row.Count != 2 || row.Gone != 2 || row.Freed == 0) {
			t.Errorf("%+v", row)
		}
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "no landing of this home has that id") {
		t.Errorf("notes: %q", report.Notes)
	}
}
