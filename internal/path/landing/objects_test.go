package landing_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// TestAKillInsideGitLeavesNothingAmongThePersonsObjects kills git within its own operation, at system calls of
// its own, and us with it. What is left is known to be ours, and goes with the next landing or the sweep.
func TestAKillInsideGitLeavesNothingAmongThePersonsObjects(t *testing.T) {
	persontest.Ordinary(t, "a git is started without another user's rights")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-qq", "-o", "/dev/null", "true").Run() != nil {
		t.Skip("SKIPPED: needs strace")
	}
	for _, at := range []struct {
		call string
		when int
	}{{"fsync", 1}, {"link,rename", 1}, {"link,rename", 2}} {
		t.Run(fmt.Sprint(at.call, at.when), func(t *testing.T) {
			r, o := plain(t)
			wrapped, path := t.TempDir(), os.Getenv("PATH")
			c := &disktest.Crash{At: indexOf(t, &world{template: r.Top, made: r, order: o}, "git:import"), After: true}
			put(t, filepath.Join(wrapped, "git"), fmt.Sprintf(`#!/bin/sh
for w in "$@"; do [ "$w" != unpack-objects ] || exec %s -f -qq -o /dev/null -e trace=%s -e inject=%[2]s:signal=SIGKILL:when=%d %s "$@"; done
exec %[4]s "$@"
`, strace, at.call, at.when, real), 0o755)
			t.Setenv("PATH", wrapped+":"+path)
			j := &journal{}
			if crashed, err := disktest.Run(func() error {
				return attempt(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, j)
			}); err != nil || !crashed || j.row != nil {
				t.Fatal(crashed, err, j.row)
			}
			t.Setenv("PATH", path)

			left, err := landing.Desks(r.Project)
			if err != nil || len(left) != 1 || !left[0].Aside || left[0].Landing != o.Landing {
				t.Errorf("the sweep sees %+v, %v", left, err)
			}
			if aside := halfMade(t, r); len(aside) > 0 {
				t.Errorf("left outside of our folder: %q", aside)
			}
			o.Landing += "b"
			r.land(t, o)
			if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
				t.Errorf("the next landing leaves %+v, %v", left, err)
			}
		})
	}
}

// halfMade names what git was at below the objects, but for a folder of ours.
func halfMade(t *testing.T, r repo) (left []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(r.CommonDir, "objects"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "tmp_objdir-sallyport-") {
			return fs.SkipDir
		}
		pack := strings.TrimSuffix(p, filepath.Ext(p))
		_, none := os.Stat(pack + ".idx")
		if strings.HasPrefix(e.Name(), "tmp_") || strings.HasPrefix(e.Name(), "pack-") && none != nil {
			left = append(left, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestFewObjectsComeLooseAndManyAsAPack: so that a person's own git packs what lands when it would pack their commits.
func TestFewObjectsComeLooseAndManyAsAPack(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("a\n")})
	packs := func() int {
		found, err := filepath.Glob(filepath.Join(r.CommonDir, "objects/pack/*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	before := packs()
	if err := os.Remove(filepath.Join(r.CommonDir, "objects/pack")); err != nil { // it is made for a pack only
		t.Fatal(err)
	}
	for i := range 3 {
		r.land(t, r.order(t, map[string]blob{fmt.Sprintf("new%d", i): text(fmt.Sprint(i)), "dir/f": text(fmt.Sprint(i))}))
	}
	if n := packs() - before; n != 0 {
		t.Errorf("three small landings added %d packs", n)
	}
	if _, err := os.Stat(filepath.Join(r.CommonDir, "objects/pack")); err == nil {
		t.Error("three small landings made the folder of packs")
	}
	r.land(t, r.order(t, hundred()))
	if n := packs() - before; n != 1 {
		t.Errorf("a large landing added %d packs", n)
	}
	gitIn(t, r.Top, "", "fsck", "--strict")
	if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// hundred is so many files that git keeps them as a pack.
func hundred() map[string]blob {
	files := map[string]blob{}
	for i := range 100 {
		files[fmt.Sprintf("many/f%d", i)] = text(fmt.Sprintln("file", i))
	}
	return files
}

// TestAPackThatWasGivenHalfGoesWithItsFolder: the power goes between its first name and its last.
func TestAPackThatWasGivenHalfGoesWithItsFolder(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("a\n")})
	o := r.order(t, hundred())
	c := &disktest.Crash{At: indexOf(t, &world{template: r.Top, made: r, order: o}, "git:link")}
	if crashed, err := disktest.Run(func() error {
		return attempt(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, &journal{})
	}); err != nil || !crashed {
		t.Fatal(crashed, err)
	}
	packs, err := filepath.Glob(filepath.Join(r.CommonDir, "objects/tmp_objdir-sallyport-*/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	theirs := filepath.Join(r.CommonDir, "objects/pack", filepath.Base(packs[0]))
	if err := os.Link(packs[0], theirs); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(r.CommonDir, "objects/pack/pack-0123456789012345678901234567890123456789.pack")
	put(t, other, "theirs", 0o444)
	const zeros = "pack-0000000000000000000000000000000000000000" // looked at before the other, and given whole
	whole := filepath.Join(r.CommonDir, "objects/pack", zeros)
	put(t, whole+".pack", "whole", 0o444)
	put(t, whole+".idx", "its index", 0o444)
	if err := os.Link(whole+".pack", filepath.Join(filepath.Dir(packs[0]), zeros+".pack")); err != nil {
		t.Fatal(err)
	}
	if err := (&landing.Lander{}).ClearAside(gittest.Context(t), r.Project); err != nil {
		t.Fatal(err)
	}
	if left := halfMade(t, r); len(left) != 1 || left[0] != other {
		t.Errorf("left: %q, want what is not ours", left)
	}
	if raw, err := os.ReadFile(whole + ".pack"); string(raw) != "whole" {
		t.Errorf("a pack that has its index: %q, %v", raw, err)
	}
	if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// TestWhatCannotGetANameAmongThePersonsObjectsIsNotJournaled: files stand where git has its folders of objects.
func TestWhatCannotGetANameAmongThePersonsObjectsIsNotJournaled(t *testing.T) {
	for name, files := range map[string]map[string]blob{"few": {"a": text("2")}, "many": hundred()} {
		t.Run(name, func(t *testing.T) {
			r := testRepo(t, map[string]blob{"a": text("1")})
			o := r.order(t, files)
			gitIn(t, r.Top, "", "update-ref", "refs/keep/approved", string(o.Source))
			gitIn(t, r.Top, "", "gc", "-q", "--prune=now")
			for n := range 256 {
				put(t, filepath.Join(r.CommonDir, fmt.Sprintf("objects/%02x", n)), "", 0o444)
			}
			if name == "many" {
				host, err := beside(gittest.Context(t), r.Project)
				if err != nil {
					t.Fatal(err)
				}
				gitIn(t, host.Path, "", "fetch", "-q", r.Top, "+refs/keep/*:refs/keep/*")
			}
			before := look(t, r.Top)
			j := &journal{}
			ops := disk.Ops{Around: func(op string, do func() error) error {
				if op == "git:link" && name == "many" { // the folder of packs, too
					packs := filepath.Join(r.CommonDir, "objects/pack")
					if err := os.Rename(packs, packs+"-away"); err != nil {
						t.Error(err)
					}
					put(t, packs, "", 0o444)
					defer func() { _ = os.Remove(packs); _ = os.Rename(packs+"-away", packs) }()
				}
				return do()
			}}
			if err := attempt(t, &landing.Lander{Host: beside, Ops: ops}, o, j); err == nil || j.row != nil || !strings.Contains(err.Error(), "add to the objects of") {
				t.Errorf("%v, row %+v", err, j.row)
			}
			unchanged(t, r, before)
			if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
				t.Errorf("left: %+v, %v", left, err)
			}
		})
	}
}

// TestAFolderAmongThePersonsObjectsThatStaysStopsTheLanding, before anything is journaled, and is told as often as it cannot be cleared.
func TestAFolderAmongThePersonsObjectsThatStaysStopsTheLanding(t *testing.T) {
	r, o := plain(t)
	before, j := look(t, r.Top), &journal{}
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "git:aside" {
			return unix.EIO
		}
		return do()
	}}}
	if err := attempt(t, l, o, j); !errors.Is(err, unix.EIO) || j.row != nil {
		t.Errorf("%v, row %+v", err, j.row)
	}
	if err := l.ClearAside(gittest.Context(t), r.Project); !errors.Is(err, unix.EIO) {
		t.Errorf("clearing says %v", err)
	}
	if err := (&landing.Lander{}).ClearAside(gittest.Context(t), r.Project); err != nil {
		t.Error(err)
	}
	unchanged(t, r, before)
	if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// TestWhatAPersonsGitCollectsBeforeTheBranchNamesItIsBroughtAgain: no ref of theirs holds it until then.
func TestWhatAPersonsGitCollectsBeforeTheBranchNamesItIsBroughtAgain(t *testing.T) {
	for _, when := range []string{"journal", "desk:commit"} {
		t.Run(when, func(t *testing.T) {
			r, o := plain(t)
			collect := func() {
				host, err := beside(gittest.Context(t), r.Project)
				if err != nil {
					t.Fatal(err)
				}
				gitIn(t, host.Path, "", "repack", "-a", "-d", "-q") // what lands is the host's own, here too
				gitIn(t, r.Top, "", "gc", "-q", "--prune=now")
			}
			l := &landing.Lander{Host: beside}
			if when != "journal" {
				l.Ops = meddle(when, true, collect)
			}
			computed := compute(t, l, o)
			j := &journal{}
			steps := j.steps()
			if journaled := steps.Journal; when == "journal" {
				steps.Journal = func(l landing.Landing) error { collect(); return journaled(l) }
			}
			if done, err := l.Land(gittest.Context(t), computed, steps); err != nil || done.State != landing.Landed {
				t.Fatalf("%s %q, %v", done.State, done.Reason, err)
			}
			gitIn(t, r.Top, "", "fsck", "--strict")
		})
	}
}

// TestWhatIsTornAmongThePersonsObjectsDoesNotCountAsLanded has a power loss leave an object empty under its name, before a landing brings the
// same one, or just after: their git takes it for there, whoever looks no further says "landed" of what nobody can read.
func TestWhatIsTornAmongThePersonsObjectsDoesNotCountAsLanded(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the names were given: %v", after), func(t *testing.T) {
			r := testRepo(t, map[string]blob{"a": text("a\n")})
			o := r.order(t, map[string]blob{"new": text("torn\n")})
			gitIn(t, r.Top, "", "checkout", "-q", "-b", "elsewhere")
			o.WorkTree = false
			host, err := beside(gittest.Context(t), r.Project)
			if err != nil {
				t.Fatal(err)
			}
			gitIn(t, host.Path, "", "fetch", "-q", r.Top, "+refs/heads/*:refs/keep/*")
			gitIn(t, host.Path, "", "update-ref", "refs/keep/approved", string(o.Source))
			gitIn(t, host.Path, "", "repack", "-a", "-d", "-q")
			if err := os.Remove(filepath.Join(host.Path, "objects/info/alternates")); err != nil {
				t.Fatal(err)
			}

			oid := gitIn(t, r.Top, "torn\n", "hash-object", "--stdin")
			place := filepath.Join(r.CommonDir, "objects", oid[:2], oid[2:])
			tear := func() {
				_ = os.Remove(place)
				put(t, place, "", 0o444)
			}
			l := &landing.Lander{Host: beside}
			if after {
				l.Ops = meddle("git:link", true, tear)
			} else {
				tear()
			}
			computed := compute(t, l, o)
			done, err := l.Land(gittest.Context(t), computed, (&journal{}).steps())
			if shown, unreadable := tryGit(r.Top, "", "show", "main:new"); done.State == landing.Landed && unreadable != nil {
				t.Errorf("it landed, says the row, and git says %s", shown)
			}
			if done.State == landing.Landed || !strings.Contains(fmt.Sprint(done.Reason, err), "cannot be read") {
				t.Errorf("%s: %s, %v", done.State, done.Reason, err)
			}
			if main := gitIn(t, r.Top, "", "rev-parse", "main"); main != string(o.Base) {
				t.Errorf("main is at %s", main)
			}
		})
	}
}

// TestOnlyObjectsGetANameAmongThePersonsObjects, whatever else lies where git wrote them.
func TestOnlyObjectsGetANameAmongThePersonsObjects(t *testing.T) {
	r, o := plain(t)
	aside := filepath.Join(r.CommonDir, "objects/tmp_objdir-sallyport-"+string(o.Landing))
	others := []string{"pack/half", "ab/tmp_obj_1", "ab/" + strings.Repeat("0", 38), "abc/" + strings.Repeat("0", 38)}
	meddled := meddle("git:import", true, func() {
		for _, name := range others[:2] {
			put(t, filepath.Join(aside, name), "no object", 0o444)
		}
		for _, name := range others[2:] {
			if err := os.MkdirAll(filepath.Join(aside, name), 0o700); err != nil {
				t.Error(err)
			}
		}
		put(t, filepath.Join(aside, "zz"), "no folder of objects", 0o444) // a file system in memory lists it first
	})
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "git:again" {
			t.Error("what git wrote was not all named at once")
		}
		return meddled.Do(op, do)
	}}}
	j := &journal{}
	if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Landed {
		t.Fatalf("%v, %+v", err, j.row)
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(r.CommonDir, "objects", name)); err == nil {
			t.Errorf("%s is among them", name)
		}
	}
	if left, err := landing.Desks(r.Project); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}
