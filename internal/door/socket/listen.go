package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
)

// ErrAnswered refuses to listen where another daemon answers.
var ErrAnswered = problem.New(problem.Conflict, "another daemon answers there")

// Listen makes the socket at path: its folder ours and 0700, itself 0600. A socket
// that nobody answers on is what a killed daemon left, and is removed; one that is
// answered is not (ErrAnswered). Closing the listener removes the socket.
func Listen(ctx context.Context, path string, ops disk.Ops) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := ownParent(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := ops.Do("socket:mkdir", func() error { return os.MkdirAll(dir, 0o700) }); err != nil {
		return nil, fmt.Errorf("make the socket's folder: %w", err)
	}
	if err := ownFolder(dir); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path, ops); err != nil {
		return nil, err
	}
	var l net.Listener
	err := ops.Do("socket:listen", func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
		return err
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %q: %w", path, ErrAnswered)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", path, err)
	}
	// Until here the folder's mode has kept others out.
	if err := ops.Do("socket:chmod", func() error { return os.Chmod(path, 0o600) }); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), l.Close())
	}
	return l, nil
}

// ListenUsers makes the second socket at path, which every user of this machine may reach: its folders ours and 0755, itself 0666. In all else it
// is like Listen.
func ListenUsers(ctx context.Context, path string, ops disk.Ops) (net.Listener, error) {
	dir := filepath.Dir(path)
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := ops.Do("socket:mkdir-users", func() error { return os.MkdirAll(folder, 0o755) }); err != nil {
			return nil, fmt.Errorf("make the folder of the second socket: %w", err)
		}
		if err := ownOpenFolder(folder); err != nil {
			return nil, err
		}
		if err := ops.Do("socket:chmod-users-folder", func() error { return os.Chmod(folder, 0o755) }); err != nil { // whatever the umask is
			return nil, fmt.Errorf("open the folder of the second socket: %w", err)
		}
	}
	if err := removeStale(ctx, path, ops); err != nil {
		return nil, err
	}
	var l net.Listener
	err := ops.Do("socket:listen-users", func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", path, err)
	}
	if err := ops.Do("socket:chmod-users", func() error { return os.Chmod(path, 0o666) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open the second socket to users: %w", err), l.Close())
	}
	return l, nil
}

// ownOpenFolder refuses a folder that is not a real one of ours, or that others may write.
func ownOpenFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of the second socket: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return problem.Errorf(problem.Refused, fmt.Sprintf("ls -ld %q", dir),
			"the folder %q of the second socket is not a folder of uid %d that nobody else may write", dir, os.Geteuid())
	}
	return nil
}

// ownParent refuses a folder in which somebody else could put another in the place of ours. One that
// is not there is made.
func ownParent(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	owned := ok && info.IsDir() && (int(stat.Uid) == os.Geteuid() || stat.Uid == 0)
	if !owned || info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return problem.Errorf(problem.Refused, fmt.Sprintf("ls -ld %q", dir),
			"the folder %q of sockets is not yours alone; remove it, or set XDG_RUNTIME_DIR to a folder of yours", dir)
	}
	return nil
}

// ownFolder refuses a folder that is not ours alone: who owns it could put another socket there.
func ownFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return problem.Errorf(problem.Refused, fmt.Sprintf("ls -ld %q", dir),
			"the socket's folder %q is not a folder of mode 0700 that belongs to uid %d", dir, os.Geteuid())
	}
	return nil
}

func removeStale(ctx context.Context, path string, ops disk.Ops) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return problem.Errorf(problem.Refused, fmt.Sprintf("ls -l %q", path), "%q is not a socket, and stands where the socket belongs", path)
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(fmt.Errorf("listen on %q: %w", path, ErrAnswered), conn.Close())
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("ask who answers on %q: %w", path, err)
	}
	if err := ops.Do("socket:remove-stale", func() error { return os.Remove(path) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a dead daemon: %w", err)
	}
	return nil
}
