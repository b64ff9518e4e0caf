package git

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Import makes one commit and moves its ref; doing it twice gives the same commit.
//
// Everything goes through one fast-import process, which commits nothing unless it
// has read the whole stream: a host that dies in the middle leaves the ref as it was.
// Data that comes up short fails the import.
func (d Dir) Import(ctx context.Context, op string, in Import) (made Commit, err error) {
	err = d.Ops.Do(op, func() error {
		made, err = d.importOne(ctx, in)
		return err
	})
	if err != nil {
		return Commit{}, fmt.Errorf("import %s: %w", in.Ref, err)
	}
	return made, nil
}

func (d Dir) importOne(ctx context.Context, in Import) (Commit, error) {
	root := OID("")
	if in.From != "" {
		var err error
		if root, err = d.Tree(ctx, in.From); err != nil {
			return Commit{}, err
		}
	}
	s := stream{in: in, root: root, marks: map[int]int{}}
	args := []string{"fast-import", "--quiet", "--force", "--done", "--date-format=raw"}
	cmd, stderr := d.command(ctx, Cmd{Args: args, Config: []string{"fastimport.unpackLimit=" + s.unpackLimit()}})
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Commit{}, err
	}
	send, err := s.source(cmd)
	if err != nil {
		return Commit{}, err
	}
	if err := cmd.Start(); err != nil {
		return Commit{}, d.finish(ctx, "fast-import", err, stderr)
	}
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	made, readErr := s.answers(bufio.NewReader(out))
	_, _ = io.Copy(io.Discard, out)
	sendErr := <-sent
	if err := d.finish(ctx, "fast-import", cmd.Wait(), stderr); err != nil && sendErr == nil {
		return Commit{}, err
	}
	if sendErr != nil {
		return Commit{}, sendErr
	}
	return made, readErr
}

// stream writes the fast-import language.
type stream struct {
	in    Import
	root  OID
	marks map[int]int // write → mark of its blob
}

// unpackLimit keeps our own many-blob checkpoints in packs and a person's few objects loose.
func (s *stream) unpackLimit() string {
	for _, w := range s.in.Writes {
		if w.Data != nil {
			return "1"
		}
	}
	return "100"
}

// source connects the stream to cmd. Without data it is a sealed file in memory, which git
// reads to its end even if we are gone; with data it is a pipe.
func (s *stream) source(cmd *exec.Cmd) (func() error, error) {
	if s.unpackLimit() != "1" {
		fd, err := unix.MemfdCreate("fast-import", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("create stream: %w", err)
		}
		f := os.NewFile(uintptr(fd), "fast-import")
		if err := s.commit(f); err != nil {
			f.Close()
			return nil, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			f.Close()
			return nil, err
		}
		cmd.Stdin = f
		return f.Close, nil
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() error {
		defer pipe.Close()
		w := bufio.NewWriterSize(pipe, 256<<10)
		if err := s.blobs(w); err != nil {
			return err
		}
		if err := s.commit(w); err != nil {
			return err
		}
		return w.Flush()
	}, nil
}

func (s *stream) blobs(w io.Writer) error {
	for i, write := range s.in.Writes {
		if write.Data == nil {
			continue
		}
		mark := len(s.marks) + 1
		body, size, err := write.Data()
		if err != nil {
			return fmt.Errorf("read %q: %w", write.Path, err)
		}
		fmt.Fprintf(w, "blob\nmark :%d\ndata %d\n", mark, size)
		n, err := io.Copy(w, io.LimitReader(body, size))
		body.Close()
		if err != nil {
			return fmt.Errorf("read %q: %w", write.Path, err)
		}
		if n != size {
			return fmt.Errorf("read %q: %d bytes instead of %d", write.Path, n, size)
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		s.marks[i] = mark
	}
	return nil
}

// commit writes the commit, then the questions whose answers tell what was made.
func (s *stream) commit(w io.Writer) error {
	var b bytes.Buffer
	in := s.in
	fmt.Fprintf(&b, "commit %s\nmark :%d\n", in.Ref, s.commitMark())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", in.Author, in.Committer)
	fmt.Fprintf(&b, "data %d\n%s\n", len(in.Message), in.Message)
	for i, p := range in.Parents {
		verb := "merge"
		if i == 0 {
			verb = "from"
		}
		fmt.Fprintf(&b, "%s %s\n", verb, p)
	}
	if s.root == "" {
		b.WriteString("deleteall\n")
	} else {
		fmt.Fprintf(&b, "M %s %s \"\"\n", Folder, s.root)
	}
	for _, write := range in.Writes { // deletions first: a file may take a folder's name
		if write.Data == nil && write.OID == "" {
			fmt.Fprintf(&b, "D %s\n", quote(write.Path))
		}
	}
	for i, write := range in.Writes {
		if write.Data != nil {
			fmt.Fprintf(&b, "M %s :%d %s\n", write.Mode, s.marks[i], quote(write.Path))
		} else if write.OID != "" {
			fmt.Fprintf(&b, "M %s %s %s\n", write.Mode, write.OID, quote(write.Path))
		}
	}
	b.WriteString("\n")
	for i := range in.Writes {
		if mark, ok := s.marks[i]; ok {
			fmt.Fprintf(&b, "get-mark :%d\n", mark)
		}
	}
	fmt.Fprintf(&b, "get-mark :%d\nls :%d \"\"\ndone\n", s.commitMark(), s.commitMark())
	_, err := w.Write(b.Bytes())
	return err
}

func (s *stream) commitMark() int { return len(s.in.Writes) + 1 }

// answers reads what the questions at the end of the stream brought.
func (s *stream) answers(r *bufio.Reader) (Commit, error) {
	line := func() (string, error) {
		text, err := r.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("fast-import ended early: %w", err)
		}
		return strings.TrimSuffix(text, "\n"), nil
	}
	made := Commit{Made: make([]Entry, len(s.in.Writes))}
	for i, write := range s.in.Writes {
		switch {
		case write.Data != nil:
			oid, err := line()
			if err != nil {
				return Commit{}, err
			}
			made.Made[i] = Entry{Mode: write.Mode, OID: OID(oid)}
		case write.OID != "":
			made.Made[i] = Entry{Mode: write.Mode, OID: write.OID}
		}
	}
	oid, err := line()
	if err != nil {
		return Commit{}, err
	}
	made.OID = OID(oid)
	root, err := line()
	if err != nil {
		return Commit{}, err
	}
	fields := strings.Fields(root) // 040000 tree <oid>\t, or "missing " for the empty tree
	switch {
	case len(fields) == 3:
		made.Tree = OID(fields[2])
	default:
		made.Tree = EmptyTree("sha1")
		if len(made.OID) == 64 {
			made.Tree = EmptyTree("sha256")
		}
	}
	return made, nil
}

// String is git's raw form; whole seconds, UTC.
func (s Signature) String() string {
	return fmt.Sprintf("%s <%s> %d +0000", plain(s.Name), plain(s.Email), s.At.Unix())
}

// plain drops what would end a name in a commit header.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}

// quote writes a path as fast-import's C string, so that no name can end a line.
func quote(p string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Bytes is a Write's data from memory.
func Bytes(b []byte) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	}
}

// Text is the data of a git.Write whose bytes are known.
func Text(s string) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader(s)), int64(len(s)), nil
	}
}
