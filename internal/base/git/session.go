package git

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Session answers many questions through one process, and reads each tree once. It sees refs and objects as they are when it
// is asked. It is for one goroutine at a time; close it.
type Session struct {
	r     *reader
	trees map[OID]map[string]Entry
}

// Session begins one.
func (d Dir) Session(ctx context.Context) *Session {
	return &Session{r: d.reader(ctx), trees: map[OID]map[string]Entry{}}
}

// Close gives the process back.
func (s *Session) Close() { s.r.close() }

// Resolve returns the object a revision names, "" if there is none. The revision is a full ref or an
// id, and what may follow it in ^{…}.
func (s *Session) Resolve(rev string) (OID, error) { return s.r.resolve(rev) }

// tree returns the tree of a commit or tree, which it reads.
func (s *Session) tree(treeish OID) (OID, error) {
	if _, ok := s.trees[treeish]; ok {
		return treeish, nil
	}
	root := OID("")
	err := s.r.contents(string(treeish)+"^{tree}", func(h header, body io.Reader) error {
		in := map[string]Entry{}
		root, s.trees[h.oid] = h.oid, in
		return parseTree(body, len(h.oid)/2, in)
	})
	if err != nil {
		delete(s.trees, root)
		return "", err
	}
	return root, nil
}

// Lookup returns the entries at paths below a tree, in order; absent ones are zero.
func (s *Session) Lookup(tree OID, paths []string) ([]Entry, error) {
	out := make([]Entry, len(paths))
	for i, p := range paths {
		at := Entry{Mode: Folder, OID: tree}
		for name := range strings.SplitSeq(p, "/") {
			if at.Mode != Folder {
				at = Entry{}
				break
			}
			in, err := s.entries(at.OID)
			if err != nil {
				return nil, err
			}
			at = in[name]
		}
		out[i] = at
	}
	return out, nil
}

// entries reads one tree object, once.
func (s *Session) entries(tree OID) (map[string]Entry, error) {
	if in, ok := s.trees[tree]; ok {
		return in, nil
	}
	in, err := s.read(tree)
	if err == nil {
		s.trees[tree] = in
	}
	return in, err
}

// read reads one tree object.
func (s *Session) read(tree OID) (map[string]Entry, error) {
	in := map[string]Entry{}
	err := s.r.next(tree, func(kind string, _ int64, body io.Reader) error {
		if kind != "tree" {
			return fmt.Errorf("object %s is a %s, not a tree", tree, kind)
		}
		return parseTree(body, len(tree)/2, in)
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

// Files calls each with the path of every entry below a tree that is no folder, prefixed.
func (s *Session) Files(tree OID, prefix string, each func(path string)) error {
	in, err := s.entries(tree)
	if err != nil {
		return err
	}
	for name, e := range in {
		if e.Mode != Folder {
			each(prefix + name)
		} else if err := s.Files(e.OID, prefix+name+"/", each); err != nil {
			return err
		}
	}
	return nil
}

// Blob hands a blob's bytes to each, which need not read all of them.
func (s *Session) Blob(oid OID, each func(size int64, r io.Reader) error) error {
	return s.r.next(oid, func(kind string, size int64, body io.Reader) error {
		if kind != "blob" {
			return fmt.Errorf("object %s is a %s, not a blob", oid, kind)
		}
		return each(size, body)
	})
}
