package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// pidIn reads the pid that a daemon says of itself.
func pidIn(t *testing.T, out string) int {
	t.Helper()
	found := regexp.MustCompile(`"pid": (\d+)`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no pid in %s", out)
	}
	pid, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// plant sets up everything that git would run, and returns the file that tells what did.
func plant(t *testing.T, p *person) (trap string) {
	t.Helper()
	trap = filepath.Join(p.dir, "trapped")
	script := "#!/bin/sh\necho \"$0 $*\" >> " + trap + "\necho planted > " + filepath.Join(p.repo, "a.txt") + "\ncat 2>/dev/null\nexit 0\n"
	hook := filepath.Join(p.dir, "planted.sh")
	disktest.Put(t, hook, script, 0o755)
	for _, name := range []string{"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit",
		"post-index-change", "post-merge", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
		"pre-push", "pre-rebase", "prepare-commit-msg", "push-to-checkout", "reference-transaction", "update"} {
		if err := os.Symlink(hook, filepath.Join(p.repo, ".git", "hooks", name)); err != nil {
			t.Fatal(err)
		}
	}
	config := strings.ReplaceAll(`[core]
	fsmonitor = HOOK
	editor = HOOK
	pager = HOOK
	sshCommand = HOOK
	gitProxy = HOOK
	alternateRefsCommand = HOOK
[diff]
	external = HOOK
[diff "x"]
	textconv = HOOK
	command = HOOK
[commit]
	gpgSign = true
[gpg]
	program = HOOK
[credential]
	helper = HOOK
[uploadpack]
	packObjectsHook = HOOK
[include]
	path = HOOK.config
`, "HOOK", hook)
	f, err := os.OpenFile(filepath.Join(p.repo, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(config); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(p.repo, ".git", "info", "attributes"), "*.txt diff=x\n", 0o644)
	return trap
}

// Whatever a repository has set up to run when git does something: none of it runs, and what
// lands is what was approved.
func TestNothingThatARepositoryPlantsRunsOrChangesWhatLands(t *testing.T) {
	p := newPerson(t)
	trap := plant(t, p)
	// The repository asks for a signature by a program of its own: it is not run, and only a person goes without.
	s := p.sallyport(sh("echo two > a.txt; echo new > new.txt", "--approve", "yes")...)
	if s.code != 4 || !strings.Contains(s.err, "gpg.program") {
		t.Fatalf("%s", s)
	}
	id := changeID.FindString(s.out)
	if s := p.sallyport("approve", id, "--unsigned"); s.code != 0 {
		t.Fatalf("%s", s)
	}
	for _, words := range [][]string{{"change", "diff", id}, {"change", "export", id}, {"change", "show", id}, {"rollback", id}} {
		if words[0] == "rollback" {
			undo := changeID.FindString(p.sallyport("rollback", id, "--approve", "later", "--json").out)
			words = []string{"approve", undo, "--unsigned"}
			if got, err := os.ReadFile(filepath.Join(p.repo, "a.txt")); err != nil || string(got) != "two\n" {
				t.Errorf("landed %q, %v", got, err)
			}
		}
		if s := p.sallyport(words...); s.code != 0 {
			t.Errorf("%v: %s", words, s)
		}
	}
	if ran, err := os.ReadFile(trap); err == nil {
		t.Errorf("ran:\n%s", ran)
	}
	if got, err := os.ReadFile(filepath.Join(p.repo, "a.txt")); err != nil || string(got) != "one\n" {
		t.Errorf("rolled back to %q, %v", got, err)
	}
	// The traps are real: git itself springs them.
	_, _ = p.try("git", "commit", "--allow-empty", "-m", "x")
	if _, err := os.Stat(trap); err != nil {
		t.Errorf("the traps do not spring at all: %v", err)
	}
}
