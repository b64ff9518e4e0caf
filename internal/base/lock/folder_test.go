package lock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
)

func TestOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := lock.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(string(comm))
	for _, path := range []string{dir, link, dir + "/.", filepath.Join(dir, "..", filepath.Base(dir))} {
		second, err := lock.Folder(path)
		if !errors.Is(err, lock.ErrHeld) || second != nil {
			t.Fatalf("%s was locked twice: %v", path, err)
		}
		p := problem.Of(err)
		if pid := fmt.Sprint(os.Getpid()); !strings.Contains(p.Text, path) || !strings.Contains(p.Text, pid+` ("`+name) || p.Next != "ps -fp "+pid {
			t.Errorf("%q, next %q: must name the folder and the holder %s", p.Text, p.Next, pid)
		}
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	again, err := lock.Folder(dir)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatIsNoFolderIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file")
	disktest.Put(t, file, "", 0o600)
	for _, path := range []string{file, file + " that is absent"} {
		_, err := lock.Folder(path)
		if p := problem.Of(err); p.Kind != problem.NotFound || !strings.Contains(p.Text, path) || p.Next == "" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestALockThatNobodyRefersToIsHeldAllTheSame(t *testing.T) {
	dir := t.TempDir()
	func() {
		if _, err := lock.Folder(dir); err != nil {
			t.Fatal(err)
		}
	}()
	for range 3 { // one to find that it is out of reach, one to run what follows from that
		runtime.GC()
	}
	if _, err := lock.Folder(dir); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("after a collection: %v", err)
	}
}

// TestHelperProcess holds a folder, starts a child that outlives it, and says so.
func TestHelperProcess(t *testing.T) {
	dir := os.Getenv("LOCKTEST_DIR")
	if dir == "" {
		t.Skip("only as a child of TestTheLockDiesWithItsProcess")
	}
	if _, err := lock.Folder(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held", child.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin) // with nothing to wait for, the runtime would end this process as one that is stuck
}

func TestTheLockDiesWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), "LOCKTEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // it ends with the helper
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var child int
	if _, scan := fmt.Sscanf(line, "held %d", &child); scan != nil {
		t.Fatalf("helper said %q, %v", line, err)
	}
	defer func() {
		if p, err := os.FindProcess(child); err == nil {
			_ = p.Kill()
		}
	}()
	_, err = lock.Folder(dir)
	if pid := fmt.Sprintf("process %d (", cmd.Process.Pid); !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), pid) {
		t.Errorf("err = %v; must name %s…)", err, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	held, err := lock.Folder(dir) // though the helper's own child lives on
	if err != nil {
		t.Fatalf("the holder is dead: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
