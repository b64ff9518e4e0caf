package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/port/sandbox"
)

// The staging tmpfs covers /tmp in the launcher's own mount namespace, which every
// machine has and everyone may enter; nothing of it is on disk or outlives the
// sandbox. Short names keep the overlay's options within one page.
const (
	stageDir   = "/tmp"
	stageFiles = 64 << 10              // places of mounts
	rootDir    = stageDir + "/root"    // what becomes / inside
	scratchDir = stageDir + "/scratch" // /tmp, /dev/shm and the home folder: one size for all
	layerDir   = stageDir + "/l"
	writeDir   = stageDir + "/w"
	lowestDir  = stageDir + "/g" // lowest layer: the place where the scratch .git is mounted

	cacheDir      = stageDir + "/c" // layers of the folder of caches
	cacheWriteDir = stageDir + "/d"
	noCacheDir    = stageDir + "/e" // an empty lowest layer of it
)

// graft is a detached mount and the place it goes to.
type graft struct {
	fd     int
	target string
	folder bool
}

// stage builds the whole root of the sandbox under rootDir. Everything is cloned
// by descriptor before the staging tmpfs covers anything, so that a source may
// lie below /tmp or below a folder that only the person may enter.
func stage(l sandbox.Launch) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	system, err := openImage(l.Image)
	if err != nil {
		return err
	}
	grafts, err := cloneAll(l)
	if err != nil {
		return err
	}
	grafts = append(grafts, system.grafts...)
	if err := mountTmpfs(stageDir, 64<<20, stageFiles, 0o755); err != nil {
		return err
	}
	if err := makeRoot(l, system); err != nil {
		return err
	}
	// Layers and the writable part first: the overlay stands on them, binds may stand on the overlay.
	slices.SortStableFunc(grafts, func(a, b graft) int {
		return cmp.Or(cmp.Compare(rank(a.target), rank(b.target)), cmp.Compare(depth(a.target), depth(b.target)))
	})
	mounted := false
	for _, g := range grafts {
		if rank(g.target) > 0 && !mounted {
			mounted = true
			if err := mountTree(l.Tree); err != nil {
				return err
			}
			if err := mountCache(l.Cache); err != nil {
				return err
			}
		}
		if err := attach(g, l.Owner); err != nil {
			return err
		}
	}
	return readOnly(l.Tree)
}

func rank(target string) int {
	if strings.HasPrefix(target, rootDir+"/") {
		return 1
	}
	return 0
}

func depth(target string) int { return strings.Count(target, "/") }

// cloneAll opens every source as a detached mount.
func cloneAll(l sandbox.Launch) ([]graft, error) {
	var all []graft
	add := func(source, target string, attr uint64, idmap int) error {
		g, err := clone(source, target, attr, idmap)
		if err == nil {
			all = append(all, g)
		}
		return err
	}
	tree := l.Tree
	if err := addLayers(l, add); err != nil {
		return nil, err
	}
	var binds []sandbox.Bind
	if tree.Dir != "" {
		binds = append(binds, sandbox.Bind{Source: tree.Dir, Target: sandbox.Mountpoint, Writable: true})
	}
	if tree.GitDir != "" {
		binds = append(binds, sandbox.Bind{Source: tree.GitDir, Target: sandbox.Mountpoint + "/.git", Writable: true})
	}
	binds = append(binds, sandbox.Bind{Source: l.Self, Target: sandbox.InitPath})
	if l.Image == "" {
		binds = append(binds, machine()...)
	}
	// Where a repository says objects are was looked at before; it must still be that place.
	for _, b := range tree.Objects {
		g, err := cloneReal(b.Source, rootDir+filepath.Clean(b.Target))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	if l.Egress != "" {
		binds = append(binds, sandbox.Bind{Source: l.Egress, Target: sandbox.EgressSocket})
	}
	if l.Home != "" {
		binds = append(binds, sandbox.Bind{Source: l.Home, Target: sandbox.Home, Writable: true})
	}
	for _, b := range append(binds, l.Binds...) {
		attr := uint64(unix.MOUNT_ATTR_RDONLY)
		if b.Writable {
			attr = 0
		}
		if err := add(b.Source, rootDir+filepath.Clean(b.Target), attr, 0); err != nil {
			return nil, err
		}
	}
	for i, m := range l.Mounts {
		idmap := 0
		if i < len(l.MountFDs) {
			idmap = l.MountFDs[i]
		}
		g, err := cloneSame(m, idmap)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// addLayers opens the layers of the tree and of the caches, and what is written upon them.
func addLayers(l sandbox.Launch, add func(source, target string, attr uint64, idmap int) error) error {
	tree := l.Tree
	for _, stack := range []struct {
		layers      []string
		upper       string
		to, writeTo string
	}{{tree.Layers, tree.Upper, layerDir, writeDir}, {l.Cache.Layers, l.Cache.Upper, cacheDir, cacheWriteDir}} {
		for i, layer := range stack.layers {
			idmap, err := mapping(layer, l)
			if err != nil {
				return err
			}
			if err := add(layer, stack.to+"/"+strconv.Itoa(i), unix.MOUNT_ATTR_RDONLY, idmap); err != nil {
				return err
			}
		}
		if stack.upper == "" {
			continue
		}
		if err := add(filepath.Dir(stack.upper), stack.writeTo, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// mapping decides whether a base layer needs the id map: it does if root owns it and the sandbox is somebody else.
func mapping(layer string, l sandbox.Launch) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(layer, &st); err != nil {
		return 0, fmt.Errorf("base layer %q: %w", layer, err)
	}
	switch {
	case st.Uid == l.Owner.UID:
		return 0, nil
	case st.Uid == 0 && l.IdmapFD > 0:
		return l.IdmapFD, nil
	default:
		return 0, fmt.Errorf("base layer %q belongs to uid %d, and this machine cannot show it to uid %d", layer, st.Uid, l.Owner.UID)
	}
}

// clone returns source, with what is mounted below it, as a detached mount without devices and set-id programs.
func clone(source, target string, attr uint64, idmap int) (graft, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return graft{}, fmt.Errorf("show %q: %w", source, err)
	}
	return protect(fd, source, target, attr, idmap)
}

// cloneReal is clone, read-only, of a folder whose path has no link in it.
func cloneReal(source, target string) (graft, error) {
	at, err := beneath.Real(source, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return graft{}, fmt.Errorf("show: %w", err)
	}
	defer unix.Close(at)
	return cloneOpen(at, source, target)
}

// cloneOpen is clone, read-only, of what is open.
func cloneOpen(at int, source, target string) (graft, error) {
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return graft{}, fmt.Errorf("show %q: %w", source, err)
	}
	return protect(fd, source, target, unix.MOUNT_ATTR_RDONLY, 0)
}

// cloneSame is cloneReal of the folder that was looked at, which somebody else may have put another in the place of.
func cloneSame(m sandbox.Mount, idmap int) (graft, error) {
	at, err := beneath.Real(m.Source, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return graft{}, fmt.Errorf("show: %w", err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return graft{}, fmt.Errorf("show %q: %w", m.Source, err)
	}
	if st.Dev != m.Dev || st.Ino != m.Ino || st.Uid != m.Of.UID || st.Gid != m.Of.GID {
		return graft{}, fmt.Errorf("show %q: it is not the folder any more that was looked at", m.Source)
	}

	attr := uint64(unix.MOUNT_ATTR_RDONLY)
	if m.Writable {
		attr = 0
	}
	for {
		fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err != nil {
			return graft{}, fmt.Errorf("show %q: %w", m.Source, err)
		}
		g, err := protect(fd, m.Source, rootDir+m.Target, attr, idmap)
		if err == nil || idmap == 0 {
			return g, err
		}
		// A file system that knows no id maps: it is shown as it is, and the sandbox's owner has the rights of a stranger there.
		idmap = 0
		if err := unix.Close(fd); err != nil {
			return graft{}, fmt.Errorf("show %q: %w", m.Source, err)
		}
	}
}

// protect sets what a detached mount must never allow.
func protect(fd int, source, target string, attr uint64, idmap int) (graft, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return graft{}, fmt.Errorf("show %q: %w", source, err)
	}
	set := unix.MountAttr{Attr_set: attr | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	flags := uint(unix.AT_EMPTY_PATH | unix.AT_RECURSIVE)
	if idmap > 0 {
		set.Attr_set |= unix.MOUNT_ATTR_IDMAP
		set.Userns_fd = uint64(idmap)
	}
	if err := unix.MountSetattr(fd, "", flags, &set); err != nil {
		return graft{}, fmt.Errorf("protect %q: %w", source, err)
	}
	return graft{fd: fd, target: target, folder: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// attach puts a detached mount in its place, which is made if it is not there.
func attach(g graft, owner sandbox.Owner) error {
	inside := strings.TrimPrefix(g.target, rootDir)
	if err := makePlace(g.target, g.folder, owner); err != nil {
		return fmt.Errorf("make a place for %q: %w", inside, err)
	}
	if err := unix.MoveMount(g.fd, "", unix.AT_FDCWD, g.target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %q: %w", inside, err)
	}
	return unix.Close(g.fd)
}

// makePlace never follows a link on the way, so that nothing is mounted outside the staging root.
func makePlace(target string, folder bool, owner sandbox.Owner) error {
	for i := len(stageDir) + 1; i < len(target); i++ {
		if target[i] == '/' {
			if err := makeFolder(target[:i], owner); err != nil {
				return err
			}
		}
	}
	if folder {
		return makeFolder(target, owner)
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		info, err := os.Lstat(target)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%q is in the way", target)
		}
		return err
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// makeFolder makes one folder; below the agent's home it is the agent's, who has to write beside what is mounted there.
func makeFolder(path string, owner sandbox.Owner) error {
	err := os.Mkdir(path, 0o755)
	if err == nil && sandbox.Below(path, rootDir+sandbox.Home) {
		return os.Lchown(path, int(owner.UID), int(owner.GID))
	}
	if err == nil {
		return nil
	}
	info, lerr := os.Lstat(path)
	switch {
	case lerr != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is in the way", path)
	}
	return nil
}

// spareFiles are entries of the scratch space that are there from the beginning, or stand behind the limit.
const spareFiles = 128

func mountTmpfs(at string, sizeBytes, files int64, mode uint32) error {
	// Never more entries than there is room for in memory, if all are empty.
	options := "size=" + strconv.FormatInt(sizeBytes, 10) + ",nr_inodes=" + strconv.FormatInt(min(files, sizeBytes/entryBytes), 10) +
		",mode=" + strconv.FormatUint(uint64(mode), 8)
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	return nil
}

// mountTree mounts the overlay; a plain folder was bound already.
func mountTree(t sandbox.Tree) error {
	if t.Dir != "" {
		return nil
	}
	options, err := overlayOptions(t)
	if err != nil {
		return err
	}
	place := rootDir + sandbox.Mountpoint
	if err := unix.Mount("overlay", place, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount the workspace's overlay of %d layers: %w", len(t.Layers), err)
	}
	return nil
}

// mountCache mounts the folder of caches: its layers, under what is written now.
func mountCache(c sandbox.Cache) error {
	if c.Upper == "" {
		return nil
	}
	lower := []string{}
	for i := range c.Layers {
		lower = append([]string{cacheDir + "/" + strconv.Itoa(i)}, lower...)
	}
	options, err := writableOverlay(append(lower, noCacheDir), cacheWriteDir, c.Upper, c.Work)
	if err != nil {
		return err
	}
	if err := unix.Mount("overlay", rootDir+sandbox.Caches, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount the folder of caches of %d layers: %w", len(c.Layers), err)
	}
	return nil
}

// overlayOptions names the layers, highest first. A tree that is only read has
// its upper directory as the highest layer: nothing is claimed, nothing is written.
func overlayOptions(t sandbox.Tree) (string, error) {
	var lower []string
	if t.ReadOnly && t.Upper != "" {
		lower = append(lower, escape(writeDir+"/"+filepath.Base(t.Upper)))
	}
	for i := len(t.Layers) - 1; i >= 0; i-- {
		lower = append(lower, layerDir+"/"+strconv.Itoa(i))
	}
	// Always there, so that an overlay to read has two layers, and .git has a place that no walk sees.
	lower = append(lower, lowestDir)
	if t.ReadOnly {
		return overlayOf(lower, "")
	}
	return writableOverlay(lower, writeDir, t.Upper, t.Work)
}

// writableOverlay is overlayOf layers with what is written in a folder that holds upper and work, seen at a place of ours.
func writableOverlay(lower []string, at, upper, work string) (string, error) {
	if filepath.Dir(upper) != filepath.Dir(work) {
		return "", fmt.Errorf("upper %q and work %q do not stand side by side", upper, work)
	}
	return overlayOf(lower, ",upperdir="+escape(at+"/"+filepath.Base(upper))+",workdir="+escape(at+"/"+filepath.Base(work)))
}

// overlayOf is the options of an overlay of layers, highest first; they fit into a page.
func overlayOf(lower []string, written string) (string, error) {
	options := "userxattr,lowerdir=" + strings.Join(lower, ":") + written
	if len(options) >= os.Getpagesize() {
		return "", fmt.Errorf("%d layers are more than one overlay takes", len(lower))
	}
	return options, nil
}

var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace

// readOnly takes the right to write from the workspace and all below it.
func readOnly(t sandbox.Tree) error {
	if !t.ReadOnly {
		return nil
	}
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, rootDir+sandbox.Mountpoint, unix.AT_RECURSIVE, &set); err != nil {
		return fmt.Errorf("make the workspace read-only: %w", err)
	}
	return nil
}
