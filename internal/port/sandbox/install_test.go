package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/sandbox"
)

// machine is a folder with a home, a repository and installed programs in it.
type machine struct {
	root string
	sandbox.Person
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{root: root}
	m.Home, m.Top = m.at("people/ann"), m.at("people/ann/src/repo")
	m.program(t, "people/ann/src/repo/tools/own", "")
	return m
}

func (m machine) at(path string) string { return filepath.Join(m.root, path) }

func (m machine) program(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		text = "\x7fELF"
	}
	m.file(t, path, text, 0o755)
}

func (m machine) file(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	disktest.Put(t, m.at(path), text, mode)
}

func (m machine) link(t *testing.T, path, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.at(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, m.at(path)); err != nil {
		t.Fatal(err)
	}
}

// shown returns the binds' targets relative to the machine, with => before another source.
func (m machine) shown(binds []sandbox.Bind) []string {
	var out []string
	for _, b := range binds {
		target, _ := filepath.Rel(m.root, b.Target)
		if b.Source != b.Target {
			source, _ := filepath.Rel(m.root, b.Source)
			target += " => " + source
		}
		if b.Writable {
			target += " WRITABLE"
		}
		out = append(out, target)
	}
	return out
}

func TestAProgramIsShownWithItsInstallFolderAndNothingMore(t *testing.T) {
	m := newMachine(t)
	m.program(t, "opt/tool/bin/tool", "")
	m.program(t, "opt/flat/flat", "")
	m.program(t, "people/ann/node-22/bin/node", "")
	m.program(t, "people/ann/bin/mine", "")
	m.program(t, "people/ann/.local/bin/local", "")
	m.program(t, "people/ann/.local/share/app/versions/7", "")
	m.link(t, "people/ann/.local/bin/app", m.at("people/ann/.local/share/app/versions/7"))
	m.program(t, "people/ann/.cargo/bin/crate", "")
	m.program(t, "people/ann/.pyenv/versions/3.12/bin/python", "")
	m.program(t, "people/ann/src/bin/beside", "") // the folder above holds the repository
	m.program(t, "opt/script/bin/script", "#!"+m.at("people/ann/node-22/bin/node")+" --flag\n")
	m.program(t, "opt/script/bin/by-env", "#!/usr/bin/env -S node --flag\n")
	m.link(t, "people/ann/node-22/bin/codex", "../lib/codex/bin/codex.js")
	m.program(t, "people/ann/node-22/lib/codex/bin/codex.js", "#!/usr/bin/env node\n")
	m.Path = m.at("people/ann/node-22/bin")
	for path, want := range map[string][]string{
		"opt/tool/bin/tool":                          {"opt/tool"},
		"opt/flat/flat":                              {"opt/flat"},
		"people/ann/node-22/bin/node":                {"people/ann/node-22"},
		"people/ann/bin/mine":                        {"people/ann/bin/mine"},
		"people/ann/.local/bin/local":                {"people/ann/.local/bin/local"},
		"people/ann/.local/bin/app":                  {"people/ann/.local/bin/app => people/ann/.local/share/app/versions/7", "people/ann/.local/share/app/versions"},
		"people/ann/.cargo/bin/crate":                {"people/ann/.cargo/bin/crate"},
		"people/ann/.pyenv/versions/3.12/bin/python": {"people/ann/.pyenv/versions/3.12"},
		"people/ann/src/bin/beside":                  {"people/ann/src/bin/beside"},
		"opt/script/bin/script":                      {"opt/script", "people/ann/node-22"},
		"opt/script/bin/by-env":                      {"opt/script", "people/ann/node-22"},
		"people/ann/node-22/bin/codex":               {"people/ann/node-22"},
		"people/ann/src/repo/tools/own":              nil,
	} {
		in, err := m.Install(m.at(path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := m.shown(in.Binds); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: shown %q, want %q", path, got, want)
		}
	}
}

// A program of node finds its modules beside the file that it really is: in a folder of modules, or in that above it.
func TestAProgramOfNodeIsShownWithItsModules(t *testing.T) {
	m := newMachine(t)
	m.program(t, "people/ann/node-22/bin/node", "")
	m.Path = m.at("people/ann/node-22/bin")
	for _, place := range []string{"opt/agents/codex", "people/ann/.npm-global/lib", "people/ann/.local/lib", "people/ann/src/repo"} {
		m.program(t, place+"/node_modules/@openai/codex/bin/codex.js", "#!/usr/bin/env node\n")
		m.program(t, place+"/node_modules/@openai/codex-linux-x64/bin/codex", "")
	}
	m.link(t, "opt/agents/codex/node_modules/.bin/codex", "../@openai/codex/bin/codex.js")
	m.link(t, "people/ann/.npm-global/bin/codex", "../lib/node_modules/@openai/codex/bin/codex.js")
	m.link(t, "people/ann/.local/bin/codex", "../lib/node_modules/@openai/codex/bin/codex.js")
	m.link(t, "people/ann/src/repo/node_modules/.bin/codex", "../@openai/codex/bin/codex.js")
	for path, want := range map[string]struct {
		path  string
		binds []string
	}{
		"opt/agents/codex/node_modules/.bin/codex":                        {m.at("opt/agents/codex/node_modules/.bin/codex"), []string{"opt/agents/codex/node_modules"}},
		"people/ann/.npm-global/bin/codex":                                {m.at("people/ann/.npm-global/lib/node_modules/@openai/codex/bin/codex.js"), []string{"people/ann/.npm-global/lib/node_modules"}},
		"people/ann/.local/bin/codex":                                     {m.at("people/ann/.local/lib/node_modules/@openai/codex/bin/codex.js"), []string{"people/ann/.local/lib/node_modules"}},
		"people/ann/src/repo/node_modules/.bin/codex":                     {"/workspace/node_modules/.bin/codex", nil},
		"opt/agents/codex/node_modules/@openai/codex-linux-x64/bin/codex": {m.at("opt/agents/codex/node_modules/@openai/codex-linux-x64/bin/codex"), []string{"opt/agents/codex/node_modules"}},
	} {
		in, err := m.Install(m.at(path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got := m.shown(in.Binds)
		if len(got) > 0 && got[len(got)-1] == "people/ann/node-22" {
			got = got[:len(got)-1]
		}
		if in.Path != want.path || len(got) != len(want.binds) || len(got) > 0 && !reflect.DeepEqual(got, want.binds) {
			t.Errorf("%s: %s with %q, want %s with %q", path, in.Path, got, want.path, want.binds)
		}
	}
}

func TestAProgramOfTheRepositoryIsTheOneOfTheCopy(t *testing.T) {
	m := newMachine(t)
	in, err := m.Install(m.at("people/ann/src/repo/tools/own"))
	if err != nil || in.Path != "/workspace/tools/own" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestAnInterpreterThatIsMissingIsNamed(t *testing.T) {
	m := newMachine(t)
	m.program(t, "opt/tool/bin/gone", "#!/no/such/interpreter\n")
	m.program(t, "opt/tool/bin/env", "#!/usr/bin/env no-such-interpreter\n")
	m.program(t, "opt/tool/bin/loop", "#!"+m.at("opt/tool/bin/loop")+"\n")
	for _, name := range []string{"gone", "env", "loop"} {
		if _, err := m.Install(m.at("opt/tool/bin/" + name)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProgramsAreFoundAsThePersonWould(t *testing.T) {
	m := newMachine(t)
	m.program(t, "a/shims/tool", "#!/bin/sh\n")
	m.program(t, "b/tool", "")
	m.program(t, "a/shims/only", "#!/bin/sh\n")
	m.file(t, "a/plain", "text", 0o644)
	m.Path = m.at("a/shims") + ":relative::" + m.at("a") + ":" + m.at("b")
	for name, want := range map[string]string{
		"tool":         m.at("b/tool"), // not the stand-in
		"only":         m.at("a/shims/only"),
		m.at("b/tool"): m.at("b/tool"),
		"./tools/own":  m.at("people/ann/src/repo/tools/own"),
	} {
		got, err := m.Find(name, m.Top)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{
		"nothing": os.ErrNotExist, "": os.ErrNotExist, "./nothing": os.ErrNotExist,
		"plain": os.ErrPermission, m.at("a/plain"): os.ErrPermission, m.at("a"): os.ErrPermission,
	} {
		if _, err := m.Find(name, m.Top); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}

func TestAScriptOfTheRepositoryDoesNotChooseWhatIsShown(t *testing.T) {
	m := newMachine(t)
	m.program(t, "people/ann/private/deploy", "")
	m.program(t, "opt/tool/bin/tool", "")
	m.link(t, "people/ann/src/repo/tools/link", m.at("elsewhere/script"))
	for path, text := range map[string]string{
		"people/ann/src/repo/tools/sly": "#!" + m.at("people/ann/private/deploy") + "\n",
		"elsewhere/script":              "#!" + m.at("people/ann/private/deploy") + "\n",
		"people/ann/src/repo/tools/ok":  "#!" + m.at("opt/tool/bin/tool") + "\n",
		"people/ann/src/repo/tools/sh":  "#!/bin/sh\n",
	} {
		m.program(t, path, text)
	}
	m.Path = m.at("opt/tool/bin")
	for name, want := range map[string]bool{"sly": false, "link": false, "ok": true, "sh": true} {
		in, err := m.Install(m.at("people/ann/src/repo/tools/" + name))
		if (err == nil) != want {
			t.Errorf("%s: %v, shown %v", name, err, m.shown(in.Binds))
		}
	}
}
