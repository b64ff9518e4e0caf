package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
)

// InService is the variable that the unit of a service sets: what starts a keeper again that dies is then the service manager.
const InService = "SALLYPORT_SERVICE"

// Passed are the variables that a daemon is started with which no person starts: where things are and how to write them, nothing that
// could be a secret or change what git does.
var Passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SALLYPORT_HOME", "SALLYPORT_MAX_MESSAGES_PER_PROMPT", "GOCOVERDIR", "GORACE"}

// watch has a process apart start a keeper again should this one die before the host change is over. It lives for an hour at the most.
func watch(home string, self deadman.Process) error {
	now, err := deadman.Now()
	if err != nil {
		return err
	}
	keeper, again := fmt.Sprintf("/proc/%d/exe", self.PID), "/proc/self/exe" // who runs the latter is this very program
	if path, err := os.Executable(); err == nil {
		if _, err := os.Stat(path); err == nil { // else its file was taken away
			keeper, again = path, path
		}
	}
	err = deadman.Arm(disk.Ops{}, Folder(home), deadman.Armed{
		Landing: watchName, Argv: []string{again, "again", home}, Env: passed(),
		Daemon: self, Kept: true, Due: deadman.Deadline{Set: now, In: deadman.LifeMax}, At: now.Wall,
	})
	if err != nil {
		return err
	}
	return deadman.Start(context.Background(), keeper, deadman.Path(Folder(home), watchName))
}

// passed is what of this process's environment a daemon is started with.
func passed() (env []string) {
	for _, name := range Passed {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// again starts a keeper that is nobody's child, and returns once one has the home. It logs where a daemon does that a command started. Once
// the host change is over it starts none.
func again(home string) error {
	if deadman.Disarmed(os.Getenv) {
		return nil
	}
	var log *os.File
	err := disk.Ops{}.Do("keeper:log", func() (err error) {
		path := filepath.Join(home, ".state", "logs", "daemon.log")
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			log, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start a keeper again: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", "serve", home)
	cmd.Args[0], cmd.Stdout, cmd.Stderr = Program, log, log
	cmd.Env = passed() // not the record that this command runs for
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a keeper again: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !Kept(home) {
		select {
		case err := <-ended:
			return fmt.Errorf("the keeper that was started again has ended: %w", errors.Join(err, errors.New("its log says why")))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
