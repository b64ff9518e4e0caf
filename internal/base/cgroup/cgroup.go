// Package cgroup says where this process's control groups are, of either version, and reads their numbers. It makes none: keepers and
// sandboxes do, each their own.
package cgroup

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mounts returns where each controller that limits memory or processes is mounted; "" is version 2.
func Mounts() map[string]string {
	found := map[string]string{}
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return found
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 4 {
			continue
		}
		switch fields[2] {
		case "cgroup2":
			found[""] = fields[1]
		case "cgroup":
			for option := range strings.SplitSeq(fields[3], ",") {
				if option == "memory" || option == "pids" {
					found[option] = fields[1]
				}
			}
		}
	}
	return found
}

// Own returns this process's group per controller; "" is version 2.
func Own() map[string]string {
	own := map[string]string{}
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return own
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own
}

// Number reads one value of a group's file: the whole text, or the one after key. False where there is none, as of a limit that is "max".
func Number(dir, file, key string) (int64, bool) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		switch {
		case key == "" && len(fields) == 1:
			n, err := strconv.ParseInt(fields[0], 10, 64)
			return n, err == nil
		case len(fields) == 2 && fields[0] == key:
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
