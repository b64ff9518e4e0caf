package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/stamp"
)

// held is how many descriptors of this process are of a path.
func held(t *testing.T, path string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if at, _ := os.Readlink("/proc/self/fd/" + fd.Name()); at == path { // one may be gone by now
			n++
		}
	}
	return n
}

// stands waits until what is written to a file leaves another stamp: some milliseconds, by the kernel's clock alone.
func stands(path string) {
	for !stamp.Of(path).Before(stamp.Now()) {
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	disktest.Put(t, path, text, 0o644)
}

func TestOnlyAFileThatIsShortEnoughIsRead(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/full", "12345678")
	put(t, dir+"/over", "123456789")
	put(t, dir+"/none", "")
	if err := syscall.Mkfifo(dir+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"full": "12345678", "none": "", "over": "!", "pipe": "!", "absent": "!", ".": "!"} {
		path := filepath.Join(dir, name)
		got, err := readRegular(path, 8)
		if (err != nil) != (want == "!") || err == nil && string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if n := held(t, path); n > 0 {
			t.Errorf("%s is held open", name)
		}
	}
}

// A process waits only where all that it may hold open is known.
func TestAProcessWaitsOnlyOnGroundThatIsKnown(t *testing.T) {
	dir := t.TempDir()
	objects := filepath.Join(dir, "own/objects")
	for _, lender := range []string{"own", "one", "two", "deep"} {
		put(t, filepath.Join(dir, lender, "objects/pack/pack-1.pack"), "")
	}
	put(t, filepath.Join(dir, "deep/objects/info/alternates"), dir+"/one/objects\n")
	for _, odd := range []string{`"odd"`, "#odd"} {
		put(t, filepath.Join(objects, odd, "pack/pack-1.pack"), "")
	}
	d := Dir{Path: dir + "/own"}
	if standing(Dir{Path: dir + "/none"}) != nil {
		t.Error("where nothing is, nothing waits")
	}
	for text, want := range map[string][]string{
		"-":                    {"own"},
		"":                     {"own"},
		dir + "/one/objects\n": {"own", "one"},
		dir + "/one/objects":   {"own", "one"},
		"../../two/objects\n":  {"own", "two"},
		dir + "/one/objects\n../../two/objects\n": {"own", "one", "two"},
		"\"" + dir + "/one/objects\"\n":           nil,
		"#" + dir + "/one/objects\n":              nil,
		"\"odd\"\n":                               nil, // though a folder is called so
		"#odd\n":                                  nil,
		"\n" + dir + "/one/objects\n":             nil,
		dir + "/none/objects\n":                   nil,
		dir + "/deep/objects\n":                   nil,
		strings.Repeat("x", borrowsMax) + "\n":    nil,
	} {
		list := filepath.Join(objects, "info/alternates")
		if text != "-" {
			for fresh := false; !fresh; { // the clock may move on meanwhile
				put(t, list, text)
				g := standing(d)
				if fresh = !stamp.Of(list).Before(stamp.Now()); fresh && g != nil {
					t.Errorf("%.100q: it stands on what another list may look like", text)
				}
			}
			stands(list)
		}
		var got []string
		if g := standing(d); g != nil {
			for _, p := range g.packs {
				rest, _ := filepath.Rel(dir, p.folder)
				got = append(got, strings.TrimSuffix(rest, "/objects/pack"))
			}
			if !g.holds(d) {
				t.Errorf("%q holds not", text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.100q: it stands on %q, not %q", text, got, want)
		}
		_ = os.Remove(list) // none for the first
	}
}

func TestGroundHoldsWhileEveryPackIsThere(t *testing.T) {
	dir := t.TempDir()
	pack := func(name any) string { return fmt.Sprintf("%s/objects/pack/pack-%v.pack", dir, name) }
	for i := range 60 {
		put(t, pack(i*7919%61), "")
	}
	d := Dir{Path: dir}
	g := standing(d)
	if g == nil || len(g.packs) != 1 || len(g.packs[0].names) != 60 {
		t.Fatalf("it stands on %+v", g)
	}
	if n := held(t, dir+"/objects/pack"); n > 0 {
		t.Error("the folder of packs is held open")
	}
	put(t, dir+"/objects/pack/tmp_pack", "")
	if !g.holds(d) {
		t.Error("what is no pack yet matters")
	}
	if err := os.Remove(dir + "/objects/pack/tmp_pack"); err != nil {
		t.Fatal(err)
	}
	put(t, pack("new"), "")
	for range 2 {
		if !g.holds(d) || len(g.packs[0].names) != 61 {
			t.Error("a pack that came matters")
		}
	}
	if err := os.Remove(pack("new")); err != nil {
		t.Fatal(err)
	}
	if g.holds(d) {
		t.Error("a pack that went does not matter")
	}
	if g = standing(d); !g.holds(d) {
		t.Fatal("it holds not")
	}
	put(t, dir+"/objects/info/alternates", "")
	if g.holds(d) {
		t.Error("a list of who it borrows from does not matter")
	}
	stands(dir + "/objects/info/alternates")
	if g = standing(d); !g.holds(d) {
		t.Fatal("it holds not")
	}
	if err := os.RemoveAll(dir + "/objects/pack"); err != nil {
		t.Fatal(err)
	}
	if g.holds(d) {
		t.Error("it stands on no folder of packs")
	}
}

// What goes in the same step of the clock in which a folder was looked at leaves its stamp as it was.
func TestAFolderOfPacksIsLookedAtAgainUnlessItsStampTellsItApart(t *testing.T) {
	p := packs{folder: t.TempDir()}
	for fresh := false; !fresh; { // the clock may move on meanwhile
		put(t, p.folder+"/pack-a.pack", "")
		if err := os.Remove(p.folder + "/pack-a.pack"); err != nil {
			t.Fatal(err)
		}
		if !p.look() {
			t.Fatal("it is not there")
		}
		if fresh = !stamp.Of(p.folder).Before(stamp.Now()); fresh && !p.at.None() {
			t.Error("the stamp of this very moment is relied on")
		}
	}
	stands(p.folder)
	if !p.look() || p.at.None() {
		t.Error("it is looked at for ever")
	}
}
