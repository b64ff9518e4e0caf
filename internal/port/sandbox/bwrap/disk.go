package bwrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/port/sandbox"
)

// How often the tree and the open files are looked at: a look takes at most a twentieth of the time.
const (
	lookSoonest = 250 * time.Millisecond
	lookLatest  = 30 * time.Second
)

// written is what a sandbox's writable tree takes.
type written struct {
	bytes int64 // blocks that the file system has given, whatever the sizes say
	files int64 // entries
	deep  bool  // there are folders below FoldersMax that were not counted
}

// writable lists the folders of a tree that a sandbox's programs write to.
func writable(t sandbox.Tree) (folders []string) {
	if !t.ReadOnly {
		folders = append(folders, t.Upper)
	}
	return append(folders, t.Dir, t.GitDir)
}

// measure counts folders, through descriptors that never leave them; what is gone again counts nothing. A folder that an agent closed is
// opened for the look: without root it would hide what is in it.
func measure(folders []string) written {
	c := counter{seen: map[inode]bool{}}
	for _, path := range folders {
		if path == "" {
			continue
		}
		if fd, restore, err := beneath.TopFolder(path); err == nil {
			c.folder(fd, 0)
			restore()
		}
	}
	return c.written
}

type inode struct{ dev, ino uint64 }

// counter adds up entries; one file with several names takes its blocks once.
type counter struct {
	written
	seen map[inode]bool
}

// folder counts what is in fd and closes it.
func (c *counter) folder(fd, depth int) {
	defer unix.Close(fd)
	if depth > sandbox.FoldersMax {
		c.deep = true
		return
	}
	_ = beneath.Names(fd, func(name string) error { c.entry(fd, name, depth); return nil }) // what cannot be listed counts as far as it was
}

func (c *counter) entry(fd int, name string, depth int) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	c.files++
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && st.Nlink > 1 {
		id := inode{st.Dev, st.Ino}
		if c.seen[id] {
			return
		}
		c.seen[id] = true
	}
	c.bytes += st.Blocks * 512
	if kind == unix.S_IFDIR {
		if below, restore, err := beneath.Folder(fd, name); err == nil {
			c.folder(below, depth+1)
			restore()
		}
	}
}

// nameless is what programs keep open and no name shows.
type nameless struct {
	disk   int64 // bytes, on a disk
	memory int64 // bytes, of memory: memfd and its like
}

// namelessOf looks at the descriptors and the mappings of processes; who hides them, or is gone, has none.
func namelessOf(pids []int) (n nameless) {
	seen := map[inode]bool{}
	inMemory := map[uint64]bool{}
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		names, _ := readNames(dir + "/fd") // without: it may have mapped something
		for i := range names {
			names[i] = dir + "/fd/" + names[i]
		}
		for _, path := range append(names, mapped(dir)...) {
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			id := inode{st.Dev, st.Ino}
			if seen[id] {
				continue
			}
			seen[id] = true
			memory, known := inMemory[st.Dev]
			if !known {
				var fs unix.Statfs_t
				if err := unix.Statfs(path, &fs); err != nil {
					continue
				}
				memory = fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC
				inMemory[st.Dev] = memory
			}
			if memory {
				n.memory += st.Blocks * 512
			} else {
				n.disk += st.Blocks * 512
			}
		}
	}
	return n
}

// mapped lists what a process has mapped of files that no name shows: one that is closed is held by its mapping alone.
// Only root may look there.
func mapped(dir string) (paths []string) {
	raw, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasSuffix(line, " (deleted)\n") {
			pages, _, _ := strings.Cut(line, " ")
			from, to, _ := strings.Cut(pages, "-") // there without the zeros that fill them up here
			paths = append(paths, dir+"/map_files/"+strings.TrimLeft(from, "0")+"-"+strings.TrimLeft(to, "0"))
		}
	}
	return paths
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// members lists the host's pids of the sandbox's processes.
func (p *process) members() []int {
	for _, dir := range []string{p.groups.unified, p.groups.pids, p.groups.memory} {
		if dir == "" {
			continue
		}
		raw, err := os.ReadFile(dir + "/cgroup.procs")
		if err != nil {
			return nil
		}
		var pids []int
		for _, text := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(text); err == nil {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	p.mu.Lock()
	init, alive := p.initPID, p.init != nil
	p.mu.Unlock()
	if !alive {
		return nil
	}
	pids, err := descendants(init)
	if err != nil {
		return nil
	}
	return pids
}

// watchDisk ends a sandbox that has written more than it may. It looks from outside, by what the file
// system has given.
func (p *process) watchDisk() {
	pause := lookSoonest
	var used time.Duration
	for told := int64(0); ; {
		select {
		case <-p.done:
			return
		case <-time.After(pause):
		}
		var ran bool
		if used, ran = p.groups.ran(used); !ran { // read before the look: what is written meanwhile is looked for in the next
			continue
		}
		began := time.Now()
		open := namelessOf(p.members())
		if p.groups.kind.memory == rlimitWatch && open.memory != told {
			told = open.memory
			_ = p.send(sandbox.Order{Unseen: &told}) // an init that is gone needs no count
		}
		p.lookAtDisk(open)
		pause = min(max(20*time.Since(began), lookSoonest), lookLatest)
	}
}

// lookAtDisk measures the tree once.
func (p *process) lookAtDisk(open nameless) {
	now := measure(p.written)
	now.bytes -= p.before.bytes
	now.files -= p.before.files
	l := p.brokenDisk(now, open.disk)
	if l == nil {
		l = p.room.broken(p.limits.DiskBytes)
	}
	if l != nil {
		p.stop(l)
	}
}

// room is how much a disk had free.
type room struct {
	on   string // a folder there; "" = nobody looks
	free int64
}

// broken names the limit that is broken where the disk has less by more than that. Who may mount holds files by mounts alone, whose names
// are gone: no look at a folder or a process finds them. Where others have written as much meanwhile, the machine has no room for a build.
func (r room) broken(limit int64) *sandbox.Limit {
	if r.on == "" {
		return nil
	}
	lost := r.free - freeOn(r.on)
	if lost <= limit {
		return nil
	}
	return &sandbox.Limit{Name: sandbox.Disk, Value: sandbox.Bytes(limit), Observed: "the disk has " + sandbox.Bytes(lost) + " less since it began"}
}

// freeOn is how much room a disk has.
func freeOn(folder string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return 0
	}
	return int64(fs.Bfree) * fs.Bsize
}

// brokenDisk names the limit that is broken; nil if none is.
func (p *process) brokenDisk(now written, open int64) *sandbox.Limit {
	switch {
	case now.bytes+open > p.limits.DiskBytes:
		l := sandbox.Limit{Name: sandbox.Disk, Value: sandbox.Bytes(p.limits.DiskBytes), Observed: sandbox.Bytes(now.bytes + open)}
		if open > 0 {
			l.Observed += ", " + sandbox.Bytes(open) + " of it in open files without a name"
		}
		return &l
	case now.files > int64(p.limits.FilesMax):
		return &sandbox.Limit{Name: sandbox.Files, Value: strconv.Itoa(p.limits.FilesMax), Observed: strconv.FormatInt(now.files, 10)}
	case now.deep:
		return &sandbox.Limit{Name: sandbox.Depth, Value: fmt.Sprintf("%d folders in each other", sandbox.FoldersMax), Observed: "more"}
	}
	return nil
}
