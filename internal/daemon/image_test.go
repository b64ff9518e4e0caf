package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/image"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	rehearse "sallyport/internal/drive/release"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
)

// TestAnImageIsBroughtOnceAndByAName: an agent writes a Dockerfile, and a copy of what it names is made where no sandbox has a limit. It
// tells apart neither the names of one image, nor the images whose names it does not know.
func TestAnImageIsBroughtOnceAndByAName(t *testing.T) {
	bin, to := t.TempDir(), t.TempDir()
	said := filepath.Join(bin, "said")
	script := `#!/bin/sh
echo "$@" >> ` + said + `
[ "$1" = push ] && exit 0
for name; do :; done
case $name in
a|a5e6|sha256:a5e6|private|company/private|localhost/company/private|localhost/company/private:latest|containers-storage:private) printf localhost/company/private:latest;;
cafe) printf localhost/cafe:latest;;
*) exit 125;;
esac
`
	writeFile(t, filepath.Join(bin, builder), []byte(script), 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	plain, err := secret.New(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	settings := "host: {build: {images: [private, company/private, absent, 'localhost/company/private:latest', a, a5e6, 'sha256:a5e6', 'containers-storage:private', cafe]}}\n"
	writeFile(t, filepath.Join(home, "sallyport.yaml"), []byte(settings), 0o600)
	allows, err := config.Open(home, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	c := candidate{&Daemon{secrets: &secretRules{plain: plain}, settings: allows}}
	pushed := func(names ...string) (all []string) {
		t.Helper()
		if err := c.Bases(t.Context(), names, to); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(said)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if words := strings.Fields(line); words[0] == "push" {
				all = append(all, words[2])
			}
		}
		_ = os.Remove(said)
		return all
	}

	if got := pushed("private", "company/private", "absent", "localhost/company/private:latest"); !slices.Equal(got, []string{"private"}) {
		t.Errorf("of one image there are %q", got)
	}
	if got := pushed("a", "a5e6", "sha256:a5e6", "containers-storage:private"); len(got) > 0 {
		t.Errorf("without its name there is %q", got)
	}
	if got := pushed("localhost/company/private"); len(got) > 0 {
		t.Errorf("without a word of the owner's there is %q", got)
	}
	if got := pushed("cafe"); !slices.Equal(got, []string{"cafe"}) {
		t.Errorf("of a name that could be a digest there is %q", got)
	}
}

// imaged is a home with a group and an image, which a release names that is current, and its daemon, which starts sandboxes from it.
func imaged(t *testing.T) (d *Daemon, made image.Image) {
	t.Helper()
	project, head := wt.Project(t, map[string]string{"image/Dockerfile": "FROM scratch\n", "go.mod": "module x\n", "groups/echo/AGENTS.md": "words\n", ".gitignore": ".state\n"})
	d = &Daemon{Options: Options{Home: project.Top}, control: &control.Controller{}}
	built, err := rehearse.ImageInputs(t.Context(), git.Dir{Path: filepath.Join(d.Home, ".git")}, head)
	root, from := filepath.Join(t.TempDir(), "root"), t.TempDir()
	err = errors.Join(err, os.MkdirAll(filepath.Join(root, "usr"), 0o755), os.WriteFile(filepath.Join(from, release.Program), []byte("a program"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	made, err = candidate{d}.Images().Put(t.Context(), root, image.Image{Inputs: built, Built: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := candidate{d}.Releases().Put(from, release.Release{Image: made.Digest, Built: made.Built})
	if err = errors.Join(err, candidate{d}.Releases().Use(r.Digest)); err != nil {
		t.Fatal(err)
	}
	d.image = imageOf(d.Home, disk.Ops{})
	return d, made
}

// TestDoctorSaysWhatSandboxesStartFrom, and what the home has committed or lost that they do not start from.
func TestDoctorSaysWhatSandboxesStartFrom(t *testing.T) {
	const bring = "sallyport chat echo --say 'Propose a change of the host that adds a line to image/notes.md'"
	commit := func(files map[string]string) func(*testing.T, *Daemon, image.Image) {
		return func(t *testing.T, d *Daemon, _ image.Image) {
			wt.Files(t, d.Home, files)
			wt.Commit(t, d.Home)
		}
	}
	lose := func(t *testing.T, d *Daemon, made image.Image) {
		if err := (candidate{d}).Images().Remove(made.Digest); err != nil {
			t.Fatal(err)
		}
	}
	none := func(t *testing.T, d *Daemon, _ image.Image) {
		if err := os.RemoveAll(filepath.Join(d.Home, ".state")); err != nil {
			t.Fatal(err)
		}
		d.image = ""
	}
	remove := func(t *testing.T, d *Daemon, _ image.Image) {
		wt.Git(t, d.Home, "rm", "-qr", "image")
		wt.Git(t, d.Home, "commit", "-qm", "x")
	}
	for name, try := range map[string]struct {
		with    []func(*testing.T, *Daemon, image.Image)
		is      api.Check
		details []string
	}{
		"an image that is built of what is committed": {nil, api.Check{OK: true}, []string{"of 2 files and 0 MiB, built at "}},
		"another file, committed by hand": {
			[]func(*testing.T, *Daemon, image.Image){commit(map[string]string{"docs/page.md": "words\n"})}, api.Check{OK: true}, []string{"start from image "}},
		"a Dockerfile that was committed by hand": {
			[]func(*testing.T, *Daemon, image.Image){commit(map[string]string{"image/Dockerfile": "FROM debian:12\n"})}, api.Check{Ignored: true, Fix: bring},
			[]string{"start from image ", "it is not built of what is committed in image/ and the manifests of the home now"}},
		"a manifest that was": {
			[]func(*testing.T, *Daemon, image.Image){commit(map[string]string{"go.mod": "module y\n"})}, api.Check{Ignored: true, Fix: bring}, []string{"it is not built of what is committed"}},
		"a Dockerfile that was removed by hand": {
			[]func(*testing.T, *Daemon, image.Image){remove}, api.Check{Ignored: true, Fix: bring}, []string{"start from image ", "the home has no image/Dockerfile any more"}},
		"an image that has gone": {
			[]func(*testing.T, *Daemon, image.Image){lose}, api.Check{Fix: "sallyport daemon stop"}, []string{"start from is gone, and none of them starts"}},
		"one that had gone before": {
			[]func(*testing.T, *Daemon, image.Image){lose, func(_ *testing.T, d *Daemon, _ image.Image) { d.image = imageOf(d.Home, disk.Ops{}) }}, api.Check{Fix: bring},
			[]string{"are to start from is gone: they start from this machine's programs"}},
		"a Dockerfile of which no image was built": {
			[]func(*testing.T, *Daemon, image.Image){none}, api.Check{Fix: bring},
			[]string{"there is an image/Dockerfile, and no image of it is here", "none is built here: only a daemon of root has the uids that a build needs"}},
		"a home without any": {[]func(*testing.T, *Daemon, image.Image){remove, none}, api.Check{}, nil},
		"a release that nobody can read": {
			[]func(*testing.T, *Daemon, image.Image){func(t *testing.T, d *Daemon, _ image.Image) {
				at := filepath.Join(candidate{d}.Releases().Dir, "current")
				if err := errors.Join(os.Remove(at), os.Symlink("elsewhere", at)); err != nil {
					t.Fatal(err)
				}
			}}, api.Check{Fix: "sallyport release list"}, []string{"it is not known what sandboxes of groups are to start from", "elsewhere"}},
		"a repository that nobody can read": {
			[]func(*testing.T, *Daemon, image.Image){func(t *testing.T, d *Daemon, _ image.Image) {
				if err := os.RemoveAll(filepath.Join(d.Home, ".git", "objects")); err != nil {
					t.Fatal(err)
				}
			}}, api.Check{}, []string{"git"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, made := imaged(t)
			for _, do := range try.with {
				do(t, d, made)
			}
			all := d.checkImage(t.Context())
			if try.details == nil {
				if len(all) > 0 {
					t.Errorf("%+v", all)
				}
				return
			}
			if len(all) != 1 {
				t.Fatalf("%+v", all)
			}
			got := all[0]
			for _, words := range try.details {
				if !strings.Contains(got.Detail, words) {
					t.Errorf("it does not say %q: %s", words, got.Detail)
				}
			}
			if try.is.Name = "image"; got.OK != try.is.OK || got.Ignored != try.is.Ignored || try.is.Fix != "" && got.Fix != try.is.Fix {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestProgramsComeWithTheImageOfTheirRelease: those of another folder begin with the image of now.
func TestProgramsComeWithTheImageOfTheirRelease(t *testing.T) {
	d, made := imaged(t)
	c := candidate{d}
	put := func(of string) string {
		from := t.TempDir()
		writeFile(t, filepath.Join(from, release.Program), []byte("of "+of), 0o755)
		r, err := c.Releases().Put(from, release.Release{Image: of, Built: made.Built})
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(c.Releases().Dir, r.Digest)
	}
	gone := strings.Repeat("a", 64)
	d.image = "that of now"
	for name, try := range map[string]struct {
		from, of string
		err      error
	}{
		"a release with one":            {put(made.Digest), made.Digest, nil},
		"a release with one, by a dot":  {put(made.Digest) + "/.", made.Digest, nil},
		"a release without":             {put(""), "", nil},
		"a release whose image is gone": {put(gone), "", image.ErrAbsent},
		"no release":                    {filepath.Join(c.Releases().Dir, strings.Repeat("b", 64)), "", release.ErrAbsent},
		"a folder of somebody's":        {t.TempDir(), "that of now", nil},
		"a folder in a release":         {put(made.Digest) + "/x", "that of now", nil},
	} {
		of, err := c.imageFor(try.from)
		if of != try.of || !errors.Is(err, try.err) || try.err == nil && err != nil {
			t.Errorf("%s comes with %q, %v", name, of, err)
		}
		if try.err != image.ErrAbsent || err == nil {
			continue
		}
		if p := problem.Of(err); p.Kind != problem.Refused || p.Next != "sallyport release list" || !strings.Contains(p.Text, "the image aaaaaaaaaaaa that sandboxes start from with release ") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
