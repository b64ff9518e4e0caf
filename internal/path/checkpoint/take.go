package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// Taking is all that one checkpoint depends on. The same Taking over the same files
// gives the same commit.
type Taking struct {
	Workspaces     *workspace.Manager
	Workspace      workspace.Workspace
	Host           git.Dir     // the host's repository of the project
	Previous       *Checkpoint // nil for the first
	Trigger        Trigger
	Session        id.Session
	At             time.Time     // recorded, and the commit's time in whole seconds
	Author         git.Signature // At is ignored
	Plan           policy.Plan
	Rules          policy.Rules
	IncludeIgnored []string        // globs
	Floor          policy.Severity // a violation of less counts as this; "" = as it is (SV-007)
	Unjudged       bool            // record it as skipped, which never counts as valid (SV-040)
	Secrets        *secret.Scanner // by the rules at the base; nil = by the built-in ones
	ScanTimeMax    time.Duration   // for all files together; what is not scanned by then is a violation; 5 min if 0
	Load           Loading         // nil looks at no rules

	// Freeze stops all that runs in the workspace and Thaw lets it run again; nil when
	// nothing does. Thaw is called on every way out, also when Freeze failed.
	Freeze func(ctx context.Context) error
	Thaw   func() error

	Meter *metric.Set // measures the phases; nil does not
}

// Loading reads the rules that a commit itself holds, as they would count once it has landed, and returns a violation for each
// file that edits change and that cannot be read so. It parses; it runs nothing. An error says that the objects could not be read.
type Loading func(ctx context.Context, host git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error)

// of returns the violations that loading finds.
func (l Loading) of(ctx context.Context, host git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error) {
	if l == nil {
		return nil, nil
	}
	return l(ctx, host, commit, edits)
}

// Taken is a checkpoint and what it changes.
type Taken struct {
	Checkpoint Checkpoint
	Edits      []git.Edit // base → tree, as git sees it
	Breaking   []string   // paths that break a rule, as they are on the disk
	Links      []string   // those of them that are links where none may be (SV-065)
	Whole      bool       // a rule is broken that is about no single path
}

// Take makes a checkpoint: freeze, walk, read each changed file once into a commit,
// compare trees, judge exactly that, thaw. The commit is kept under Ref whatever the
// verdict; ValidRef moves only if it is valid. The caller stores the record.
//
// An error means that there is no checkpoint: what could not be done is never a verdict.
func Take(ctx context.Context, t Taking) (taken Taken, err error) {
	clock := t.Meter.Taking(t.Workspace.Spec.Change, string(t.Trigger))
	defer func() { clock.Done(string(taken.Checkpoint.Status), err) }() // after the thaw
	if t.Thaw != nil {
		defer func() {
			if thawed := t.Thaw(); thawed != nil {
				taken, err = Taken{}, errors.Join(err, fmt.Errorf("let the session run again: %w", thawed))
			}
		}()
	}
	if t.Freeze != nil {
		if err := t.Freeze(ctx); err != nil {
			return Taken{}, fmt.Errorf("stop the session for a checkpoint: %w", err)
		}
		clock.Frozen()
	}
	s := snapshot{Taking: t, number: 1, parent: t.Workspace.Spec.Base, change: t.Workspace.Spec.Change}
	if t.Previous != nil {
		s.number, s.parent = t.Previous.Number+1, t.Previous.Commit
	}
	if err := s.take(ctx); err != nil {
		return Taken{}, fmt.Errorf("checkpoint %d of %s: %w", s.number, s.change, err)
	}
	clock.Diffed(s.diff.Bytes)
	cp, err := s.judge(ctx)
	if err != nil {
		return Taken{}, fmt.Errorf("judge checkpoint %d of %s: %w", s.number, s.change, err)
	}
	clock.Judged(len(cp.FilesChanged))
	taken = Taken{Checkpoint: cp, Edits: s.edits}
	taken.Breaking, taken.Whole = s.breaking(cp.Violations)
	taken.Links, _ = s.breaking(slices.DeleteFunc(slices.Clone(cp.Violations), func(v policy.Violation) bool {
		return v.Constraint != policy.Symlink && v.Constraint != policy.SymlinkedParent && v.Constraint != policy.HardLink
	}))
	taken.Checkpoint.bound()
	for i := range taken.Checkpoint.LeftOver { // what stays out is searched by nobody, and named all the same
		folder := &taken.Checkpoint.LeftOver[i].Folder
		*folder = s.search.scanner.Name(*folder)
	}
	return taken, nil
}

// snapshot is one checkpoint in the making.
type snapshot struct {
	Taking
	change id.Change
	number int
	parent git.OID

	diff   workspace.Diff
	judged []policy.Change // every path that a verdict was asked about
	out    map[string]bool // found paths that are not in the tree: git cannot hold them, or no verdict could be yes
	commit git.Commit
	edits  []git.Edit
	since  int // paths that differ from the parent
	search *search
}

// take walks the workspace and makes the commit: the base's tree with every change
// that git can hold.
func (s *snapshot) take(ctx context.Context) error {
	w := s.Workspace
	w.Spec.IncludeIgnored = s.IncludeIgnored
	var err error
	if s.diff, err = s.Workspaces.Walk(ctx, w); err != nil {
		return err
	}
	reader, err := s.Workspaces.Reader(w)
	if err != nil {
		return err
	}
	defer reader.Close()
	in := git.Import{
		Ref: Ref(s.change, s.number), From: w.Spec.Base, Parents: []git.OID{s.parent},
		Message: fmt.Sprintf("Checkpoint %d of %s\n", s.number, s.change),
		Author:  s.Author, Committer: s.Author,
	}
	in.Author.At, in.Committer.At = s.At, s.At
	s.out = leftOut(s.diff.Changes, s.Rules)
	for _, f := range s.diff.Changes {
		if !s.out[f.Path] {
			in.Writes = append(in.Writes, write(f, reader))
		}
	}
	if s.commit, err = s.Host.Import(ctx, "checkpoint:import", in); err != nil {
		return err
	}
	if s.edits, err = s.Host.Edits(ctx, w.Spec.Base, s.commit.OID); err != nil {
		return err
	}
	if s.since = len(s.edits); s.parent != w.Spec.Base {
		since, err := s.Host.Edits(ctx, s.parent, s.commit.OID)
		if err != nil {
			return err
		}
		s.since = len(since)
	}
	return s.agree(in.Writes)
}

// leftOut returns the found paths that stay as the base has them: git cannot hold the
// name, nobody could read what is there, or it is larger than the rules let pass.
func leftOut(found []workspace.Found, rules policy.Rules) map[string]bool {
	out := map[string]bool{}
	fileMax, totalMax := rules.FileBytesMax, rules.ChangeBytesMax
	if fileMax <= 0 {
		fileMax = policy.FileBytesMaxDefault
	}
	if totalMax <= 0 {
		totalMax = policy.ChangeBytesMaxDefault
	}
	total := int64(0)
	for _, f := range found {
		if !holdable(f.Path) || f.Fact.Unreadable != "" || f.Fact.Size > fileMax || total+f.Fact.Size > totalMax {
			out[f.Path] = true
			continue
		}
		total += f.Fact.Size
	}
	return out
}

// write says what a found path becomes in the tree.
func write(f workspace.Found, reader *workspace.Reader) git.Write {
	w := git.Write{Path: f.Path, Mode: f.Mode}
	switch f.Mode {
	case "": // deleted, or something is there that no tree holds: what the base had is gone
	case git.Symlink:
		w.Data = git.Text(f.Fact.LinkTarget)
	default:
		w.Data = func() (io.ReadCloser, int64, error) { return reader.Open(f.Path) }
	}
	return w
}

// agree checks that the tree differs from the base exactly where it was written, and
// holds there what was written.
func (s *snapshot) agree(writes []git.Write) error {
	made := make(map[string]git.Entry, len(writes))
	for i, w := range writes {
		made[w.Path] = s.commit.Made[i]
	}
	for _, e := range s.edits {
		below := func(w git.Write) bool { return strings.HasPrefix(w.Path, e.Path+"/") }
		if e.Old.Mode == git.Submodule && e.New.Absent() && slices.ContainsFunc(writes, below) {
			continue // files in a submodule's folder take its place, which breaks a rule
		}
		if entry, ok := made[e.Path]; !ok || entry != e.New {
			return fmt.Errorf("the tree holds %v at %q, where %v was written", e.New, e.Path, entry)
		}
	}
	return nil
}

// judge validates every path that differs, or that was found and cannot be in a tree.
func (s *snapshot) judge(ctx context.Context) (Checkpoint, error) {
	base, err := s.Host.Browse(ctx, s.Workspace.Spec.Base)
	if err != nil {
		return Checkpoint{}, err
	}
	defer base.Close()
	changes := s.changes(base)
	s.judged = changes
	search := searching(s.Host, s.Secrets, s.ScanTimeMax)
	s.search = search
	secrets, err := search.changes(ctx, changes)
	if err != nil {
		return Checkpoint{}, err
	}
	violations := policy.Validate(policy.Input{
		Changes: changes, Plan: s.Plan, Rules: s.Rules, Base: base.Entry, Names: base.Names, Secrets: secrets,
	})
	if err := base.Err(); err != nil {
		return Checkpoint{}, err
	}
	unloadable, err := s.Load.of(ctx, s.Host, s.commit.OID, s.edits)
	if err != nil {
		return Checkpoint{}, err
	}
	violations = search.blot(slices.Concat(violations, s.unnamed(violations), unloadable))
	for i := range violations {
		violations[i].Severity = policy.AtLeast(violations[i].Severity, s.Floor)
	}
	cp := Checkpoint{
		ID: id.NewCheckpoint(s.number, string(s.commit.OID)), Change: s.change, Number: s.number,
		At: s.At, Trigger: s.Trigger, Base: s.Workspace.Spec.Base, Commit: s.commit.OID, Tree: s.commit.Tree,
		Status: Valid, Violations: violations, Severity: policy.Worst(violations),
		LeftOver: s.diff.LeftOver, Session: s.Session, SinceLast: s.since,
	}
	if s.Previous != nil {
		cp.Previous = s.Previous.ID
	}
	for _, c := range changes {
		cp.FilesChanged = append(cp.FilesChanged, search.shown(c.Path))
	}
	if s.Unjudged {
		cp.Status, cp.Violations, cp.Severity = Skipped, nil, ""
		return cp, nil
	}
	if len(violations) > 0 {
		cp.Status = Invalid
		return cp, nil
	}
	return cp, s.promote(ctx)
}

// breaking finds the paths that violations name, as they are on the disk.
func (s *snapshot) breaking(violations []policy.Violation) (paths []string, whole bool) {
	named := map[string]bool{}
	for _, v := range violations {
		named[v.File] = true
	}
	found := map[string]bool{}
	for _, c := range s.judged {
		if name := s.search.shown(c.Path); named[name] { // two names may differ by the secret in them alone
			paths = append(paths, c.Path)
			found[name] = true
		}
	}
	return paths, len(named) > len(found)
}

// changes joins what git says of the trees with what the walk saw on the disk, in path order.
func (s *snapshot) changes(base *git.Browser) []policy.Change {
	facts := make(map[string]workspace.Found, len(s.diff.Changes))
	for _, f := range s.diff.Changes {
		facts[f.Path] = f
	}
	var out []policy.Change
	seen := make(map[string]bool, len(s.edits))
	for _, e := range s.edits {
		seen[e.Path] = true
		out = append(out, policy.Change{Edit: e, Fact: facts[e.Path].Fact})
	}
	for _, f := range s.diff.Changes {
		if seen[f.Path] || s.plain(f) {
			continue
		}
		old, _ := base.Entry(f.Path)
		if old.Mode == git.Folder {
			old = git.Entry{}
		}
		c := policy.Change{Edit: git.Edit{Path: f.Path, Old: old}, Fact: f.Fact}
		switch {
		case f.Mode == "":
		case s.out[f.Path]:
			c.New = git.Entry{Mode: f.Mode, OID: unread}
		default:
			c.New = old // touched, and its tree entry is as before
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b policy.Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// unread stands for the content of a file that was not read into the tree, because no
// verdict on it can be yes. It never leaves this package.
const unread git.OID = "unread"

// plain reports whether a found path that is no edit is as the base has it in every respect.
func (s *snapshot) plain(f workspace.Found) bool {
	return !s.out[f.Path] && f.Fact.Special == "" && f.Fact.HardLinks <= 1 && !f.Fact.SetID
}

// unnamed returns a violation for every found path that is not in the tree and that no
// rule named: what was left out never passes in silence.
func (s *snapshot) unnamed(named []policy.Violation) []policy.Violation {
	known := map[string]bool{}
	for _, v := range named {
		known[v.File] = true
	}
	var out []policy.Violation
	for _, f := range s.diff.Changes {
		if !s.out[f.Path] || known[written(f.Path)] {
			continue
		}
		out = append(out, policy.Violation{
			File: written(f.Path), Constraint: policy.Unreadable, Severity: policy.Error,
			Message: "this path could not be recorded in the checkpoint, so no rule can judge it", Suggestion: "remove the file, or make it smaller",
		})
	}
	return out
}

// promote makes the checkpoint the last valid one (SV-031).
func (s *snapshot) promote(ctx context.Context) error {
	ref := ValidRef(s.change)
	is, err := s.Host.Resolve(ctx, ref)
	if err != nil || is == s.commit.OID {
		return err
	}
	return s.Host.UpdateRef(ctx, "checkpoint:promote", ref, s.commit.OID, is)
}
