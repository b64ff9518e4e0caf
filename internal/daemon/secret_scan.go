package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/secret"
)

// Limits of one scan; what reaches one is named.
const (
	scanDepthMax = 128
	scanFilesMax = 5_000_000
	scanFileMax  = 32 << 20
	scanAtOnce   = 64 // files read and scanned before their findings are told
	scanTell     = time.Second
)

// treeScan is one person's scan of their own files.
type treeScan struct {
	scanner *secret.Scanner
	each    func(api.SecretLine) error
	done    api.SecretProgress
	told    time.Time
	batch   []*scanned
}

// scanned is one file that was read.
type scanned struct {
	name, blob string
	link       bool
	content    []byte
	failed     string
	findings   []secret.Finding
}

// Scan reads the files below root, or root itself if it is one, and what the last commits hold. `.git` is left out; links are not
// followed, their targets are scanned. It writes nothing.
func (r *secretRules) Scan(ctx context.Context, root string, commits int, each func(api.SecretLine) error) error {
	top, info, err := openTop(root)
	if err != nil {
		return err
	}
	defer top.Close()
	t := &treeScan{scanner: r.plain, each: each, told: time.Now()}
	if info.IsDir() {
		if err := t.rules(r, top); err != nil {
			return err
		}
		if err := t.folder(ctx, top, "", 0); err != nil {
			return err
		}
	} else if err := t.file(ctx, top, filepath.Base(root)); err != nil {
		return err
	}
	if commits > 0 {
		if err := t.history(ctx, root, info.IsDir(), commits); err != nil {
			return err
		}
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	return each(api.SecretLine{Done: &t.done})
}

// openTop opens what a person named: through links, if they named one.
func openTop(root string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(root, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		kind := problem.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = problem.Usage
		}
		return nil, nil, problem.Errorf(kind, "sallyport secret scan --help", "scan %q: %w", root, err)
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = problem.Errorf(problem.Usage, "sallyport secret scan --help", "%q is neither a file nor a folder", root)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// rules takes up the folder's own rules.
func (t *treeScan) rules(r *secretRules, top *os.File) error {
	texts := make([][]byte, 2)
	for i, name := range []string{gitleaksFile, gitleaksIgnore} {
		f, err := openBeneath(top, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(io.LimitReader(f, gitleaksBytesMax+1))
			f.Close()
		}
		if err == nil && len(text) > gitleaksBytesMax {
			err = fmt.Errorf("it is larger than %d bytes", gitleaksBytesMax)
		}
		if err != nil {
			return problem.Errorf(problem.Unavailable, "sallyport secret scan --help", "read the rules in %s: %w", name, err)
		}
		texts[i] = text
		t.done.Rules = append(t.done.Rules, name)
	}
	tight, err := r.of(texts[0], texts[1], false)
	if err != nil {
		return err
	}
	if tight.Loose() {
		t.done.Note = "a change is scanned without their allowlists until the home trusts them: trust_secret_rules: [" +
			secret.TrustDigest(texts[0], texts[1]) + "] in policy.yaml"
	}
	t.scanner, err = r.of(texts[0], texts[1], true) // a person's own files, marks in them included
	return err
}

// openBeneath opens a name in a folder and nothing else: no link, no mount, no device that answers.
func openBeneath(folder *os.File, name string) (*os.File, error) {
	fd, err := beneath.Open(int(folder.Fd()), name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// folder scans what is in a folder, in the order of names.
func (t *treeScan) folder(ctx context.Context, folder *os.File, at string, depth int) error {
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return t.fail(at, "its names cannot be read")
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := path.Join(at, e.Name())
		switch {
		case e.Name() == ".git":
		case e.Type()&fs.ModeSymlink != 0:
			var target string
			if target, err = beneath.Link(int(folder.Fd()), e.Name()); err != nil {
				err = t.fail(name, "where it leads cannot be read")
			} else {
				err = t.add(ctx, &scanned{name: name, link: true, content: []byte(target)})
			}
		case e.IsDir() && depth >= scanDepthMax:
			err = t.fail(name, "it lies more than "+strconv.Itoa(scanDepthMax)+" folders deep")
		case e.IsDir() || e.Type().IsRegular():
			err = t.entry(ctx, folder, e.Name(), name, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry opens one name, which may be something else by now.
func (t *treeScan) entry(ctx context.Context, folder *os.File, base, name string, depth int) error {
	f, err := openBeneath(folder, base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if errors.Is(err, unix.EXDEV) {
		return t.fail(name, "it lies on another file system: scan it by its own path")
	}
	if err != nil {
		return t.fail(name, "it cannot be opened")
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return t.fail(name, "it cannot be read")
	case info.IsDir():
		return t.folder(ctx, f, name, depth+1)
	case info.Mode().IsRegular():
		return t.file(ctx, f, name)
	}
	return nil
}

func (t *treeScan) file(ctx context.Context, f *os.File, name string) error {
	content, err := io.ReadAll(io.LimitReader(f, scanFileMax+1))
	switch {
	case err != nil:
		return t.fail(name, "it cannot be read")
	case len(content) > scanFileMax:
		return t.fail(name, fmt.Sprintf("it has more than %d bytes", scanFileMax))
	}
	return t.add(ctx, &scanned{name: name, content: content})
}

// history scans the blobs of the last commits, each with one of the paths that it has there.
func (t *treeScan) history(ctx context.Context, root string, folder bool, commits int) error {
	if !folder {
		root = filepath.Dir(root)
	}
	project, err := git.Open(ctx, root)
	if err != nil {
		return err
	}
	dir := project.Worktree(disk.Ops{})
	list, err := dir.Run(ctx, git.Cmd{Args: []string{"rev-list", "--objects", "--filter=object:type=blob", "--filter-provided-objects",
		"-n", strconv.Itoa(commits), "HEAD", "--"}})
	if err != nil {
		return fmt.Errorf("list what the last %d commits of %q hold: %w", commits, root, err)
	}
	var blobs []git.OID
	paths := map[git.OID]string{}
	for line := range bytes.Lines(list) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if _, seen := paths[git.OID(oid)]; !seen {
			blobs = append(blobs, git.OID(oid))
			paths[git.OID(oid)] = name
		}
	}
	return dir.Blobs(ctx, blobs, func(oid git.OID, size int64, r io.Reader) error {
		if size > scanFileMax {
			return t.fail(paths[oid], fmt.Sprintf("as %.12s it has %d bytes; the limit is %d", oid, size, scanFileMax))
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return t.add(ctx, &scanned{name: paths[oid], blob: string(oid), content: content})
	})
}

func (t *treeScan) add(ctx context.Context, s *scanned) error {
	t.done.Files++
	t.done.Bytes += int64(len(s.content))
	if t.done.Files > scanFilesMax {
		return problem.Errorf(problem.Refused, "sallyport secret scan --help", "there are more than %d files; scan folders of it one by one", scanFilesMax)
	}
	t.batch = append(t.batch, s)
	if len(t.batch) >= scanAtOnce || len(s.content) > 1<<20 {
		return t.flush(ctx)
	}
	return nil
}

// flush scans what was read and tells what was found, in order.
func (t *treeScan) flush(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(2)
	for _, s := range t.batch {
		group.Go(func() error { s.scan(ctx, t.scanner); return nil })
	}
	_ = group.Wait() // no function returns one
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, s := range t.batch {
		for _, f := range s.findings {
			if err := t.each(api.SecretLine{Finding: &api.SecretFinding{File: readable(f.File), Line: f.Line, Kind: f.Rule, Blob: s.blob}}); err != nil {
				return err
			}
		}
		if s.failed != "" {
			if err := t.fail(s.name, s.failed); err != nil {
				return err
			}
		}
	}
	t.batch = t.batch[:0]
	if time.Since(t.told) < scanTell {
		return nil
	}
	t.told = time.Now()
	so := t.done
	return t.each(api.SecretLine{Progress: &so})
}

// scan looks at one file. It is its own base: marks and lists that excuse count as they stand.
func (s *scanned) scan(ctx context.Context, scanner *secret.Scanner) {
	var err error
	s.findings, err = scanner.ScanBlob(ctx, secret.Blob{
		Path: s.name, Link: s.link, Size: int64(len(s.content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.content)), nil },
		Base: func(context.Context) ([]byte, error) { return s.content, nil },
	})
	var not *secret.NotScanned
	if errors.As(err, &not) {
		s.failed = not.Reason
	} else if err != nil {
		s.failed = "it could not be scanned"
	}
}

func (t *treeScan) fail(name, reason string) error {
	if name == "" {
		name = "."
	}
	return t.each(api.SecretLine{Failed: &api.SecretFailure{File: readable(t.scanner.Name(name)), Reason: reason}})
}

// readable is a path that JSON can hold.
func readable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return inert.Line(name)
}
