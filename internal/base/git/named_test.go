package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatAPersonsGitRunsFromTheWorkTreeIsNamed(t *testing.T) {
	p, home, config := repository(t)
	for key, value := range map[string]string{
		"core.hooksPath": "scripts/hooks", "filter.x.clean": "python3 tools/clean.py %f", "include.path": "../dev/gitconfig", "diff.pdf.textconv": "./bin/pdf2txt",
		"gpg.program": "gpg", "core.editor": "vim -u tools/vimrc", "core.pager": "less -R", "merge.own.driver": filepath.Join(p.Top, "merge.sh") + " %O %A",
		"alias.x": "!sh bin/alias.sh", "remote.origin.url": "tools/x", "credential.helper": "/usr/lib/git-core/helper", "core.sshCommand": "ssh -F ../outside",
	} {
		config(key, value)
	}
	config("--global", "core.fsmonitor", ".tools/watch")
	hook := filepath.Join(p.Top, ".git/hooks/post-merge")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../ci/after-merge", hook); err != nil {
		t.Fatal(err)
	}

	named, err := p.Named(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, n := range named {
		if n.By == "" {
			t.Errorf("%q is named by nothing", n.Path)
		}
		paths = append(paths, n.Path)
	}
	slices.Sort(paths)
	for _, want := range []string{".tools/watch", "bin/pdf2txt", "ci/after-merge", "dev/gitconfig", "merge.sh", "scripts/hooks", "tools/clean.py", "tools/vimrc"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%q is not named: %q", want, paths)
		}
	}
	for _, not := range []string{"gpg", "less", "bin/alias.sh", "tools/x", "python3", "."} {
		if slices.Contains(paths, not) {
			t.Errorf("%q is named: %q", not, paths)
		}
	}
}

func TestWhatLinksAndHomeFoldersLeadToIsNamed(t *testing.T) {
	p, home, config := repository(t)
	put := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, file string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, file); err != nil {
			t.Fatal(err)
		}
	}
	link(p.Top, filepath.Join(home, "dot"))
	link(filepath.Join(p.Top, "mine"), filepath.Join(home, ".gitconfig"))
	link("real", filepath.Join(p.Top, "mine"))
	put(filepath.Join(p.Top, "real"), "[include]\n\tpath = more\n\tpath = ~/dot/common\n[core]\n\tattributesFile = ~/dot/team.attributes\n\thooksPath = ~/dot/hooks\n[diff]\n\texternal = sh $HOME/dot/show.sh\n")
	put(filepath.Join(p.Top, "common"), "[user]\n\tname = a\n")
	put(filepath.Join(home, "more"), "[include]\n\tpath = dot/nested\n")
	link("../../attributes", filepath.Join(p.CommonDir, "info/attributes"))
	link(filepath.Join(p.Top, "theirs"), filepath.Join(home, ".config/git/attributes"))
	config("merge.own.driver", filepath.Join(home, "dot/merge.sh")+" %O")

	named, err := p.Named(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, n := range named {
		paths = append(paths, n.Path)
	}
	for _, want := range []string{"mine", "real", "common", "nested", "team.attributes", "hooks", "show.sh", "attributes", "theirs", "merge.sh"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%q is not named: %q", want, paths)
		}
	}
}
