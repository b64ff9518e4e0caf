package release_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
	"sallyport/internal/who/person/persontest"
)

// built makes a folder of programs: sallyport says what is given, the other two are always the same.
func built(t testing.TB, says string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"sallyport": says, "sallyport-runner": "runs", "sallyport-tool": "asks", "sallyport-keeper": "keeps"} {
		disktest.Put(t, filepath.Join(dir, name), text, 0o755)
	}
	return dir
}

// noon is when a release was built that is so many hours old.
func noon(hours int) time.Time {
	return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC).Add(-time.Duration(hours) * time.Hour)
}

// put puts a release that is so many hours old.
func put(t testing.TB, f release.Folder, says string, hours int) release.Release {
	t.Helper()
	r, err := f.Put(built(t, says), release.Release{Build: says, Built: noon(hours)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func use(t testing.TB, f release.Folder, digest string) {
	t.Helper()
	if err := f.Use(digest); err != nil {
		t.Fatal(err)
	}
}

// entries are the names in a folder, in order.
func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func sum(text string) string {
	all := sha256.Sum256([]byte(text))
	return hex.EncodeToString(all[:])
}

func TestAReleaseIsWhatItsProgramsAre(t *testing.T) {
	for name, c := range map[string]struct {
		without []string
		lines   string
	}{
		"all three":        {nil, "sallyport " + sum("one") + "\nsallyport-runner " + sum("runs") + "\nsallyport-tool " + sum("asks") + "\n"},
		"no tool":          {[]string{"sallyport-tool"}, "sallyport " + sum("one") + "\nsallyport-runner " + sum("runs") + "\n"},
		"one program only": {[]string{"sallyport-tool", "sallyport-runner"}, "sallyport " + sum("one") + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home, from := t.TempDir(), built(t, "one")
			for _, program := range c.without {
				if err := os.Remove(filepath.Join(from, program)); err != nil {
					t.Fatal(err)
				}
			}
			f := release.In(home, disk.Ops{})
			told := release.Release{Build: "v1", Schema: 12, Source: "abc", Built: noon(0).In(time.FixedZone("", 3600))}
			r, err := f.Put(from, told)
			if err != nil {
				t.Fatal(err)
			}
			if r.Digest != sum(c.lines) || r.Build != "v1" || r.Schema != 12 || r.Source != "abc" || r.Built != noon(0) {
				t.Errorf("%+v; its digest shall be that of\n%s", r, c.lines)
			}
			if again, err := f.Put(from, release.Release{Build: "v2", Built: noon(-1)}); err != nil || again.Build != "v1" {
				t.Errorf("put again it is %+v, %v", again, err)
			}
			dir := filepath.Join(home, ".state", "releases", r.Digest)
			want := slices.Sorted(slices.Values(append(slices.Collect(keys(r.Files)), "release.json")))
			if got := entries(t, dir); !slices.Equal(got, want) || !slices.Equal(entries(t, f.Dir), []string{r.Digest}) {
				t.Errorf("it holds %q, not %q, and lies among %q", got, want, entries(t, f.Dir))
			}
			for path, mode := range map[string]fs.FileMode{f.Dir: 0o700, dir: 0o700, filepath.Join(dir, "sallyport"): 0o555, filepath.Join(dir, "release.json"): 0o400} {
				if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v; its mode shall be %v", path, info.Mode(), err, mode)
				}
			}
			read, err := f.Read(r.Digest)
			program, opened, err2 := f.Open(r.Digest)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			defer program.Close()
			if text, err := io.ReadAll(program); err != nil || string(text) != "one" {
				t.Errorf("what is opened is %q, %v", text, err)
			}
			if fmt.Sprint(read) != fmt.Sprint(r) || fmt.Sprint(opened) != fmt.Sprint(r) {
				t.Errorf("put %+v, read %+v, opened %+v", r, read, opened)
			}
		})
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestWhatIsNoProgramIsNotPut(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"sallyport is missing": os.Remove,
		"it is not executable": func(path string) error { return os.Chmod(path, 0o644) },
		"it is a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		},
		"it is a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
		"it has no end":  func(path string) error { return os.Truncate(path, 1<<30+1) }, // and takes no disk
		"it is a pipe":   func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			f, from := release.In(t.TempDir(), disk.Ops{}), built(t, "one")
			if err := spoil(filepath.Join(from, "sallyport")); err != nil {
				t.Fatal(err)
			}
			if r, err := f.Put(from, release.Release{}); !errors.Is(err, release.ErrNoProgram) && !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "sallyport") {
				t.Errorf("%+v, %v", r, err)
			}
			if left := entries(t, f.Dir); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

func TestAProgramMayBeExactlyAsLargeAsIsAllowed(t *testing.T) {
	path := filepath.Join(built(t, "one"), "sallyport")
	if err := os.Truncate(path, release.ProgramMax); err != nil {
		t.Fatal(err)
	}
	file, err := release.OpenProgram(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

func TestAReleaseIsFoundByTheBeginningOfItsDigest(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	a, b := put(t, f, "a", 0).Digest, put(t, f, "b", 0).Digest
	use(t, f, a)
	for part, want := range map[string]int{"": 2, a: 1, a[:8]: 1, b[:8]: 1, "current": 0, a + "0": 0} {
		found, err := f.Find(part)
		if err != nil || len(found) != want || want == 1 && !strings.HasPrefix(found[0], part) {
			t.Errorf("%q finds %q, %v", part, found, err)
		}
	}
	for word, want := range map[string]bool{a: true, "": false, a[:63]: false, a + "0": false, strings.Repeat("g", 64): false, strings.ToUpper(a): false, strings.Repeat("../", 21) + "a": false} {
		if release.IsDigest(word) != want {
			t.Errorf("%q can name a release: %t", word, !want)
		}
	}
}

func TestWhatIsNotAsItWasPutIsNotOpened(t *testing.T) {
	for name, c := range map[string]struct {
		kind  error
		file  string
		spoil func(dir string) error
	}{
		"a byte of sallyport": {release.ErrChanged, "sallyport", func(dir string) error { return rewrite(dir, "sallyport", "onE") }},
		"a byte of the tool":  {release.ErrChanged, "sallyport-tool", func(dir string) error { return rewrite(dir, "sallyport-tool", "askS") }},
		"a link to the same": {release.ErrChanged, "sallyport", func(dir string) error {
			at := filepath.Join(dir, "sallyport")
			return errors.Join(os.Rename(at, dir+".real"), os.Symlink(dir+".real", at))
		}},
		"a pipe": {release.ErrChanged, "sallyport-runner", func(dir string) error {
			at := filepath.Join(dir, "sallyport-runner")
			return errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o700))
		}},
		"a folder": {release.ErrChanged, "sallyport-runner", func(dir string) error {
			at := filepath.Join(dir, "sallyport-runner")
			return errors.Join(os.Remove(at), os.Mkdir(at, 0o700))
		}},
		"a missing runner": {release.ErrChanged, "sallyport-runner", func(dir string) error { return os.Remove(filepath.Join(dir, "sallyport-runner")) }},
		"a keeper beside":  {release.ErrChanged, "sallyport-keeper", func(dir string) error { return rewrite(dir, "sallyport-keeper", "keeps") }},
		"no release.json":  {release.ErrChanged, "release.json", func(dir string) error { return os.Remove(filepath.Join(dir, "release.json")) }},
		"half a card":      {release.ErrChanged, "release.json", func(dir string) error { return rewrite(dir, "release.json", "{") }},
		"a card of another": {release.ErrChanged, "release.json", func(dir string) error {
			return rewrite(dir, "release.json", `{"digest": "`+filepath.Base(dir)+`", "files": {"sallyport": "x"}}`)
		}},
		"a linked card": {release.ErrChanged, "release.json", func(dir string) error {
			at := filepath.Join(dir, "release.json")
			return errors.Join(os.Rename(at, dir+".real"), os.Symlink(dir+".real", at))
		}},
		"a linked folder": {release.ErrChanged, "", func(dir string) error { return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir)) }},
		"no folder":       {release.ErrAbsent, "", os.RemoveAll},
	} {
		t.Run(name, func(t *testing.T) {
			f := release.In(t.TempDir(), disk.Ops{})
			r := put(t, f, "one", 0)
			if err := c.spoil(filepath.Join(f.Dir, r.Digest)); err != nil {
				t.Fatal(err)
			}
			before := len(entries(t, "/proc/self/fd"))
			program, _, err := f.Open(r.Digest)
			var wrong *release.Fault
			if program != nil || !errors.As(err, &wrong) || !errors.Is(err, c.kind) || wrong.File != c.file || wrong.Digest != r.Digest {
				t.Fatalf("opened %v: %v", program != nil, err)
			}
			if !strings.Contains(err.Error(), c.file) || errors.Is(err, fs.ErrNotExist) != (c.kind == release.ErrAbsent) {
				t.Errorf("told as %v", err)
			}
			if after := len(entries(t, "/proc/self/fd")); after != before {
				t.Errorf("%d descriptors were open, and %d are", before, after)
			}
			// The same programs again mend it.
			if again := put(t, f, "one", 0); again.Digest != r.Digest {
				t.Errorf("put again it is %s", again.Digest)
			}
			if program, _, err = f.Open(r.Digest); err != nil {
				t.Fatal(err)
			}
			program.Close()
		})
	}
	for _, word := range []string{"", "current", "..", strings.Repeat("A", 64), strings.Repeat("0", 63) + "/"} {
		if _, _, err := release.In(t.TempDir(), disk.Ops{}).Open(word); !errors.Is(err, release.ErrAbsent) {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// rewrite replaces a file, whose mode forbids to write to it.
func rewrite(dir, name, text string) error {
	at := filepath.Join(dir, name)
	_ = os.Remove(at) // it need not be there
	return os.WriteFile(at, []byte(text), 0o500)
}

func TestAReleaseThatCannotBeReadIsNotCalledChanged(t *testing.T) {
	persontest.Ordinary(t, "a mode closes a file to its owner too")
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: root reads every file")
	}
	for file, mode := range map[string]fs.FileMode{"sallyport": 0, "release.json": 0, "": 0} {
		f := release.In(t.TempDir(), disk.Ops{})
		r := put(t, f, "one", 0)
		at := filepath.Join(f.Dir, r.Digest, file)
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
		var wrong *release.Fault
		if _, _, err := f.Open(r.Digest); !errors.As(err, &wrong) || wrong.Kind != release.ErrUnreadable || wrong.File != file {
			t.Errorf("%q: %v", file, err)
		}
		if err := os.Chmod(at, 0o700); err != nil { // so that the folder can be removed
			t.Error(err)
		}
	}
}

func TestReleasesAreListedTheNewestFirst(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	if all, err := f.List(); err != nil || len(all) > 0 {
		t.Errorf("where there are none: %v, %v", all, err)
	}
	old, newest, middle := put(t, f, "old", 3), put(t, f, "newest", 1), put(t, f, "middle", 2)
	broken := put(t, f, "broken", 0)
	if err := rewrite(filepath.Join(f.Dir, broken.Digest), "release.json", "{}"); err != nil {
		t.Fatal(err)
	}
	use(t, f, middle.Digest)
	all, err := f.List()
	var wrong *release.Fault
	if !errors.As(err, &wrong) || wrong.Digest != broken.Digest {
		t.Errorf("of the broken one is said: %v", err)
	}
	var got []string
	for _, r := range all {
		got = append(got, r.Build)
	}
	if want := []string{newest.Build, middle.Build, old.Build}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestTheOneBeforeIsThePreviousOne(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	a, b, c := put(t, f, "a", 3).Digest, put(t, f, "b", 2).Digest, put(t, f, "c", 1).Digest
	expect := func(current, previous string) {
		t.Helper()
		gotCurrent, err1 := f.Current()
		gotPrevious, err2 := f.Previous()
		if gotCurrent != current || gotPrevious != previous || (err1 != nil) != (current == "") || (err2 != nil) != (previous == "") {
			t.Errorf("current %q, %v, previous %q, %v; not %q and %q", gotCurrent, err1, gotPrevious, err2, current, previous)
		}
		for _, err := range []error{err1, err2} {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}
	expect("", "")
	if err := os.Symlink("x", filepath.Join(f.Dir, ".current.new")); err != nil { // a crash left it
		t.Fatal(err)
	}
	for _, step := range []struct{ use, previous string }{{a, ""}, {a, ""}, {b, a}, {b, a}, {c, b}, {b, c}} {
		use(t, f, step.use)
		expect(step.use, step.previous)
	}
	if err := f.Use(strings.Repeat("0", 64)); !errors.Is(err, release.ErrAbsent) {
		t.Errorf("one that is not there: %v", err)
	}
	expect(b, c)
	for _, step := range []struct { // a trial that goes back, and one that is kept
		do                func(string) error
		digest            string
		current, previous string
	}{{f.Turn, a, a, c}, {f.Turn, b, b, c}, {f.Turn, a, a, c}, {f.Turn, a, a, c}, {f.Follow, b, a, b}, {f.Follow, b, a, b}, {f.Turn, b, b, b}} {
		if err := step.do(step.digest); err != nil {
			t.Error(err)
		}
		expect(step.current, step.previous)
	}
	if err := f.Turn(strings.Repeat("0", 64)); !errors.Is(err, release.ErrAbsent) {
		t.Errorf("one that is not there: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(f.Dir, "current")); err != nil || to != b {
		t.Errorf("the link holds %q, %v", to, err)
	}
}

// A service starts the programs that are installed again and again, and what the home was changed to since goes on. Who installs others means them.
func TestOnlyOtherProgramsThanLastTimeAreInstalled(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	old, newer := built(t, "old"), built(t, "newer")
	current := func(after, want string) {
		t.Helper()
		now, err := f.Current()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.Read(now); err != nil || r.Build != want {
			t.Errorf("after %s the current release is %+v, %v, not %s", after, r, err, want)
		}
	}
	install := func(from, says, want string) {
		t.Helper()
		if err := f.Install(from, release.Release{Build: says, Built: noon(0)}); err != nil {
			t.Fatal(err)
		}
		current("installing "+says, want)
	}
	if f.Moved() {
		t.Error("a home without releases was brought to another one")
	}
	install(old, "old", "old")
	kept := put(t, f, "kept", 0)
	if err := f.Turn(kept.Digest); err != nil {
		t.Fatal(err)
	}
	install(old, "old", "kept")
	if !f.Moved() {
		t.Error("the home was not brought to what was kept")
	}
	install(newer, "newer", "newer")
	if f.Moved() {
		t.Error("the home was brought to another release than what was just installed")
	}
	install(old, "old", "old")
	use(t, f, kept.Digest)
	if err := os.Remove(filepath.Join(f.Dir, kept.Digest, "sallyport-tool")); err != nil {
		t.Fatal(err)
	}
	install(old, "old", "old") // the current one cannot be started
	if err := f.Install(t.TempDir(), release.Release{}); err == nil {
		t.Error("an empty folder was installed")
	}
	current("a folder without programs", "old")
}

// TestWhatIsInstalledIsReadTwice holds that its sums are made once, beside those of the copy: serve waits for that.
func TestWhatIsInstalledIsReadTwice(t *testing.T) {
	read := func() (bytes int) {
		raw, err := os.ReadFile("/proc/self/io")
		if err == nil {
			_, err = fmt.Sscanf(string(raw), "rchar: %d", &bytes)
		}
		if err != nil {
			t.Skipf("this kernel does not count what is read: %v", err)
		}
		return bytes
	}
	const size = 8 << 20
	from, f := built(t, strings.Repeat("x", size)), release.In(t.TempDir(), disk.Ops{})
	before := read()
	if err := f.Install(from, release.Release{Built: noon(0)}); err != nil {
		t.Fatal(err)
	}
	if n := read() - before; n < 2*size || n > 2*size+size/2 {
		t.Errorf("of %d bytes %d were read", size, n)
	}
}

func TestPruneKeepsTheNewestAndWhatIsNeeded(t *testing.T) {
	fill := func(t *testing.T) (f release.Folder, digests []string) { // the newest first; 5 is current, 6 previous
		f = release.In(t.TempDir(), disk.Ops{})
		for hours := range 8 {
			digests = append(digests, put(t, f, fmt.Sprint(hours), hours).Digest)
		}
		use(t, f, digests[6])
		use(t, f, digests[5])
		return f, digests
	}
	for name, c := range map[string]struct {
		keep  int
		spare []int
		gone  []int
	}{
		"five":           {5, nil, []int{7}},
		"two":            {2, nil, []int{2, 3, 4, 7}},
		"two and a kept": {2, []int{3}, []int{2, 4, 7}},
		"none":           {0, nil, []int{0, 1, 2, 3, 4, 7}},
		"less than none": {-1, nil, []int{0, 1, 2, 3, 4, 7}},
		"more than are":  {9, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, digests := fill(t)
			var spare, want, got []string
			for _, n := range c.spare {
				spare = append(spare, digests[n])
			}
			for _, n := range c.gone {
				want = append(want, digests[n])
			}
			removed, err := f.Prune(c.keep, spare...)
			for _, r := range removed {
				got = append(got, r.Digest)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("removed %.12s, not %.12s; %v", got, want, err)
			}
			stays := slices.DeleteFunc(digests, func(d string) bool { return slices.Contains(want, d) })
			stays = append(stays, "current", "previous")
			slices.Sort(stays)
			if left := entries(t, f.Dir); !slices.Equal(left, stays) {
				t.Errorf("there are %.12s", left)
			}
		})
	}
	t.Run("nothing is there", func(t *testing.T) {
		if removed, err := release.In(t.TempDir(), disk.Ops{}).Prune(5); err != nil || len(removed) > 0 {
			t.Errorf("%v, %v", removed, err)
		}
	})
	t.Run("what runs cannot be told", func(t *testing.T) {
		f, _ := fill(t)
		at := filepath.Join(f.Dir, "current")
		if err := errors.Join(os.Remove(at), os.Symlink("../elsewhere", at)); err != nil {
			t.Fatal(err)
		}
		before := entries(t, f.Dir)
		if removed, err := f.Prune(0); err == nil || len(removed) > 0 || !slices.Equal(entries(t, f.Dir), before) {
			t.Errorf("removed %v, %v", removed, err)
		}
	})
	t.Run("cards have changed", func(t *testing.T) {
		f, digests := fill(t)
		for _, n := range []int{0, 5} {
			if err := rewrite(filepath.Join(f.Dir, digests[n]), "release.json", "{"); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := f.Prune(9)
		if err != nil || len(removed) != 1 || removed[0].Digest != digests[0] {
			t.Errorf("removed %v, %v", removed, err)
		}
	})
}

func TestACardSaysWhatWasPut(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	r := put(t, f, "one", 0)
	raw, err := os.ReadFile(filepath.Join(f.Dir, r.Digest, "release.json"))
	if err != nil {
		t.Fatal(err)
	}
	var card map[string]any
	if err := json.Unmarshal(raw, &card); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(func(yield func(string) bool) {
		for k := range card {
			if !yield(k) {
				return
			}
		}
	})
	if want := []string{"build", "built", "digest", "files", "schema"}; !slices.Equal(got, want) {
		t.Errorf("it has %q, not %q", got, want)
	}
}

// TestAReleaseIsItsImageToo: sandboxes that start from something else are another release of the same programs (SM-905).
func TestAReleaseIsItsImageToo(t *testing.T) {
	home, from := t.TempDir(), built(t, "one")
	f := release.In(home, disk.Ops{})
	plain, err := f.Put(from, release.Release{Build: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if of, err := f.Image(); of != "" || err != nil {
		t.Errorf("before one is used sandboxes start from %q, %v", of, err)
	}
	with, err := f.Put(from, release.Release{Build: "v1", Image: "def"})
	if err != nil || with.Digest == plain.Digest || with.Image != "def" {
		t.Fatalf("with an image it is %+v, %v", with, err)
	}
	for _, r := range []release.Release{with, plain, with} {
		if err := f.Use(r.Digest); err != nil {
			t.Fatal(err)
		}
		if of, err := f.Image(); of != r.Image || err != nil {
			t.Errorf("by %.12s sandboxes start from %q, %v", r.Digest, of, err)
		}
	}
	card := filepath.Join(f.Dir, with.Digest, "release.json")
	raw, err := os.ReadFile(card)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(card, 0o600); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, card, strings.Replace(string(raw), `"def"`, `"other"`, 1), 0o400)
	if _, _, err := f.Open(with.Digest); !errors.Is(err, release.ErrChanged) {
		t.Errorf("with another image named it opens: %v", err)
	}
}
