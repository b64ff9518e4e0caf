// Package keeper is the parent of a home's daemon: it starts it, starts it again when it ends unasked, and ends one that hangs.
//
// The keeper is the one program that no change replaces (SM-903), so all that it is stands on the standard library, deadman,
// disk, release and cgroup. It reads no settings, no database and no network. Who wants to know what it does reads three files: keep.go
// says when a daemon is started and ended, words.go what the two say to each other, and child.go how a process is started.
//
// One keeper has a home, and while it has it nobody else starts a daemon there: it holds a kernel lock on `.state/keeper`.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"sallyport/internal/base/cgroup"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// Program is the keeper's name beside the other programs.
const Program = "sallyport-keeper"

// ExitTaken is the exit status of a keeper, and of a daemon, whose home another one has.
const ExitTaken = 75

// Main is the keeper's whole program; it returns its exit status. Beside `serve`, and `again`, which is `serve` in the background, it
// has the words of deadman.Main.
func Main(args []string, stdout, stderr io.Writer) int {
	return run(args, stdout, stderr, limitsHere())
}

// run is Main with the limits of a version on trial.
func run(args []string, stdout, stderr io.Writer, most Limits) int {
	if len(args) != 2 || args[0] != "serve" && args[0] != "again" || !filepath.IsAbs(args[1]) {
		return deadman.Main(args, stdout, stderr)
	}
	deadman.CloseInherited()
	status, err := 0, error(nil)
	if args[0] == "again" {
		status, err = 0, again(args[1])
	} else {
		// A daemon is told of the end of the thread that started it, not of the process: so one thread starts them all, and stays.
		runtime.LockOSThread()
		status, err = serve(args[1], stderr, most)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", Program, err)
		status = max(status, 1)
	}
	return status
}

// serve keeps the daemon of a home up until a signal ends it.
func serve(home string, stderr io.Writer, most Limits) (status int, err error) {
	self, err := deadman.Self()
	if err != nil {
		return 1, err
	}
	held, err := hold(home, holdPatience)
	if errors.Is(err, ErrKept) {
		return ExitTaken, err
	}
	if err != nil {
		return 1, err
	}
	defer held.Close()

	// A terminal that is closed asks to end, too. Nobody who reads what is told here can end a keeper by going away.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	tell := func(format string, a ...any) {
		fmt.Fprintf(stderr, "time=%s level=WARN msg=%q\n", time.Now().Format(time.RFC3339), Program+": "+fmt.Sprintf(format, a...))
	}
	within, unlimited := findFence(cgroup.Mounts(), cgroup.Own(), home, most, func(f *fence) error { return settle(f, home) })
	family := processes{tell: tell, fence: within}
	h := &host{home: home, now: deadman.Now, tell: tell,
		room: func(least int64) string { return room(home, least) },
		revert: func(ctx context.Context, r Record) error {
			family.adopt(true)
			return revert(ctx, home, r)
		},
	}
	if os.Getenv(InService) == "" {
		h.watch = func() error { return watch(home, self) }
	}
	h.clean()
	defer family.leave()
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	status, err = keep(ctx, parts{
		start: func(last Last, digest string) (child, error) {
			return family.start(home, digest, Hello{Keeper: self, Last: last, Limits: within.Limits}, h.r.Step.onTrial(), unlimited)
		},
		late: &landings{dir: filepath.Join(home, ".state", "deadman"), now: deadman.Now},
		host: h, died: died, family: family, tell: tell,
	})
	if releases := release.In(home, disk.Ops{}); status > 0 && status != ExitTaken && releases.Moved() {
		tell("the home was brought to another release than the installed one; if that does not start any more, remove %s, and serve takes the installed one",
			filepath.Join(releases.Dir, release.Installed))
	}
	return status, err
}

// settle does with what lies in a fence that an earlier keeper has left as the record says: what is on trial, or may be, ends, and what was
// kept runs on.
func settle(f *fence, home string) error {
	if r, _, err := RecordOf(home); err != nil || r.Step.onTrial() || r.Step == Back {
		return f.end()
	}
	return f.leave()
}

// ErrKept says that another keeper has the home.
var ErrKept = errors.New("another sallyport serve keeps this home")

// holdPatience is how long a keeper waits for another that is about to end, or for who looks whether there is one.
const holdPatience = 2 * time.Second

// Folder is where a keeper has what it needs; the lock on it says that there is one.
func Folder(home string) string { return filepath.Join(home, ".state", "keeper") }

// hold takes a home for this keeper.
func hold(home string, patience time.Duration) (*os.File, error) {
	dir := Folder(home)
	err := disk.Ops{}.Do("keeper:folder", func() error { return os.MkdirAll(dir, 0o700) })
	if err != nil {
		return nil, fmt.Errorf("keep the home %q: %w", home, err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("keep the home %q: %w", home, err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return folder, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) && time.Now().After(end) {
			err = ErrKept
		} else if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			continue
		}
		return nil, errors.Join(fmt.Errorf("keep the home %q: %w", home, err), folder.Close())
	}
}

// Kept reports whether a keeper has the home. Where that cannot be seen one has it: then nobody starts a second daemon.
func Kept(home string) bool {
	folder, err := os.Open(Folder(home))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false
	}
	if err != nil {
		return true
	}
	defer folder.Close() // and the lock with it
	return syscall.Flock(int(folder.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
