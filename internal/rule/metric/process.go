package metric

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Process is what the daemon itself holds.
type Process struct {
	ResidentBytes int64
	Descriptors   int
}

// readProcess asks the kernel.
func readProcess() (Process, error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Process{}, fmt.Errorf("read the daemon's memory: %w", err)
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return Process{}, errors.New("read the daemon's memory: the kernel's answer has no second field")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("read the daemon's memory: %w", err)
	}
	open, err := os.Open("/proc/self/fd")
	if err != nil {
		return Process{}, fmt.Errorf("count the daemon's descriptors: %w", err)
	}
	defer open.Close()
	names, err := open.Readdirnames(-1)
	if err != nil {
		return Process{}, fmt.Errorf("count the daemon's descriptors: %w", err)
	}
	return Process{ResidentBytes: pages * int64(os.Getpagesize()), Descriptors: len(names) - 1}, nil
}
