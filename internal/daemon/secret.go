package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

const (
	gitleaksFile   = ".gitleaks.toml"
	gitleaksIgnore = ".gitleaksignore"
	// gitleaksBytesMax is of either; a .gitleaks.toml that is larger is refused by the scanner.
	gitleaksBytesMax = 512 << 10

	// scansKept is how many scans of blobs are remembered, for all repositories and rule sets together (SV-073).
	scansKept = 100_000
	// scannersKept is how many rule sets are kept ready: making one takes tens of milliseconds.
	scannersKept = 16
)

// lineBytesMax is how much of what a program said stands in a line of a report.
const lineBytesMax = 300

// secretRules makes one scanner per rule set and keeps it, and one cache for all of them.
type secretRules struct {
	plain *secret.Scanner // the built-in rules, and what the host's environment holds
	known []secret.Value
	held  *secret.Held // keys of open changes
	cache secret.Cache

	mu    sync.Mutex
	ready map[[sha256.Size]byte]*secret.Scanner
}

func newSecretRules(environ []string, meter *metric.Set) (*secretRules, error) {
	r := &secretRules{known: secret.Environment(environ), held: &secret.Held{}, cache: measured{secret.NewMemory(scansKept), meter},
		ready: map[[sha256.Size]byte]*secret.Scanner{}}
	var err error
	r.plain, err = secret.New(secret.Config{Known: r.known, Held: r.held, Cache: r.cache})
	return r, err
}

// at returns the scanner of the rules as they stand at a commit: what a change writes to .gitleaks.toml counts from the next base on. They
// may loosen the built-in ones only if the home trusts them; else note says that they do not, and how they would.
func (r *secretRules) at(ctx context.Context, s standing, trusted []string) (scanner *secret.Scanner, note string, err error) {
	toml, err := s.file(ctx, gitleaksFile, gitleaksBytesMax)
	if err != nil {
		return nil, "", err
	}
	ignore, err := s.file(ctx, gitleaksIgnore, gitleaksBytesMax)
	if err != nil {
		return nil, "", err
	}
	if len(ignore) > gitleaksBytesMax {
		return nil, "", problem.Errorf(problem.Refused, s.mend(gitleaksIgnore), "%s at %.12s is larger than %d bytes", gitleaksIgnore,
			s.commit, gitleaksBytesMax)
	}
	digest := secret.TrustDigest(toml, ignore)
	if scanner, err = r.of(toml, ignore, slices.Contains(trusted, digest)); err != nil {
		return nil, "", problem.Errorf(problem.KindOf(err), s.mend(gitleaksFile), "%w", err)
	}
	if scanner.Loose() {
		note = fmt.Sprintf("allowlists and disabled rules in the repository's %s and %s do not count until the home trusts them: trust_secret_rules: [%s] in policy.yaml", gitleaksFile, gitleaksIgnore, digest)
	}
	return scanner, note, nil
}

func (r *secretRules) of(toml, ignore []byte, trusted bool) (*secret.Scanner, error) {
	if !trusted && len(toml) == 0 && len(ignore) == 0 {
		return r.plain, nil
	}
	both := sha256.New()
	for _, text := range [][]byte{toml, ignore} {
		one := sha256.Sum256(text)
		both.Write(one[:])
	}
	fmt.Fprint(both, trusted)
	key := [sha256.Size]byte(both.Sum(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.ready[key]; s != nil {
		return s, nil
	}
	s, err := secret.New(secret.Config{Toml: toml, Ignore: ignore, Trusted: trusted, Known: r.known, Held: r.held, Cache: r.cache})
	if err != nil {
		return nil, err
	}
	if len(r.ready) >= scannersKept {
		clear(r.ready)
	}
	r.ready[key] = s
	return s, nil
}

// short is the beginning of what a program said, in one line and without secrets: one at whose middle it ends is taken out whole.
func (r *secretRules) short(text string) string {
	return inert.Short(r.plain.Redact(text), lineBytesMax)
}

// clean is a log without secrets: each write is one record.
type clean struct {
	to      io.Writer
	scanner *secret.Scanner
}

func (c clean) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.to, c.scanner.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
