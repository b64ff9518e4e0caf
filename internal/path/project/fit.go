package project

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/repository"
)

// Fit refuses by name, before any work starts, a base that cannot be worked on: objects are missing, it is too large, or what
// git converts in it cannot be told. It returns what its attributes convert files by.
func (o *Reader) Fit(ctx context.Context, host git.Dir, project git.Project, base git.OID) (converts []string, err error) {
	tree, err := host.Tree(ctx, base)
	if err != nil {
		return nil, err
	}
	known, near := o.fitKnown(project, tree)
	if known.tree == tree {
		return known.converts, nil
	}
	if err := fitObjects(ctx, host, project, base); err != nil {
		return nil, err
	}
	f, ok, err := o.fitFrom(ctx, host, near, base)
	if err == nil && !ok {
		f, err = o.fitTree(ctx, host, project.Top, base)
	}
	if err != nil {
		return nil, err
	}
	f.tree = tree
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.fit) >= fitsMax {
		clear(o.fit)
		clear(o.last)
	}
	o.fit[tree], o.last[project.CommonDir] = f, tree
	return f.converts, nil
}

const (
	fitsMax  = 256  // trees that are known to be fit
	fitEdits = 1000 // paths and folders by which a tree may differ from one that is known, so that only these are looked at
)

// fitness is what is known of a tree that was found fit in this process's life. It is of the tree's id, so nothing changes it.
type fitness struct {
	tree     git.OID
	converts []string // what converts files there
	entries  int
	bytes    int64 // of all paths
}

// fitKnown returns what is known of a tree, and of the last one of the project that was looked at.
func (o *Reader) fitKnown(project git.Project, tree git.OID) (known, near fitness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fit[tree], o.fit[o.last[project.CommonDir]]
}

// fitFrom looks only at what differs from a tree that is known; false where that does not tell, or may be refused.
func (o *Reader) fitFrom(ctx context.Context, host git.Dir, near fitness, base git.OID) (f fitness, ok bool, err error) {
	if near.tree == "" {
		return f, false, nil
	}
	edits, err := host.EditsMax(ctx, near.tree, base, fitEdits)
	if err != nil {
		return f, false, ctx.Err() // their git may have collected the one that is known
	}
	f = near
	for _, e := range edits {
		if path.Base(e.Path) == conversion.FileName || len(e.Path) > beneath.PathMax {
			return f, false, nil
		}
		if e.Old.Absent() {
			f.entries, f.bytes = f.entries+1, f.bytes+int64(len(e.Path))
		}
		if e.New.Absent() {
			f.entries, f.bytes = f.entries-1, f.bytes-int64(len(e.Path))
		}
	}
	return f, f.entries <= o.Entries && f.bytes <= o.PathBytes, nil
}

// fitObjects looks for what a partial or shallow clone left out. A shallow history is
// fine as long as the base itself is whole.
func fitObjects(ctx context.Context, host git.Dir, project git.Project, base git.OID) error {
	shallow, err := repository.ReadPlain(filepath.Join(project.CommonDir, "shallow"))
	if err != nil {
		return err
	}
	config, err := repository.ReadPlain(filepath.Join(project.CommonDir, "config"))
	if err != nil {
		return err
	}
	lower := strings.ToLower(string(config))
	if len(shallow) == 0 && !strings.Contains(lower, "promisor") && !strings.Contains(lower, "partialclone") {
		return nil
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--objects", "--no-walk", "--missing=print", string(base)}})
	if err != nil {
		return problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" fetch --unshallow",
			"the clone at %s lacks objects of the commit %.12s: %w", project.Top, base, err)
	}
	for line := range strings.Lines(string(out)) {
		if missing, ok := strings.CutPrefix(line, "?"); ok {
			return problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" fetch --refetch --no-filter",
				"the clone at %s is partial: object %.12s of the commit %.12s is missing", project.Top, strings.TrimSpace(missing), base)
		}
	}
	return nil
}

// fitTree looks at every entry of the base once. A few objects can stand for any number of files:
// what is more than a workspace may hold is refused before anything is made of it.
func (o *Reader) fitTree(ctx context.Context, host git.Dir, top string, base git.OID) (f fitness, err error) {
	var paths []string
	var blobs []git.OID
	attributes := int64(0)
	count := "git -C " + inert.Path(top) + " ls-tree -r --name-only " + string(base) + " | wc"
	err = host.List(ctx, base, func(p string, e git.Entry, size int64) error {
		f.entries, f.bytes = f.entries+1, f.bytes+int64(len(p))
		switch {
		case f.entries > o.Entries:
			return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files (limit entries)", base, o.Entries)
		case f.bytes > o.PathBytes:
			return problem.Errorf(problem.Refused, count,
				"the paths of the commit %.12s have more than %d bytes together (limit path bytes)", base, o.PathBytes)
		case len(p) > beneath.PathMax:
			return problem.Errorf(problem.Refused, count, "a path of the commit %.12s has more than %d bytes: %.100q…", base, beneath.PathMax, p)
		case e.Mode == git.Symlink && path.Base(p) == conversion.FileName:
			return problem.Errorf(problem.Refused, "ls -l "+inert.Path(top+"/"+p), "%q is a link, and git takes the text of the link for attributes", p)
		case path.Base(p) == conversion.FileName:
			if attributes += size; attributes > conversion.TextMax {
				return problem.Errorf(problem.Refused, "ls -l "+inert.Path(top+"/"+p),
					"up to %q the files .gitattributes have %d bytes together; at most %d are read", p, attributes, conversion.TextMax)
			}
			if len(paths) == conversion.FilesMax {
				return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files .gitattributes", base, conversion.FilesMax)
			}
			paths, blobs = append(paths, p), append(blobs, e.OID)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	var together conversion.Limits
	i := 0
	err = host.Blobs(ctx, blobs, func(_ git.OID, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %q: %w", paths[i], err)
		}
		said, err := together.Said(paths[i], string(text))
		if err != nil {
			return problem.Errorf(problem.Refused, host.Command("show "+inert.Path(string(base)+":"+paths[i])), "%w", err)
		}
		f.converts = append(f.converts, said...)
		i++
		return nil
	})
	return f, err
}
