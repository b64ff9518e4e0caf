package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
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

// reader is one `cat-file --batch` process.
type reader struct {
	dir    Dir
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

func (d Dir) reader(ctx context.Context) (*reader, error) {
	cmd, stderr := d.command(ctx, Cmd{Args: []string{"cat-file", "--batch"}})
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, d.finish(ctx, "cat-file", err, stderr)
	}
	return &reader{dir: d, cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10), stderr: stderr}, nil
}

func (r *reader) close() {
	r.in.Close()
	_, _ = io.Copy(io.Discard, r.out)
	_ = r.cmd.Wait() // it only reads; what it says at the end changes nothing that was read
}

// next asks for one object and hands its bytes to each, which need not read all of them.
func (r *reader) next(oid OID, each func(kind string, size int64, body io.Reader) error) error {
	if _, err := io.WriteString(r.in, string(oid)+"\n"); err != nil {
		return fmt.Errorf("read object %s: %w", oid, err)
	}
	header, err := r.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read object %s: %w: %s", oid, err, r.stderr)
	}
	fields := strings.Fields(header)
	if len(fields) != 3 {
		return problem.Errorf(problem.NotFound, r.dir.Command("fsck"), "object %s is missing", oid)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("read object %s: size %q: %w", oid, fields[2], err)
	}
	body := &io.LimitedReader{R: r.out, N: size}
	if err := each(fields[1], size, body); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("read object %s: %w", oid, err)
	}
	if _, err := r.out.Discard(1); err != nil {
		return fmt.Errorf("read object %s: %w", oid, err)
	}
	return nil
}

// Blobs reads many blobs through one process, in order; each need not read all.
func (d Dir) Blobs(ctx context.Context, oids []OID, each func(oid OID, size int64, r io.Reader) error) error {
	if len(oids) == 0 {
		return nil
	}
	r, err := d.reader(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	for _, oid := range oids {
		err := r.next(oid, func(kind string, size int64, body io.Reader) error {
			if kind != "blob" {
				return fmt.Errorf("object %s is a %s, not a blob", oid, kind)
			}
			return each(oid, size, body)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Blob opens a blob's bytes; closing it ends the process that reads.
func (d Dir) Blob(ctx context.Context, oid OID) (io.ReadCloser, error) {
	cmd, stderr := d.command(ctx, Cmd{Args: []string{"cat-file", "blob", string(oid)}})
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, d.finish(ctx, "cat-file", err, stderr)
	}
	return &blob{Reader: out, end: func() error { return d.finish(ctx, "cat-file", cmd.Wait(), stderr) }}, nil
}

type blob struct {
	io.Reader
	end  func() error
	done bool
}

// Read reports a failure of git's at the end instead of a short file.
func (b *blob) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && !b.done {
		b.done = true
		if failed := b.end(); failed != nil {
			return n, failed
		}
	}
	return n, err
}

func (b *blob) Close() error {
	if b.done {
		return nil
	}
	_, _ = io.Copy(io.Discard, b.Reader)
	b.done = true
	return b.end()
}

// Resolve returns the object a revision names, "" if there is none.
func (d Dir) Resolve(ctx context.Context, rev string) (OID, error) {
	out, err := d.Run(ctx, Cmd{Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", rev}})
	var f *Failure
	if errors.As(err, &f) && f.Code == 1 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return OID(bytes.TrimSpace(out)), nil
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
	root, err := d.Tree(ctx, treeish)
	if err != nil {
		return nil, err
	}
	r, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	folders := map[string]map[string]Entry{}
	var folder func(name string) (map[string]Entry, error)
	folder = func(name string) (map[string]Entry, error) {
		if f, ok := folders[name]; ok {
			return f, nil
		}
		oid := root
		if name != "" {
			up, last := split(name)
			in, err := folder(up)
			if err != nil {
				return nil, err
			}
			oid = ""
			if e := in[last]; e.Mode == Folder {
				oid = e.OID
			}
		}
		f := map[string]Entry{}
		if oid != "" {
			err := r.next(oid, func(_ string, size int64, body io.Reader) error { return parseTree(body, len(root)/2, f) })
			if err != nil {
				return nil, err
			}
		}
		folders[name] = f
		return f, nil
	}
	out := make([]Entry, len(paths))
	for i, p := range paths {
		up, last := split(p)
		in, err := folder(up)
		if err != nil {
			return nil, err
		}
		out[i] = in[last]
	}
	return out, nil
}

// split cuts a path into its folder ("" = top) and its last name.
func split(p string) (folder, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return "", p
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
		mode := Mode(raw[:space])
		if len(mode) == 5 {
			mode = "0" + mode
		}
		if mode == "100664" { // written by git versions of 2005; means an ordinary file
			mode = File
		}
		into[string(raw[space+1:nul])] = Entry{Mode: mode, OID: OID(fmt.Sprintf("%x", raw[nul+1:nul+1+hashLen]))}
		raw = raw[nul+1+hashLen:]
	}
	return nil
}

// Names returns the entries of one folder of a tree; nil if there is no such folder.
func (d Dir) Names(ctx context.Context, treeish OID, folder string) (map[string]Entry, error) {
	oid := treeish
	if folder != "" {
		found, err := d.Lookup(ctx, treeish, []string{folder})
		if err != nil || found[0].Mode != Folder {
			return nil, err
		}
		oid = found[0].OID
	} else {
		var err error
		if oid, err = d.Tree(ctx, treeish); err != nil {
			return nil, err
		}
	}
	r, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	f := map[string]Entry{}
	err = r.next(oid, func(_ string, _ int64, body io.Reader) error { return parseTree(body, len(oid)/2, f) })
	return f, err
}

// List walks every blob, link and submodule of a tree in path order; size is -1 for what is no blob.
func (d Dir) List(ctx context.Context, treeish OID, each func(path string, e Entry, size int64) error) error {
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := d.Run(ctx, Cmd{Args: []string{"ls-tree", "-r", "-z", "-l", "--full-tree", string(treeish)}, Stdout: pw})
		pw.CloseWithError(err)
		done <- err
	}()
	err := listed(bufio.NewReaderSize(pr, 64<<10), each)
	pr.CloseWithError(err)
	if failed := <-done; failed != nil && err == nil {
		err = failed
	}
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
	raw, err := from.Run(ctx, Cmd{Args: []string{"cat-file", "commit", string(commit)}})
	if err != nil {
		return fmt.Errorf("read %.12s: %w", commit, err)
	}
	made, err := d.writeCommit(ctx, op, string(raw))
	if err == nil && made != commit {
		err = fmt.Errorf("it is %.12s here", made)
	}
	if err != nil {
		return fmt.Errorf("take %.12s over: %w", commit, err)
	}
	return nil
}

func (d Dir) writeCommit(ctx context.Context, op, raw string) (OID, error) {
	out, err := d.Do(ctx, op, Cmd{Args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, Stdin: strings.NewReader(raw)})
	return OID(strings.TrimSpace(string(out))), err
}

// Upon returns the commit that has the tree, the author and the message of another and base as its only parent: that one itself, if it is so.
func (d Dir) Upon(ctx context.Context, op string, commit, base OID) (OID, error) {
	raw, err := d.Run(ctx, Cmd{Args: []string{"cat-file", "commit", string(commit)}})
	if err != nil {
		return "", fmt.Errorf("read %.12s: %w", commit, err)
	}
	head, message, _ := strings.Cut(string(raw), "\n\n")
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
	if b.String() == string(raw) {
		return commit, nil
	}
	made, err := d.writeCommit(ctx, op, b.String())
	if err != nil {
		return "", fmt.Errorf("put the tree of %.12s upon %.12s: %w", commit, base, err)
	}
	return made, nil
}
