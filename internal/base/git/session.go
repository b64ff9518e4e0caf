package git

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Session is one `cat-file --batch` process that answers many questions, for a caller who would
// otherwise pay for a process each time. It sees refs and objects as they are when it is asked. It
// is for one goroutine at a time; Close ends it.
type Session struct {
	r     *reader
	trees map[OID]map[string]Entry
}

// Session starts one.
func (d Dir) Session(ctx context.Context) (*Session, error) {
	r, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{r: r, trees: map[OID]map[string]Entry{}}, nil
}

// Close ends the process.
func (s *Session) Close() { s.r.close() }

// Resolve returns the object a revision names, "" if there is none. The revision is a full ref or an
// id, and what may follow it in ^{…}.
func (s *Session) Resolve(rev string) (OID, error) {
	if strings.ContainsAny(rev, " \t\r\n") {
		return "", nil // no ref can be named so
	}
	if _, err := io.WriteString(s.r.in, rev+"\n"); err != nil {
		return "", fmt.Errorf("resolve %q: %w", rev, err)
	}
	header, err := s.r.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("resolve %q: %w: %s", rev, err, s.r.stderr)
	}
	fields := strings.Fields(header)
	if len(fields) != 3 || !OID(fields[0]).Valid() {
		return "", nil
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "", fmt.Errorf("resolve %q: size %q: %w", rev, fields[2], err)
	}
	if _, err := io.CopyN(io.Discard, s.r.out, size+1); err != nil {
		return "", fmt.Errorf("resolve %q: %w", rev, err)
	}
	return OID(fields[0]), nil
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
	in := map[string]Entry{}
	var failed error
	err := s.r.next(tree, func(kind string, _ int64, body io.Reader) error {
		if kind != "tree" {
			failed = fmt.Errorf("object %s is a %s, not a tree", tree, kind)
		} else {
			failed = parseTree(body, len(tree)/2, in)
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	s.trees[tree] = in
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
	var failed error // kept aside, so that next reads the answer to its end
	err := s.r.next(oid, func(kind string, size int64, body io.Reader) error {
		if kind != "blob" {
			failed = fmt.Errorf("object %s is a %s, not a blob", oid, kind)
		} else {
			failed = each(size, body)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}
