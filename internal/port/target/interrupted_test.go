package target_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/rule/trust"
)

func TestWhatAnInterruptedRestartLeftIsEndedBeforeTheNext(t *testing.T) {
	h, at := aHost(t)
	folder := filepath.Join(h.Changes, string(at.Change))
	record := filepath.Join(folder, "restart.run")
	restart := trust.Target{Restart: `cat '` + record + `' >noted; stat -c %a '` + record + `' >mode; cut -d' ' -f6 /proc/$$/stat >session`}
	read := func(name string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(at.Project.Top, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if err := h.Restart(t.Context(), restart, at); err != nil {
		t.Fatal(err)
	}
	if noted, session := read("noted"), read("session"); noted != session || noted == "" {
		t.Fatalf("the record said %q, the session is %q", noted, session)
	}
	if mode := read("mode"); mode != "600\n" { // who writes there says what is ended
		t.Errorf("the record has the mode %s", mode)
	}
	if _, err := os.Lstat(record); !os.IsNotExist(err) {
		t.Errorf("a restart that has ended is on record: %v", err)
	}
	for change, ends := range map[string]bool{string(at.Change): true, "chg-00000002": false} { // the other has been given the number since
		left := exec.Command("/bin/sh", "-c", "sleep 60 & echo $! >'"+filepath.Join(at.Project.Top, change)+"'; wait")
		left.Env = []string{"PATH=" + os.Getenv("PATH"), "SALLYPORT_CHANGE=" + change}
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-left.Process.Pid, syscall.SIGKILL); _ = left.Wait() })
		child := pidIn(t, filepath.Join(at.Project.Top, change))
		disktest.Put(t, record, strconv.Itoa(left.Process.Pid)+"\n", 0o600)
		if err := h.Restart(t.Context(), restart, at); err != nil {
			t.Fatal(err)
		}
		if runs(child) == ends || runs(left.Process.Pid) == ends {
			t.Errorf("%s: it runs: %v, its child %v", change, runs(left.Process.Pid), runs(child))
		}
	}
	disktest.Put(t, record, "", 0o600) // the daemon died before the shell began
	if err := h.Restart(t.Context(), restart, at); err != nil {
		t.Error(err)
	}
}
