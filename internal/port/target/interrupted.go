package target

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runFile is in a change's folder while a restart of it runs, and holds the number of its shell, which is its session's.
const runFile = "restart.run"

const (
	endRounds = 100 // of looking for what still runs
	endPause  = 10 * time.Millisecond
)

// endInterrupted ends what a restart of this change still does that a daemon has left in the middle by dying: it would
// bring up one version beside the next try, or after it. What has gone into a session of its own stays, as after a
// restart that came to its end.
func endInterrupted(folder string, at Place) error {
	file := filepath.Join(folder, runFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	session, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err == nil && session > 1 { // without a number its words had not begun
		for range endRounds {
			left, err := runsOf(session, at)
			if err != nil {
				return err
			}
			if len(left) == 0 {
				return os.Remove(file)
			}
			for _, pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL) // what is gone is not found in the next round
			}
			time.Sleep(endPause)
		}
		return fmt.Errorf("an earlier restart (process session %d) is still running and cannot be ended", session)
	}
	return os.Remove(file)
}

// runsOf lists the processes of a session that were started for a change: a number alone is given out again.
func runsOf(session int, at Place) (pids []int, err error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	mark := []byte("\x00" + changeVariable + "=" + string(at.Change) + "\x00")
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if in, err := unix.Getsid(pid); err != nil || in != session {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")) // empty of one that has ended
		if err == nil && bytes.Contains(append([]byte{0}, env...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
