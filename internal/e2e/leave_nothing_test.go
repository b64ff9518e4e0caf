package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// abandoned has TestATestThatBreaksOffLeavesNoDaemon be the test that breaks off: it says which daemon it started, and in which way it ends.
const abandoned = "SALLYPORT_TEST_ABANDONED"

// TestATestThatBreaksOffLeavesNoDaemon holds it for one that fails and for one that is killed, which clears up nothing itself.
func TestATestThatBreaksOffLeavesNoDaemon(t *testing.T) {
	if how := os.Getenv(abandoned); how != "" {
		p := newPlace(t)
		c := p.start(t)
		d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
		if err != nil {
			t.Fatal(err)
		}
		println("daemon " + strconv.Itoa(d.PID))
		if how == "killed" {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		t.FailNow()
	}
	if !apart(t) {
		return
	}
	adopt(t)
	for _, how := range []string{"fails", "killed"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), abandoned+"="+how)
		said, err := cmd.CombinedOutput()
		_, after, ok := strings.Cut(string(said), "daemon ")
		word, _, _ := strings.Cut(after, "\n")
		pid, _ := strconv.Atoi(word)
		if err == nil || !ok || pid == 0 {
			t.Fatalf("%s: %v: %s", how, err, said)
		}
		await(t, "the daemon of a test that "+how+" to end", func() (bool, error) {
			reap()
			return errors.Is(unix.Kill(pid, 0), unix.ESRCH), nil
		})
	}
	nobody(t)
}
