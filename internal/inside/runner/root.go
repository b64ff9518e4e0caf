package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// What of the host's /etc is shown: certificates and the alternatives' links as
// they are, a few small files as copies, the rest is made. Nothing else.
var (
	etcFolders = []string{"/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"}
	etcFiles   = []string{"localtime", "ld.so.cache", "ld.so.conf", "ssl/openssl.cnf"}
)

// copyBytesMax is the most that a copied file may have; the linker's cache has some 100 kB.
const copyBytesMax = 4 << 20

// tops are the names that lead into /usr.
var tops = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// machine returns the folders that show this machine's own programs: /usr, what of /etc is shown, and those tops that are no links.
func machine() []sandbox.Bind {
	binds := []sandbox.Bind{{Source: "/usr", Target: "/usr"}}
	for _, shown := range etcFolders {
		if _, err := os.Stat(shown); err == nil {
			binds = append(binds, sandbox.Bind{Source: shown, Target: shown})
		}
	}
	for _, top := range tops {
		if info, err := os.Lstat(top); err == nil && info.IsDir() {
			binds = append(binds, sandbox.Bind{Source: top, Target: top})
		}
	}
	return binds
}

// makeRoot fills the staging tmpfs: the folders of the root, its links, the made /etc and the scratch space.
func makeRoot(l sandbox.Launch, system image) error {
	folders := []string{
		rootDir, layerDir, lowestDir,
		rootDir + "/proc", rootDir + "/dev", rootDir + "/etc", rootDir + "/etc/ssl",
		rootDir + "/home", rootDir + sandbox.Home, rootDir + sandbox.Mountpoint, rootDir + "/tmp", rootDir + "/var",
		scratchDir,
	}
	if l.Cache.Upper != "" {
		folders = append(folders, rootDir+"/var/cache", rootDir+sandbox.Caches, cacheDir, noCacheDir)
	}
	if l.Range {
		folders = append(folders, rootDir+"/sys", rootDir+"/run") // places that builders of images look for
	}
	if l.Tree.GitDir != "" {
		folders = append(folders, lowestDir+"/.git")
	}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return fmt.Errorf("make root: %w", err)
		}
	}
	links := map[string]string{"/var/tmp": "/tmp", "/etc/mtab": "/proc/self/mounts", sandbox.Worktree: sandbox.Mountpoint}
	for _, top := range tops {
		if to, err := os.Readlink(top); err == nil && l.Image == "" {
			links[top] = to
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, rootDir+name); err != nil {
			return fmt.Errorf("make root: %w", err)
		}
	}
	if err := makeEtc(l.Owner); err != nil {
		return err
	}
	copied := system.make
	if l.Image == "" {
		copied = copyEtc
	}
	if err := copied(); err != nil {
		return err
	}
	return makeScratch(l)
}

func makeEtc(owner sandbox.Owner) error {
	made := map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:%d:%d:agent:%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			owner.UID, owner.GID, sandbox.Home),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", owner.GID),
		"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
	for name, text := range made {
		if err := os.WriteFile(rootDir+"/etc/"+name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("make /etc: %w", err)
		}
	}
	return nil
}

// copyEtc copies the small files of this machine's own /etc.
func copyEtc() error {
	copied := etcFiles
	if more, err := filepath.Glob("/etc/ld.so.conf.d/*.conf"); err == nil && len(more) > 0 {
		if err := os.Mkdir(rootDir+"/etc/ld.so.conf.d", 0o755); err != nil {
			return fmt.Errorf("make /etc: %w", err)
		}
		for _, path := range more {
			copied = append(copied, strings.TrimPrefix(path, "/etc/"))
		}
	}
	for _, name := range copied {
		raw, err := readSmall("/etc/" + name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue // a machine without it, as programs see it there too
		}
		if err != nil {
			return fmt.Errorf("copy /etc/%s: %w", name, err)
		}
		if err := os.WriteFile(rootDir+"/etc/"+name, raw, 0o644); err != nil {
			return fmt.Errorf("copy /etc/%s: %w", name, err)
		}
	}
	return nil
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > copyBytesMax {
		return nil, fmt.Errorf("%q is no regular file of at most %d bytes", path, copyBytesMax)
	}
	return os.ReadFile(path)
}

// makeScratch mounts the space for /tmp, /dev/shm and the home folder: one tmpfs with a size, seen at three places.
func makeScratch(l sandbox.Launch) error {
	// A little more than may be used: who fills it breaks the limit of memory, or of files, by name.
	if err := mountTmpfs(scratchDir, l.ScratchBytes+l.ScratchBytes/8, l.ScratchFiles+spareFiles, 0o755); err != nil {
		return err
	}
	places := []struct {
		name, target string
		mode         uint32
	}{
		{"tmp", rootDir + "/tmp", 0o1777},
		{"home", rootDir + sandbox.Home, 0o700},
		{"shm", "", 0o1777}, // mounted by bwrap, once there is a /dev
	}
	for _, p := range places {
		path := scratchDir + "/" + p.name
		if err := os.Mkdir(path, 0o700); err != nil {
			return fmt.Errorf("make scratch space: %w", err)
		}
		if err := unix.Chmod(path, p.mode); err != nil {
			return fmt.Errorf("make scratch space: %w", err)
		}
		if err := os.Lchown(path, int(l.Owner.UID), int(l.Owner.GID)); err != nil {
			return fmt.Errorf("make scratch space: %w", err)
		}
		if p.target == "" || p.name == "home" && l.Home != "" {
			continue
		}
		if err := unix.Mount(path, p.target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("make scratch space: %w", err)
		}
	}
	return nil
}
