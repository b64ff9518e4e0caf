package landing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// Land makes a computed landing true, or leaves everything as it was.
//
// An error means that the row was not closed: with no State nothing was journaled and nothing
// moved, and the error says why as Compute's do (ErrBusy and a moved branch included); with
// State Journaled, Recover finishes. Without an error the row is closed and State says how:
// Landed; Undone, with the reason; Stranded, with the reason.
func (l *Lander) Land(ctx context.Context, made Landing, steps Steps) (Landing, error) {
	made.State = ""
	held, err := l.lock(ctx, made.Project)
	if err != nil {
		return made, err
	}
	defer held.Close()
	s, err := openSite(ctx, made.Project)
	if err != nil {
		return made, err
	}
	d := &desk{site: s, ops: l.Ops, l: &made}
	defer d.end()
	if err := l.begin(ctx, d); err != nil {
		l.forgetMade(ctx, made)
		return made, err
	}
	made.State = Journaled
	if err := steps.Journal(made); err != nil {
		l.forgetMade(ctx, made)
		made.State = ""
		return made, fmt.Errorf("journal %s: %w", made.ID, err)
	}
	ctx = context.WithoutCancel(ctx) // from here it is finished or taken back, whoever has lost interest
	run := run{Lander: l, desk: d}
	cause := run.carryOut(ctx)
	if errors.Is(cause, ErrStale) {
		return run.withdraw(ctx, steps, cause)
	}
	run.conclude(ctx, cause)
	return run.close(steps)
}

// withdraw ends a landing before its first step, because the branch has moved: there is nothing to take back.
func (r *run) withdraw(ctx context.Context, steps Steps, cause error) (Landing, error) {
	if err := r.putAway(); err != nil {
		r.strand(errors.Join(cause, err))
		return r.close(steps)
	}
	at, end := time.Now().UTC(), *r.l
	end.State, end.Reason, end.Ended = Undone, reason(cause), &at
	if err := steps.Again(end); err != nil {
		return *r.l, fmt.Errorf("close %s: %w", end.ID, err)
	}
	r.forgetMade(ctx, *r.l)
	end = *r.l
	end.State = ""
	return end, cause
}

// forgetMade removes the host's ref of a commit that nothing will name: the next try makes its own. If it cannot, the ref goes with its change's.
func (l *Lander) forgetMade(ctx context.Context, made Landing) {
	if made.NewCommit == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if host, err := l.Host(ctx, made.Project); err == nil {
		_ = host.UpdateRef(ctx, "ref:forget", made.Ref(), "", made.NewCommit)
	}
}

// end closes what the landing has open.
func (d *desk) end() {
	d.closeDesk()
	d.site.close()
}

// begin checks again, now that no other landing can interfere, and makes the commit.
func (l *Lander) begin(ctx context.Context, d *desk) error {
	made := d.l
	if err := d.configure(); err != nil {
		return err
	}
	if made.New {
		if _, err := d.toMake(ctx, made.Branch, made.Head); err != nil {
			return err
		}
	}
	head, x, err := d.look(ctx, made.Branch, made.WorkTree, l.wait(waitForGit))
	if err != nil {
		return err
	}
	if !d.asComputed(head) {
		return d.stale()
	}
	if err := d.sound(made.Edits); err != nil {
		return err
	}
	if err := (objects{d.site}).sweepAside(d.ops); err != nil {
		return err
	}
	if made.WorkTree {
		if d.note.Steps, err = d.clean(x, made.Edits); err != nil {
			return err
		}
	}
	return l.commit(ctx, d)
}

// Ref names the commit of a landing in the host's repository.
func (l Landing) Ref() string {
	return fmt.Sprintf("refs/sallyport/%s/landings/%s", l.Change, l.ID)
}

// commit makes the commit whose tree is head's with the edits, brings it to the project, where no ref names it yet, and compares it with
// what was approved.
func (l *Lander) commit(ctx context.Context, d *desk) error {
	made := d.l
	if len(made.Edits) == 0 {
		var err error
		made.NewCommit = made.Head
		made.NewTree, err = d.objects.Resolve(string(made.Head) + "^{tree}")
		return err
	}
	host, err := l.Host(ctx, made.Project, made.Head)
	if err != nil {
		return err
	}
	in := git.Import{
		Ref: made.Ref(), From: made.Head, Parents: []git.OID{made.Head}, Writes: git.Writes(made.Edits),
		Message: made.Message, Author: made.Author, Committer: made.Committer,
	}
	c, err := host.Import(ctx, "git:commit", in)
	if err != nil {
		return fmt.Errorf("make the commit of %s: %w", made.ID, err)
	}
	made.NewCommit, made.NewTree = c.OID, c.Tree
	edits, err := (objects{d.site}).bring(ctx, d.ops, "git:import", made, host)
	if err != nil {
		return fmt.Errorf("bring the commit of %s to %q: %w", made.ID, made.Project.Top, err)
	}
	if made.Checked != "" && made.Checked != made.NewTree {
		return fmt.Errorf("the commit of %s has the tree %.12s, but the checks ran on %.12s", made.ID, made.NewTree, made.Checked)
	}
	approved := map[git.Edit]bool{}
	for _, e := range made.Edits {
		approved[e] = true
	}
	var other []string
	for _, e := range edits {
		if !approved[e] {
			other = append(other, e.Path)
		}
	}
	if len(other) == 0 && len(edits) != len(approved) {
		return fmt.Errorf("the commit of %s changes %d paths instead of %d", made.ID, len(edits), len(approved))
	}
	if err := d.drifted(made, other); err != nil {
		return err
	}
	return d.sign(ctx, host, c, in)
}

// sign has the commit signed, where it is to be, in the project by its owner; the host keeps it too. What cannot be signed does not land.
func (d *desk) sign(ctx context.Context, host git.Dir, c git.Commit, in git.Import) error {
	if d.l.Signing == nil {
		return nil
	}
	signed, err := d.Sign(ctx, d.ops, *d.l.Signing, c, in)
	if err != nil {
		return Unsignable(d.l.Change, err)
	}
	if err := host.Adopt(ctx, "sign:adopt", d.Common(d.ops), signed); err != nil {
		return err
	}
	if err := host.UpdateRef(ctx, "sign:ref", in.Ref, signed, c.OID); err != nil {
		return err
	}
	d.l.NewCommit = signed
	return nil
}

// Unsignable is why a commit that is to be signed does not land.
func Unsignable(change id.Change, why error) error {
	return problem.Errorf(problem.Refused, "sallyport approve "+string(change)+" --unsigned", "the commit cannot be signed: %s", reason(why))
}

// run is one attempt to bring a journaled landing to an end.
type run struct {
	*Lander
	*desk
}

// carryOut takes the steps that the package comment lists, from the journal to the verified end.
func (r *run) carryOut(ctx context.Context) error {
	l := r.l
	if len(l.Edits) == 0 {
		return nil
	}
	if err := r.there(ctx); err != nil {
		return err
	}
	if err := r.lay(); err != nil {
		return err
	}
	if l.WorkTree {
		if err := r.lockIndex(ctx, r.wait(waitForGit)); err != nil {
			return err
		}
	}
	head, err := r.ready(l.Branch, l.WorkTree) // nobody else can write the index by now
	if err != nil {
		return err
	}
	if !r.asComputed(head) {
		return r.stale()
	}
	if l.WorkTree {
		if err := r.stillClean(); err != nil {
			return err
		}
		if err := r.asStored(ctx, r.site, l); err != nil { // a person may have come to convert them meanwhile
			return err
		}
	}
	if err := r.moveRef(ctx, refNew, l.NewCommit, l.Head, "land"); err != nil {
		return err
	}
	if err := r.there(ctx); err != nil {
		return err
	}
	return r.finish(nil)
}

// there brings the commit to the project once more if a person's git has collected what no ref named yet. An object of it that is
// there and cannot be read, as a power loss leaves one, is theirs to mend: git takes it for there and writes none in its place.
func (r *run) there(ctx context.Context) error {
	l, common := r.l, r.Common(r.ops)
	if whole, err := common.Whole(ctx, l.NewCommit, l.Head); whole && err == nil {
		return nil
	}
	host, err := r.Host(ctx, l.Project)
	if err != nil {
		return err
	}
	if _, err := (objects{r.site}).bring(ctx, r.ops, "git:again", l, host); err != nil {
		return err
	}

	whole, err := common.Whole(ctx, l.NewCommit, l.Head)
	if err == nil && !whole {
		err = problem.Errorf(problem.Refused, common.Command("fsck"), "an object of %.12s is in %q already and cannot be read",
			l.NewCommit, l.Project.CommonDir)
	}
	return err
}

// finish makes the work tree and the index follow a branch that names the new commit, and verifies all three.
func (r *run) finish(only pick) error {
	if r.l.WorkTree {
		if err := (live{r.desk}).forward(only); err != nil {
			return err
		}
		if err := r.setIndex(true, only); err != nil {
			return err
		}
	}
	return r.verify(true, only)
}

// verify reads everything again (CW-903, SM-905): the branch, the index entries, the files.
func (r *run) verify(forward bool, only pick) error {
	if only == nil {
		want := r.l.Head
		if forward {
			want = r.l.NewCommit
		}
		if tip, err := r.tip(r.l.Branch); err != nil || tip != want {
			return errors.Join(err, fmt.Errorf("the branch %s is at %.12s instead of %.12s", r.l.Branch, tip, want))
		}
	}
	if !r.locked { // without the index's lock, neither index nor files were touched
		return nil
	}
	x, _, err := r.index()
	if err != nil {
		return err
	}
	for i := range r.note.Steps {
		st := &r.note.Steps[i]
		if only != nil && !only(i) {
			continue
		}
		want := st.New
		if !forward {
			want = st.Old
		}
		if now := x.Entry(st.Path).Entry; st.Index && now != want {
			r.stays(st)
		}
		if !st.Live || forward && r.seen[i] {
			continue
		}
		f, err := r.work.look(st.Path)
		if err != nil || !f.is(want, r.work.fileMode) && !(want.Absent() && f.isFolder()) {
			r.stays(st)
		}
	}
	return nil
}

// conclude decides the landing's end after cause: nil means that all of it was done.
func (r *run) conclude(ctx context.Context, cause error) {
	state := Landed
	if cause != nil {
		var err error
		if state, err = r.settle(ctx, false); err != nil {
			r.strand(errors.Join(cause, err))
			return
		}
	}
	r.wrapUp(state, cause)
}

// wrapUp clears the desk and puts everything on the platter; then the row may be closed.
func (r *run) wrapUp(state State, cause error) {
	if err := r.putAway(); err != nil {
		r.strand(errors.Join(cause, err))
		return
	}
	said := r.left
	if state == Undone {
		said = slices.Concat([]string{reason(cause)}, said)
	}
	r.l.State, r.l.Reason = state, strings.Join(said, "; ")
}

func (r *run) strand(err error) {
	r.l.State, r.l.Reason = Stranded, reason(err)
}

// reason tells a person what went wrong, the full disk by name.
func reason(err error) string {
	return strings.ReplaceAll(problem.Of(problem.Disk("", err)).Text, "\n", "; ")
}

// putAway gives back the locks and removes the desk, whatever state it is in.
func (r *run) putAway() error {
	ready, err := r.open("")
	if err != nil {
		return err
	}
	if ready {
		if err := r.unlockRef(); err != nil {
			return err
		}
		if err := r.unlockIndex(); err != nil {
			return err
		}
		if err := r.discard(); err != nil {
			return err
		}
	} else if err := r.clear(); err != nil {
		return err
	}
	return r.sync("disk:sync")
}

// close has the caller store the end.
func (r *run) close(steps Steps) (Landing, error) {
	at := time.Now().UTC()
	end := *r.l
	end.Ended = &at
	if end.State == Stranded {
		end.Ended = nil
	}
	if err := steps.Close(end); err != nil {
		end.State, end.Ended = Journaled, nil
		return end, fmt.Errorf("close %s: %w", end.ID, err)
	}
	return end, nil
}
