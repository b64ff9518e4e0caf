package session

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what there is of what sessions take.
type Machine struct {
	MemoryBytes int64
	Watches     int64 // instances of inotify that one user may have
	Descriptors int64 // that one process may have
	Tasks       int64 // processes and threads
}

// each is what a session takes whose agent waits for its model: most of their time that is what agents do. A limit of the sandbox is many
// times that, so it says nothing of how many there can be.
var each = Machine{MemoryBytes: 128 << 20, Watches: 1, Descriptors: 16, Tasks: 64}

// Room is how many sessions a machine holds at once, and what there is no more of then.
type Room struct {
	Sessions int
	Short    string
	More     string // a command that makes more of it; "" = none does
}

// unknownRoom is how many sessions a machine holds that cannot be looked at.
const unknownRoom = 10

// Room divides a machine among sessions. A fifth of it is for what else runs.
func (m Machine) Room() Room {
	best := Room{Sessions: math.MaxInt}
	for _, r := range []struct {
		there, each int64
		short, more string
	}{
		{m.MemoryBytes, each.MemoryBytes, fmt.Sprintf("%d MiB of memory, %d of them for each", m.MemoryBytes>>20, each.MemoryBytes>>20), ""},
		{m.Watches, each.Watches, fmt.Sprintf("%d instances of inotify, one for each", m.Watches),
			fmt.Sprintf("sudo sysctl -w fs.inotify.max_user_instances=%d", 8*max(m.Watches, 128))},
		{m.Descriptors, each.Descriptors, fmt.Sprintf("%d descriptors, %d of them for each", m.Descriptors, each.Descriptors),
			fmt.Sprintf("ulimit -n %d", 8*max(m.Descriptors, 1024))},
		{m.Tasks, each.Tasks, fmt.Sprintf("%d processes and threads, %d of them for each", m.Tasks, each.Tasks), ""},
	} {
		if n := int(max(r.there/5*4/r.each, 1)); n < best.Sessions {
			best = Room{n, r.short, r.more}
		}
	}
	return best
}

// RoomHere looks at this machine, below root: "/". What cannot be read is no reason to believe that there is much of it.
func RoomHere(root string) Room {
	m, err := lookAt(root)
	if err != nil {
		return Room{Sessions: unknownRoom, Short: "what cannot be looked at: " + err.Error()}
	}
	return m.Room()
}

func lookAt(root string) (Machine, error) {
	var m Machine
	var err error
	if m.MemoryBytes, err = memory(filepath.Join(root, "proc/meminfo")); err != nil {
		return m, err
	}
	if m.Watches, err = figure(root, "proc/sys/fs/inotify/max_user_instances"); err != nil {
		return m, err
	}
	if m.Tasks, err = figure(root, "proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max", "sys/fs/cgroup/pids.max",
		"sys/fs/cgroup/pids/pids.max"); err != nil {
		return m, err
	}
	grouped, err := figure(root, "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes") // a container's
	if err != nil {
		return m, err
	}
	m.MemoryBytes = min(m.MemoryBytes, grouped)
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return m, err
	}
	m.Descriptors = int64(min(files.Cur, math.MaxInt64))
	return m, nil
}

// memory reads how much memory the machine has.
func memory(meminfo string) (int64, error) {
	data, err := os.ReadFile(meminfo)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no MemTotal", meminfo)
}

// figure reads the least of some limits. A file that is not there, and the word max, are none.
func figure(root string, files ...string) (int64, error) {
	least := int64(math.MaxInt64)
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		text := strings.TrimSpace(string(data))
		if text == "max" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		least = min(least, n)
	}
	return least, nil
}
