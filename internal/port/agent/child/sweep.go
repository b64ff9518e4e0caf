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
	sweepPause = 10 * time.Millisecond
)

// sweep kills the program's group and all that carries its mark, until nothing of it is left.
func (c *Child) sweep() error {
	left := 0
	for range sweepsMax {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
		if left = c.killMarked(); left == 0 {
			return nil
		}
		time.Sleep(sweepPause)
	}
	return fmt.Errorf("%d processes that the agent started could not be ended", left)
}

// killMarked kills every living process that was started with the mark, and says how many there were.
func (c *Child) killMarked() (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !marked(env, c.mark) { // a zombie has none
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

func marked(environ []byte, mark string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}
