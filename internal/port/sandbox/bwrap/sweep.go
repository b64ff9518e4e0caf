package bwrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/cgroup"
	"sallyport/internal/base/leftover"
)

// groupsMax bounds how many folders of a tree of control groups are looked at.
const groupsMax = 20_000

// groupName is the name of every folder of control groups of the home whose state lies in root.
func groupName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return "sallyport-" + hex.EncodeToString(sum[:4])
}

// Left are control groups of this home that no daemon of it owns, wherever in the trees an earlier one made them. One goes with what runs
// in it, which no daemon of this home can be waiting for: remove it only while this process holds the home, for then every other
// daemon of it is dead.
func (d *Driver) Left(context.Context) ([]leftover.Item, error) {
	var all []leftover.Item
	for _, dir := range d.left() {
		all = append(all, leftover.Item{Place: beneath.Place{Path: dir}, What: "control group", Goes: leftover.AtOnce,
			Remove: func(context.Context) (bool, error) { return d.clear(dir) }})
	}
	return all, nil
}

func (d *Driver) left() []string {
	name, own := groupName(d.config.Root), strconv.Itoa(os.Getpid())+"-"
	var left []string
	for _, at := range slices.Sorted(slices.Values(treesOf(cgroup.Mounts()))) {
		seen := 0
		_ = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil // a group that ended while the tree was read
			}
			if seen++; seen > groupsMax {
				return fs.SkipAll
			}
			if e.Name() != name {
				return nil
			}
			alive := false
			inside, _ := os.ReadDir(path)
			for _, group := range inside {
				switch {
				case !group.IsDir():
				case strings.HasPrefix(group.Name(), own):
					alive = true
				case sandboxGroup(group.Name()):
					left = append(left, filepath.Join(path, group.Name()))
				default:
					alive = true // not named by us
				}
			}
			if !alive {
				left = append(left, path)
			}
			return fs.SkipDir
		})
	}
	return left
}

// sandboxGroup reports whether a group is named as one of a sandbox: `<pid of its daemon>-<id>`.
func sandboxGroup(name string) bool {
	pid, _, ok := strings.Cut(name, "-")
	n, err := strconv.Atoi(pid)
	return ok && err == nil && n > 0
}

// clear ends what runs in one of the groups that are left, and removes it.
func (d *Driver) clear(dir string) (gone bool, err error) {
	if filepath.Base(dir) == groupName(d.config.Root) {
		leave(d.config.Ops, dir) // with a sandbox in it that began meanwhile it stays
		_, err := os.Lstat(dir)
		return errors.Is(err, os.ErrNotExist), nil
	}
	if err := d.endAll(dir); err != nil {
		return false, err
	}
	err = removeGroup(d.config.Ops, dir, time.Second)
	return err == nil, err
}

// endAll kills every process of a group. Version 1 has no word for that: there each is killed by a descriptor, once
// it was seen that the process behind it is in the group.
func (d *Driver) endAll(dir string) error {
	err := writeGroup(d.config.Ops, dir, "cgroup.kill", "1")
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the processes of %s: %w", dir, err)
	}
	for field := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 1 {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		own, _ := os.ReadFile("/proc/" + field + "/cgroup")
		if strings.Contains(string(own), "/"+groupName(d.config.Root)+"/"+filepath.Base(dir)+"\n") {
			_ = d.config.Ops.Do("cgroup:kill", func() error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
		}
		unix.Close(fd)
	}
	return nil
}

// treesOf returns where the trees of control groups are mounted, each once.
func treesOf(mounts map[string]string) []string {
	var all []string
	for _, at := range mounts {
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}
