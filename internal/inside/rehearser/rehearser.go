// Package rehearser tries a candidate for the host, within the sandbox of a rehearsal: it keeps the candidate's home as a keeper keeps
// any, and asks of it what a person would.
//
// It is a program of the host that judges, never of the candidate.
package rehearser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/base/keeper"
	"sallyport/internal/base/pattern"
	"sallyport/internal/port/rehearsal"
)

// Keep is `runner keep HOME`: the keeper of a home that is rehearsed. It returns its exit status.
func Keep(args []string) int {
	return keeper.Main(append([]string{"serve"}, args...), os.Stdout, os.Stderr)
}

// GoBack brings a database that a candidate has used back to how it was before, as the host that runs now would have to. done is false if it
// has the schema that it had; kept is how many rows stay that were written meanwhile.
type GoBack func(ctx context.Context, used, before string) (kept int, done bool, err error)

// Main is `runner rehearse ORDER`: it writes a Report to stdout and returns 0, or says to stderr why it could not do its work.
func Main(args []string, back GoBack) int {
	r := rehearser{back: back}
	err := errors.New("one order is needed")
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &r.Order)
	}
	if err == nil && !rehearsal.Here(r.Home) {
		err = errors.New("this is no rehearsal")
	}
	if err == nil {
		r.self, err = os.Executable()
	}
	if err == nil {
		r.env, err = environment(r.Home)
	}
	if err == nil {
		err = r.commit()
	}
	if err == nil {
		err = r.keep()
	}
	if err == nil {
		err = r.play()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r.report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		return rehearsal.StatusFault
	}
	return 0
}

// rehearser is one rehearsal.
type rehearser struct {
	rehearsal.Order
	self   string   // this program
	env    []string // of the candidate's programs
	out    tail     // of the candidate's programs
	report rehearsal.Report
	kept   *kept
	back   GoBack
}

// commit makes of the candidate's files a home whose repository has them.
func (r *rehearser) commit() error {
	if err := os.RemoveAll(filepath.Join(r.Home, ".git")); err != nil { // an empty folder, to mount on
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=main"},
		{"add", "--all", "--force", "--", ".", ":(exclude).state"},
		{"-c", "user.name=sallyport", "-c", "user.email=sallyport@localhost", "commit", "--quiet", "--allow-empty", "--message", "What is rehearsed"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = r.Home
		cmd.Env = append(r.env[:len(r.env):len(r.env)], "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %.500s", args[len(args)-1], err, said)
		}
	}
	return nil
}

// named are the variables that settings refer to.
var named = pattern.Of(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// environment is that of the candidate's programs: for each credential that its settings refer to there is a dummy.
func environment(home string) ([]string, error) {
	settings, err := os.ReadFile(filepath.Join(home, "sallyport.yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // without any, the defaults are settings
		return nil, err
	}
	env := append(os.Environ(), rehearsal.Variable+"=1")
	for _, m := range named().FindAllSubmatch(settings, -1) {
		if name := string(m[1]); os.Getenv(name) == "" {
			env = append(env, name+"=dummy")
		}
	}
	return env, nil
}

// errFailed ends a rehearsal whose candidate has failed; the report says in what.
var errFailed = errors.New("the candidate failed")

// errIdle ends a step in which there is nothing to do.
var errIdle = errors.New("there is nothing to do")

// play goes through the steps. An error is none of the candidate's.
func (r *rehearser) play() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{rehearsal.Start, r.start}, {rehearsal.Answer, r.answer}, {rehearsal.End, r.end}, {rehearsal.Again, r.start},
		{rehearsal.Last, r.end}, {rehearsal.Back, r.goBack},
	} {
		began := time.Now()
		err := step.do()
		if errors.Is(err, errFailed) {
			r.report.Failed.Step, r.report.Failed.Tail = step.name, r.out.String()
			if r.kept != nil {
				r.kept.kill()
			}
			return nil
		}
		if errors.Is(err, errIdle) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		r.report.Done = append(r.report.Done, rehearsal.Step{Name: step.name, Took: time.Since(began).Round(time.Millisecond)})
	}
	return nil
}

// failed says why the candidate's step did not go well.
func (r *rehearser) failed(format string, args ...any) error {
	r.report.Failed = &rehearsal.Failure{Why: fmt.Sprintf(format, args...)}
	return errFailed
}

// Where the database lies in a home, and what it was before the candidate had it.
const (
	database = ".state/sallyport.db"
	before   = ".state/before.db"
)

// keep copies the database as it is, which nobody has open.
func (r *rehearser) keep() error {
	from, err := os.Open(filepath.Join(r.Home, database))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(r.Home, before), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// goBack brings the database back, if the candidate has another schema: what was said to it meanwhile has to stay.
func (r *rehearser) goBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Ready)
	defer cancel()
	kept, done, err := r.back(ctx, filepath.Join(r.Home, database), filepath.Join(r.Home, before))
	switch {
	case err != nil:
		return r.failed("the host that runs now could not go on with its database: %s", err)
	case !done:
		return errIdle
	case kept == 0:
		return r.failed("nothing that was said to it stays in the database once the old schema is back")
	}
	return nil
}

// kept is a keeper that runs, with the candidate's daemon.
type kept struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed
}

// kill ends it; its daemon dies with it.
func (k *kept) kill() {
	_ = k.cmd.Process.Kill() // gone already is as good
	<-k.ended
}

// poll is how often a daemon is asked whether it answers.
const poll = 50 * time.Millisecond

// start starts the keeper and waits until the daemon answers.
func (r *rehearser) start() error {
	cmd := exec.Command(r.self, "runner", "keep", r.Home)
	cmd.Dir, cmd.Env = "/", r.env
	cmd.Stdout, cmd.Stderr = &r.out, &r.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.kept = &kept{cmd, make(chan struct{})}
	go func() { // ends with the keeper
		_ = cmd.Wait() // its state says how
		close(r.kept.ended)
	}()

	late := time.NewTimer(r.Ready)
	defer late.Stop()
	for {
		if err := r.alive(); err == nil {
			return nil
		}
		select {
		case <-r.kept.ended:
			return r.failed("it ended before it answered: %s", r.kept.cmd.ProcessState)
		case <-late.C:
			return r.failed("it did not answer `daemon status` within %s", r.Ready)
		case <-time.After(poll):
		}
	}
}

// alive asks the daemon how it is.
func (r *rehearser) alive() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Answer)
	defer cancel()
	_, err := r.say(ctx, io.Discard, "daemon", "status", "--json")
	return err
}

// say runs the candidate's own command line, and returns what it printed to stdout.
func (r *rehearser) say(ctx context.Context, faults io.Writer, words ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.Program, append(words, "--home", r.Home)...)
	cmd.Dir, cmd.Env = "/", r.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, faults
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.Bytes(), err
}

// hello is what is said to the agent, which says it again.
const hello = "hello"

// answer has the agent echo answer one message.
func (r *rehearser) answer() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Answer)
	defer cancel()
	said, err := r.say(ctx, &r.out, "chat", "echo", "--say", hello)
	_, _ = r.out.Write(said)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r.failed("the agent echo did not answer within %s", r.Answer)
	case err != nil:
		return r.failed("`sallyport chat echo --say %s` failed: %s", hello, err)
	case !strings.Contains(string(said), hello):
		return r.failed("the agent echo did not say %s", hello)
	}
	return nil
}

// end asks the daemon to end.
func (r *rehearser) end() error {
	if why := r.restarted(); why != "" {
		return r.failed("it ended by itself, and was started again: %s", why)
	}
	if err := r.kept.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(r.End)
	defer late.Stop()
	select {
	case <-r.kept.ended:
	case <-late.C:
		return r.failed("it did not end within %s of being asked to", r.End)
	}
	if r.kept.cmd.ProcessState.ExitCode() != 0 {
		return r.failed("it did not end well: %s", r.kept.cmd.ProcessState)
	}
	return nil
}

// restarted says why the keeper has started the daemon again; "" = it has not.
func (r *rehearser) restarted() string {
	ctx, cancel := context.WithTimeout(context.Background(), r.Answer)
	defer cancel()
	said, err := r.say(ctx, &r.out, "daemon", "status", "--json")
	if err != nil {
		return err.Error()
	}
	var d struct {
		Keeper *struct {
			Restarts int    `json:"restarts"`
			Why      string `json:"why"`
		} `json:"keeper"`
	}
	if json.Unmarshal(said, &d) == nil && d.Keeper != nil && d.Keeper.Restarts > 0 {
		return d.Keeper.Why
	}
	return ""
}

// tail keeps the end of what is written, from any goroutine.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - rehearsal.TailBytes; over > 0 {
		t.last = bytes.Clone(t.last[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.last), "\uFFFD")
}
