package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// work is what the agent does: adds, deletes, renames, changes modes, types and bytes.
const work = `set -e
printf 'edited\n' > edit.txt
printf 'line\n' >> deep/er/still.txt
rm gone.txt alone/only.txt
mkdir -p new/place
mv old.txt new/place/renamed.txt
chmod 755 tool.sh
printf 'odd\n' > ./'` + `-rf "q" '\''x'\'' *é {}.txt` + `'
head -c 70000 /dev/zero > binary.dat; printf '\001\377\000end' >> binary.dat
rm wasfile && mkdir wasfile && printf 'inside\n' > wasfile/inside.txt
`

// makeRepo makes a repository with a history, and a person in the middle of their own work in it.
func (p *place) makeRepo(t *testing.T) {
	t.Helper()
	if err := os.Mkdir(p.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(p.repo, name)
		disktest.Put(t, path, text, 0o644)
	}
	run := func(args ...string) { t.Helper(); git(t, p.repo, args...) }

	run("init", "-q", "-b", "main")
	run("config", "user.name", "Ann")
	run("config", "user.email", "ann@example.org")
	for _, name := range []string{"edit.txt", "gone.txt", "alone/only.txt", "old.txt", "tool.sh", "wasfile", "deep/er/still.txt",
		"keep.txt", "dirty.txt", "staged.txt", "both.txt", "removed.txt", "stashed.txt"} {
		write(name, strings.Repeat(name+" as committed\n", 20))
	}
	write(".gitignore", "*.log\n")
	run("add", "-A")
	run("commit", "-qm", "first")
	run("tag", "-am", "a tag", "v1")
	run("branch", "other")
	write("keep.txt", "second\n")
	run("commit", "-qam", "second")

	write("stashed.txt", "put away\n")
	run("stash", "-q")
	write("dirty.txt", "dirty\n")
	write("staged.txt", "staged\n")
	write("staged-new.txt", "staged and new\n")
	write("both.txt", "staged\n")
	run("rm", "-q", "--cached", "removed.txt")
	run("add", "staged.txt", "staged-new.txt", "both.txt")
	write("both.txt", "and dirty\n")
	write("intended.txt", "")
	run("add", "-N", "intended.txt")
	write("untracked.txt", "untracked\n")
	write("deep/untracked too.txt", "untracked\n")
	write("build.log", "ignored\n")
	run("update-index", "--assume-unchanged", "keep.txt")
	for name, mode := range map[string]os.FileMode{"dirty.txt": 0o640, "untracked.txt": 0o600, "deep": 0o750} {
		if err := os.Chmod(filepath.Join(p.repo, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(".git/hooks/post-commit", "#!/bin/sh\ntouch HOOKED\n")
	write(".git/hooks/reference-transaction", "#!/bin/sh\ntouch HOOKED\n")
	for _, hook := range []string{"post-commit", "reference-transaction"} {
		if err := os.Chmod(filepath.Join(p.repo, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
