package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

func TestProfilesShowCachesReadOnlyAndNeverAHome(t *testing.T) {
	m := newMachine(t)
	m.program(t, "people/ann/sdk/go1.26/bin/go", "")
	m.program(t, "people/ann/.nvm/versions/node/v22/bin/node", "")
	m.program(t, "people/ann/.pyenv/versions/3.12/bin/python3", "")
	m.file(t, "people/ann/go/pkg/mod/cache/x", "", 0o644)
	m.file(t, "people/ann/.npm/_cacache/x", "", 0o644)
	m.file(t, "people/ann/.local/lib/python3.12/site-packages/x", "", 0o644)
	m.Path = m.at("people/ann/sdk/go1.26/bin") + ":" + m.at("people/ann/.nvm/versions/node/v22/bin") + ":" + m.at("people/ann/.pyenv/versions/3.12/bin")
	for name, want := range map[string]struct {
		shown []string
		env   []string
	}{
		"go": {
			[]string{"people/ann/sdk/go1.26", "people/ann/go/pkg/mod"},
			[]string{"GOPROXY=off", "GOTOOLCHAIN=local", "GOMODCACHE=" + m.at("people/ann/go/pkg/mod")},
		},
		"node":   {[]string{"people/ann/.nvm/versions/node/v22"}, []string{"npm_config_offline=true"}},
		"python": {[]string{"people/ann/.pyenv/versions/3.12"}, []string{"PIP_NO_INDEX=1"}},
	} {
		p, err := m.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		shown := m.shown(p.Binds)
		for _, w := range want.shown {
			if !slices.Contains(shown, w) {
				t.Errorf("%s: %q is not among %q", name, w, shown)
			}
		}
		for _, b := range p.Binds {
			if b.Writable || sandbox.Below(m.Home, b.Source) {
				t.Errorf("%s shows %+v", name, b)
			}
			if !strings.HasPrefix(b.Source, m.root) && !strings.HasPrefix(b.Source, "/usr") {
				t.Errorf("%s shows %+v of somebody else", name, b)
			}
		}
		for _, w := range want.env {
			if !slices.Contains(p.Env, w) {
				t.Errorf("%s: %q is not among %q", name, w, p.Env)
			}
		}
	}
}

func TestTheModuleCacheIsWhereGoWasToldToKeepIt(t *testing.T) {
	for text, want := range map[string]string{
		"GOMODCACHE=%/mods\n":                         "mods",
		"GOPATH=%/gopath:%/other\nGOFLAGS=-mod=mod\n": "gopath/pkg/mod",
		"GOMODCACHE=relative\n":                       "",
		"GOMODCACHE=%/people\n":                       "", // holds the home
		"GOMODCACHE=/\n":                              "",
	} {
		m := newMachine(t)
		m.file(t, "mods/x", "", 0o644)
		m.file(t, "gopath/pkg/mod/x", "", 0o644)
		m.file(t, "people/ann/.config/go/env", strings.ReplaceAll(text, "%", m.root), 0o644)
		p, err := m.Profile("go")
		if err != nil {
			t.Fatal(err)
		}
		got := m.shown(p.Binds)
		if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("%q: shown %q, want %q", text, got, want)
		}
	}
}

func TestProfilesAreAskedForByFilesAtTheTop(t *testing.T) {
	has := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for _, row := range []struct{ files, want []string }{
		{nil, nil},
		{[]string{"go.mod"}, []string{"go"}},
		{[]string{"package.json", "go.work", "README.md"}, []string{"go", "node"}},
		{[]string{"setup.py"}, []string{"python"}},
		{[]string{"requirements.txt", "pyproject.toml"}, []string{"python"}},
	} {
		if got := sandbox.DetectProfiles(has(row.files...)); !slices.Equal(got, row.want) {
			t.Errorf("%q: %q", row.files, got)
		}
	}
	if _, err := (sandbox.Person{}).Profile("cobol"); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "cobol") {
		t.Error(err)
	}
}

func TestThereIsNoSandboxWithoutALimit(t *testing.T) {
	got, want := (sandbox.Limits{MemoryBytes: -1}).OrDefault(), sandbox.Defaults
	want.Processor = got.Processor
	if got != want || got.Processor < 4*got.Timeout {
		t.Errorf("%+v", got)
	}
	set := sandbox.Limits{MemoryBytes: 1, ProcessesMax: 2, OutputBytes: 3, DescriptorsMax: 4, DiskBytes: 5, FilesMax: 6, Timeout: 7, Processor: 8}
	if got := set.OrDefault(); got != set {
		t.Errorf("%+v", got)
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 2 << 30: "2 GiB", 1 << 60: "1048576 TiB"} {
		if got := sandbox.Bytes(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestWhereRegistriesCanBeReachedNobodyIsToldToDoWithout(t *testing.T) {
	m := newMachine(t)
	m.file(t, "people/ann/go/pkg/mod/cache/x", "", 0o644)
	m.file(t, "people/ann/.npm/_cacache/x", "", 0o644)
	m.Registries = true
	cache := m.at("people/ann/go/pkg/mod")
	for name, want := range map[string]string{"go": "GOPROXY=file://" + cache + "/cache/download,https://proxy.golang.org", "node": "npm_config_cache=/home/agent/.npm", "python": "PIP_DISABLE_PIP_VERSION_CHECK=1"} {
		p, err := m.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(p.Env, want) {
			t.Errorf("%s: %q is not among %q", name, want, p.Env)
		}
		for _, no := range []string{"GOPROXY=off", "GOMODCACHE=" + cache, "npm_config_offline=true", "PIP_NO_INDEX=1"} {
			if slices.Contains(p.Env, no) {
				t.Errorf("%s: %s", name, no)
			}
		}
		for _, b := range p.Binds { // what npm writes into cannot be the person's own
			if strings.HasPrefix(b.Target, sandbox.Home+"/.npm") {
				t.Errorf("%s shows %+v", name, b)
			}
		}
	}
	odd := newMachine(t)
	odd.Registries = true
	odd.file(t, "a,b/x", "", 0o644)
	odd.file(t, "people/ann/.config/go/env", "GOMODCACHE="+odd.at("a,b")+"\n", 0o644)
	if p, err := odd.Profile("go"); err != nil || !slices.Contains(p.Env, "GOPROXY=https://proxy.golang.org") {
		t.Errorf("a path that a list would take apart: %q, %v", p.Env, err)
	}
}
