package workspacetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	end    func() error // waits for who has it mounted
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
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	l := &Live{tree: w, conn: conn.(*net.UnixConn), answer: json.NewDecoder(conn)}
	l.end, err = mounter(theirs)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := json.NewEncoder(l.conn).Encode(errand{Tree: w.Tree}); err != nil {
		t.Fatal(err)
	}
	if l.View, err = receiveView(l.conn); err != nil {
		t.Fatalf("mount the workspace: %v", err)
	}
	return l
}

// mounter starts who mounts and does what the socket says, and returns what waits for its end.
func mounter(theirs *os.File) (end func() error, err error) {
	if os.Geteuid() == 0 {
		conn, err := net.FileConn(theirs)
		if err != nil {
			return nil, err
		}
		ended := make(chan error, 1)
		go func() { // ends with the other end of the socket
			defer conn.Close()
			ended <- apart(func() error { return said(serve(conn.(*net.UnixConn))) })
		}()
		return func() error { return <-ended }, nil
	}
	cmd := command(roleLive)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	return cmd.Wait, cmd.Start()
}

// Close unmounts; it can be called more than once.
func (l *Live) Close() {
	if l.View != nil {
		l.View.Close()
	}
	if l.conn != nil {
		l.conn.Close()
		_ = l.end() // a helper that failed has said so
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
	if said(serve(conn.(*net.UnixConn))) != nil {
		return 1
	}
	return 0
}

// said prints why a workspace was left, unless it is that nobody asks any more.
func said(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	fmt.Println("live workspace:", err)
	return err
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
	_, _, err = conn.WriteMsgUnix([]byte{'v'}, unix.UnixRights(fd), nil)
	if err := errors.Join(err, unix.Close(fd)); err != nil { // who asked has one of their own
		return err
	}
	root := ""
	for {
		var e errand
		if err := orders.Decode(&e); err != nil {
			return err
		}
		said := ""
		if err := e.run(top, &root, os.Stdout); err != nil {
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
