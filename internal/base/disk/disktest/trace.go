package disktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// tracedIn is the folder of a traced body; set only in the process that runs one.
const tracedIn = "SALLYPORT_TEST_TRACED"

// What a traced body looks up to be seen: its own words, and its end.
const (
	saidMark = "/.sallyport-test/say/"
	bodyDone = "/.sallyport-test/done"
)

// Calls runs body under strace, in a process of its own, and returns the calls that put something
// on a disk or give it a name, in the order in which they ended: `fsync a/b`, `syncfs a`, `rename a b`,
// `link a b`, `remove a`, `say WORD`. A name is relative to dir, the one folder whose calls are told, which
// the body gets empty. Memory cannot show whether a file was synced before it got its name; this can.
//
// The test is started again for the body. So nothing that stands before Calls may have an
// effect, and what stands behind it is run here alone.
func Calls(t *testing.T, body func(dir string)) []string {
	t.Helper()
	if dir := os.Getenv(tracedIn); dir != "" {
		body(dir)
		if !t.Failed() {
			_ = syscall.Access(bodyDone, 0)
		}
		t.SkipNow()
	}
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-qq", "-o", "/dev/null", "true").Run() != nil {
		t.Skip("SKIPPED: needs strace")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(top, "trace")
	dir, out, err := runTraced(t, strace, top, trace)
	for tries := 1; err != nil && tries < 3 && straceFailed.Match(out); tries++ { // the tracer, not what it traced
		dir, out, err = runTraced(t, strace, top, trace)
	}
	if err != nil {
		t.Fatalf("the traced body: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	calls, done := parseTrace(string(raw), dir)
	if !done {
		t.Fatalf("the traced body did not come to its end\n%s", out)
	}
	return calls
}

// straceFailed is what strace says of a thread that ended while it looked at it, which is a fault of its own.
var straceFailed = regexp.MustCompile(`(?m)^\S*strace: ptrace\(PTRACE_\w+,pid:\d+`)

// runTraced runs the body under strace in a new folder.
func runTraced(t *testing.T, strace, top, trace string) (dir string, out []byte, err error) {
	t.Helper()
	if dir, err = os.MkdirTemp(top, "traced"); err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-o", trace,
		"-e", "trace=access,faccessat,faccessat2,fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir",
		os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), tracedIn+"="+dir)
	out, err = cmd.CombinedOutput()
	return dir, out, err
}

// Say puts a word among the calls of a traced body.
func Say(word string) { _ = syscall.Access(saidMark+word, 0) }

// Ordered checks that calls hold the wanted ones in this order, whatever lies between them. Each is a regular
// expression of a whole call.
func Ordered(t *testing.T, calls []string, want ...string) {
	t.Helper()
	rest := calls
	for _, w := range want {
		whole, i := regexp.MustCompile(`^(?:`+w+`)$`), 0
		for i < len(rest) && !whole.MatchString(rest[i]) {
			i++
		}
		if i == len(rest) {
			t.Errorf("%q is missing, or comes too early; wanted in this order:\n\t%s\nseen:\n\t%s", w,
				strings.Join(want, "\n\t"), strings.Join(calls, "\n\t"))
			return
		}
		rest = rest[i+1:]
	}
}

var (
	tracedLine = regexp.MustCompile(`^(\d+) +(.*)$`)
	tracedCall = regexp.MustCompile(`^(\w+)\((.*)\) += 0$`)
	tracedArg  = regexp.MustCompile(`(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>|"((?:[^"\\]|\\.)*)"`)
)

// parseTrace reads what strace wrote. done: the body came to its end.
func parseTrace(raw, dir string) (calls []string, done bool) {
	begun := map[string]string{} // by thread: a call that another thread's line has interrupted
	for line := range strings.Lines(raw) {
		m := tracedLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		thread, text := m[1], m[2]
		if before, cut := strings.CutSuffix(text, " <unfinished ...>"); cut {
			begun[thread] = before
			continue
		}
		if _, after, resumed := strings.Cut(text, " resumed>"); resumed && strings.HasPrefix(text, "<... ") {
			text = begun[thread] + after
		}
		done = done || strings.Contains(text, `"`+bodyDone+`"`)
		if _, said, ok := strings.Cut(text, `"`+saidMark); ok {
			word, _, _ := strings.Cut(said, `"`)
			calls = append(calls, "say "+word)
		} else if c := tracedCall.FindStringSubmatch(text); c != nil {
			if call := tracedAs(c[1], c[2], dir); call != "" {
				calls = append(calls, call)
			}
		}
	}
	return calls, done
}

// tracedAs is one call in short; "" if it concerns nothing below dir.
func tracedAs(name, args, dir string) string {
	var paths []string
	at := "" // the folder of a name that follows
	concerned := false
	for _, m := range tracedArg.FindAllStringSubmatch(args, -1) {
		p := m[1]
		if p == "" {
			if p = m[2]; !filepath.IsAbs(p) {
				p = filepath.Join(at, p)
			}
			at = ""
		} else if at = p; strings.HasSuffix(name, "at") || strings.HasSuffix(name, "at2") {
			continue
		}
		if short, err := filepath.Rel(dir, p); err == nil && short != ".." && !strings.HasPrefix(short, "../") {
			p, concerned = short, true
		}
		paths = append(paths, p)
	}
	if !concerned {
		return ""
	}
	short := map[string]string{"fdatasync": "fsync", "renameat": "rename", "renameat2": "rename", "linkat": "link", "unlink": "remove",
		"unlinkat": "remove", "rmdir": "remove"}
	if s := short[name]; s != "" {
		name = s
	}
	return fmt.Sprintf("%s %s", name, strings.Join(paths, " "))
}
