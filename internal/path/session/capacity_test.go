package session_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
)

func TestAMachineHoldsAsManySessionsAsWhatItHasLeastOf(t *testing.T) {
	large := session.Machine{MemoryBytes: 64 << 30, Watches: 8192, Descriptors: 1 << 20, Tasks: 1 << 20}
	for _, c := range []struct {
		change func(*session.Machine)
		want   int
		short  string
		more   string
	}{
		{func(m *session.Machine) {}, 409, "65536 MiB of memory, 128 of them for each", ""},
		{func(m *session.Machine) { m.Watches = 128 }, 100, "128 instances of inotify, one for each", "sudo sysctl -w fs.inotify.max_user_instances=1024"},
		{func(m *session.Machine) { m.Descriptors = 1024 }, 51, "1024 descriptors, 16 of them for each", "ulimit -n 8192"},
		{func(m *session.Machine) { m.Tasks = 4096 }, 51, "4096 processes and threads, 64 of them for each", ""},
		{func(m *session.Machine) { m.MemoryBytes = 64 << 20 }, 1, "64 MiB of memory, 128 of them for each", ""},
	} {
		m := large
		c.change(&m)
		if got := m.Room(); got != (session.Room{Sessions: c.want, Short: c.short, More: c.more}) {
			t.Errorf("%+v holds %+v, want %d", m, got, c.want)
		}
	}
}

func TestRoomIsWhatTheKernelSaysAndLittleWhereItSaysNothing(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		disktest.Put(t, filepath.Join(root, name), text, 0o644)
	}
	if r := session.RoomHere(root); r.Sessions != 10 || !strings.Contains(r.Short, "meminfo") {
		t.Errorf("without a kernel: %+v", r)
	}
	write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n")
	write("proc/sys/fs/inotify/max_user_instances", "8192\n")
	write("proc/sys/kernel/pid_max", "4194304\n")
	write("sys/fs/cgroup/memory.max", "max\n")
	write("sys/fs/cgroup/pids.max", "640\n")
	if r := session.RoomHere(root); r.Sessions != 8 || !strings.HasPrefix(r.Short, "640 processes") {
		t.Errorf("in a group of 640: %+v", r)
	}
	write("sys/fs/cgroup/memory.max", "671088640\n")
	if r := session.RoomHere(root); r.Sessions != 4 || !strings.HasPrefix(r.Short, "640 MiB") {
		t.Errorf("in a group of 640 MiB: %+v", r)
	}
	write("sys/fs/cgroup/pids.max", "many\n")
	if r := session.RoomHere(root); r.Sessions != 10 || !strings.Contains(r.Short, "pids.max") {
		t.Errorf("what cannot be read: %+v", r)
	}
}
