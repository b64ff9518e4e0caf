package deadman

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/race"
)

const (
	fireMax  = time.Minute      // how long the recorded command may take
	startMax = 30 * time.Second // how long a keeper may take to stand
	standing = "watching"       // what it says then
	tailMax  = 2048             // bytes of the command's output that go into the log
)

// program is what a keeper is called, whatever path it is started by.
const program = "sallyport-keeper"

// ErrNoKeeper says that there is no keeper to start.
var ErrNoKeeper = errors.New("the program " + program + " is missing")

func found(keeper string) (string, error) {
	info, err := os.Stat(keeper)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoKeeper, err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%w: %q is not an executable file", ErrNoKeeper, keeper)
	}
	return keeper, nil
}

// Start starts keeper on the record at path and returns once it watches. The keeper is
// nobody's child, in a session of its own, with none of our descriptors. A record that has
// a keeper already needs no second one: then Start does nothing. Errors: ErrNoKeeper.
func Start(ctx context.Context, keeper, record string) error {
	keeper, err := found(keeper)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	// The process we start only starts the one that stays: so the keeper is
	// nobody's to reap, and we know when it watches.
	cmd := exec.CommandContext(ctx, keeper, "start", record)
	if strings.HasPrefix(keeper, "/proc/") { // such a path names no program
		cmd.Args[0] = program
	}
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/bin:/bin"}, race.Options()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = startMax // the keeper lets go of our pipe a moment after it has said that it watches
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("start the keeper %q: %w: %.*q", keeper, err, tailMax, out)
	}
	return nil
}

// Main is the keeper's whole program; it returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	CloseInherited()
	syscall.Umask(0o077)
	var err error
	switch {
	case len(args) == 2 && args[0] == "start" && filepath.IsAbs(args[1]):
		err = stand(args[1])
	case len(args) == 2 && args[0] == "watch" && filepath.IsAbs(args[1]):
		err = keep(context.Background(), disk.Ops{}, args[1], func() {
			fmt.Fprintln(stdout, standing)
			quiet() // whoever started us has heard; nothing of theirs stays open
		})
	default:
		fmt.Fprintln(stderr, "usage: sallyport-keeper start|watch /ABSOLUTE/RECORD.json\n       sallyport-keeper serve /ABSOLUTE/HOME\n\nsallyport starts this program before it changes a repository, and becomes it for \"sallyport serve\"; you need not run it.")
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "sallyport-keeper:", err)
		return 1
	}
	return 0
}

// CloseInherited closes what the program before us left open: what has no close-on-exec
// flag was not opened by this process. A lock or a pipe kept alive here would be a riddle elsewhere.
func CloseInherited() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil || fd < 3 {
			continue
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}

// stand starts the process that stays and waits until it watches.
func stand(record string) error {
	cmd := exec.Command("/proc/self/exe", "watch", record)
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); strings.TrimSpace(line) == standing {
		return nil
	} else if wait := cmd.Wait(); wait != nil || err != io.EOF {
		return errors.Join(fmt.Errorf("the keeper of %q ended before it watched (it said %q)", record, line), wait)
	}
	return nil // disarmed before it could be watched, or watched by another
}

// keep watches one record to its end.
func keep(ctx context.Context, ops disk.Ops, record string, ready func()) error {
	if _, err := Read(record); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	var l *log
	err := ops.Do("deadman:log", func() (err error) { l, err = openLog(record); return err })
	if errors.Is(err, errWatched) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the keeper's log: %w", err)
	}
	tell := func(state string, attempt int, why string) {
		_ = ops.Do("deadman:tell", func() error { l.tell(state, attempt, why); return nil })
	}
	tell("watching", 0, "")
	ready()
	err = Watch(ctx, Watcher{
		Read:  func() (Armed, error) { return Read(record) },
		Now:   Now,
		Alive: Alive,
		End:   func(p Process) error { return ops.Do("deadman:kill", func() error { return End(p) }) },
		Fire:  func(ctx context.Context, a Armed) error { return fire(ctx, ops, record, a) },
		Tell:  tell,
	})
	if err != nil {
		tell("gave_up", 0, err.Error())
		l.fired = true // the log is kept
	} else {
		tell("disarmed", 0, "")
	}
	return errors.Join(err, ops.Do("deadman:end", func() error { return l.end(record) }))
}

// RecordVariable names to the recorded command the record that it runs for.
const RecordVariable = "SALLYPORT_ARMED"

// Disarmed reports whether this process runs for a record that is not armed any more: another daemon has brought to its end what the record
// was about, and who has stopped that one since wants none. A daemon disarms before it goes. So whoever finds none running, and looks here
// after that, brings nobody back.
func Disarmed(getenv func(string) string) bool {
	record := getenv(RecordVariable)
	if record == "" {
		return false
	}
	_, err := os.Lstat(record)
	return errors.Is(err, fs.ErrNotExist)
}

// fire runs the recorded command and waits for it. It ends its own child after fireMax, and nothing else.
func fire(ctx context.Context, ops disk.Ops, record string, a Armed) error {
	ctx, cancel := context.WithTimeout(ctx, fireMax)
	defer cancel()
	return ops.Do("deadman:fire", func() error {
		// A file and not a pipe: a daemon that keeps it open holds up nobody.
		out, err := os.OpenFile(outputPath(record), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer out.Close()
		cmd := exec.CommandContext(ctx, a.Argv[0], a.Argv[1:]...)
		cmd.Dir, cmd.Env = "/", append(append([]string{}, a.Env...), RecordVariable+"="+record)
		cmd.Stdout, cmd.Stderr = out, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%q: %w: %q", a.Argv, err, tail(out))
		}
		return nil
	})
}

// tail returns the last bytes of a file.
func tail(file *os.File) []byte {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	part := make([]byte, min(info.Size(), tailMax))
	n, _ := file.ReadAt(part, info.Size()-int64(len(part)))
	return part[:n]
}

// quiet points the standard descriptors at nothing.
func quiet() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	for fd := range 3 {
		_ = syscall.Dup3(int(null.Fd()), fd, 0)
	}
}
