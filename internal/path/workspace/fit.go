package workspace

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Fit refuses by name, before any work starts, a base that cannot be worked on: objects are missing, it is too large, or what
// git converts in it cannot be told. It returns what its attributes convert files by.
func (m *Manager) Fit(ctx context.Context, host git.Dir, project git.Project, base git.OID) (converts []string, err error) {
	tree, err := host.Tree(ctx, base)
	if err != nil {
		return nil, err
	}
	m.fitMu.Lock()
	converts, known := m.fit[tree]
	m.fitMu.Unlock()
	if known {
		return converts, nil
	}
	if err := fitObjects(ctx, host, project, base); err != nil {
		return nil, err
	}
	if converts, err = m.fitTree(ctx, host, project.Top, base); err != nil {
		return nil, err
	}
	m.fitMu.Lock()
	m.fit[tree] = converts
	m.fitMu.Unlock()
	return converts, nil
}

// fitObjects looks for what a partial or shallow clone left out. A shallow history is
// fine as long as the base itself is whole.
func fitObjects(ctx context.Context, host git.Dir, project git.Project, base git.OID) error {
	shallow, err := readPlain(filepath.Join(project.CommonDir, "shallow"))
	if err != nil {
		return err
	}
	config, err := readPlain(filepath.Join(project.CommonDir, "config"))
	if err != nil {
		return err
	}
	lower := strings.ToLower(string(config))
	if len(shallow) == 0 && !strings.Contains(lower, "promisor") && !strings.Contains(lower, "partialclone") {
		return nil
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--objects", "--no-walk", "--missing=print", string(base)}})
	if err != nil {
		return problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" fetch --unshallow", "the clone at %s lacks objects of the commit %.12s: %w", project.Top, base, err)
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
func (m *Manager) fitTree(ctx context.Context, host git.Dir, top string, base git.OID) (converts []string, err error) {
	var paths []string
	var blobs []git.OID
	entries, bytes, attributes := 0, int64(0), int64(0)
	count := "git -C " + inert.Path(top) + " ls-tree -r --name-only " + string(base) + " | wc"
	err = host.List(ctx, base, func(p string, e git.Entry, size int64) error {
		entries, bytes = entries+1, bytes+int64(len(p))
		switch {
		case entries > m.limits.Entries:
			return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files (limit entries)", base, m.limits.Entries)
		case bytes > m.limits.PathBytes:
			return problem.Errorf(problem.Refused, count, "the paths of the commit %.12s have more than %d bytes together (limit path bytes)", base, m.limits.PathBytes)
		case len(p) > pathMax:
			return problem.Errorf(problem.Refused, count, "a path of the commit %.12s has more than %d bytes: %.100q…", base, pathMax, p)
		case e.Mode == git.Symlink && path.Base(p) == conversion.FileName:
			return problem.Errorf(problem.Refused, "ls -l "+inert.Path(top+"/"+p), "%q is a link, and git takes the text of the link for attributes", p)
		case path.Base(p) == conversion.FileName:
			if attributes += size; attributes > conversion.TextMax {
				return problem.Errorf(problem.Refused, "ls -l "+inert.Path(top+"/"+p), "up to %q the files .gitattributes have %d bytes together; at most %d are read", p, attributes, conversion.TextMax)
			}
			if len(paths) == conversion.FilesMax {
				return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files .gitattributes", base, conversion.FilesMax)
			}
			paths, blobs = append(paths, p), append(blobs, e.OID)
		}
		return nil
	})
	if err != nil {
		return nil, err
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
		converts = append(converts, said...)
		i++
		return nil
	})
	return converts, err
}
