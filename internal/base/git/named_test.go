package git_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
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
		disktest.Put(t, file, text, 0o644)
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

// A value that is one path is one path, and of a command each word that can be one is.
func TestAWordOfACommandIsAPathAndAPathHasBlanks(t *testing.T) {
	p, home, config := repository(t)
	for key, value := range map[string]string{
		"core.hooksPath": "my hooks", "core.attributesFile": "my attributes", "include.path": "../my config",
		"core.editor": "vim -u vimrc.local", "core.pager": "./page;less", "core.sshCommand": "ssh \"$HOME/key\" -F", "diff.external": "", "core.askPass": "${HOME}/ask",
	} {
		config(key, value)
	}
	hooks := filepath.Join(p.CommonDir, "hooks")
	if err := errors.Join(os.RemoveAll(hooks), os.MkdirAll(filepath.Join(p.Top, "ci"), 0o755), os.Symlink("../ci", hooks), os.WriteFile(filepath.Join(p.Top, "ci/pre-push"), nil, 0o755),
		os.WriteFile(filepath.Join(p.Top, "my config"), []byte("[user]\nname = a\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	named, err := p.Named(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []git.Named{
		{Path: "my hooks", By: "git's core.hookspath"}, {Path: "my attributes", By: "git's core.attributesfile"}, {Path: "my config", By: "git's include.path"}, {Path: "my config", By: "git's configuration"},
		{Path: "vimrc.local", By: "git's core.editor"}, {Path: "page", By: "git's core.pager"}, {Path: "ci", By: "a link from git's folder of hooks"}, {Path: "ci/pre-push", By: "the hook pre-push"},
	} {
		if n := count(named, want); n != 1 {
			t.Errorf("%+v is named %d times: %+v", want, n, named)
		}
	}
	for _, n := range named {
		if slices.Contains([]string{"vim", "-u", "-F", "less-not", "my", "hooks", "config", "key", "ask", "."}, n.Path) {
			t.Errorf("%+v is named", n)
		}
	}
}

func count(named []git.Named, want git.Named) (n int) {
	for _, is := range named {
		if is == want {
			n++
		}
	}
	return n
}

func TestWhoCommitsIsWhoTheConfigurationSaysInWhole(t *testing.T) {
	for name, c := range map[string]struct {
		set               map[string]string
		author, committer string
	}{
		"nobody":              {nil, "", ""},
		"a name alone":        {map[string]string{"user.name": "Ann"}, "", ""},
		"an address alone":    {map[string]string{"user.email": "ann@example.org"}, "", ""},
		"one":                 {map[string]string{"user.name": "Ann", "user.email": "ann@example.org"}, "Ann <ann@example.org>", "Ann <ann@example.org>"},
		"another author":      {map[string]string{"user.name": "Ann", "user.email": "ann@example.org", "author.name": "Bob", "author.email": "bob@example.org"}, "Bob <bob@example.org>", "Ann <ann@example.org>"},
		"another committer":   {map[string]string{"user.name": "Ann", "user.email": "ann@example.org", "committer.name": "Bob"}, "Ann <ann@example.org>", "Bob <ann@example.org>"},
		"an author in whole":  {map[string]string{"author.name": "Bob", "author.email": "bob@example.org"}, "Bob <bob@example.org>", ""},
		"a name that is none": {map[string]string{"user.name": "<.>", "user.email": "ann@example.org"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, home, config := repository(t)
			for key, value := range c.set {
				config("--global", key, value)
			}
			who, err := p.Person(t.Context(), home)
			if err != nil {
				t.Fatal(err)
			}
			for role, is := range map[string][2]string{"author": {who.Author.Address(), c.author}, "committer": {who.Committer.Address(), c.committer}} {
				if want := cmp.Or(is[1], " <>"); is[0] != want {
					t.Errorf("the %s is %q, not %q", role, is[0], want)
				}
			}
		})
	}
}
