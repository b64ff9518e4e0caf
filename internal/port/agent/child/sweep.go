package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	sweepsMax  = 100 // a program that forks faster than it is killed is the sandbox's to end
	blurredMax = 10  // of them that wait for what does not say who started it
	sweepPause = 10 * time.Millisecond
)

// sweep kills the program's group and all that carries its mark, until nothing of it is left.
func (c *Child) sweep() error {
	left := 0
	for i := range sweepsMax {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
		var blurred int
		if left, blurred = c.killMarked(); left == 0 && (blurred == 0 || i >= blurredMax) {
			return nil
		}
		time.Sleep(sweepPause)
	}
	return fmt.Errorf("%d processes that the agent started could not be ended", left)
}

// killMarked kills every living process that was started with the mark, and says how many there were. Blurred is how many show no
// environment at all, as one does that is just becoming another program.
func (c *Child) killMarked() (n, blurred int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		switch {
		case err != nil: // gone, or somebody else's
			continue
		case len(env) == 0:
			if hasMemory(dir) {
				blurred++
			}
			continue
		case !marked(env, c.mark):
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n, blurred
}

// hasMemory tells a program from a zombie and from the kernel's own.
func hasMemory(dir string) bool {
	pages, err := os.ReadFile(filepath.Join(dir, "statm"))
	return err == nil && !bytes.HasPrefix(pages, []byte("0 "))
}

func marked(environ []byte, mark string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}
