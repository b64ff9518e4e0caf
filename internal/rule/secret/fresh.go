package secret

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
)

// sighting is a finding that can be told from another of the same kind, also on another line. It never leaves this package.
type sighting struct {
	Finding
	mark [sha256.Size]byte // of the secret
}

func (j *job) note(f Finding, secret string) {
	j.findings = append(j.findings, sighting{f, sha256.Sum256([]byte(secret))})
}

func unmarked(all []sighting) []Finding {
	fs := make([]Finding, len(all))
	for i, s := range all {
		fs[i] = s.Finding
	}
	return fs
}

// forget drops what the base's content holds already. If the base cannot be scanned whole, only what was
// found there until then is known to stand there: the rest is new.
func (j *job) forget(b Blob) error {
	content, err := b.Base(j.ctx)
	if err != nil {
		return err
	}
	b.Base = nil // what a mark excuses there stands there all the same
	base := job{scanner: j.scanner, ctx: j.ctx}
	if base.file, err = base.path(b.Path); err == nil && int64(len(content)) <= j.scanner.cfg.BytesMax {
		err = base.content(b, content)
	}
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	_ = err // said above
	type same struct {
		rule, file string
		mark       [sha256.Size]byte
	}
	had := map[same]int{}
	for _, s := range base.findings {
		had[same{s.Rule, s.File, s.mark}]++
	}
	slices.SortStableFunc(j.findings, func(a, b sighting) int { return cmp.Compare(a.Line, b.Line) })
	j.findings = slices.DeleteFunc(j.findings, func(s sighting) bool {
		k := same{s.Rule, s.File, s.mark}
		had[k]--
		return had[k] >= 0
	})
	return nil
}
