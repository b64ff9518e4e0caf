package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/image"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// TestAnImageIsNamedByAllThatItIsBuiltOf holds SM-105: what has the same name is not built again.
func TestAnImageIsNamedByAllThatItIsBuiltOf(t *testing.T) {
	project, _ := wt.Project(t, map[string]string{"image/Dockerfile": "FROM scratch\n", "image/a": "a\n", "go.mod": "module x\n", "src/x": "x\n"})
	top, home := project.Top, git.Dir{Path: project.Top + "/.git"}
	named := func() string {
		t.Helper()
		sum, err := ImageInputs(t.Context(), home, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	all, first, bytes, err := imageInputs(t.Context(), home, "HEAD")
	if err != nil || len(all) != 3 || bytes != int64(len("FROM scratch\n"+"a\n"+"module x\n")) || len(first) != 64 {
		t.Fatalf("%+v, %q, %d, %v", all, first, bytes, err)
	}
	for name, c := range map[string]struct {
		do   []string
		same bool
	}{
		"another text":          {[]string{"sh", "-c", "echo b > image/a"}, false},
		"another manifest":      {[]string{"sh", "-c", "echo module y > go.mod"}, false},
		"a file more":           {[]string{"sh", "-c", "echo b > image/b"}, false},
		"a file less":           {[]string{"rm", "image/a"}, false},
		"another name":          {[]string{"mv", "image/a", "image/b"}, false},
		"a program":             {[]string{"chmod", "+x", "image/a"}, false},
		"a link":                {[]string{"ln", "-sf", "x", "image/a"}, false},
		"the source":            {[]string{"sh", "-c", "echo y > src/x"}, true},
		"a manifest of another": {[]string{"sh", "-c", "echo module y > src/go.mod"}, true},
		"a folder beside":       {[]string{"sh", "-c", "mkdir images; echo > images/a"}, true},
		"a repository within":   {[]string{"git", "update-index", "--add", "--cacheinfo", "160000," + strings.Repeat("1", 40) + ",image/sub"}, true},
		"nothing":               {[]string{"true"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			wt.Git(t, top, append([]string{"-c", "alias.do=!f() { \"$@\"; }; f", "do"}, c.do...)...)
			if c.do[0] != "git" {
				wt.Git(t, top, "add", "-A")
			}
			wt.Git(t, top, "commit", "-q", "--allow-empty", "-m", name)
			if sum := named(); (sum == first) != c.same || sum == "" {
				t.Errorf("it is %q, and was %q", sum, first)
			}
			wt.Git(t, top, "reset", "-q", "--hard", "HEAD^")
		})
	}
	for name, do := range map[string]string{"none": "rm image/Dockerfile", "a link": "ln -sf a image/Dockerfile", "another's": "mkdir image/in; mv image/Dockerfile image/in"} {
		wt.Git(t, top, "-c", "alias.do=!"+do, "do")
		wt.Git(t, top, "add", "-A")
		wt.Git(t, top, "commit", "-q", "-m", name)
		if sum := named(); sum != "" {
			t.Errorf("with %s for a Dockerfile it is %q", name, sum)
		}
		wt.Git(t, top, "reset", "-q", "--hard", "HEAD^")
	}
	if sum, err := ImageInputs(t.Context(), home, git.OID(strings.Repeat("1", 40))); sum != "" || err == nil {
		t.Errorf("of what is missing it is %q, %v", sum, err)
	}
}

func TestWhatAProgramSaysOfItselfIsItsLastDocument(t *testing.T) {
	for said, want := range map[string]Said{
		"{\"build\": \"a\", \"schema\": 1}\n":                  {"a", 1},
		"compiling\n{\n\"build\": \"b\",\n\"schema\": 2}":      {"b", 2},
		"{\"build\": \"a\", \"schema\": 1}\n{\"schema\": 3}\n": {"", 3},
		"\n{\"build\": \"a\", \"schema\": 1}\n":                {"a", 1},
		"":                                                     {},
		"compiling {\"schema\": 1}":                            {},
		"{\"schema\": 0}":                                      {},
		"{\"schema\": -1}":                                     {},
		"{\"build\": \"a\"}":                                   {},
		"{\"build\": \"a\", \"schema\": 1":                     {},
		"{\"build\": \"a\", \"schema\": 1} x":                  {},
	} {
		got, err := SaysOf(said)
		if (err == nil) != (want != Said{}) || err == nil && got != want {
			t.Errorf("%q: %+v, %v", said, got, err)
		}
	}
}

func TestAModuleThatABuildHasNotFoundIsNamed(t *testing.T) {
	for tail, want := range map[string]string{
		"main.go:3:2: example.org/m@v1.2.3: module lookup disabled by GOPROXY=off": "example.org/m@v1.2.3",
		"x: no required module provides package example.org/m/p; to add it:":       "example.org/m/p",
		"missing go.sum entry for module providing package example.org/m/p":        "example.org/m/p",
		"missing go.sum entry for go.mod file for example.org/m":                   "example.org/m",
		"missing go.sum entry for example.org/m":                                   "example.org/m", "undefined: x": "", "": "",
		"go: downloading example.org/m v1.2.3\nmain.go:3:2: module lookup disabled by GOPROXY=off": "a module",
	} {
		got := missing(tail, "/home/src")
		if want == "" && got != "" || want != "" && !strings.HasPrefix(got, "; it needs "+want+", which is not among") {
			t.Errorf("%q: %q", tail, got)
		}
	}
	for tail, want := range map[string]string{
		"main.go:3:2: example.org/m@v1.2.3: module lookup disabled by GOPROXY=off": "run `" + rehearsal.FetchModules(Person(), "/home/src", "example.org/m@v1.2.3") + "`, or",
		"main.go:3:2: module lookup disabled by GOPROXY=off":                       "run `" + rehearsal.FetchModules(Person(), "/home/src") + "`, or",
		"missing go.sum entry for example.org/m":                                   "have them fetched here, or",
	} {
		if got := missing(tail, "/home/src"); !strings.Contains(got, ": "+want) {
			t.Errorf("%q: %q does not say %q", tail, got, want)
		}
	}
}

// opened counts the files that this process has open.
func opened(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestWhatABuildIsMadeOfIsNotLeftOpen: a daemon builds for months.
func TestWhatABuildIsMadeOfIsNotLeftOpen(t *testing.T) {
	const times = 20
	files := map[string]string{"image/Dockerfile": "FROM scratch\n"}
	for n := range times {
		files[fmt.Sprint("image/file", n)] = "x\n"
	}
	project, _ := wt.Project(t, files)
	offer := grounds.Offer{Host: git.Dir{Path: project.Top + "/.git"}, Commit: "HEAD"}
	inputs, _, _, err := imageInputs(t.Context(), offer.Host, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	env := filepath.Join(t.TempDir(), "env")
	disktest.Put(t, env, "PATH=/opt/x/bin\n", 0o600)
	before := opened(t)
	if _, err := writeInputs(t.Context(), offer, filepath.Join(t.TempDir(), "tree"), inputs); err != nil {
		t.Fatal(err)
	}
	if now := opened(t); now >= before+times {
		t.Errorf("%d files are open, and %d were", now, before)
	}
	for range times {
		if pathIn(env) != "/opt/x/bin" {
			t.Fatal("it has another path")
		}
	}
	if now := opened(t); now >= before+times {
		t.Errorf("%d files are open, and %d were", now, before)
	}
}

func TestWhatABuilderDoesNotReachIsSaid(t *testing.T) {
	for _, tail := range []string{"x: image not known", "no such image", "x not found in local storage", "x not available locally"} {
		if got := unreached("Error: "+tail+"\n", false); !strings.HasPrefix(got, "; it stands on an image") {
			t.Errorf("%q: %q", tail, got)
		}
		if got := unreached("Error: "+tail+"\n", true); got != "" {
			t.Errorf("where it may fetch, %q: %q", tail, got)
		}
	}
	if got := unreached("Error: no space left\n", false); got != "" {
		t.Errorf("of something else: %q", got)
	}
}

func TestImagesThatADockerfileStandsOnAreCounted(t *testing.T) {
	many := func(n int) (text string) {
		for i := range n {
			text += "FROM base" + strings.Repeat("x", i) + "\nFROM base\nFROM scratch\n"
		}
		return text
	}
	if names, why := bases(many(basesMax)); len(names) != basesMax || why != "" {
		t.Errorf("of as many as may be: %d, %q", len(names), why)
	}
	if names, why := bases(many(basesMax + 1)); names != nil || !strings.Contains(why, "more than 20 images") {
		t.Errorf("of one more: %d, %q", len(names), why)
	}
	full := "FROM debian\n" + strings.Repeat("#", dockerfileMax)
	if names, why := bases(full[:dockerfileMax]); len(names) != 1 || why != "" {
		t.Errorf("of as long a one as may be: %q, %q", names, why)
	}
	if names, why := bases(full[:dockerfileMax+1]); names != nil || !strings.Contains(why, "more than 1024 KiB") {
		t.Errorf("of one byte more: %q, %q", names, why)
	}
}

func TestAPathHasTheLongestFolderThatMayBe(t *testing.T) {
	at := filepath.Join(t.TempDir(), "env")
	longest := "/" + strings.Repeat("a", folderMax-1)
	disktest.Put(t, at, "PATH="+longest+"a:"+longest+":/b\n", 0o600)
	if got := pathIn(at); got != longest+":/b" {
		t.Errorf("it is %d bytes long", len(got))
	}
}

// TestInputsAreLaidOutAsTheyAreAndNowhereElse: what lays them out is root.
func TestInputsAreLaidOutAsTheyAreAndNowhereElse(t *testing.T) {
	long := strings.Repeat("x", dockerfileMax+10)
	project, _ := wt.Project(t, map[string]string{"image/Dockerfile": "FROM scratch\n", "image/deep/run": "#!\n", "image/long": long})
	wt.Git(t, project.Top, "-c", "alias.do=!chmod +x image/deep/run; ln -s /etc/passwd image/link", "do")
	wt.Git(t, project.Top, "add", "-A")
	wt.Git(t, project.Top, "commit", "-qm", "x")
	offer := grounds.Offer{Host: git.Dir{Path: project.Top + "/.git"}, Commit: "HEAD"}
	inputs, _, _, err := imageInputs(t.Context(), offer.Host, "HEAD")
	if err != nil || len(inputs) != 4 {
		t.Fatalf("%+v, %v", inputs, err)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	text, err := writeInputs(t.Context(), offer, tree, inputs)
	if err != nil || text != "FROM scratch\n" {
		t.Fatalf("%q, %v", text, err)
	}
	for name, want := range map[string]struct {
		text string
		mode fs.FileMode
	}{"image/Dockerfile": {"FROM scratch\n", 0o644}, "image/deep/run": {"#!\n", 0o755}, "image/long": {long, 0o644}} {
		raw, err := os.ReadFile(filepath.Join(tree, name))
		is, err2 := os.Lstat(filepath.Join(tree, name))
		if err := errors.Join(err, err2); err != nil || string(raw) != want.text || is.Mode() != want.mode {
			t.Errorf("%s has %d bytes and is %v, %v", name, len(raw), is.Mode(), err)
		}
	}
	if to, err := os.Readlink(filepath.Join(tree, "image/link")); to != "/etc/passwd" || err != nil {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if _, err := writeInputs(t.Context(), offer, tree, inputs); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
	for name, bad := range map[string]input{
		"out of the tree":     {"../out", inputs[0].is},
		"through a link":      {"image/link/x", inputs[0].is},
		"of what is missing":  {"image/x", git.Entry{Mode: git.File, OID: git.OID(strings.Repeat("1", 40))}},
		"of what is no file":  {"image/y", git.Entry{Mode: git.File, OID: git.OID(wt.Git(t, project.Top, "rev-parse", "HEAD"))}},
		"in a file's place":   {"image/Dockerfile/x", inputs[0].is},
		"out of all of it":    {"/etc/x-of-a-test", inputs[0].is},
		"out by another link": {"image/../../out", inputs[0].is},
	} {
		if _, err := writeInputs(t.Context(), offer, tree, []input{bad}); err == nil {
			t.Errorf("%s it is laid out", name)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(tree)); err != nil || len(left) != 1 {
		t.Errorf("beside the tree are %v, %v", left, err)
	}
}

func TestAPlaceIsEmptyAndGoes(t *testing.T) {
	var did []string
	rs := New(Parts{Folder: t.TempDir(), Ops: disk.Ops{Around: func(op string, do func() error) error { did = append(did, op); return do() }}})
	row := change.Row{ID: "chg-00000001"}
	left := filepath.Join(rs.Folder, string(row.ID), "build", "left")
	other := filepath.Join(rs.Folder, "chg-00000002", "build")
	if err := errors.Join(os.MkdirAll(left, 0o700), os.MkdirAll(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	place, clear, err := rs.takePlace(row, "build")
	if err != nil || place != filepath.Dir(left) {
		t.Fatalf("%q, %v", place, err)
	}
	if in, err := os.ReadDir(place); err != nil || len(in) > 0 {
		t.Errorf("there are %v, %v", in, err)
	}
	if is, err := os.Stat(place); err != nil || is.Mode().Perm() != 0o700 {
		t.Errorf("it is %v, %v", is.Mode(), err)
	}
	clear()
	if in, err := os.ReadDir(rs.Folder); err != nil || len(in) != 1 || in[0].Name() != "chg-00000002" {
		t.Errorf("there are %v, %v", in, err)
	}
	no := errors.New("no power")
	rs.Ops.Around = func(string, func() error) error { return no }
	if _, _, err := rs.takePlace(row, "build"); !errors.Is(err, no) {
		t.Errorf("what is not done is taken for done: %v", err)
	}
}

func TestAFolderIsGivenToWhoASandboxRunsAs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root gives files away")
	}
	top := t.TempDir()
	if err := errors.Join(os.MkdirAll(top+"/a/b", 0o700), os.WriteFile(top+"/a/b/c", nil, 0o600), os.Symlink("/etc/passwd", top+"/a/link")); err != nil {
		t.Fatal(err)
	}
	if err := own(top+"/a", sandbox.Owner{UID: 1234, GID: 56}); err != nil {
		t.Fatal(err)
	}
	for name, theirs := range map[string]bool{"a": true, "a/b": true, "a/b/c": true, "a/link": true, ".": false, "/etc/passwd": false} {
		at := filepath.Join(top, name)
		if filepath.IsAbs(name) {
			at = name
		}
		is, err := os.Lstat(at)
		if err != nil {
			t.Fatal(err)
		}
		if uid, gid := owner(is); (uid == 1234 && gid == 56) != theirs {
			t.Errorf("%s is of %d:%d", name, uid, gid)
		}
	}
	if err := own(top+"/none", sandbox.Owner{UID: 1234}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of what is not there: %v", err)
	}
}

func TestOfWhatIsPrintedTheBeginningIsKept(t *testing.T) {
	h := &head{}
	for _, text := range []string{" \n", strings.Repeat("a", printedMax-3), "\xffbc", "more"} {
		if n, err := h.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d of %d, %v", n, len(text), err)
		}
	}
	if want := strings.Repeat("a", printedMax-3) + "\uFFFD"; h.String() != want {
		t.Errorf("%d bytes are kept, the last of them %q", len(h.String()), h.String()[len(h.String())-5:])
	}
}

func TestACardSaysWhatSandboxesStartFrom(t *testing.T) {
	images := image.In(t.TempDir(), disk.Ops{})
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	for _, c := range []struct{ now, then, want string }{
		{"", "", ""}, {one, one, ""},
		{one, "", "sandboxes of groups start from this machine's own programs again, and from no image"},
		{"", one, "sandboxes of groups start from image 111111111111, in the place of this machine's own programs"},
		{one, two, "sandboxes of groups start from image 222222222222, in the place of 111111111111"},
		{"11", two, "sandboxes of groups start from image 222222222222, in the place of 11"},
	} {
		if got := startsFrom(programs.Release{Image: c.now}, programs.Release{Image: c.then}, images); got != c.want {
			t.Errorf("from %.4q to %.4q: %q", c.now, c.then, got)
		}
	}
}

func owner(is fs.FileInfo) (uid, gid uint32) {
	st := is.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid
}
