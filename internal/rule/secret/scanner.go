package secret

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zricethezav/gitleaks/v8/config"
)

// Config says how to scan. Its zero value is good.
type Config struct {
	// Toml and Ignore are `.gitleaks.toml` and `.gitleaksignore` as they stand at the base; nil: there is none. What
	// a change writes there counts from the next base on.
	Toml   []byte
	Ignore []byte

	// Trusted lets Toml, Ignore and marks in files loosen what the built-in rules find. Else they only tighten: allowlists, disabled
	// rules and other words for a rule that is there already are left out (Loose says so).
	Trusted bool

	BytesMax int64         // of one blob; 32 MiB if 0
	TimeMax  time.Duration // for one blob; a minute if 0
	Unpack   Unpack        // limits of archives
	Known    []Value       // secrets that the host knows: each is found and redacted wherever it stands, whatever it looks like
	Held     *Held         // secrets that come and go; nil: none
	Cache    Cache         // nil: nothing is kept
}

// Blob is one file of a tree.
type Blob struct {
	ID   string // object id, for the cache; "": not cached
	Path string // relative, with slashes
	Link bool   // a symlink: the content is its target
	Size int64  // bytes; less than 0: not known
	Open func(context.Context) (io.ReadCloser, error)

	// Base gives the path's content at the base, and BaseID its object id; nil and "" if there is none. An inline
	// `gitleaks:allow` and a `.gitleaksignore` entry count only for lines that stand in it.
	Base   func(context.Context) ([]byte, error)
	BaseID string

	// Fresh leaves out what the base's content holds already: as often as a secret stands there, wherever its lines
	// are now, it is not found again. A file with an old test key in it can be edited elsewhere.
	Fresh bool

	Missed bool // Cached was asked and knew nothing: it is not asked again
}

// Scanner finds secrets. It never changes after it is made, but for what Config.Held holds; all methods may be called at once.
type Scanner struct {
	sieve  *sieve
	ignore ignored
	cfg    Config
	known  []string
	loose  bool
	digest string
	cached string // digest, and which secrets are known
}

// New makes a scanner. That of a base's own `.gitleaks.toml` takes some tens of milliseconds: make one per rule set.
//
// Errors: refused, if the base's `.gitleaks.toml` cannot be used.
func New(cfg Config) (*Scanner, error) {
	rules, loose, err := rulesOf(cfg)
	if err != nil {
		return nil, err
	}
	cfg.BytesMax = cmp.Or(cfg.BytesMax, 32<<20)
	cfg.TimeMax = cmp.Or(cfg.TimeMax, time.Minute)
	cfg.Unpack = cfg.Unpack.orDefault()
	s := &Scanner{sieve: rules, cfg: cfg, digest: digest(cfg)}
	ignore := readIgnore(cfg.Ignore)
	s.loose = !cfg.Trusted && (loose || len(ignore) > 0)
	if cfg.Trusted {
		s.ignore = ignore
	}
	s.known, s.cached = revealed(cfg.Known), s.digest
	if len(s.known) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(s.known, "\x00")))
		s.cached += " " + hex.EncodeToString(sum[:])
	}
	return s, nil
}

// rulesOf makes the sieve of a configuration.
func rulesOf(cfg Config) (s *sieve, loose bool, err error) {
	if len(cfg.Toml) == 0 {
		return builtIn(), false, nil
	}
	rules, loose, err := loadRules(cfg.Toml, cfg.Trusted)
	if err != nil {
		return nil, false, err
	}
	return loaded(rules), loose, nil
}

// Default is the scanner of the built-in rules alone: no base, no cache, no known secrets. It is made once, when first asked for.
var Default = sync.OnceValue(func() *Scanner {
	s, err := New(Config{})
	if err != nil {
		panic("the built-in rules cannot be used: " + err.Error()) // held by every test
	}
	return s
})

// digest names everything that decides what is found.
func digest(cfg Config) string {
	h := sha256.New()
	part := func(b []byte) {
		fmt.Fprintf(h, "%d:", len(b))
		h.Write(b)
	}
	part([]byte(version))
	part([]byte(config.DefaultConfig))
	part(cfg.Toml)
	part(cfg.Ignore)
	for _, r := range ownRules {
		part([]byte(r.id + " " + r.expression))
	}
	fmt.Fprint(h, cfg.BytesMax, cfg.Unpack, cfg.Trusted)
	return hex.EncodeToString(h.Sum(nil))
}

// Digest names the rule set, known secrets left out: the same blob under the same digest has the same findings.
func (s *Scanner) Digest() string { return s.digest }

// Loose says whether the base's files would have loosened the rules, and did not: they are not trusted.
func (s *Scanner) Loose() bool { return s.loose }

// Scan returns the secrets in size bytes (less than 0: not known) of r, which stand at path name, and in that path. There is no base:
// no inline allow counts.
//
// Errors: a *NotScanned, which wraps ErrNotScanned, whenever the scan could not be finished. The findings with it are true but not all.
func (s *Scanner) Scan(ctx context.Context, name string, r io.Reader, size int64) ([]Finding, error) {
	return s.ScanBlob(ctx, Blob{Path: name, Size: size, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(r), nil }})
}

// ScanBlob is Scan for a file of a tree. Its findings are kept if the blob has an ID.
func (s *Scanner) ScanBlob(ctx context.Context, b Blob) (fs []Finding, err error) {
	if b.Fresh && b.ID != "" && b.ID == b.BaseID {
		return nil, nil
	}
	if !b.Missed {
		if fs, ok := s.Cached(b); ok {
			return fs, nil
		}
	}
	key, keep := s.key(b) // before it is looked at: what is held by its end may be more
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.TimeMax, fmt.Errorf("the scan took longer than %s: %w", s.cfg.TimeMax, context.DeadlineExceeded))
	defer cancel()
	scan := job{scanner: s, ctx: ctx}
	if scan.file, err = scan.path(b.Path); err == nil {
		err = scan.blob(b)
	}
	if b.Fresh && b.Base != nil && len(scan.findings) > 0 {
		err = errors.Join(err, scan.forget(b))
	}
	fs = tidy(unmarked(scan.findings))
	if err != nil {
		return fs, notScanned(ctx, scan.file, err)
	}
	if keep {
		s.cfg.Cache.Keep(key, fs)
	}
	return fs, nil
}

// Cached returns the findings of a blob that was scanned before; b.Open is not called.
func (s *Scanner) Cached(b Blob) ([]Finding, bool) {
	key, ok := s.key(b)
	if !ok {
		return nil, false
	}
	return s.cfg.Cache.Find(key)
}

// key names a blob's scan; false if it cannot be kept.
func (s *Scanner) key(b Blob) (Key, bool) {
	key := Key{Blob: b.ID, Base: b.BaseID, Path: b.Path, Rules: s.cached + s.cfg.Held.is().digest}
	if b.Link {
		key.Rules += " link"
	}
	if b.Fresh {
		key.Rules += " fresh"
	}
	return key, b.ID != "" && s.cfg.Cache != nil && (b.Base == nil || b.BaseID != "")
}

// Name returns a path as findings name it: with every secret in it blotted out.
func (s *Scanner) Name(path string) string {
	hits, err := s.inspect(context.Background(), "", path)
	if err != nil {
		return unscanned
	}
	return blot(path, hits)
}

// notScanned says why, in words that hold no secret.
func notScanned(ctx context.Context, file string, err error) error {
	var already *NotScanned
	if errors.As(err, &already) {
		return already
	}
	reason := "it could not be read"
	if errors.Is(err, errCrowded) {
		reason = errCrowded.Error()
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		reason = "the scan was ended"
		if errors.Is(cause, context.DeadlineExceeded) {
			reason = cause.Error()
		}
	}
	return &NotScanned{File: file, Reason: reason, cause: err}
}

// job is one blob's scan.
type job struct {
	scanner  *Scanner
	ctx      context.Context
	file     string // as findings name it
	findings []sighting
	unpacked unpacked // what archives have cost so far
}

func (j *job) fail(format string, args ...any) error {
	return &NotScanned{File: j.file, Reason: fmt.Sprintf(format, args...)}
}

// path scans a path as text and returns it with every secret blotted out. Nothing is known of a name but what it says:
// its own path is not told to the rules, so that no allowlist of paths holds for it.
func (j *job) path(name string) (string, error) {
	// A name is short and an error must not show a secret in it: this scan ends for nothing.
	hits, err := j.scanner.inspect(context.WithoutCancel(j.ctx), "", name)
	if err != nil {
		return unscanned, err
	}
	blotted := blot(name, hits)
	for _, h := range hits {
		j.note(Finding{Rule: h.rule, File: blotted, Severity: h.severity}, h.secret)
	}
	return blotted, nil
}

func (j *job) blob(b Blob) error {
	if b.Size > j.scanner.cfg.BytesMax {
		return j.fail("it has %d bytes; the limit is %d", b.Size, j.scanner.cfg.BytesMax)
	}
	r, err := b.Open(j.ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, j.scanner.cfg.BytesMax+1))
	switch {
	case err != nil:
		return err
	case int64(len(content)) > j.scanner.cfg.BytesMax:
		return j.fail("it has more than %d bytes", j.scanner.cfg.BytesMax)
	case b.Size >= 0 && int64(len(content)) != b.Size:
		return j.fail("it has %d bytes, and the walk saw %d", len(content), b.Size)
	}
	return j.content(b, content)
}

func (j *job) content(b Blob, content []byte) error {
	text := string(content)
	if b.Link {
		if rule, blocked := PathRule(text); blocked {
			j.note(Finding{Rule: "path " + rule, File: j.file, Line: 1, Severity: Critical}, text)
		}
	}
	hits, err := j.scanner.inspect(j.ctx, b.Path, text)
	if err != nil {
		return err
	}
	hits, err = j.scanner.excuse(j.ctx, b, text, hits)
	if err != nil {
		return fmt.Errorf("read the base's version: %w", err)
	}
	j.report(hits)
	if b.Link {
		return nil
	}
	return j.unpack(b.Path, content, 1)
}

func (j *job) report(hits []hit) {
	for _, h := range hits {
		j.note(Finding{Rule: h.rule, File: j.file, Line: h.line, Severity: h.severity}, h.secret)
	}
}

// inspect returns all hits in a text and in what it encodes.
func (s *Scanner) inspect(ctx context.Context, path, text string) ([]hit, error) {
	budget := decodedMax*len(text) + 1<<20
	hits, err := s.inspectPart(ctx, path, text, []stretch{{0, len(text)}}, 0, &budget)
	return once(hits), err
}

func (s *Scanner) inspectPart(ctx context.Context, path, text string, parts []stretch, depth int, budget *int) ([]hit, error) {
	hits, err := s.sieve.scan(ctx, path, readable(text))
	hits = append(hits, s.knownIn(text)...)
	if err != nil || depth == depthMax {
		return hits, err
	}
	lines := lineCounter{text: text}
	further := func(d decoded, parts []stretch) error {
		if *budget -= len(d.text); *budget < 0 || len(d.text) == 0 {
			return nil
		}
		inner, err := s.inspectPart(ctx, path, string(d.text), parts, depth+1, budget)
		for _, h := range inner {
			if h.line == 0 {
				continue
			}
			from := d.of(h.at)
			h.at, h.secret = from.from, text[from.from:from.to]
			h.line = lines.before(from.from) + 1
			h.last = lines.before(from.to) + 1
			hits = append(hits, h)
		}
		return err
	}
	d, ok := decode(text, parts, *budget)
	if ok {
		err = further(d, d.plain)
	}
	if err == nil && ok && strings.IndexByte(text, 0) >= 0 {
		wide := widened(text)
		err = further(wide, []stretch{{0, len(wide.text)}})
	}
	if err == nil && (!ok || *budget < 0) {
		err = errTooDeep
	}
	return hits, err
}

var errTooDeep = errors.New("its encoded parts are larger than the limit")

// once drops what is said twice, and the word of a general rule or of the library on a secret that a rule of ours names too.
func once(hits []hit) []hit {
	type said struct {
		rule, secret string
		line         int
	}
	seen := map[said]bool{}
	own := map[int][]string{} // by line
	var out []hit
	for _, telling := range []func(hit) bool{
		func(h hit) bool { return h.own && h.severity == Critical },
		func(h hit) bool { return h.own && h.severity != Critical },
		func(h hit) bool { return !h.own },
	} {
		for _, h := range hits {
			key := said{h.rule, h.secret, h.line}
			if !telling(h) || seen[key] {
				continue
			}
			seen[key] = true
			if h.severity == Critical && h.own || h.secret == "" || !slices.ContainsFunc(own[h.line], func(o string) bool {
				return strings.Contains(o, h.secret) || strings.Contains(h.secret, o)
			}) {
				out = append(out, h)
				if h.own && len(own[h.line]) < perLineMax {
					own[h.line] = append(own[h.line], h.secret)
				}
			}
		}
	}
	return out
}

// perLineMax bounds how many hits of a line are compared with each other: beyond, the same secret may be named twice.
const perLineMax = 64
