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
	host, err := m.Repository(ctx, spec.Project, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	s := showing{host: host, commit: commit, op: "shown:lay"}
	baseTree, err := host.Tree(ctx, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	if s.tree, err = host.Tree(ctx, commit); err != nil {
		return Workspace{}, err
	}
	if s.edits, err = host.Edits(ctx, baseTree, s.tree); err != nil {
		return Workspace{}, err
	}
	if err := showable(host, s.edits, commit); err != nil {
		return Workspace{}, err
	}
	if len(s.edits) <= editsMax {
		w, err := m.show(ctx, spec, s, baseTree)
		if !errors.Is(err, errNoWhiteouts) {
			return w, err
		}
	}
	s.edits = nil
	return m.show(ctx, spec, s, s.tree)
}

func (m *Manager) show(ctx context.Context, spec Spec, s showing, under git.OID) (Workspace, error) {
	commit := s.commit
	if len(s.edits) > 0 {
		commit = spec.Base
	}
	layer, release, err := m.Layers.Open(ctx, s.host, under, commit)
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
	r := record{Strategy: m.strategy, Base: s.commit, Owner: spec.Owner, Objects: []string{repository.ViewObjects(s.host, spec.Base)}, Setup: spec.Setup}
	r.on(layer)
	err = m.fill(home, r, layer, func(gitDir string) error {
		index := filepath.Join(gitDir, "index")
		if err := copyOne(layer.Index, index, 0o644, true); err != nil {
			return err
		}
		if err := updateIndex(ctx, s, index); err != nil {
			return err
		}
		upon, err := s.lend(ctx, spec.Base, gitDir)
		if err != nil {
			return err
		}
		return m.makeAgentGit(gitDir, s.host, spec, upon)
	})
	if err == nil && len(s.edits) > 0 {
		l := layout{top: filepath.Join(home, "tree"), owner: spec.Owner}
		if m.strategy == Overlay {
			l.top, l.overlay = filepath.Join(home, "upper"), true
		}
		err = lay(ctx, m.ops, s, l)
	}
	if err != nil {
		return Workspace{}, errors.Join(err, m.discard(context.WithoutCancel(ctx), home))
	}
	spec.Base = s.commit
	return m.workspace(spec, home, r), nil
}

// lend copies the tree that is shown, as one commit upon the base, into the git directory beside it, and returns that commit. What
// stood between the two, invalid checkpoints among it, is not for everybody.
func (s showing) lend(ctx context.Context, base git.OID, gitDir string) (git.OID, error) {
	if s.commit == base {
		return base, nil
	}
	upon, err := s.host.Upon(ctx, "shown:commit", s.commit, base)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(gitDir, "objects", "pack")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	_, err = s.host.Do(ctx, "shown:objects", git.Cmd{
		Args:  []string{"pack-objects", "--revs", "-q", filepath.Join(folder, "pack")},
		Stdin: strings.NewReader(fmt.Sprintf("%s\n^%s\n", upon, base)),
	})
	return upon, err
}

// updateIndex brings a copy of a layer's index to the tree that is shown.
func updateIndex(ctx context.Context, s showing, index string) error {
	if len(s.edits) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, e := range s.edits {
		if e.New.Absent() {
			fmt.Fprintf(&in, "0 %s\t%s\x00", e.Old.OID, e.Path)
		}
	}
	for _, e := range s.edits {
		if !e.New.Absent() {
			fmt.Fprintf(&in, "%s %s\t%s\x00", e.New.Mode, e.New.OID, e.Path)
		}
	}
	_, err := s.host.Do(ctx, "shown:index", git.Cmd{
		Args: []string{"update-index", "-z", "--index-info"}, Stdin: &in,
		Env: []string{"GIT_INDEX_FILE=" + index},
	})
	return err
}
