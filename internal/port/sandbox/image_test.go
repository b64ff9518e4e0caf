package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// imaged is a machine whose person's sandboxes start from an image, with a few programs in it.
func imaged(t *testing.T) machine {
	t.Helper()
	m := newMachine(t)
	m.Image = m.at("home/.state/images/0123456789abcdef/root")
	m.Path = "/usr/bin:/bin:" + m.at("people/ann/.tools/versions/1/bin")
	const in = "home/.state/images/0123456789abcdef/root/"
	for path, text := range map[string]string{
		"usr/bin/tool": "", "usr/bin/in-python": "#!/usr/bin/env python\n", "usr/bin/by-tool": "#!/bin/tool\n", "srv/hidden": "", "opt/x/bin/x": "",
	} {
		m.program(t, in+path, text)
	}
	for path, to := range map[string]string{
		"bin": "usr/bin", "usr/bin/other": "/etc/alternatives/other", "etc/alternatives/other": "../../usr/bin/tool",
		"usr/bin/hides": "/srv/hidden", "usr/bin/out": "../../../../../../../../../.." + m.at("people/ann/secret"), "usr/bin/absolute": m.at("people/ann/secret"),
	} {
		m.link(t, in+path, to)
	}
	m.program(t, "people/ann/secret", "")
	return m
}

func TestAProgramOfTheSystemIsLookedUpInTheImage(t *testing.T) {
	m := imaged(t)
	if err := unix.Mkfifo(filepath.Join(m.Image, "usr/bin/fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tool": "/usr/bin/tool", "/bin/tool": "/bin/tool", "other": "/usr/bin/other", "by-tool": "/usr/bin/by-tool", "/opt/x/bin/x": "/opt/x/bin/x"} {
		path, err := m.Find(name, "/")
		if err != nil || path != want {
			t.Errorf("%s is found at %q, %v", name, path, err)
			continue
		}
		in, err := m.Install(path)
		if err != nil || in.Path != want || len(in.Binds) > 0 {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
	for name, want := range map[string]error{
		"env": os.ErrNotExist, "/usr/bin/env": os.ErrNotExist, "/bin/sh": os.ErrNotExist, // which this machine has
		"hides": os.ErrNotExist, "out": os.ErrNotExist, "absolute": os.ErrNotExist, "fifo": os.ErrPermission,
	} {
		if path, err := m.Find(name, "/"); !errors.Is(err, want) {
			t.Errorf("%s is found at %q, %v", name, path, err)
		}
	}
	if in, err := m.Install("/usr/bin/in-python"); err == nil || !strings.Contains(err.Error(), "/usr/bin/env") {
		t.Errorf("a script whose interpreter the image does not have: %+v, %v", in, err)
	}
	err := m.Lacking(`the agent "x"`, os.ErrNotExist)
	if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), `the agent "x" is not in the image 0123456789ab`) || !strings.Contains(err.Error(), "image/Dockerfile") {
		t.Error(err)
	}
}

// TestAProgramIsFoundByThePathOfItsImage: of that what the sandbox shows of the image, before the person's own.
func TestAProgramIsFoundByThePathOfItsImage(t *testing.T) {
	m := imaged(t)
	for _, path := range []string{"opt/x/bin/named", "usr/lib/own/bin/tool"} {
		m.program(t, "home/.state/images/0123456789abcdef/root/"+path, "")
	}
	card := `{"path": "/srv:/opt/x/bin:/workspace/bin:/tmp:/usr/lib/own/bin:/usr/bin/../../tmp:relative"}`
	disktest.Put(t, filepath.Join(filepath.Dir(m.Image), "image.json"), card, 0o600)
	if want, got := append([]string{"/opt/x/bin", "/usr/lib/own/bin"}, filepath.SplitList(m.Path)...), m.Folders(); !slices.Equal(got, want) {
		t.Errorf("programs are looked up in %q, not %q", got, want)
	}
	for name, want := range map[string]string{"named": "/opt/x/bin/named", "tool": "/usr/lib/own/bin/tool", "hidden": ""} {
		if path, err := m.Find(name, "/"); path != want || (err == nil) != (want != "") {
			t.Errorf("%s is found at %q, %v", name, path, err)
		}
	}
	if m.Image = ""; !slices.Equal(m.Folders(), filepath.SplitList(m.Path)) {
		t.Errorf("without an image they are looked up in %q", m.Folders())
	}
}

func TestAnEmptyOptOfAnImageHidesNothing(t *testing.T) {
	m := imaged(t)
	if !m.Shows("/opt/y") {
		t.Error("the image's /opt is not shown")
	}
	if err := os.RemoveAll(filepath.Join(m.Image, "opt/x")); err != nil {
		t.Fatal(err)
	}
	if m.Shows("/opt/y") {
		t.Error("an empty /opt is shown")
	}
}

func TestWhatIsInstalledElsewhereIsTheMachinesAndItsInterpreterTheImages(t *testing.T) {
	m := imaged(t)
	const bin = "people/ann/.tools/versions/1/bin/"
	m.program(t, bin+"own", "")
	m.program(t, bin+"script", "#!/usr/bin/env tool\n")
	m.link(t, bin+"venv", "/usr/bin/tool")
	m.link(t, bin+"machines", "/usr/bin/env")
	m.link(t, "people/ann/bin/lone", "/bin/tool")
	m.link(t, "people/ann/.tools/versions/2", "/usr")
	in := func(path string) sandbox.Installed {
		t.Helper()
		in, err := m.Install(path)
		if err != nil {
			t.Fatal(path, err)
		}
		return in
	}
	for _, name := range []string{"own", "venv"} {
		path, err := m.Find(name, "/")
		if err != nil {
			t.Fatal(name, err)
		}
		if got := in(path); got.Path != m.at(bin+name) || !slices.Equal(m.shown(got.Binds), []string{"people/ann/.tools/versions/1"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, path := range []string{"people/ann/bin/lone", "people/ann/.tools/versions/2/bin/tool"} { // what a bind would show is the machine's
		if _, err := m.Find(m.at(path), "/"); err != nil {
			t.Error(err)
		}
		if got := in(m.at(path)); got.Path != "/usr/bin/tool" || len(got.Binds) > 0 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if path, err := m.Find("machines", "/"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to what only the machine has is found at %q, %v", path, err)
	}
	if got, err := m.Install(m.at(bin + "script")); err == nil || !strings.Contains(err.Error(), "/usr/bin/env") {
		t.Errorf("a script without env: %+v, %v", got, err)
	}
	m.program(t, "home/.state/images/0123456789abcdef/root/usr/bin/env", "")
	if got := in(m.at(bin + "script")); got.Path != m.at(bin+"script") || len(got.Binds) != 1 {
		t.Errorf("a script: %+v", got)
	}
}

func TestNothingIsSharedInTheMidstOfAnImage(t *testing.T) {
	m := imaged(t)
	without := m.Person
	without.Image = ""
	if b, err := without.Share("/usr/bin/env"); err != nil || b.Target != "/usr/bin/env" {
		t.Errorf("without an image: %+v, %v", b, err)
	}
	if b, err := m.Share("/usr/bin/env"); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "the image of this home") {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestAProfileShowsNoToolsOfTheMachinesBesideAnImage(t *testing.T) {
	m := imaged(t)
	const bin = "people/ann/.tools/versions/1/bin/"
	for _, tool := range []string{"go", "node", "npm", "python3"} {
		m.program(t, bin+tool, "")
	}
	m.Path = m.at(bin)
	m.file(t, "people/ann/go/pkg/mod/cache/x", "x", 0o644)
	m.file(t, "people/ann/.local/lib/python3.11/site-packages/x.so", "x", 0o644)
	without := m.Person
	without.Image = ""
	shown := map[string]int{}
	for _, name := range sandbox.ProfileNames() {
		with, err := m.Profile(name)
		if err != nil || len(with.Dirs) > 0 || len(with.Env) == 0 {
			t.Errorf("%s: %+v, %v", name, with, err)
		}
		shown[name] = len(with.Binds)
		bare, err := without.Profile(name)
		if err != nil || len(bare.Dirs) != 1 || len(bare.Binds) == 0 {
			t.Errorf("without an image %s is %+v, %v", name, bare, err)
		}
		if m.Toolchain(name) != m.Image+"\n" || without.Toolchain(name) == m.Toolchain(name) {
			t.Errorf("the tools of %s are %q", name, m.Toolchain(name))
		}
	}
	if shown["go"] != 1 || shown["node"] != 0 || shown["python"] != 0 {
		t.Errorf("beside an image profiles show %v folders", shown)
	}
}
