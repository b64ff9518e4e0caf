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

// Alive reports whether p runs. A process that has ended and waits for its parent does
// not; one that cannot be looked at is taken to run, for the deadline holds all the same.
func Alive(p Process) bool {
	now, state, err := look(p.PID)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	return err != nil || now == p && state != "Z" && state != "X"
}

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
