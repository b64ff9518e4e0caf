package view

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/rule/policy"
)

// Diff writes the unified diff of what is proposed or was landed; without a proposal, of the last checkpoint.
func (v *Views) Diff(ctx context.Context, change id.Change, w io.Writer) error {
	return v.patch(ctx, change, w, false)
}

// Export writes the same as a patch with binary data that `git apply` takes.
func (v *Views) Export(ctx context.Context, change id.Change, w io.Writer) error {
	return v.patch(ctx, change, w, true)
}

func (v *Views) patch(ctx context.Context, change id.Change, w io.Writer, binary bool) error {
	d, err := v.Show(ctx, change)
	if err != nil {
		return err
	}
	var from, to git.OID
	var exact error
	switch n := len(d.Checkpoints); {
	case d.Proposal != nil:
		from, to = d.Proposal.Base, d.Proposal.Commit
	case n > 0:
		from, to = d.Checkpoints[n-1].Base, d.Checkpoints[n-1].Commit
		exact = exportable(d.Checkpoints[n-1])
	default:
		return problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has changed nothing yet: it is %s", change, d.Change.State.Words())
	}
	host, err := v.Holding(ctx, d.Change, to)
	if err != nil {
		return err
	}
	return v.show(ctx, host, showing{change, from, to, binary, exact}, w)
}

// Holding returns the host's repository, once a commit of the change is in it. Errors: problem.NotFound if it has been removed.
func (v *Views) Holding(ctx context.Context, row change.Row, commit git.OID) (git.Dir, error) {
	host, err := v.Workspaces.EnsureRepository(ctx, row.Request.Project)
	if err != nil {
		return host, err
	}
	there, err := host.Resolve(ctx, string(commit)+"^{tree}")
	var failed *git.Failure
	if err != nil && !errors.As(err, &failed) {
		return host, err
	}
	if there == "" {
		return host, problem.Errorf(problem.NotFound, "sallyport audit list --change "+string(row.ID),
			"the checkpoints of %s were removed when their time was over; the audit log has what is left", row.ID)
	}
	return host, nil
}

// CheckpointDiff writes the unified diff between two checkpoints of one change; from "" is its base.
func (v *Views) CheckpointDiff(ctx context.Context, from, to id.Checkpoint, w io.Writer) error {
	return v.between(ctx, from, to, w, false)
}

// CheckpointExport writes what a checkpoint differs in from its base, as a patch with binary data that `git apply` takes.
func (v *Views) CheckpointExport(ctx context.Context, ref id.Checkpoint, w io.Writer) error {
	return v.between(ctx, "", ref, w, true)
}

func (v *Views) between(ctx context.Context, from, to id.Checkpoint, w io.Writer, binary bool) error {
	b, err := v.Checkpoint(ctx, to)
	if err != nil {
		return err
	}
	start, exact := b.Base, exportable(b)
	if from != "" {
		a, err := v.Checkpoint(ctx, from)
		if err != nil {
			return err
		}
		if a.Change != b.Change {
			return problem.Errorf(problem.Usage, "sallyport checkpoint list "+string(b.Change), "%s belongs to %s and %s to %s", from, a.Change, to, b.Change)
		}
		start = a.Commit
	}
	row, err := v.Row(ctx, b.Change)
	if err != nil {
		return err
	}
	host, err := v.Holding(ctx, row, b.Commit)
	if err != nil {
		return err
	}
	return v.show(ctx, host, showing{b.Change, start, b.Commit, binary, exact}, w)
}

// exportable returns why a checkpoint's bytes are not given out as they are: they hold a secret, or may.
func exportable(cp checkpoint.Checkpoint) error {
	hidden := cp.Status == checkpoint.Skipped || slices.ContainsFunc(cp.Violations, func(v policy.Violation) bool {
		return v.Constraint == policy.SecretFound || v.Constraint == policy.NotScanned
	})
	if !hidden {
		return nil
	}
	return problem.Errorf(problem.Refused, "sallyport checkpoint diff "+string(cp.ID),
		"%s holds a secret, or could not be scanned for one, so sallyport gives out no patch of it; its diff is shown with secrets removed", cp.ID)
}

// showing is a difference to be shown or given out.
type showing struct {
	of       id.Change
	from, to git.OID
	binary   bool  // as a patch that git apply takes
	exact    error // why it may not be given out as it is; nil = it may
}

// quietMax is how long git may write nothing while it compares: files of some million lines that all differ take hours.
const quietMax = time.Minute

// show writes a difference: for reading without secrets, as a patch byte for byte. What takes too long or too much memory to compare ends
// it, and everything before that has been written. How slowly somebody reads counts for nothing.
func (v *Views) show(ctx context.Context, host git.Dir, s showing, w io.Writer) error {
	if s.binary && s.exact != nil {
		return s.exact
	}
	branch := "sallyport change branch " + string(s.of)
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := pace(w, func() {
		cancel(problem.Errorf(problem.Refused, branch, "comparing the next file takes longer than %s; a branch has it whole", quietMax))
	})
	defer p.timer.Stop()
	err := v.write(timed, host, s, p)
	if errors.Is(err, git.ErrDiffMemory) {
		return problem.Errorf(problem.Refused, branch, "the next file has too many lines; a branch has it whole: %w", err)
	}
	return err
}

func (v *Views) write(ctx context.Context, host git.Dir, s showing, p *paced) error {
	if s.binary {
		return host.Patch(ctx, p, s.from, s.to, true)
	}
	clean := v.Secrets.DiffRedactor(p.to)
	p.to = clean
	err := host.Patch(ctx, p, s.from, s.to, false)
	return errors.Join(err, clean.Close())
}

// paced hands on what is written, and starts its timer anew once that is done.
type paced struct {
	to    io.Writer
	timer *time.Timer
}

// pace has quiet called once nothing has been written to w for quietMax.
func pace(w io.Writer, quiet func()) *paced {
	return &paced{to: w, timer: time.AfterFunc(quietMax, quiet)}
}

func (p *paced) Write(b []byte) (int, error) {
	p.timer.Stop()
	n, err := p.to.Write(b)
	p.timer.Reset(quietMax)
	return n, err
}
