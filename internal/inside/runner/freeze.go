package runner

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// freeze stops every process of the pid namespace, however far it went from its
// session or group, and shows it: every thread of every process stands still,
// twice in a row with the same processes. Otherwise all run again. What is frozen
// already stays so.
func (in *initProcess) freeze(within time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.frozen { // what stands because of us is not the agent's own
		in.resting = map[int]bool{}
		if pids, err := processes(); err == nil {
			for _, pid := range pids {
				if still(pid) || toStop(pid) {
					in.resting[pid] = true
				}
			}
		}
	}
	n, err := stopAll(time.Now().Add(within))
	if err != nil {
		in.wake()
		in.frozen = false
		in.tell(sandbox.Event{Frozen: &sandbox.Stopped{Error: err.Error()}})
		return
	}
	in.frozen = true
	in.tell(sandbox.Event{Frozen: &sandbox.Stopped{Processes: n}})
}

func stopAll(deadline time.Time) (int, error) {
	before := -1 // processes of the last look, if all stood still
	for round := 1; ; round++ {
		if err := unix.Kill(-1, unix.SIGSTOP); err != nil && err != unix.ESRCH {
			return 0, fmt.Errorf("stop every process: %w", err)
		}
		pids, err := processes()
		if err != nil {
			return 0, err
		}
		moving := 0
		for _, pid := range pids {
			if !still(pid) {
				moving = pid
				break
			}
		}
		switch {
		case moving == 0 && len(pids) == before:
			return len(pids), nil
		case moving == 0:
			before = len(pids)
			continue
		case time.Now().After(deadline):
			return 0, fmt.Errorf("process %d did not stop in time", moving)
		}
		before = -1
		if round%64 == 0 {
			// A parent in vfork waits, unstoppable, for a child that was stopped before
			// its exec: let all run for a moment.
			_ = unix.Kill(-1, unix.SIGCONT)
		}
		time.Sleep(time.Duration(min(round, 20)) * 50 * time.Microsecond)
	}
}

// still reports whether every thread of a process is stopped, dead or gone.
func still(pid int) bool {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	dir, err := os.Open(base)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		raw, err := os.ReadFile(base + "/" + name + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may hold anything, also ") R".
		text := string(raw)
		text = strings.TrimLeft(text[strings.LastIndexByte(text, ')')+1:], " ")
		if text == "" || !strings.ContainsRune("TtZXx", rune(text[0])) {
			return false
		}
	}
	return true
}

// toStop reports whether a process has been sent SIGSTOP and has had no turn to obey since. Asked before we send our own.
func toStop(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if mask, ok := strings.CutPrefix(line, "ShdPnd:"); ok {
			pending, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && pending&(1<<(unix.SIGSTOP-1)) != 0
		}
	}
	return false
}

// thaw lets all run again but what the agent itself had stopped.
func (in *initProcess) thaw() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.frozen {
		in.wake()
	}
	in.frozen = false
	in.tell(sandbox.Event{Thawed: true})
}

func (in *initProcess) wake() {
	pids, err := processes()
	if err != nil || len(in.resting) == 0 {
		_ = unix.Kill(-1, unix.SIGCONT)
		return
	}
	for _, pid := range pids {
		if !in.resting[pid] {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}
