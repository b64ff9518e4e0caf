package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sallyport/internal/base/problem"
)

// EmptyTree is the id of the tree without entries in an object format.
func EmptyTree(objectFormat string) OID {
	if objectFormat == "sha256" {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// none is the all-zero id that git prints for absence, as long as o.
func none(length int) OID { return OID(strings.Repeat("0", length)) }

// Valid reports whether o looks like a full object id.
func (o OID) Valid() bool {
	return (len(o) == 40 || len(o) == 64) && strings.Trim(string(o), "0123456789abcdef") == ""
}

// Format is the object format that an id is of: sha1 or sha256.
func (o OID) Format() string {
	if len(o) == 64 {
		return "sha256"
	}
	return "sha1"
}

// Blobs reads many blobs through one process, in order; each need not read all.
func (d Dir) Blobs(ctx context.Context, oids []OID, each func(oid OID, size int64, r io.Reader) error) error {
	if len(oids) == 0 {
		return nil
	}
	s := d.Session(ctx)
	defer s.Close()
	return s.Blobs(oids, each)
}

// Blob opens a blob's bytes; close it.
func (d Dir) Blob(ctx context.Context, oid OID) (io.ReadCloser, error) {
	r := d.reader(ctx)
	h, body, err := r.open(string(oid))
	if err == nil && h.kind != "blob" {
		err = r.shut(body, fmt.Errorf("object %s is a %s, not a blob", oid, h.kind))
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return &blob{body, r}, nil
}

type blob struct {
	*answer
	r *reader
}

// Close returns no error for what was left unread.
func (b *blob) Close() error {
	if b.r == nil {
		return nil
	}
	early := errors.New("not read to its end")
	err := b.r.shut(b.answer, early)
	b.r.close()
	b.r = nil
	if errors.Is(err, early) {
		return b.failed
	}
	return err
}

// Resolve returns the object a revision names, "" if there is none.
func (d Dir) Resolve(ctx context.Context, rev string) (OID, error) {
	r := d.reader(ctx)
	defer r.close()
	return r.resolve(rev)
}

// Head returns the commit that HEAD names; "" if there is none. Where the branch is a file of its own, as it is once it has moved, no
// process is started.
func (d Dir) Head(ctx context.Context) (OID, error) {
	head, err := os.ReadFile(filepath.Join(d.Path, "HEAD"))
	if branch, ok := strings.CutPrefix(strings.TrimSuffix(string(head), "\n"), "ref: refs/heads/"); err == nil && ok && filepath.IsLocal(branch) {
		text, err := os.ReadFile(filepath.Join(d.Path, "refs", "heads", branch))
		if oid := OID(strings.TrimSuffix(string(text), "\n")); err == nil && oid.Valid() {
			return oid, nil
		}
	}
	return d.Resolve(ctx, "HEAD")
}

// Tree returns the tree of a commit.
func (d Dir) Tree(ctx context.Context, commit OID) (OID, error) {
	oid, err := d.Resolve(ctx, string(commit)+"^{tree}")
	if err == nil && oid == "" {
		err = problem.Errorf(problem.NotFound, d.Command("fsck"), "commit %s is missing", commit)
	}
	return oid, err
}

// Lookup returns the entries at paths, in order; absent ones are zero. Its cost grows
// with the folders that the paths lie in, not with the tree.
func (d Dir) Lookup(ctx context.Context, treeish OID, paths []string) ([]Entry, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	s := d.Session(ctx)
	defer s.Close()
	root, err := s.tree(treeish)
	if err != nil {
		return nil, err
	}
	return s.Lookup(root, paths)
}

// parseTree reads a raw tree object whose ids have hashLen bytes.
func parseTree(body io.Reader, hashLen int, into map[string]Entry) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	for len(raw) > 0 {
		space := bytes.IndexByte(raw, ' ')
		nul := bytes.IndexByte(raw, 0)
		if space < 0 || nul < space || len(raw) < nul+1+hashLen {
			return fmt.Errorf("tree object is malformed")
		}
		mode, err := parseMode(string(raw[:space]))
		if err != nil {
			return err
		}
		name := string(raw[space+1 : nul])
		if _, twice := into[name]; twice {
			return fmt.Errorf("tree object names %q twice", name)
		}
		into[name] = Entry{Mode: mode, OID: OID(hex.EncodeToString(raw[nul+1 : nul+1+hashLen]))}
		raw = raw[nul+1+hashLen:]
	}
	return nil
}

// parseMode takes what a tree has for the mode that git takes it for: a kind with other rights is that kind, a kind that is none a submodule.
func parseMode(octal string) (Mode, error) {
	const kinds, folder, symlink, file, executable = 0o170000, 0o040000, 0o120000, 0o100000, 0o100
	n, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		return "", fmt.Errorf("tree object is malformed: mode %q", octal)
	}
	switch kind := n & kinds; {
	case kind == folder:
		return Folder, nil
	case kind == symlink:
		return Symlink, nil
	case kind == file && n&executable != 0:
		return Executable, nil
	case kind == file:
		return File, nil
	}
	return Submodule, nil
}

// Names returns the entries of one folder of a tree; nil if there is no such folder.
func (d Dir) Names(ctx context.Context, treeish OID, folder string) (map[string]Entry, error) {
	s := d.Session(ctx)
	defer s.Close()
	root, err := s.tree(treeish)
	if err != nil {
		return nil, err
	}
	if folder == "" {
		return s.entries(root)
	}
	found, err := s.Lookup(root, []string{folder})
	if err != nil || found[0].Mode != Folder {
		return nil, err
	}
	return s.entries(found[0].OID)
}

// List walks every blob, link and submodule of a tree in path order; size is -1 for what is no blob.
func (d Dir) List(ctx context.Context, treeish OID, each func(path string, e Entry, size int64) error) error {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := d.Run(ctx, Cmd{Args: []string{"ls-tree", "-r", "-z", "-l", "--full-tree", string(treeish)}, Stdout: pw})
		pw.CloseWithError(err) // who reads ends with that
	}()
	err := listed(bufio.NewReaderSize(pr, 64<<10), each)
	pr.CloseWithError(err)
	<-done
	return err
}

func listed(r *bufio.Reader, each func(path string, e Entry, size int64) error) error {
	for {
		slice, err := r.ReadSlice(0)
		record := string(slice)
		if errors.Is(err, io.EOF) && record == "" {
			return nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return problem.Errorf(problem.Refused, "", "list tree: a path has more than %d bytes: %.100q…", len(slice), slice)
		}
		if err != nil {
			return fmt.Errorf("list tree: %w", err)
		}
		meta, path, ok := strings.Cut(strings.TrimSuffix(record, "\x00"), "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) != 4 {
			return fmt.Errorf("list tree: unexpected record %q", record)
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			size = -1
		}
		if err := each(path, Entry{Mode: Mode(fields[0]), OID: OID(fields[2])}, size); err != nil {
			return err
		}
	}
}

// Adopt writes a commit of another git directory, and that object alone.
func (d Dir) Adopt(ctx context.Context, op string, from Dir, commit OID) error {
	raw, err := from.commit(ctx, commit)
	if err != nil {
		return fmt.Errorf("read %.12s: %w", commit, err)
	}
	made, err := d.writeCommit(ctx, op, raw)
	if err == nil && made != commit {
		err = fmt.Errorf("it is %.12s here", made)
	}
	if err != nil {
		return fmt.Errorf("take %.12s over: %w", commit, err)
	}
	return nil
}

// commit reads a commit as git stores it.
func (d Dir) commit(ctx context.Context, commit OID) (string, error) {
	r := d.reader(ctx)
	defer r.close()
	var raw []byte
	err := r.next(commit, func(kind string, _ int64, body io.Reader) (err error) {
		if kind != "commit" {
			return fmt.Errorf("object %s is a %s, not a commit", commit, kind)
		}
		raw, err = io.ReadAll(body)
		return err
	})
	return string(raw), err
}

func (d Dir) writeCommit(ctx context.Context, op, raw string) (OID, error) {
	out, err := d.Do(ctx, op, Cmd{Args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, Stdin: strings.NewReader(raw)})
	return OID(strings.TrimSpace(string(out))), err
}

// Upon returns the commit that has the tree, the author and the message of another and base as its only parent: that one itself, if it is so.
func (d Dir) Upon(ctx context.Context, op string, commit, base OID) (OID, error) {
	raw, err := d.commit(ctx, commit)
	if err != nil {
		return "", fmt.Errorf("read %.12s: %w", commit, err)
	}
	head, message, _ := strings.Cut(raw, "\n\n")
	var b strings.Builder
	for line := range strings.Lines(head + "\n") {
		if strings.HasPrefix(line, "parent ") {
			continue
		}
		b.WriteString(line)
		if strings.HasPrefix(line, "tree ") {
			fmt.Fprintf(&b, "parent %s\n", base)
		}
	}
	b.WriteString("\n" + message)
	if b.String() == raw {
		return commit, nil
	}
	made, err := d.writeCommit(ctx, op, b.String())
	if err != nil {
		return "", fmt.Errorf("put the tree of %.12s upon %.12s: %w", commit, base, err)
	}
	return made, nil
}
