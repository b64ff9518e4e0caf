package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sallyport/internal/agent"
)

// replay plays a script from in as an agent would work: it writes files, runs
// commands, and reacts to whether they passed. Its status is 1 if it gives up.
func replay(in io.Reader, out io.Writer) int {
	var script agent.Script
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&script); err != nil {
		fmt.Fprintln(out, "replay: read script:", err)
		return 2
	}
	p := player{out: out}
	for i, step := range script.Steps {
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

// player remembers how the last command ended.
type player struct {
	out  io.Writer
	last string // agent.Passed, agent.Failed, or "" before the first run
}

func (p *player) play(s agent.Step) error {
	switch {
	case s.Say != "":
		fmt.Fprintln(p.out, s.Say)
		return nil
	case s.Run != "":
		return p.run(s.Run, s.Expect)
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
		return fmt.Errorf("%q failed (%v) and was expected to pass", command, err)
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
		return fmt.Errorf("%s holds the old text %d times; once is wanted", r.Path, n)
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path, []byte(strings.Replace(text, r.Old, r.New, 1)), info.Mode().Perm())
}
