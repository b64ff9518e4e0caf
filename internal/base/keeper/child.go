package keeper

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// child is a daemon that runs.
type child struct {
	words  <-chan said
	ended  <-chan exit               // one, once its process is gone
	answer func(number int, r reply) // of a question
	stop   func()                    // asks it to end
	kill   func()                    // ends it
	is     deadman.Process           // which process it is
}

// exit is how a daemon's process ended.
type exit struct {
	status int    // of one that ended by itself; -1 of one that was killed
	why    string // in words
}

// outOfMemory is added to what the kernel counts against a daemon where memory is short: its keeper is to outlive it.
const outOfMemory = "500"

// start starts the daemon of a release; "" = of the one that `current` names. It is executed by the descriptor that was hashed, so
// nobody can put another file in its place meanwhile. It dies with this keeper. run starts its process.
func start(home, digest string, hello Hello, run func(*exec.Cmd) error) (child, error) {
	folder := release.In(home, disk.Ops{})
	folders := []release.Folder{folder, old(home, disk.Ops{})}
	if digest == "" {
		var err error
		if digest, err = folder.Current(); err != nil {
			return child{}, fmt.Errorf("find the release that home %q runs by: %w", home, err)
		}
		folders = folders[:1]
	}
	program, err := open(digest, folders...)
	if err != nil {
		return child{}, fmt.Errorf("open the release that home %q runs by: %w", home, err)
	}
	defer program.Close()
	hello.Release, hello.Trials = digest, trials

	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return child{}, fmt.Errorf("make the pipe to the daemon: %w", err)
	}
	_ = syscall.SetNonblock(pair[0], true) // so that writing to it has an end
	ours, theirs := os.NewFile(uintptr(pair[0]), "daemon"), os.NewFile(uintptr(pair[1]), "keeper")
	defer theirs.Close()

	cmd := &exec.Cmd{
		Path: fmt.Sprint("/proc/self/fd/", programAt), Args: []string{"sallyport", "daemon", "run", "--kept", "--home", home},
		Dir: "/", Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{theirs, program},
		// A session of its own: Ctrl-C is said to the keeper, and the keeper asks the daemon to end.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if err := run(cmd); err != nil {
		ours.Close()
		return child{}, fmt.Errorf("start the daemon of release %.12s: %w", digest, err)
	}
	_ = os.WriteFile(filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "oom_score_adj"), []byte(outOfMemory), 0)
	return attach(cmd, ours, hello), nil
}

// attach greets a daemon that was started and listens to it. All that a daemon has said is heard before its end is told: its last word may
// be that it was asked to end. Whoever has the child takes its words until then.
func attach(cmd *exec.Cmd, pipe *os.File, hello Hello) child {
	words, ended, heard := make(chan said), make(chan exit, 1), make(chan struct{})
	is, _ := deadman.Look(cmd.Process.Pid) // it has not been waited for: so the number is its own
	greet(pipe, hello)
	go func() {
		hear(pipe, words)
		close(heard)
	}()
	go func() {
		_ = cmd.Wait() // how it has ended is in its state
		shut(pipe)
		<-heard
		pipe.Close()
		ended <- exit{status: cmd.ProcessState.ExitCode(), why: "it ended with " + cmd.ProcessState.String()}
	}()
	return child{
		words: words, ended: ended, is: is,
		answer: func(number int, r reply) {
			raw, _ := json.Marshal(r)
			send(pipe, fmt.Sprintf("%s %d %s\n", wordAnswer, number, raw))
		},
		stop: func() { _ = cmd.Process.Signal(syscall.SIGTERM) },
		kill: func() { _ = cmd.Process.Kill() },
	}
}

// shut ends what comes in: what has come is still read, and nobody who holds the other end can add to it.
func shut(pipe *os.File) {
	conn, err := pipe.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RD) })
	}
	if err != nil {
		pipe.Close() // it is closed already, and then nothing waits for what comes in
	}
}

// greet is what a keeper says first.
func greet(pipe *os.File, hello Hello) {
	raw, _ := json.Marshal(hello)
	send(pipe, fmt.Sprintf("%s %d %s\n", wordHello, version, raw)) // one that does not listen is never ready
}

// send says a line to a daemon. One that takes none is not waited for, and hears nothing more: half a line is none.
func send(pipe *os.File, line string) {
	if err := pipe.SetWriteDeadline(time.Now().Add(sayMax)); err != nil {
		return
	}
	if _, err := pipe.WriteString(line); err != nil {
		pipe.Close()
	}
}
