// Package workspacetest edits a workspace the way an agent would: through the merged
// view of a real overlay mount, in a private mount namespace. A test binary that uses it
// calls Main: but for root the mount lives in a second process of the same binary.
package workspacetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

const roleEnv = "SALLYPORT_WORKSPACETEST"

// Main runs the tests, or the edits if this process was started for them.
func Main(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
	case roleLive:
		os.Exit(liveHelper())
	default:
		os.Exit(helper())
	}
	os.Exit(m.Run())
}

// Op is one edit. Paths are bytes, relative to the top.
type Op struct {
	Do   string // write, append, remove, mkdir, rename, link, symlink, chmod, chmodfile, fifo, socket, setxattr, exec
	Path []byte
	To   []byte // rename, link: new path; symlink: target; setxattr: name; exec: shell script
	Data []byte
	Mode uint32
}

// Write, Remove and so on are the edits by name.
func Write(path, text string) Op { return Op{Do: "write", Path: []byte(path), Data: []byte(text)} }
func Remove(path string) Op      { return Op{Do: "remove", Path: []byte(path)} }
func Mkdir(path string) Op       { return Op{Do: "mkdir", Path: []byte(path)} }
func Fifo(path string) Op        { return Op{Do: "fifo", Path: []byte(path)} }
func Socket(path string) Op      { return Op{Do: "socket", Path: []byte(path)} }
func Rename(from, to string) Op  { return Op{Do: "rename", Path: []byte(from), To: []byte(to)} }
func Link(from, to string) Op    { return Op{Do: "link", Path: []byte(from), To: []byte(to)} }
func Symlink(path, to string) Op { return Op{Do: "symlink", Path: []byte(path), To: []byte(to)} }
func Chmod(path string, mode uint32) Op {
	return Op{Do: "chmod", Path: []byte(path), Mode: mode}
}
func Setxattr(path, name, value string) Op {
	return Op{Do: "setxattr", Path: []byte(path), To: []byte(name), Data: []byte(value)}
}

// Exec runs a shell script at the top; what it prints is returned by Edit.
func Exec(script string) Op { return Op{Do: "exec", To: []byte(script)} }

// errand is what the second process is told.
type errand struct {
	Tree    sandbox.Tree
	Ops     []Op
	CopyTo  string // then copy all files that git could hold there
	Lenient bool   // an edit that cannot be done is left out
}

// Self is who the tests run as.
func Self() sandbox.Owner {
	return sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

// CanOverlay skips a test, loudly, where no overlay can be mounted.
func CanOverlay(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	tree := sandbox.Tree{Layers: []string{dir + "/l"}, Upper: dir + "/u", Work: dir + "/w"}
	for _, d := range []string{"/l", "/u", "/w"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, errand{Tree: tree}); err != nil {
		t.Skipf("an overlay with userxattr cannot be mounted here: %v: %s", err, out)
	}
}

// Edit applies edits through the merged view and returns what scripts printed.
func Edit(t testing.TB, w workspace.Workspace, ops ...Op) string {
	t.Helper()
	out, err := run(t, errand{Tree: w.Tree, Ops: ops})
	if err != nil {
		t.Fatalf("edit: %v\n%s", err, out)
	}
	return out
}

// Try applies those of the edits that can be done, and copies the outcome to a folder.
func Try(t testing.TB, w workspace.Workspace, copyTo string, ops ...Op) {
	t.Helper()
	if out, err := run(t, errand{Tree: w.Tree, Ops: ops, CopyTo: copyTo, Lenient: true}); err != nil {
		t.Fatalf("edit: %v\n%s", err, out)
	}
}

func run(t testing.TB, e errand) (string, error) {
	t.Helper()
	if os.Geteuid() == 0 {
		var out strings.Builder
		err := apart(func() error { return e.do(&out) })
		reopen(e.Tree)
		return out.String(), err
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command("1")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.CombinedOutput()
	reopen(e.Tree)
	return string(out), err
}

// reopen gives back the rights that overlayfs takes from its own folder, for t.TempDir to remove it.
func reopen(tree sandbox.Tree) {
	if tree.Work != "" {
		_ = os.Chmod(filepath.Join(tree.Work, "work"), 0o700) // never mounted, or removed since
	}
}

// apart runs do in a mount namespace of its own, on a thread that ends with it. Only root may do so without a second process, and a process
// that the race detector watches takes 30 ms to start.
func apart(do func() error) error {
	ended := make(chan error, 1)
	go func() { // ends with do
		runtime.LockOSThread() // for good: nothing else ever runs on this thread
		ended <- unshared(do)
	}()
	return <-ended
}

func unshared(do func() error) (err error) {
	home, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return err
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mounts: %w", err)
	}
	defer func() { // and what was mounted is gone before anybody removes it
		err = errors.Join(err, unix.Setns(int(home.Fd()), unix.CLONE_NEWNS))
	}()
	return do()
}

// command is the second process, in a mount namespace of its own, for who needs one of the users' as well.
func command(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		// What a driver's launcher has to mount an overlay and copy up in it, and to change the root.
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_MKNOD, unix.CAP_SETFCAP, unix.CAP_SYS_CHROOT,
		},
	}
	return cmd
}

// helper is the second process.
func helper() int {
	var e errand
	if err := json.NewDecoder(os.Stdin).Decode(&e); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := e.do(os.Stdout); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// do mounts the tree and does the errand there.
func (e errand) do(out io.Writer) error {
	top, err := mount(e.Tree)
	if err != nil {
		return err
	}
	root := ""
	return e.run(top, &root, out)
}

// run does an errand in a mounted tree; root is the world of scripts, once there is one, and out gets what they print.
func (e errand) run(top string, root *string, out io.Writer) error {
	for _, op := range e.Ops {
		if op.Do == "exec" && *root == "" {
			made, err := world(e.Tree.Objects)
			if err != nil {
				return err
			}
			*root = made
		}
		if err := confined(*root, top, op, out); err != nil && !e.Lenient {
			return fmt.Errorf("%s %q: %w", op.Do, op.Path, err)
		}
	}
	if e.CopyTo != "" {
		return copyHoldable(top, e.CopyTo, true)
	}
	return nil
}

// mount shows a tree as a sandbox would and returns where.
func mount(tree sandbox.Tree) (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("make mounts private: %w", err)
	}
	top := tree.Dir
	if err := unix.Mount("none", "/mnt", "tmpfs", 0, ""); err != nil {
		return "", fmt.Errorf("mount tmpfs: %w", err)
	}
	if top == "" {
		top = "/mnt/merged"
		if err := os.Mkdir(top, 0o755); err != nil {
			return "", err
		}
		lower := ""
		for _, l := range tree.Layers {
			lower = ":" + escape(l) + lower
		}
		options := "lowerdir=" + strings.TrimPrefix(lower, ":") + ",upperdir=" + escape(tree.Upper) + ",workdir=" + escape(tree.Work) + ",userxattr"
		if err := unix.Mount("overlay", top, "overlay", 0, options); err != nil {
			return "", fmt.Errorf("mount overlay: %w", err)
		}
	}
	if tree.GitDir != "" {
		if err := unix.Mount(tree.GitDir, filepath.Join(top, ".git"), "", unix.MS_BIND, ""); err != nil {
			return "", fmt.Errorf("mount .git: %w", err)
		}
	}
	return top, nil
}

// escape keeps a folder's name from being read as options: t.TempDir is named after the test.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace

// world makes a root folder that holds this machine's folders and, where the agent's git folder's
// alternates look for them, the objects; scripts run in it.
func world(binds []sandbox.Bind) (string, error) {
	const root = "/mnt/world"
	if err := os.Mkdir(root, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		target := filepath.Join(root, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0:
			link, err := os.Readlink("/" + e.Name())
			if err != nil {
				return "", err
			}
			if err := os.Symlink(link, target); err != nil {
				return "", err
			}
		case e.IsDir() && e.Name() != "lost+found":
			if err := bind("/"+e.Name(), target); err != nil {
				return "", err
			}
		}
	}
	for _, b := range binds {
		if err := bind(b.Source, filepath.Join(root, b.Target)); err != nil {
			return "", err
		}
	}
	return root, nil
}

func bind(from, to string) error {
	if _, err := os.Stat(to); err != nil {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	return nil
}
