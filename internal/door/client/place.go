package client

import (
	"bufio"
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
	"syscall"

	"sallyport/internal/base/problem"
)

// Person is what a place depends on: the user, and what the environment says.
type Person struct {
	UID    int
	Getenv func(string) string
}

// Me is the person who runs this process.
func Me() Person { return Person{UID: os.Geteuid(), Getenv: os.Getenv} }

// Home returns the absolute path of the home to use: the flag, else SALLYPORT_HOME, which has to be absolute,
// else $XDG_STATE_HOME/sallyport; without that ~/.local/state/sallyport, for root
// /var/lib/sallyport. Links on the way are followed, so that one home has one name.
func (p Person) Home(flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = p.Getenv("SALLYPORT_HOME")
		if dir != "" && !filepath.IsAbs(dir) { // it stays as one goes from folder to folder, and would name a home in each
			return "", problem.Errorf(problem.Usage, "env -u SALLYPORT_HOME sallyport status",
				"SALLYPORT_HOME is %q, another folder wherever you stand: set it to an absolute path", dir)
		}
	}
	if dir == "" {
		state, home := p.Getenv("XDG_STATE_HOME"), p.Getenv("HOME")
		switch {
		case filepath.IsAbs(state): // the XDG rules say to ignore any other
			dir = filepath.Join(state, "sallyport")
		case p.UID == 0:
			dir = "/var/lib/sallyport"
		case filepath.IsAbs(home):
			dir = filepath.Join(home, ".local/state/sallyport")
		default:
			return "", problem.Errorf(problem.Usage, "SALLYPORT_HOME=DIR sallyport status",
				"HOME is %q; say where sallyport may keep its state: SALLYPORT_HOME=DIR", home)
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the home %q: %w", dir, err)
	}
	return real(abs), nil
}

// real follows links as far as the path exists; what does not exist yet stays as it is.
func real(path string) string {
	for rest := ""; ; {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(p, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = parent
	}
}

// socketBytesMax is what the kernel takes as a unix socket's path, without the final zero.
const socketBytesMax = 107

// Socket returns where the daemon of a home (as Home returns it) listens when it is started by p.
func (p Person) Socket(home string) (string, error) {
	path := socketIn(p.runtime(), home)
	if len(path) > socketBytesMax {
		return "", problem.Errorf(problem.Unavailable, "XDG_RUNTIME_DIR= sallyport status",
			"the socket's path %q has %d bytes; the kernel takes at most %d", path, len(path), socketBytesMax)
	}
	return path, nil
}

// Sockets returns every place where a daemon of the home may listen, the likeliest first:
// one that was started from another login may have had another XDG_RUNTIME_DIR.
func (p Person) Sockets(home string) []string {
	paths := []string{socketIn(p.runtime(), home), socketIn(p.fallback(), home)}
	for _, path := range listening(socketIn("", home)) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return len(path) > socketBytesMax })
}

// listening returns the unix sockets of this machine whose path ends in a folder and a name.
// Who may have put one there is for ours to judge.
func listening(end string) []string {
	table, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil // then only the places that can be computed are known
	}
	defer table.Close() // read only
	var paths []string
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// The path is the last column and may hold spaces.
		if at := strings.Index(lines.Text(), " /"); at >= 0 && strings.HasSuffix(lines.Text(), "/"+end) {
			paths = append(paths, lines.Text()[at+1:])
		}
	}
	return paths
}

func socketIn(runtime, home string) string {
	return filepath.Join(runtime, homeName(home), "daemon.sock")
}

// homeName is the folder of a home's sockets.
func homeName(home string) string {
	sum := sha256.Sum256([]byte(home))
	return hex.EncodeToString(sum[:])[:12]
}

// usersEnd is how the path of a home's second socket ends.
func usersEnd(home string) string { return filepath.Join(homeName(home), "chat") }

// UsersSocket returns where the daemon of a home that p has started listens for other users of this machine: where they can get to.
func (p Person) UsersSocket(home string) string {
	dir := p.fallback()
	if xdg := p.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(xdg) && owner(xdg) == p.UID && passable(xdg) {
		dir = filepath.Join(xdg, "sallyport")
	}
	return filepath.Join(dir+"-chat", usersEnd(home))
}

// passable reports whether every user may go through a folder.
func passable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o001 != 0
}

// ownerOf returns whose a home is: who owns the folder, or else the first above it that can be looked at, if that keeps p out; false where
// there is no such home, or it is p's own.
func (p Person) ownerOf(home string) (uid int, others bool) {
	info, err := os.Stat(home)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return 0, false
	}
	for dir := home; err != nil; info, err = os.Stat(dir) {
		if dir = filepath.Dir(dir); dir == "/" {
			return 0, false
		}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), ok && int(stat.Uid) != p.UID && p.UID != 0
}

// runtime is the folder of p's sockets. An XDG_RUNTIME_DIR that belongs to somebody else
// (as after sudo -E) is not p's.
func (p Person) runtime() string {
	if dir := p.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && owner(dir) == p.UID {
		return filepath.Join(dir, "sallyport")
	}
	return p.fallback()
}

func (p Person) fallback() string {
	if p.UID == 0 {
		return "/run/sallyport"
	}
	return filepath.Join("/tmp", "sallyport-"+strconv.Itoa(p.UID))
}

// owner returns the uid of a folder's owner, -1 if it is no folder.
func owner(dir string) int {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return -1
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}

// ours refuses a socket whose folder, or the folder above it, is not a real folder of
// p's (or root's) that nobody else may write: who could, might have put another socket there.
func (p Person) ours(socket string) error {
	// The upper one first: where it is somebody else's, nothing of ours is to be put into it.
	for _, dir := range []string{filepath.Dir(filepath.Dir(socket)), filepath.Dir(socket)} {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil {
			return fmt.Errorf("look at the socket's folder: %w", err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.IsDir() || int(stat.Uid) != p.UID && stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			return problem.Errorf(problem.Refused, fmt.Sprintf("ls -ld %q", dir),
				"the socket's folder %q is not yours alone; remove it, or set XDG_RUNTIME_DIR to a folder of yours", dir)
		}
	}
	return nil
}
