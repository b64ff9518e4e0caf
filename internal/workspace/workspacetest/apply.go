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

	"golang.org/x/sys/unix"
)

// apply does one edit below top.
func apply(top string, op Op) error {
	at := filepath.Join(top, string(op.Path))
	to := filepath.Join(top, string(op.To))
	if err := inside(top, at); err != nil {
		return err
	}
	if op.Do == "rename" || op.Do == "link" {
		if err := inside(top, to); err != nil {
			return err
		}
	}
	switch op.Do {
	case "write":
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if op.Mode != 0 {
			mode = fs.FileMode(op.Mode)
		}
		return os.WriteFile(at, op.Data, mode)
	case "append":
		f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(op.Data)
		return err
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
	case "exec":
		return script(top, string(op.To))
	}
	return fmt.Errorf("no such edit")
}

// inside refuses a path that links lead out of top: a drawn edit must never reach this machine's own files.
func inside(top, at string) error {
	root, err := filepath.EvalSymlinks(top)
	if err != nil {
		return err
	}
	for p := at; ; p = filepath.Dir(p) {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			if real != root && !strings.HasPrefix(real, root+"/") {
				return fmt.Errorf("%q leads out of the tree", at)
			}
			return nil
		}
		if st, lerr := os.Lstat(p); lerr == nil && st.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%q leads nowhere: %w", p, err)
		}
		if p == top {
			return err
		}
	}
}

func removeKeepingGit(top, at string) error {
	if at != top {
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

func script(top, text string) error {
	cmd := exec.Command("sh", "-ec", text)
	cmd.Dir = top
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
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
