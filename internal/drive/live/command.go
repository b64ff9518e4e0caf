package live

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// tailBytes is how much of a command's output is kept unless somebody wants more: its end, where the reason stands.
const tailBytes = 4 << 10

// CommandRunner runs single commands, each in a sandbox of its own.
type CommandRunner struct {
	Defaults
	Sandbox sandbox.Driver
	Secrets *secret.Scanner
}

// Command is one command line, and where it runs.
type Command struct {
	Name       id.Session
	Line       string // for a shell
	Way        Way
	Tree       sandbox.Tree
	Cache      sandbox.Cache
	Own        []sandbox.Bind // of the host's own, shown beside the tree
	Background bool
	Image      string // a root file system to start from; "" = what the runner has others start from
	Range      bool   // its programs are root of a range of uids, from the subject's owner on
	Kept       int    // bytes of the end of what it prints; 0 = tailBytes
}

// Ran is what came of a command.
type Ran struct {
	Exit sandbox.Exit
	Took time.Duration
	Tail string // the end of what it printed, without secrets
}

// OK reports whether the command succeeded.
func (r Ran) OK() bool { return r.Exit.Code == 0 && r.Exit.Limit == nil }

// Why says how the command ended.
func (r Ran) Why() string { return session.Describe(r.Exit) }

// LastLines are the last lines that it printed which are not empty, in one.
func (r Ran) LastLines(n int) string {
	lines := strings.FieldsFunc(r.Tail, func(c rune) bool { return c == '\n' || c == '\r' })
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	return strings.Join(lines[max(len(lines)-n, 0):], " | ")
}

// Run runs a command for a subject and waits for its end; an error is the machine's fault, or ctx has ended.
func (r CommandRunner) Run(ctx context.Context, s Subject, c Command) (Ran, error) {
	shown := r.Surroundings(s, c.Way, c.Cache.Upper != "")
	shown.Image = cmp.Or(c.Image, shown.Image)
	spec, err := r.show(ctx, shown)
	if err != nil {
		return Ran{}, err
	}
	if c.Cache.Upper != "" {
		spec.Env = append(slices.Clone(spec.Env), "XDG_CACHE_HOME="+sandbox.Caches)
	}
	out := &tail{max: cmp.Or(c.Kept, tailBytes)}
	clean := r.Secrets.Redactor(out) // before the beginning is cut off, or the rest of a secret would stay
	both := &together{to: clean}
	spec.ID, spec.Tree, spec.Cache, spec.Background = string(c.Name), c.Tree, c.Cache, c.Background
	spec.Range = c.Range
	spec.Own = append(spec.Own, c.Own...)
	spec.Argv, spec.Stdout, spec.Stderr = []string{"/bin/sh", "-c", c.Line}, both, both

	began := time.Now()
	process, err := r.Sandbox.Start(ctx, spec)
	if err != nil {
		return Ran{}, err
	}
	exit, err := process.Wait()
	if err != nil {
		return Ran{}, err
	}
	if err := clean.Close(); err != nil {
		return Ran{}, err
	}
	if ctx.Err() != nil {
		return Ran{}, context.Cause(ctx)
	}
	return Ran{Exit: exit, Took: time.Since(began).Round(time.Millisecond), Tail: out.String()}, nil
}

// tail keeps the last max bytes written to it.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.buf), "\uFFFD") }

// together lets the two streams of a program be written to one place.
type together struct {
	mu sync.Mutex
	to io.Writer
}

func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}
