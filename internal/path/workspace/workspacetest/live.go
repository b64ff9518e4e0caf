package workspacetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/workspace"
)

const roleLive = "live"

// Live is a workspace that stays mounted, as it does while a sandbox runs on it.
type Live struct {
	View *os.File // the merged tree's top, as sandbox.Process.View returns it

	tree   workspace.Workspace
	cmd    *exec.Cmd
	conn   *net.UnixConn
	answer *json.Decoder
}

// Show mounts a workspace until Close, or the end of the test.
func Show(t testing.TB, w workspace.Workspace) *Live {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "live"), os.NewFile(uintptr(pair[1]), "live")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	l := &Live{tree: w, cmd: command(roleLive), conn: conn.(*net.UnixConn), answer: json.NewDecoder(conn)}
	l.cmd.Stdout, l.cmd.Stderr = os.Stdout, os.Stderr
	l.cmd.ExtraFiles = []*os.File{theirs}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	theirs.Close()
	if err := json.NewEncoder(l.conn).Encode(errand{Tree: w.Tree}); err != nil {
		t.Fatal(err)
	}
	if l.View, err = receiveView(l.conn); err != nil {
		t.Fatalf("mount the workspace: %v", err)
	}
	return l
}

// Close unmounts; it can be called more than once.
func (l *Live) Close() {
	if l.View != nil {
		l.View.Close()
	}
	if l.conn != nil {
		l.conn.Close()
		_ = l.cmd.Wait() // a helper that failed has said so
		reopen(l.tree.Tree)
	}
	l.View, l.conn = nil, nil
}

// Edit applies edits.
func (l *Live) Edit(t testing.TB, ops ...Op) {
	t.Helper()
	l.errand(t, errand{Tree: l.tree.Tree, Ops: ops})
}

// Try applies those of the edits that can be done, and copies the outcome to a folder; "" = nowhere.
func (l *Live) Try(t testing.TB, copyTo string, ops ...Op) {
	t.Helper()
	l.errand(t, errand{Tree: l.tree.Tree, Ops: ops, CopyTo: copyTo, Lenient: true})
}

func (l *Live) errand(t testing.TB, e errand) {
	t.Helper()
	err := json.NewEncoder(l.conn).Encode(e)
	said := ""
	if err == nil {
		err = l.answer.Decode(&said)
	}
	if err != nil {
		t.Fatalf("edit: %v", err)
	}
	if said != "" {
		t.Fatalf("edit: %s", said)
	}
}

func receiveView(conn *net.UnixConn) (*os.File, error) {
	var one [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(one[:], oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("no descriptor came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "view"), nil
}

// liveHelper is the second process of Show.
func liveHelper() int {
	conn, err := net.FileConn(os.NewFile(3, "live"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := serve(conn.(*net.UnixConn)); err != nil && !errors.Is(err, io.EOF) {
		fmt.Println("live workspace:", err)
		return 1
	}
	return 0
}

func serve(conn *net.UnixConn) error {
	orders, answers := json.NewDecoder(conn), json.NewEncoder(conn)
	var e errand
	if err := orders.Decode(&e); err != nil {
		return err
	}
	top, err := mount(e.Tree)
	if err != nil {
		return err
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if _, _, err := conn.WriteMsgUnix([]byte{'v'}, unix.UnixRights(fd), nil); err != nil {
		return err
	}
	root := ""
	for {
		var e errand
		if err := orders.Decode(&e); err != nil {
			return err
		}
		said := ""
		if err := e.run(top, &root); err != nil {
			said = err.Error()
		}
		if err := answers.Encode(said); err != nil {
			return err
		}
	}
}

// ClearLeft removes what a manager says is left, as the start of a daemon and its first round do.
func ClearLeft(t testing.TB, m *workspace.Manager) {
	t.Helper()
	left, err := m.Left(gittest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range left {
		if _, err := it.Remove(gittest.Context(t)); err != nil {
			t.Error(err)
		}
	}
}
