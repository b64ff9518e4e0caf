package checkpoint

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// Uncommitted looks for secrets in what a person has not committed on head, before anything of it is kept or shown: what head
// holds already at the same path is not reported. The rules say which paths may hold secrets by custom.
func Uncommitted(ctx context.Context, host git.Dir, head git.OID, writes []git.Write, rules policy.Rules, scanner *secret.Scanner) ([]policy.Violation, error) {
	browser, err := host.Browse(ctx, head)
	if err != nil {
		return nil, err
	}
	defer browser.Close()
	s := searching(host, scanner, 0)
	scans, cancel := context.WithTimeoutCause(ctx, s.within, fmt.Errorf("the scan of all files took longer than %s: %w", s.within, context.DeadlineExceeded))
	defer cancel()
	in := policy.Input{Rules: policy.Rules{AllowSecretPaths: rules.AllowSecretPaths}, Base: browser.Entry, Names: browser.Names}
	for _, w := range writes {
		if w.Data == nil {
			continue // gone
		}
		c := policy.Change{Edit: git.Edit{Path: w.Path, New: git.Entry{Mode: w.Mode, OID: unread}}, Fact: policy.Fact{HardLinks: 1}}
		if old, ok := browser.Entry(w.Path); ok && old.Mode != git.Folder {
			c.Old = old
		}
		in.Changes = append(in.Changes, c)
		if kind, blocked := secret.PathRule(w.Path); blocked && c.Old.Absent() {
			in.Secrets = append(in.Secrets, policy.Secret{File: w.Path, Kind: kind, Path: true})
		}
		l := &looked{blob: s.theirs(c, w)}
		l.findings, l.err = s.scanner.ScanBlob(scans, l.blob)
		in.Secrets = append(in.Secrets, s.report(l)...)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("look for secrets: %w", context.Cause(ctx))
	}
	only := slices.DeleteFunc(policy.Validate(in), func(v policy.Violation) bool {
		return v.Constraint != policy.SecretFound && v.Constraint != policy.SecretPath && v.Constraint != policy.NotScanned
	})
	return s.blot(only), browser.Err()
}

// theirs is a file of a person's work tree, to be scanned beside what head has at its path.
func (s *search) theirs(c policy.Change, w git.Write) secret.Blob {
	b := secret.Blob{Path: w.Path, Link: w.Mode == git.Symlink, Size: -1, Fresh: true}
	b.Open = func(context.Context) (io.ReadCloser, error) {
		r, _, err := w.Data()
		return r, err
	}
	if old := c.Old.Mode; old == git.File || old == git.Executable || b.Link && old == git.Symlink {
		b.BaseID = string(c.Old.OID)
		b.Base = func(ctx context.Context) ([]byte, error) { return s.base(ctx, c.Old.OID) }
	}
	return b
}
