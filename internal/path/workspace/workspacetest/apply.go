package workspacetest

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// confined does one edit with top as the root of all there is: links lead where random
// edits let them lead, and this machine's own files are behind some of those names.
// Scripts are a test's own words and run outside.
func confined(root, top string, op Op, out io.Writer) error {
	if op.Do == "exec" {
		return script(root, top, string(op.To), out)
	}
	outside, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(outside)
	if err := unix.Chroot(top); err != nil {
		return err
	}
	err = apply("/", op)
	if back := unix.Fchdir(outside); back != nil {
		panic(back)
	}
	if back := unix.Chroot("."); back != nil {
		panic(back)
	}
	return err
}

// apply does one edit below top.
func apply(top string, op Op) error {
	at := filepath.Join(top, string(op.Path))
	to := filepath.Join(top, string(op.To))
	switch op.Do {
	case "write":
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if op.Mode != 0 {
			mode = fs.FileMode(op.Mode)
		}
		return put(at, op.Data, os.O_CREATE|os.O_TRUNC, mode)
	case "append":
		return put(at, op.Data, os.O_APPEND, 0)
	case "remove":
		return removeKeepingGit(top, at)
	case "mkdir":
		return os.MkdirAll(at, 0o755)
	case "rename":
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return move(at, to)
	case "link":
		return os.Link(at, to)
	case "symlink":
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.Symlink(string(op.To), at)
	case "chmodfile":
		if st, err := os.Lstat(at); err != nil || !st.Mode().IsRegular() {
			return fmt.Errorf("no file: %w", err)
		}
		return unix.Chmod(at, op.Mode)
	case "chmod":
		return unix.Chmod(at, op.Mode)
	case "fifo":
		return unix.Mkfifo(at, 0o644)
	case "socket":
		l, err := net.Listen("unix", at)
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return l.Close()
	case "setxattr":
		return unix.Setxattr(at, string(op.To), op.Data, 0)
	}
	return fmt.Errorf("no such edit")
}

// put writes without waiting for the far end of a FIFO.
func put(at string, data []byte, flags int, mode fs.FileMode) error {
	f, err := os.OpenFile(at, os.O_WRONLY|unix.O_NONBLOCK|flags, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

func removeKeepingGit(top, at string) error {
	if at != top {
		if st, err := os.Stat(filepath.Dir(at)); err != nil || !st.IsDir() { // RemoveAll opens it, and a FIFO lets it wait
			return fmt.Errorf("not in a folder: %w", err)
		}
		return os.RemoveAll(at)
	}
	entries, err := os.ReadDir(top)
	for _, e := range entries {
		if e.Name() != ".git" {
			err = os.RemoveAll(filepath.Join(top, e.Name()))
		}
	}
	return err
}

// move renames, and copies where the overlay says that a folder is on another device, as mv does.
func move(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || !strings.Contains(err.Error(), "cross-device") {
		return err
	}
	if strings.HasPrefix(to+"/", from+"/") {
		return err
	}
	if err := copyHoldable(from, to, false); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

func script(root, top, text string, out io.Writer) error {
	cmd := exec.Command("/bin/sh", "-ec", text)
	cmd.Dir = top
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// copyHoldable copies folders, files and links, and leaves out everything that no tree holds.
func copyHoldable(from, to string, skipGit bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if skipGit && e.Name() == ".git" {
			continue
		}
		a, b := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue // a whiteout over nothing: an overlay may list it, and then has nothing there
		}
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			err = copyHoldable(a, b, false)
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(a); err == nil {
				err = os.Symlink(target, b)
			}
		case info.Mode().IsRegular():
			err = copyFile(a, b, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer dst.Close()
	_, err = io.Copy(dst, src)
	return err
}
