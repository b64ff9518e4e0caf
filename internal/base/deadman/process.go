package deadman

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process names one process for good: its number alone is given out again.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`  // which boot
}

// Self returns the process that calls it.
func Self() (Process, error) {
	p, _, err := look(os.Getpid())
	return p, err
}

// Look returns the process that has a number now.
func Look(pid int) (Process, error) {
	p, _, err := look(pid)
	return p, err
}

// Alive reports whether p runs. A process that has ended and waits for its parent does
// not; one that cannot be looked at is taken to run, for the deadline holds all the same.
func Alive(p Process) bool {
	now, state, err := look(p.PID)
	return !gone(err) && (err != nil || now == p && state != "Z" && state != "X")
}

// gone reports whether looking at a process has met none: it was absent, or went while it was looked at.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// look returns the process that has a number now, and its state in one letter.
func look(pid int) (p Process, state string, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, "", err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, "", err
	}
	// 1234 (any ) name) S 1 … : the state is field 3, the start time field 22.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return p, "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return Process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, fields[0], err
}

// Numbers of system calls, the same on every architecture.
const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// End kills exactly p, and no process that has its number now. Ending what is gone does nothing.
func End(p Process) error {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(p.PID), 0, 0)
	if errno == syscall.ESRCH {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("open process %d: %w", p.PID, errno)
	}
	defer syscall.Close(int(fd))
	if now, _, err := look(p.PID); err != nil || now != p { // looked at once nothing else can take the number's place
		if gone(err) {
			return nil
		}
		return err
	}
	_, _, errno = syscall.Syscall6(sysPidfdSendSignal, fd, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	if errno != 0 && errno != syscall.ESRCH {
		return fmt.Errorf("end process %d: %w", p.PID, errno)
	}
	return nil
}
