package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"sallyport/internal/who/person/persontest"
)

// person is somebody with a repository and a home of sallyport's.
type person struct {
	*place
	t    *testing.T
	repo string
}

// newPerson makes one with a small repository: a.txt, b.txt, folder/c.txt on main, and a branch side.
func newPerson(t *testing.T) *person {
	t.Helper()
	dir, err := os.MkdirTemp("", "spbad")
	if err != nil {
		t.Fatal(err)
	}
	from, err := programs(t, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	place, err := newPlace(dir, from)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{place: place, t: t, repo: filepath.Join(dir, "repo")}
	t.Cleanup(func() {
		if err := p.leave(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	p.write("a.txt", "one\n")
	p.write("b.txt", "one\n")
	p.write("folder/c.txt", "one\n")
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "the beginning")
	p.git("branch", "side")
	return p
}

// write puts a file into the repository.
func (p *person) write(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// git runs git in the repository; it has to succeed.
func (p *person) git(words ...string) string {
	p.t.Helper()
	out, code := p.try("git", words...)
	if code != 0 {
		p.t.Fatalf("git %v: exit %d\n%s", words, code, out)
	}
	return out
}

// stops runs git in the repository; it has to stop half-way, as a merge with conflicts does.
func (p *person) stops(words ...string) {
	p.t.Helper()
	if out, code := p.try("git", words...); code == 0 {
		p.t.Fatalf("git %v did not stop\n%s", words, out)
	}
}

func (p *person) try(name string, words ...string) (string, int) {
	p.t.Helper()
	out, err := p.command(p.t.Context(), p.repo, append([]string{name}, words...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return string(out), 0
}

// said is what one sallyport command line did.
type said struct {
	code     int
	out, err string
}

func (s said) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", s.code, s.out, s.err)
}

// sallyport runs the program where the repository is.
func (p *person) sallyport(words ...string) said {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, p.repo, append([]string{"sallyport"}, words...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		p.t.Fatalf("sallyport %v: %v\n%s%s", words, err, out.String(), errs.String())
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// sh runs a shell script as the agent.
func sh(script string, flags ...string) []string {
	return append(append([]string{"run", "--request", "say two"}, flags...), "--", "sh", "-c", script)
}

var changeID = regexp.MustCompile(`chg-[0-9a-z]{8}`)

// bad is one thing that goes wrong.
type bad struct {
	name string
	// before makes the trouble; it may return a function that takes it away again.
	before func(p *person)
	words  []string
	// meanwhile happens between a change that waits and its approval, which then is what is judged.
	meanwhile func(p *person)
	exit      int
	names     []string // the thing, as the message names it
	next      string   // what the command to run next has in it
	root      bool     // needs root
	ordinary  bool     // behaves differently for an ordinary user
	none      bool     // it is said before a change is made
	after     func(p *person, s said)
}

func TestWhatBadInputGets(t *testing.T) {
	persontest.Ordinary(t, "some rows; they are marked")
	for _, b := range badInput {
		if persontest.Skips(b.ordinary) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			if b.root && os.Geteuid() != 0 {
				t.Skip("SKIPPED: needs root, for a file system of its own")
			}
			b.try(newPerson(t), t)
		})
	}
}

// try is the promise: the exit status, the thing by name, a command to run next, and
// the person's repository as it was, byte for byte.
func (b bad) try(p *person, t *testing.T) {
	if b.before != nil {
		b.before(p)
	}
	words := b.words
	if words == nil {
		words = sh("echo two > a.txt", "--approve", "yes")
	}
	if b.meanwhile != nil {
		first := p.sallyport(words...)
		if first.code != 3 {
			t.Fatalf("it does not wait: %s", first)
		}
		b.meanwhile(p)
		words = []string{"approve", changeID.FindString(first.out)}
	}
	before := p.picture()
	got := p.sallyport(words...)
	t.Logf("%s", got)
	if got.code != b.exit {
		t.Errorf("exit %d, want %d", got.code, b.exit)
	}
	text := got.err
	if b.exit == 0 || b.exit == 3 {
		text += got.out
	}
	for _, name := range b.names {
		if !strings.Contains(text, name) {
			t.Errorf("the message does not name %q", name)
		}
	}
	if !strings.Contains(text, b.next) || b.exit != 0 && !regexp.MustCompile(`(?m)^(next|  approve): .*`+regexp.QuoteMeta(b.next)).MatchString(text) {
		t.Errorf("the message has no command to run next with %q", b.next)
	}
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("the message holds %U as it is", r)
		}
	}
	if diff := before.differs(p.picture()); diff != "" {
		t.Errorf("the repository is not as it was:\n%s", diff)
	}
	if list := p.sallyport("change", "list"); b.none && list.out != "no changes\n" {
		t.Errorf("a change was made of it: %s", list)
	}
	if b.after != nil {
		b.after(p, got)
	}
}

// picture is the repository, and whatever else lies beside it.
func (p *person) picture() picture {
	p.t.Helper()
	pic, err := takePicture(p.repo)
	if err != nil {
		p.t.Fatal(err)
	}
	return pic
}

// conflict makes side and main disagree on a.txt.
func (p *person) conflict() {
	p.t.Helper()
	p.git("switch", "-q", "side")
	p.write("a.txt", "side\n")
	p.git("commit", "-q", "-a", "-m", "side")
	p.git("switch", "-q", "main")
	p.write("a.txt", "main\n")
	p.git("commit", "-q", "-a", "-m", "main")
}

// noProcess holds that nothing with a word in its command line runs any more.
func noProcess(t *testing.T, word string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dirs {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(word)) && name != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			t.Errorf("%s still runs: %q", name, line)
		}
	}
}

// tight gives a home a small limit on output, with -short: reading what the usual one lets through takes long.
func tight(p *person) {
	if !testing.Short() {
		return
	}
	p.t.Helper()
	home := p.env["SALLYPORT_HOME"]
	if err := os.Mkdir(home, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "sallyport.yaml"), []byte("limits: {output: 1MiB}\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// small mounts a file system of a few megabytes.
func (p *person) small(dir string, bytes int, flags uintptr) {
	p.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%d,mode=0755", bytes)); err != nil {
		p.t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
	}
	p.t.Cleanup(func() {
		if err := p.leave(); err != nil { // whoever holds it goes first
			p.t.Error(err)
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			p.t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// needs skips, by name, where a program is absent.
func (p *person) needs(program string) {
	p.t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		p.t.Skipf("SKIPPED: %s is not on this machine", program)
	}
}
