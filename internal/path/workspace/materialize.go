package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/repository"
)

// Materialize makes a throw-away workspace that shows exactly a commit's tree, and no
// empty folder beside it. spec.Base is a commit whose layer is likely there: only the
// difference is written. Discard takes it away.
func (m *Manager) Materialize(ctx context.Context, spec Spec, commit git.OID) (Workspace, error) {
	w, err := m.materialize(ctx, spec, commit)
	if err != nil {
		return Workspace{}, fmt.Errorf("show %.12s: %w", commit, err)
	}
	return w, nil
}

// Discard takes a materialized workspace away; it does nothing to a prepared one.
func (m *Manager) Discard(ctx context.Context, w Workspace) error {
	if filepath.Dir(w.path) != filepath.Join(m.root, "shown") {
		return fmt.Errorf("%s is no throw-away workspace", w.path)
	}
	return m.discard(ctx, w.path)
}

func (m *Manager) materialize(ctx context.Context, spec Spec, commit git.OID) (Workspace, error) {
	defer m.Repositories.Hold(spec.Base)() // until its record names it
	host, err := m.EnsureRepository(ctx, spec.Project, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	s := layer.Showing{Host: host, Commit: commit, Op: "shown:lay"}
	baseTree, err := host.Tree(ctx, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	if s.Tree, err = host.Tree(ctx, commit); err != nil {
		return Workspace{}, err
	}
	if s.Edits, err = host.Edits(ctx, baseTree, s.Tree); err != nil {
		return Workspace{}, err
	}
	if err := layer.Showable(host, s.Edits, commit); err != nil {
		return Workspace{}, err
	}
	if len(s.Edits) <= layer.EditsMax {
		w, err := m.show(ctx, spec, s, baseTree)
		if !errors.Is(err, layer.ErrNoWhiteouts) {
			return w, err
		}
	}
	s.Edits = nil
	return m.show(ctx, spec, s, s.Tree)
}

func (m *Manager) show(ctx context.Context, spec Spec, s layer.Showing, under git.OID) (Workspace, error) {
	commit := s.Commit
	if len(s.Edits) > 0 {
		commit = spec.Base
	}
	below, release, err := m.Layers.Open(ctx, s.Host, under, commit)
	if err != nil {
		return Workspace{}, err
	}
	defer release()
	shown := filepath.Join(m.root, "shown")
	if err := whole.MakeFolder(m.ops, shown); err != nil {
		return Workspace{}, err
	}
	home := ""
	err = m.ops.Do("shown:name", func() error {
		home, err = os.MkdirTemp(shown, string(spec.Change)+"-")
		return err
	})
	if err != nil {
		return Workspace{}, err
	}
	r := record{Strategy: m.strategy, Base: s.Commit, Owner: spec.Owner, Objects: []string{repository.ViewObjects(s.Host, spec.Base)}, Setup: spec.Setup}
	r.on(below)
	err = m.fill(home, r, below, func(gitDir string) error {
		index := filepath.Join(gitDir, "index")
		if err := layer.CopyIndex(below.Index, index); err != nil {
			return err
		}
		if err := updateIndex(ctx, s, index); err != nil {
			return err
		}
		upon, err := lend(ctx, s, spec.Base, gitDir)
		if err != nil {
			return err
		}
		return m.makeAgentGit(gitDir, s.Host, spec, upon)
	})
	if err == nil && len(s.Edits) > 0 {
		l := layer.Layout{Top: filepath.Join(home, "tree"), Owner: spec.Owner}
		if m.strategy == Overlay {
			l.Top, l.Overlay = filepath.Join(home, "upper"), true
		}
		err = layer.Lay(ctx, m.ops, s, l)
	}
	if err != nil {
		return Workspace{}, errors.Join(err, m.discard(context.WithoutCancel(ctx), home))
	}
	spec.Base = s.Commit
	return m.workspace(spec, home, r), nil
}

// lend copies the tree that is shown, as one commit upon the base, into the git directory beside it, and returns that commit. What
// stood between the two, invalid checkpoints among it, is not for everybody.
func lend(ctx context.Context, s layer.Showing, base git.OID, gitDir string) (git.OID, error) {
	if s.Commit == base {
		return base, nil
	}
	upon, err := s.Host.Upon(ctx, "shown:commit", s.Commit, base)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(gitDir, "objects", "pack")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	_, err = s.Host.Do(ctx, "shown:objects", git.Cmd{
		Args:  []string{"pack-objects", "--revs", "-q", filepath.Join(folder, "pack")},
		Stdin: strings.NewReader(fmt.Sprintf("%s\n^%s\n", upon, base)),
	})
	return upon, err
}

// updateIndex brings a copy of a layer's index to the tree that is shown.
func updateIndex(ctx context.Context, s layer.Showing, index string) error {
	if len(s.Edits) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, e := range s.Edits {
		if e.New.Absent() {
			fmt.Fprintf(&in, "0 %s\t%s\x00", e.Old.OID, e.Path)
		}
	}
	for _, e := range s.Edits {
		if !e.New.Absent() {
			fmt.Fprintf(&in, "%s %s\t%s\x00", e.New.Mode, e.New.OID, e.Path)
		}
	}
	_, err := s.Host.Do(ctx, "shown:index", git.Cmd{
		Args: []string{"update-index", "-z", "--index-info"}, Stdin: &in,
		Env: []string{"GIT_INDEX_FILE=" + index},
	})
	return err
}
