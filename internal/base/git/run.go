package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// VersionMin is the oldest git that has what we use (cat-file -z, safe.directory from the command line).
const VersionMin = "2.38"

// hardening keeps every configurable program of git's out of reach. It stands on the
// command line, where no repository's configuration can undo it (SECURITY, measured 3).
var hardening = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "core.untrackedCache=false",
	"-c", "core.attributesFile=/dev/null",
	"-c", "core.excludesFile=/dev/null",
	"-c", "core.fsync=committed,reference,index",
	"-c", "core.alternateRefsCommand=true",
	"-c", "core.quotePath=true",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "pack.windowMemory=128m", // of each thread; ten large files that are alike would take twenty times as much as one has
	"-c", "protocol.allow=never",
	"-c", "safe.directory=*",
	"-c", "submodule.recurse=false",
	"-c", "advice.detachedHead=false",
	"-c", "advice.graftFileDeprecated=false",
}

// nowhere is the home folder of who has none.
const nowhere = "/nonexistent"

// environment is all a git process sees: nothing of the person's, nothing of the system's configuration.
func environment(extra []string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + nowhere,
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", // beats protocol.*.allow of a repository: nothing is ever fetched
		"GIT_GRAFT_FILE=/dev/null",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_PAGER=cat",
		"GIT_AUTHOR_NAME=sallyport", "GIT_AUTHOR_EMAIL=sallyport@localhost",
		"GIT_COMMITTER_NAME=sallyport", "GIT_COMMITTER_EMAIL=sallyport@localhost",
	}
	return append(env, extra...)
}

// atHome is an environment in which the configuration of the system and of who lives at home is read.
func atHome(env []string, home string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "HOME" || name == "GIT_CONFIG_NOSYSTEM" || name == "GIT_CONFIG_GLOBAL"
	})
	return append(kept, "HOME="+home)
}

// Cmd describes one git command beyond its words.
type Cmd struct {
	Args  []string
	Env   []string // added, such as GIT_INDEX_FILE=…
	Dir   string   // working directory; "" = the git directory
	Stdin io.Reader
	// Stdout takes the output; nil collects and returns it.
	Stdout io.Writer
	// Config is more -c settings, "key=value".
	Config []string
	// Home is the home folder of the repository's owner, whose own configuration is to be read as well; "" = none is. The
	// hardening holds all the same.
	Home string
	// Short is for a command that takes a moment and holds a lock for it: once it runs, the end of its context
	// does not cut it off; shortMax does.
	Short bool
	// DataMax is how many bytes of memory of its own the command may take; 0 = as many as there are. Files that it maps do not count.
	DataMax uint64
}

// Git takes its locks and temporary files away when it is asked to end, not when it is killed.
const (
	shortMax = time.Minute     // of a Short command
	askedMax = 5 * time.Second // from being asked to end to being killed
)

// Failure is a git command that ended with an error.
type Failure struct {
	Command string // the git subcommand
	Code    int
	Stderr  string // git's own words, at most 4 KiB
}

func (f *Failure) Error() string {
	text := strings.TrimSpace(f.Stderr)
	if text == "" {
		text = "exit status " + strconv.Itoa(f.Code)
	}
	return "git " + f.Command + ": " + text
}

// command builds the process for c; the caller runs it.
func (d Dir) command(ctx context.Context, c Cmd) (*exec.Cmd, *tail) {
	args := []string{"--git-dir=" + d.Path}
	args = append(args, hardening...)
	for _, kv := range c.Config {
		args = append(args, "-c", kv)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.Args...)...)
	cmd.Env = environment(c.Env)
	if c.Home != "" {
		cmd.Env = atHome(cmd.Env, c.Home)
	}
	if d.Objects != "" {
		cmd.Env = append(cmd.Env, "GIT_OBJECT_DIRECTORY="+d.Objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quote(d.Path+"/objects"))
	}
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = d.Path
	}
	cmd.Stdin = c.Stdin
	stderr := &tail{max: stderrMax}
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: d.credential()}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = askedMax
	return cmd, stderr
}

// credential is the user that git runs as when that is not ourselves.
func (d Dir) credential() *syscall.Credential {
	if d.As == nil || os.Geteuid() != 0 || d.As.UID == 0 {
		return nil
	}
	return &syscall.Credential{Uid: d.As.UID, Gid: d.As.GID, Groups: []uint32{}}
}

// Run runs a command that only reads and returns its output.
func (d Dir) Run(ctx context.Context, c Cmd) ([]byte, error) {
	if c.Short {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("git %s: %w", c.Args[0], context.Cause(ctx))
		}
		whole, done := context.WithTimeoutCause(context.WithoutCancel(ctx), shortMax, fmt.Errorf("git did not end within %s", shortMax))
		defer done()
		ctx = whole
	}
	cmd, stderr := d.command(ctx, c)
	var out bytes.Buffer
	cmd.Stdout = c.Stdout
	if c.Stdout == nil {
		cmd.Stdout = &out
	}
	err := runWithin(cmd, c.DataMax)
	return out.Bytes(), d.finish(ctx, c.Args[0], err, stderr)
}

// runWithin runs a command that may take so much memory of its own. It has taken next to none before the limit is set.
func runWithin(cmd *exec.Cmd, dataMax uint64) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if dataMax > 0 {
		limit := unix.Rlimit{Cur: dataMax, Max: dataMax}
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return errors.Join(fmt.Errorf("limit its memory: %w", err), cmd.Cancel(), cmd.Wait())
		}
	}
	return cmd.Wait()
}

// Do runs a command that writes, as one named operation.
func (d Dir) Do(ctx context.Context, op string, c Cmd) (out []byte, err error) {
	err = d.Ops.Do(op, func() error {
		out, err = d.Run(ctx, c)
		return err
	})
	return out, err
}

// finish turns the end of a process into our error.
func (d Dir) finish(ctx context.Context, verb string, err error, stderr fmt.Stringer) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", verb, context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		f := &Failure{Command: verb, Code: exit.ExitCode(), Stderr: stderr.String()}
		return problem.Disk(d.Path, f)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return problem.Errorf(problem.Unavailable, "sallyport doctor", "git is not installed: %w", err)
	}
	if _, gone := os.Stat(d.Path); errors.Is(gone, fs.ErrNotExist) { // else the program would be blamed
		return problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(d.Path), "the repository %q does not exist: %w", d.Path, gone)
	}
	return fmt.Errorf("git %s: %w", verb, err)
}

// stderrMax is how many bytes of what git complains of are kept.
const stderrMax = 4 << 10

// tail keeps the first max bytes written to it.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p[:min(t.max-len(t.buf), len(p))]...)
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf) }

// Version returns the version of the git on the PATH; problem.Unavailable if there is none or it is too old.
func Version(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "version")
	cmd.Env = environment(nil)
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", problem.Errorf(problem.Unavailable, "sudo apt-get install git", "git is not installed: %w", err)
	}
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "sudo apt-get install git", "git is here but does not run: %w", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) < 3 || fields[0] != "git" {
		return "", problem.Errorf(problem.Unavailable, "sudo apt-get install git", "git does not say its version: %q", out)
	}
	if older(fields[2], VersionMin) {
		return fields[2], problem.Errorf(problem.Unavailable, "sudo apt-get install git", "git %s is too old: %s or newer is needed", fields[2], VersionMin)
	}
	return fields[2], nil
}

// older reports whether dotted version a is below b; what is not a number counts as 0.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range bs {
		x, y := 0, 0
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		y, _ = strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return false
}
