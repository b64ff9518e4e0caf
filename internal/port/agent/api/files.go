package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	linesMax     = 2000     // of one read
	lineMax      = 2000     // bytes of a line that are shown
	readBytesMax = 64 << 20 // that a read looks at
	editBytesMax = 4 << 20  // of a file that is edited
	entriesMax   = 1000     // of a list
	depthMax     = 8
	pathBytesMax = 4096
)

// within is a path as the root takes it. Absolute paths mean what they say.
func (w *workshop) within(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case len(name) > pathBytesMax || strings.ContainsRune(name, 0):
		return "", errors.New("the path is empty or not valid")
	case filepath.IsAbs(name):
		rel, err := filepath.Rel(w.dir, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, errOutside)
		}
		name = rel
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: %w", clip(name, 200), errOutside)
	}
	return name, nil
}

var errOutside = errors.New("this path is outside of the workspace; to look at other files use the tool run")

// plain says what went wrong with a file, without the words of the system around it.
func plain(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", name)
	case errors.Is(err, errOutside):
		return err
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		if strings.Contains(of.Err.Error(), "escapes") {
			return fmt.Errorf("%s leads through a link: %w", name, errOutside)
		}
		return fmt.Errorf("%s: %w", name, of.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// open opens a regular file; it never waits for the other end of a pipe.
func (w *workshop) open(name string, flag int) (*os.File, error) {
	f, err := w.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, plain(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
		if info.IsDir() {
			err = fmt.Errorf("%s is a folder; use list_files", name)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readFile(_ context.Context, w *workshop, a values) (string, error) {
	name, err := w.within(a.text("path"))
	if err != nil {
		return "", err
	}
	f, err := w.open(name, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	first, count := max(a.number("offset"), 1), a.number("limit")
	if count == 0 || count > linesMax {
		count = linesMax
	}
	r := bufio.NewReaderSize(io.LimitReader(f, readBytesMax), 64<<10)
	head, _ := r.Peek(8000)
	if bytes.IndexByte(head, 0) >= 0 {
		return "", fmt.Errorf("%s is binary", name)
	}
	var out strings.Builder
	number, shown := 0, 0
	for shown < count && out.Len() < resultMax-lineMax {
		text, err := cutLine(r)
		if err != nil && text == "" {
			return finished(&out, name, number, first)
		}
		if number++; number < first {
			continue
		}
		fmt.Fprintf(&out, "%s\n", text)
		shown++
	}
	if _, err := r.Peek(1); err != nil {
		return out.String(), nil
	}
	fmt.Fprintf(&out, "(there is more: go on with offset %d)", number+1)
	return out.String(), nil
}

func finished(out *strings.Builder, name string, lines, first int) (string, error) {
	switch {
	case lines == 0:
		return "(the file is empty)", nil
	case lines < first:
		return "", fmt.Errorf("%s has %d lines", name, lines)
	}
	return out.String(), nil
}

// cutLine reads a line without its end; of a long one the beginning.
func cutLine(r *bufio.Reader) (string, error) {
	var text []byte
	over := 0
	for {
		piece, err := r.ReadSlice('\n')
		room := max(lineMax-len(text), 0)
		over += max(len(piece)-room, 0)
		text = append(text, piece[:min(room, len(piece))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if over > 1 {
			return fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(string(text), ""), over), err
		}
		return strings.TrimSuffix(string(text), "\n"), err
	}
}

func listFiles(ctx context.Context, w *workshop, a values) (string, error) {
	name := "."
	if a.text("path") != "" {
		var err error
		if name, err = w.within(a.text("path")); err != nil {
			return "", err
		}
	}
	depth := a.number("depth")
	if depth == 0 {
		depth = 2
	}
	depth = min(depth, depthMax)
	var out strings.Builder
	count := 0
	err := fs.WalkDir(w.root.FS(), filepath.ToSlash(name), func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == name:
			return plain(name, err)
		case err != nil:
			fmt.Fprintf(&out, "%s: cannot be read\n", p)
			return nil
		case p == name && d.IsDir():
			return nil
		case d.Name() == ".git":
			return skip(d)
		}
		if count++; count > entriesMax || out.Len() > resultMax-pathBytesMax {
			fmt.Fprintf(&out, "(there is more; list a folder below, or search)\n")
			return fs.SkipAll
		}
		out.WriteString(p)
		switch {
		case d.IsDir():
			out.WriteByte('/')
		case d.Type()&fs.ModeSymlink != 0:
			out.WriteString(" (a link)")
		}
		out.WriteByte('\n')
		if d.IsDir() && levels(name, p) >= depth {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && count == 0 {
		return "(the folder is empty)", nil
	}
	return out.String(), err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// levels is how deep p lies below top.
func levels(top, p string) int {
	rest := strings.TrimPrefix(p, top)
	if top == "." {
		rest = "/" + p
	}
	return strings.Count(path.Clean(rest), "/")
}

func writeFile(_ context.Context, w *workshop, a values) (string, error) {
	name, err := w.target(a.text("path"))
	if err != nil {
		return "", err
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return "", plain(dir, err)
		}
	}
	content := a.text("content")
	if err := w.put(name, content, os.O_CREATE); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s has %d bytes now.", name, len(content)), nil
}

// target is a path that may be written: a link is not written through.
func (w *workshop) target(path string) (string, error) {
	name, err := w.within(path)
	if err != nil {
		return "", err
	}
	if name == "." {
		return "", errors.New("the workspace is a folder")
	}
	if info, err := w.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		to, _ := w.root.Readlink(name)
		return "", fmt.Errorf("%s is a link to %s; write that, or remove the link first", name, clip(to, 200))
	}
	return name, nil
}

// put writes in place: a file beside it could stay there when somebody ends us.
func (w *workshop) put(name, content string, flag int) error {
	f, err := w.open(name, os.O_WRONLY|flag)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(content), 0)
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		return plain(name, err)
	}
	return nil
}

func editFile(_ context.Context, w *workshop, a values) (string, error) {
	name, err := w.target(a.text("path"))
	if err != nil {
		return "", err
	}
	f, err := w.open(name, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, editBytesMax+1))
	f.Close()
	if err != nil {
		return "", plain(name, err)
	}
	if len(raw) > editBytesMax {
		return "", fmt.Errorf("%s is too large to be edited so; use run", name)
	}
	old, text := a.text("old"), string(raw)
	switch n := strings.Count(text, old); {
	case old == "":
		return "", errors.New("the old text is empty; to make a file use write_file")
	case n == 0:
		return "", fmt.Errorf("%s does not hold the old text: read it again, spaces count", name)
	case n > 1 && !a.yes("all"):
		return "", fmt.Errorf("%s holds the old text %d times: give more of what stands around it, or all", name, n)
	default:
		if err := w.put(name, strings.ReplaceAll(text, old, a.text("new")), 0); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s was changed in %d place(s).", name, n), nil
	}
}
