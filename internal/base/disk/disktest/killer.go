package disktest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"sallyport/internal/base/disk"
)

// Variables that a test sets for a process that takes its operations from FromEnv.
const (
	// KillAt is `N:before`, `N:after` (number of the operation from 0), or `OP:before`,
	// `OP:after`, `OP#K:before` … (the Kth, from 1, operation of that name; a commit that several share has all their names).
	KillAt = "SALLYPORT_TEST_KILL_AT"
	// KillLog is a file that gets one line `N OP` as each operation begins, and `killed N OP`
	// before the process dies. A process that finds a killed line in it kills nothing:
	// the one that comes after the dead may inherit the variables.
	KillLog = "SALLYPORT_TEST_KILL_LOG"
	// Mark, if set, makes each operation visible to strace: access(2) of a path that
	// does not exist, MarkBegin or MarkEnd followed by the name, on the operation's own thread.
	Mark = "SALLYPORT_TEST_MARK"
)

// What a marked operation looks up at its begin and end.
const (
	MarkBegin = "/.sallyport-test/begin/"
	MarkEnd   = "/.sallyport-test/end/"
)

// Killer is the operations of a process that shall die at one of them.
type Killer struct {
	name  string // of the operation; "" = by number
	at    int    // number from 0, or which of that name from 1
	after bool
	never bool
	mark  bool
	log   *os.File
	does  func() // instead of dying; nil = it dies

	mu    sync.Mutex
	seen  int
	named int
}

// FromEnv returns the operations that the environment asks for; plain ones if it asks for
// nothing. A wish that cannot be understood is an error: a loop must not pass by a typing mistake.
func FromEnv() (disk.Ops, error) { return FromEnvDoing(nil) }

// FromEnvDoing is FromEnv for a process that does something where it would die, such as killing another, and goes on.
func FromEnvDoing(does func()) (disk.Ops, error) {
	where, path := os.Getenv(KillAt), os.Getenv(KillLog)
	k := &Killer{never: where == "", mark: os.Getenv(Mark) != "", does: does}
	if k.never && !k.mark && path == "" {
		return disk.Ops{}, nil
	}
	if err := k.parse(where); err != nil {
		return disk.Ops{}, err
	}
	if path != "" {
		before, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return disk.Ops{}, err
		}
		if strings.HasPrefix(string(before), "killed ") || strings.Contains(string(before), "\nkilled ") {
			k.never = true
		}
		if k.log, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return disk.Ops{}, err
		}
	}
	return disk.Ops{Around: k.around}, nil
}

func (k *Killer) parse(where string) error {
	if where == "" {
		return nil
	}
	i := strings.LastIndexByte(where, ':')
	if i < 1 || where[i+1:] != "before" && where[i+1:] != "after" {
		return fmt.Errorf("%s=%q ends in neither :before nor :after", KillAt, where)
	}
	k.after = where[i+1:] == "after"
	if n, err := strconv.Atoi(where[:i]); err == nil {
		k.at = n
		return nil
	}
	name, nth, found := strings.Cut(where[:i], "#")
	k.name, k.at = name, 1
	if found {
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			return fmt.Errorf("%s=%q: %q is not a number from 1", KillAt, where, nth)
		}
		k.at = n
	}
	return nil
}

func (k *Killer) around(op string, do func() error) error {
	n, fatal := k.begin(op)
	if fatal && !k.after {
		k.die(n, op)
	}
	k.show(MarkBegin + op)
	err := do()
	k.show(MarkEnd + op)
	if fatal && k.after {
		k.die(n, op)
	}
	return err
}

// begin counts one operation and reports whether it is the fatal one.
func (k *Killer) begin(op string) (n int, fatal bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = k.seen
	k.seen++
	if k.name != "" && Named(op, k.name) {
		k.named++
		fatal = k.named == k.at
	} else if k.name == "" {
		fatal = n == k.at
	}
	if k.log != nil {
		fmt.Fprintf(k.log, "%d %s\n", n, op)
	}
	return n, fatal && !k.never
}

// Named reports whether an operation is one of a name. A commit that several share has the verb of each: db:claim+approved.
func Named(op, name string) bool { return op == name || slices.Contains(NamesOf(op), name) }

// NamesOf returns the names that an operation goes by: one, or for a commit that several share one of each verb.
func NamesOf(op string) []string {
	kind, verbs, _ := strings.Cut(op, ":")
	names := strings.Split(verbs, "+")
	for i, verb := range names {
		names[i] = kind + ":" + verb
	}
	return names
}

// Index returns where the first operation of a name stands, or -1.
func Index(ops []string, name string) int {
	return slices.IndexFunc(ops, func(op string) bool { return Named(op, name) })
}

// die ends this process as a loss of power would, and does not return; unless there is something else to do.
func (k *Killer) die(n int, op string) {
	if k.log != nil {
		fmt.Fprintf(k.log, "killed %d %s\n", n, op)
	}
	if k.does != nil {
		k.does()
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic("cannot kill myself: " + err.Error())
	}
	select {} // the signal is on its way
}

func (k *Killer) show(path string) {
	if k.mark {
		_ = syscall.Access(path, 0) // always ENOENT: only a tracer is meant to see it
	}
}
