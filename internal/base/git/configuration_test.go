package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/stamp"
)

// configuredPlace is a repository with a home folder, and what runs git in it.
func configuredPlace(t *testing.T) (p Project, home string, do func(args ...string)) {
	t.Helper()
	top, home := filepath.Join(t.TempDir(), "top"), t.TempDir()
	do = func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", top}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	do("init", "-q", "-b", "main")
	p, err := Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	return p, home, do
}

// remembered reads a configuration as one that has long stood as it is, and returns whether it is still taken for what there is.
func remembered(t *testing.T, p Project, home string) func() bool {
	t.Helper()
	r, at := &Readers{}, lookedAt{git: p.GitDir, common: p.CommonDir, home: home}
	all, err := p.configured(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if files, ok := p.configFiles(all, home); ok {
		r.remember(at, look{begun: time.Now(), stamped: stamp.Now().Add(time.Minute), all: all, files: stampsOf(files)})
	}
	return func() bool {
		_, ok := r.configuration(at)
		return ok
	}
}

func TestAConfigurationIsReadAgainOnceAFileOfItIsAnother(t *testing.T) {
	for name, c := range map[string]struct {
		before, then func(t *testing.T, p Project, home string, do func(...string))
	}{
		"the repository's": {nil, func(_ *testing.T, _ Project, _ string, do func(...string)) { do("config", "user.name", "Ann") }},
		"the work tree's": {nil, func(t *testing.T, p Project, _ string, _ func(...string)) {
			put(t, filepath.Join(p.GitDir, "config.worktree"), "")
		}},
		"one of the owner that comes": {nil, func(t *testing.T, _ Project, home string, _ func(...string)) {
			put(t, filepath.Join(home, ".config/git/config"), "")
		}},
		"one of the owner that goes": {
			func(t *testing.T, _ Project, home string, _ func(...string)) {
				put(t, filepath.Join(home, ".gitconfig"), "[a]\nb = c\n")
			},
			func(t *testing.T, _ Project, home string, _ func(...string)) {
				if err := os.Remove(filepath.Join(home, ".gitconfig")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"one that is named and comes": {
			func(_ *testing.T, _ Project, _ string, do func(...string)) { do("config", "include.path", "more") },
			func(t *testing.T, p Project, _ string, _ func(...string)) {
				put(t, filepath.Join(p.CommonDir, "more"), "")
			},
		},
		"one of a branch": {
			func(t *testing.T, p Project, _ string, do func(...string)) {
				do("config", "includeIf.onbranch:x.path", "/none")
			},
			func(_ *testing.T, _ Project, _ string, do func(...string)) {
				do("symbolic-ref", "HEAD", "refs/heads/x")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, home, do := configuredPlace(t)
			if c.before != nil {
				c.before(t, p, home, do)
			}
			stands := remembered(t, p, home)
			if !stands() {
				t.Fatal("what has not changed is read again")
			}
			c.then(t, p, home, do)
			if stands() {
				t.Error("the old one is taken for what there is")
			}
		})
	}
}

func TestAConfigurationThatMayChangeWithoutATraceIsNotKept(t *testing.T) {
	p, home, do := configuredPlace(t)
	ctx := (&Readers{}).In(t.Context())
	for _, name := range []string{"Ann", "Bob"} { // both within one tick of the file system's clock, for all we know
		do("config", "user.name", name)
		set, _, err := p.Settings(ctx, home, "user.name")
		if err != nil || set["user.name"] != name {
			t.Errorf("%v, %v; want %s", set, err, name)
		}
	}

	begun := time.Unix(1700000000, 0)
	if l := (look{begun: begun}); l.still(begun.Add(unnamed)) || !l.still(begun.Add(unnamed-time.Nanosecond)) {
		t.Error("one that nobody named a file of is kept for another time than that")
	}
	for wait, kept := range map[time.Duration]int{-time.Minute: 0, time.Minute: 1} {
		r := &Readers{}
		r.remember(lookedAt{}, look{stamped: stamp.Now().Add(wait), files: stampsOf([]string{"absent", filepath.Join(p.CommonDir, "config")})})
		if len(r.looks) != kept {
			t.Errorf("one that is looked at %s after it was written: %d are kept", wait, len(r.looks))
		}
	}
	r := &Readers{}
	for i := range 3 * looksMax {
		r.remember(lookedAt{uid: uint32(i)}, look{})
		if len(r.looks) != i%looksMax+1 {
			t.Fatalf("%d of %d are kept", len(r.looks), i+1)
		}
	}
}

// Git is not asked for what is known, and is once a file comes that there was none of.
func TestAConfigurationThatStandsIsReadOnce(t *testing.T) {
	p, home, _ := configuredPlace(t)
	if err := os.Remove(filepath.Join(p.CommonDir, "config")); err != nil { // none was written just now
		t.Fatal(err)
	}
	r := &Readers{}
	ctx := r.In(t.Context())
	if _, err := p.configuration(ctx, home); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := p.configuration(ctx, home); err != nil {
		t.Errorf("git is asked again: %v", err)
	}
	if _, err := p.configuration(ctx, t.TempDir()); err == nil {
		t.Error("one owner's configuration is another's")
	}
	put(t, filepath.Join(p.CommonDir, "config"), "[user]\nname = Ann\n")
	if _, err := p.configuration(ctx, home); err == nil {
		t.Error("a file that came is not seen")
	}
}

// What cannot be followed is not kept: its change would not be seen.
func TestAConfigurationDependsOnEachFileThatItNames(t *testing.T) {
	p, home, _ := configuredPlace(t)
	top := t.TempDir()
	put(t, filepath.Join(top, "system"), "")
	from := "file:" + filepath.Join(top, "system")
	for name, c := range map[string]struct {
		is   setting
		want string // "" = it cannot be told
	}{
		"where it stands":        {setting{origin: from, key: "user.name"}, filepath.Join(top, "system")},
		"one that it includes":   {setting{origin: from, key: "include.path", value: "/etc/more"}, "/etc/more"},
		"one beside it":          {setting{origin: from, key: "include.path", value: "more"}, filepath.Join(top, "more")},
		"one in the home folder": {setting{origin: from, key: "Include.Path", value: "~/more"}, filepath.Join(home, "more")},
		"one for some":           {setting{origin: from, key: "includeif.gitdir:/x.path", value: "/etc/if"}, "/etc/if"},
		"the branch":             {setting{origin: from, key: "includeif.onbranch:x.path", value: "/etc/if"}, filepath.Join(p.GitDir, "HEAD")},
		"what we say":            {setting{origin: "command line:", key: "core.hookspath", value: "/dev/null"}, filepath.Join(p.GitDir, "config.worktree")},
		"one of the program":     {setting{origin: from, key: "include.path", value: "%(prefix)/more"}, ""},
		"one of nobody":          {setting{origin: from, key: "include.path", value: "~nobody-is-called-so/more"}, ""},
		"one of no file":         {setting{origin: "command line:", key: "include.path", value: "/etc/more"}, ""},
		"one that is gone":       {setting{origin: "file:/nonexistent/config", key: "user.name"}, ""},
	} {
		for _, home := range []string{home, ""} {
			if home == "" && strings.HasPrefix(c.is.value, "~/") {
				continue
			}
			files, ok := p.configFiles([]setting{c.is}, home)
			if ok != (c.want != "") || ok && !slices.Contains(files, c.want) {
				t.Errorf("%s: %q, %v", name, files, ok)
			}
			if slices.ContainsFunc(files, func(f string) bool { return !filepath.IsAbs(f) }) {
				t.Errorf("%s: some of %q lie nowhere", name, files)
			}
		}
	}
	plain, _ := p.configFiles(nil, home)
	for _, key := range []string{"core.path", "include.other", "gitinclude.path"} {
		files, ok := p.configFiles([]setting{{origin: "file:" + filepath.Join(p.CommonDir, "config"), key: key, value: "/etc/more"}}, home)
		if !ok || !slices.Equal(files, plain) {
			t.Errorf("%s adds to %q: %q", key, plain, files)
		}
	}
}

func TestWhatARepositoryAloneSays(t *testing.T) {
	p, _, do := configuredPlace(t)
	do("config", "core.fileMode", "OFF")
	do("config", "core.logAllRefUpdates", "always")
	do("config", "core.splitIndex", "2")
	disktest.Put(t, filepath.Join(p.GitDir, "config"), append(read(t, filepath.Join(p.GitDir, "config")), "[core]\n\tsparsecheckout\n"...), 0o644)
	got, err := p.Own(t.Context(), "core.filemode", "core.logallrefupdates", "core.splitindex", "core.sparsecheckout", "core.symlinks")
	want := map[string]string{"core.filemode": "false", "core.logallrefupdates": "always", "core.splitindex": "true", "core.sparsecheckout": "true"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	if err != nil || len(got) != len(want) {
		t.Errorf("%v, %v", got, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
