package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// traced are the system calls that strace is to show: what writes, what begins a process, and the marks.
var traced = strings.Join([]string{
	"access", "faccessat", "faccessat2", "clone", "clone3", "fork", "vfork",
	"open", "openat", "openat2", "creat",
	"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice",
	"rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod", "mknodat",
	"link", "linkat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat", "?fchmodat2",
	"chown", "fchown", "lchown", "fchownat", "truncate", "ftruncate", "fallocate",
	"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
	"utime", "utimes", "futimesat", "utimensat",
}, ",")

// trace is what strace saw of a daemon and of everything it began.
type trace struct {
	below   []string          // folders that are watched
	threads map[string]*birth // thread → how it began
	strays  map[string]int    // thread and call outside of every operation of that thread → how often
	names   map[string]int    // operation → how often it was seen
	inside  int               // writes below the folders that were within an operation
}

// birth is how a thread of some process began.
type birth struct {
	parent string // thread
	thread bool   // of the same process as its parent
	within bool   // an operation of its parent
}

var (
	callName  = regexp.MustCompile(`^(\w+)\(`)
	callToken = regexp.MustCompile(`(?:\d+|AT_FDCWD)<((?:[^<>\\]|\\.)*)>|"((?:[^"\\]|\\.)*)"`)
	callEnd   = regexp.MustCompile(`^\)\s+= (-?\d+)(?:<[^>]*>)?(?: /\* (\d+) in strace's PID NS \*/)?`)
)

// readTrace reads what `strace -ff -o prefix` wrote: one file for each thread.
func readTrace(t *testing.T, prefix string, below ...string) *trace {
	t.Helper()
	tr := &trace{below: below, threads: map[string]*birth{}, strays: map[string]int{}, names: map[string]int{}}
	files, err := filepath.Glob(prefix + ".*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no trace at %s: %v", prefix, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr.read(strings.TrimPrefix(filepath.Ext(file), "."), string(raw))
	}
	return tr
}

// read follows one thread: which operations it is in, what it writes, whom it begins.
func (tr *trace) read(thread, text string) {
	var ops []string
	for line := range strings.Lines(text) {
		m := callName.FindStringSubmatch(line)
		cut := strings.LastIndex(line, ") ")
		if m == nil || cut < len(m[0]) {
			continue // a signal or an end
		}
		end := callEnd.FindStringSubmatch(line[cut:])
		if end == nil {
			continue // a call that never returned
		}
		args := line[len(m[0]):cut]
		switch m[1] {
		case "access", "faccessat", "faccessat2":
			ops = tr.mark(ops, args)
		case "clone", "clone3", "fork", "vfork":
			child := end[1]
			if end[2] != "" { // it has another number in a namespace of its own
				child = end[2]
			}
			if !strings.HasPrefix(child, "-") {
				tr.threads[child] = &birth{thread, strings.Contains(args, "CLONE_THREAD"), len(ops) > 0}
			}
		default:
			if strings.HasPrefix(end[1], "-") {
				continue // refused: nothing was written
			}
			for _, path := range written(m[1], args) {
				if !tr.watched(path) {
					continue
				}
				if len(ops) > 0 {
					tr.inside++
					continue
				}
				tr.strays[thread+" "+m[1]+" "+path]++
			}
		}
	}
}

// mark keeps the stack of operations that a thread is in.
func (tr *trace) mark(ops []string, args string) []string {
	m := callToken.FindAllStringSubmatch(args, -1)
	if len(m) == 0 {
		return ops
	}
	path := m[len(m)-1][2]
	if op, ok := strings.CutPrefix(path, disktest.MarkBegin); ok {
		for _, name := range disktest.NamesOf(op) {
			tr.names[name]++
		}
		return append(ops, op)
	}
	if op, ok := strings.CutPrefix(path, disktest.MarkEnd); ok && len(ops) > 0 && ops[len(ops)-1] == op {
		return ops[:len(ops)-1]
	}
	return ops
}

func (tr *trace) watched(path string) bool {
	for _, dir := range tr.below {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// covered reports whether a thread's process, or one of its forebears, was begun within an operation: what it does
// is then part of that.
func (tr *trace) covered(thread string) bool {
	b := tr.threads[thread]
	if b == nil {
		return false
	}
	return !b.thread && b.within || tr.covered(b.parent)
}

// findings are the writes that no operation covers.
func (tr *trace) findings() []string {
	var out []string
	for _, stray := range slices.Sorted(maps.Keys(tr.strays)) {
		thread, call, _ := strings.Cut(stray, " ")
		if !tr.covered(thread) {
			out = append(out, fmt.Sprintf("%s (%d times, thread %s)", call, tr.strays[stray], thread))
		}
	}
	return out
}

// written returns the paths that a call writes; none for a file that is opened for reading alone.
func written(call, args string) []string {
	var fds, names []string
	at := "?" // a name without a folder before it is relative to one that is not shown
	for _, m := range callToken.FindAllStringSubmatch(args, -1) {
		switch name := m[2]; {
		case !strings.HasPrefix(m[0], `"`):
			at = strings.TrimSuffix(m[1], " (deleted)")
			fds = append(fds, at)
		case name == "":
			names = append(names, at)
		case strings.HasPrefix(name, "/"):
			names = append(names, filepath.Clean(name))
		default:
			names = append(names, filepath.Clean(at+"/"+name))
		}
	}
	nth := func(of []string, i int) []string {
		if i < 0 || i >= len(of) {
			return []string{"?"}
		}
		return of[i : i+1]
	}
	switch call {
	case "open", "openat", "openat2":
		for _, flag := range []string{"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"} {
			if strings.Contains(args, flag) {
				return nth(names, 0)
			}
		}
		return nil
	case "copy_file_range", "splice":
		return nth(fds, 1)
	case "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "ftruncate", "fallocate", "fchmod", "fchown",
		"fsetxattr", "fremovexattr":
		return nth(fds, 0)
	case "setxattr", "lsetxattr", "removexattr", "lremovexattr":
		return nth(names, 0)
	case "symlink", "symlinkat":
		return nth(names, len(names)-1)
	case "utimensat", "futimesat":
		if len(names) == 0 {
			return nth(fds, 0)
		}
	}
	return names
}
