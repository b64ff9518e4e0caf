package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/port/agent"
)

// replay plays a script from in as an agent would work: it writes files, runs
// commands, and reacts to whether they passed and to what the host says. The
// script is the first line of in, messages follow. Its status is 1 if it gives up.
func replay(in io.Reader, out io.Writer) int {
	r := bufio.NewReader(in)
	script, err := readScript(r)
	if err != nil {
		fmt.Fprintln(out, "replay: read script:", err)
		return 2
	}
	p := player{out: out, mail: mail{out: out, inbox: post(r), known: map[string]bool{}}}
	for i, step := range script.Steps {
		p.mail.collect()
		if step.When != "" && step.When != p.last {
			continue
		}
		if err := p.play(step); err != nil {
			fmt.Fprintf(out, "replay: step %d: %v\n", i+1, err)
			return 1
		}
	}
	return 0
}

func readScript(r *bufio.Reader) (script agent.Script, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return script, err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err = d.Decode(&script)
	return script, err
}

// player remembers how the last command ended.
type player struct {
	out  io.Writer
	mail mail
	last string // agent.Passed, agent.Failed, or "" before the first run
}

func (p *player) play(s agent.Step) error {
	switch {
	case s.Say != "":
		fmt.Fprintln(p.out, s.Say)
		return nil
	case s.Run != "":
		return p.run(s.Run, s.Expect)
	case s.Await != "":
		return p.await(s.Await, s.Timeout)
	case s.Write != nil:
		fmt.Fprintf(p.out, "write %s\n", s.Write.Path)
		return write(*s.Write)
	case s.Replace != nil:
		fmt.Fprintf(p.out, "edit %s\n", s.Replace.Path)
		return replace(*s.Replace)
	case s.Delete != "":
		fmt.Fprintf(p.out, "delete %s\n", s.Delete)
		if _, err := os.Lstat(s.Delete); err != nil {
			return err
		}
		return os.RemoveAll(s.Delete)
	case s.Rename != nil:
		fmt.Fprintf(p.out, "rename %s to %s\n", s.Rename.From, s.Rename.To)
		if err := os.MkdirAll(filepath.Dir(s.Rename.To), 0o755); err != nil {
			return err
		}
		return os.Rename(s.Rename.From, s.Rename.To)
	}
	return errors.New("nothing to do")
}

// await waits for a message and shows what it says.
func (p *player) await(kind string, limit time.Duration) error {
	m, err := p.mail.await(kind, limit)
	if err != nil {
		return fmt.Errorf("await %s: %w", kind, err)
	}
	if kind == agent.AwaitTell {
		fmt.Fprintf(p.out, "told: %q\n", m.Text)
	}
	for _, v := range m.Violations {
		fmt.Fprintf(p.out, "told: %q breaks %s: %q\n", v.File, v.Constraint, v.Message)
	}
	return nil
}

func (p *player) run(command, expect string) error {
	fmt.Fprintf(p.out, "$ %s\n", command)
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	p.last = agent.Passed
	if err != nil {
		p.last = agent.Failed
	}
	switch {
	case expect == agent.Pass && p.last == agent.Failed:
		return fmt.Errorf("%q failed (%w) and was expected to pass", command, err)
	case expect == agent.Fail && p.last == agent.Passed:
		return fmt.Errorf("%q passed and was expected to fail", command)
	}
	return nil
}

func write(w agent.Write) error {
	if err := os.MkdirAll(filepath.Dir(w.Path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(w.Path, []byte(w.Content), 0o644); err != nil {
		return err
	}
	if w.Mode == "" {
		return nil
	}
	mode, err := strconv.ParseUint(w.Mode, 8, 9)
	if err != nil {
		return err
	}
	return os.Chmod(w.Path, os.FileMode(mode))
}

func replace(r agent.Replace) error {
	raw, err := os.ReadFile(r.Path)
	if err != nil {
		return err
	}
	text := string(raw)
	if n := strings.Count(text, r.Old); n != 1 {
		return fmt.Errorf("%s holds the old text %d times; it must hold it once", r.Path, n)
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path, []byte(strings.Replace(text, r.Old, r.New, 1)), info.Mode().Perm())
}
