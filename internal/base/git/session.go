package git

import (
	"context"
	"fmt"
	"io"
	"slices"
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
	out, names := make([]Entry, len(paths)), make([][]string, len(paths))
	for i, p := range paths {
		out[i], names[i] = Entry{Mode: Folder, OID: tree}, strings.Split(p, "/")
	}
	for depth, deeper := 0, true; deeper; depth++ {
		deeper = false
		var level []OID
		for i := range out {
			if depth < len(names[i]) && out[i].Mode == Folder {
				level, deeper = append(level, out[i].OID), true
			}
		}
		if err := s.read(level); err != nil {
			return nil, err
		}
		for i := range out {
			if depth < len(names[i]) {
				out[i] = s.in(out[i])[names[i][depth]]
			}
		}
	}
	return out, nil
}

// in returns what lies in a folder whose tree was read; nothing of what is no folder.
func (s *Session) in(e Entry) map[string]Entry {
	if e.Mode != Folder {
		return nil
	}
	return s.trees[e.OID]
}

// entries reads one tree object, once.
func (s *Session) entries(tree OID) (map[string]Entry, error) {
	err := s.read([]OID{tree})
	return s.trees[tree], err
}

// read reads tree objects, each once.
func (s *Session) read(trees []OID) error {
	asked := map[OID]bool{}
	trees = slices.DeleteFunc(trees, func(oid OID) bool {
		_, known := s.trees[oid]
		known, asked[oid] = known || asked[oid], true
		return known
	})
	return s.r.all(trees, func(tree OID, kind string, _ int64, body io.Reader) error {
		if kind != "tree" {
			return fmt.Errorf("object %s is a %s, not a tree", tree, kind)
		}
		in := map[string]Entry{}
		err := parseTree(body, len(tree)/2, in)
		if err == nil {
			s.trees[tree] = in
		}
		return err
	})
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

// Blobs hands the bytes of blobs to each, in order, which need not read all of them.
func (s *Session) Blobs(oids []OID, each func(oid OID, size int64, r io.Reader) error) error {
	return s.r.all(oids, func(oid OID, kind string, size int64, body io.Reader) error {
		if kind != "blob" {
			return fmt.Errorf("object %s is a %s, not a blob", oid, kind)
		}
		return each(oid, size, body)
	})
}
