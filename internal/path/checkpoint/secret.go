package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// search looks for secrets in what a change brings: every new content and every new path, links and
// both sides of renames included. What the base holds already at the same path is not reported again,
// wherever its lines are now: else nobody could edit a file with an old test key in it.
type search struct {
	host    git.Dir
	scanner *secret.Scanner
	within  time.Duration     // for all scans together
	found   bool              // anything
	names   map[string]string // paths with a secret in them, as they are shown
}

// scanTimeMax is how long all new contents of a checkpoint may take to be scanned. One may take a minute, and how many there are, and
// how slow to scan, is the agent's to choose; meanwhile it stands, and others wait.
const scanTimeMax = 5 * time.Minute

func searching(host git.Dir, scanner *secret.Scanner, within time.Duration) *search {
	if scanner == nil {
		scanner = secret.Default()
	}
	return &search{host: host, scanner: scanner, within: cmp.Or(within, scanTimeMax), names: map[string]string{}}
}

// aside is how large a blob may be to be read into memory and scanned beside others.
const aside = 1 << 20

// looked is what became of one path's scan.
type looked struct {
	blob     secret.Blob
	findings []secret.Finding
	err      error // a *secret.NotScanned
}

// changes scans every changed path. An error says that the repository could not be read, or ctx ended; what could not be
// scanned is among what is returned.
func (s *search) changes(ctx context.Context, changes []policy.Change) ([]policy.Secret, error) {
	var all []*looked
	var out []policy.Secret
	scans, cancel := context.WithTimeoutCause(ctx, s.within, fmt.Errorf("the scan of all files took longer than %s: %w", s.within, context.DeadlineExceeded))
	defer cancel()
	at := map[git.OID][]*looked{}
	var read []git.OID
	for _, c := range changes {
		if c.New.Absent() {
			if c.Fact.Special == "" && c.Fact.Unreadable == "" {
				continue // gone
			}
		} else if c.Old == c.New {
			continue // no other than before
		}
		if kind, blocked := secret.PathRule(named(c)); blocked {
			out = append(out, policy.Secret{File: c.Path, Kind: kind, Path: true})
		}
		l := &looked{blob: s.blob(c)}
		all = append(all, l)
		if fs, ok := s.scanner.Cached(l.blob); ok {
			l.findings = fs
			continue
		}
		l.blob.Missed = true
		if l.blob.ID == "" { // no content, or none that was read: the name alone
			l.blob.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
			l.findings, l.err = s.scanner.ScanBlob(scans, l.blob)
			continue
		}
		if at[c.New.OID] == nil {
			read = append(read, c.New.OID)
		}
		at[c.New.OID] = append(at[c.New.OID], l)
	}
	if err := s.read(ctx, scans, read, at); err != nil {
		return nil, fmt.Errorf("look for secrets: %w", err)
	}
	if ctx.Err() != nil { // what was not scanned for want of time is no verdict
		return nil, fmt.Errorf("look for secrets: %w", context.Cause(ctx))
	}
	for _, l := range all {
		out = append(out, s.report(l)...)
	}
	return out, nil
}

// named is a path as PathRule takes it: a submodule is a folder.
func named(c policy.Change) string {
	if c.New.Mode == git.Submodule {
		return c.Path + "/"
	}
	return c.Path
}

// blob says what of a change is scanned. What has no content of its own has no ID.
func (s *search) blob(c policy.Change) secret.Blob {
	b := secret.Blob{Path: c.Path, Link: c.New.Mode == git.Symlink, Fresh: true}
	file := c.New.Mode == git.File || c.New.Mode == git.Executable
	if !file && !b.Link || c.New.OID == unread {
		return b
	}
	b.ID, b.Size = string(c.New.OID), -1
	old := c.Old.Mode == git.File || c.Old.Mode == git.Executable
	if file && old || b.Link && c.Old.Mode == git.Symlink {
		b.BaseID = string(c.Old.OID)
		b.Base = func(ctx context.Context) ([]byte, error) { return s.base(ctx, c.Old.OID) }
	}
	return b
}

// base reads the base's version of a file; of one that is too large to be compared, its beginning.
func (s *search) base(ctx context.Context, oid git.OID) ([]byte, error) {
	r, err := s.host.Blob(ctx, oid)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, baseBytesMax))
	return content, errors.Join(err, r.Close())
}

const baseBytesMax = 32 << 20

// read scans blobs, for as long as scans lasts, as one process gives them out; small ones beside each other.
func (s *search) read(ctx, scans context.Context, oids []git.OID, at map[git.OID][]*looked) error {
	var group errgroup.Group
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	err := s.host.Blobs(ctx, oids, func(oid git.OID, size int64, r io.Reader) error {
		if size > aside && len(at[oid]) == 1 {
			s.scan(scans, at[oid][0], size, r)
			return nil
		}
		// Several paths share it, or it is small. What is too large to be scanned is not read either.
		content, err := io.ReadAll(io.LimitReader(r, baseBytesMax+1))
		if err != nil {
			return err
		}
		for _, l := range at[oid] {
			group.Go(func() error { s.scan(scans, l, size, bytes.NewReader(content)); return nil })
		}
		return nil
	})
	_ = group.Wait() // no function returns one
	return err
}

func (s *search) scan(ctx context.Context, l *looked, size int64, r io.Reader) {
	l.blob.Size = size
	l.blob.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(r), nil }
	l.findings, l.err = s.scanner.ScanBlob(ctx, l.blob)
}

// report says what was found, in a policy's words.
func (s *search) report(l *looked) []policy.Secret {
	if len(l.findings) == 0 && l.err == nil {
		return nil
	}
	s.found = true
	path := l.blob.Path
	shown := s.scanner.Name(path)
	if shown != path {
		s.names[path] = shown
	}
	var out []policy.Secret
	for _, f := range l.findings {
		inside := strings.TrimPrefix(strings.TrimPrefix(f.File, shown), "!")
		out = append(out, policy.Secret{
			File: path, Kind: f.Rule, Line: f.Line, Inside: inside,
			Name: f.Line == 0 && inside == "" && shown != path,
		})
	}
	var not *secret.NotScanned
	switch {
	case errors.As(l.err, &not):
		out = append(out, policy.Secret{File: path, Failed: not.Reason, Inside: strings.TrimPrefix(strings.TrimPrefix(not.File, shown), "!")})
	case l.err != nil:
		out = append(out, policy.Secret{File: path, Failed: "the file could not be read"})
	}
	return out
}

// shown returns a path as it is written down: no secret stands in it.
func (s *search) shown(path string) string {
	if clean, ok := s.names[path]; ok {
		path = clean
	}
	return written(path)
}

// blot takes secrets out of what violations say: paths, and where links lead.
func (s *search) blot(violations []policy.Violation) []policy.Violation {
	if !s.found {
		return violations
	}
	clean := make(map[string]string, len(s.names))
	for path := range s.names {
		clean[written(path)] = s.shown(path)
	}
	for i, v := range violations {
		if to, ok := clean[v.File]; ok {
			violations[i].File = to
		}
		violations[i].Message, violations[i].Suggestion = s.scanner.Redact(v.Message), s.scanner.Redact(v.Suggestion)
	}
	return violations
}
