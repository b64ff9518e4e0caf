package release_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

func TestAReleaseIsPutWholeOrNotAtAll(t *testing.T) {
	from := built(t, "one")
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		home := t.TempDir()
		told := false
		crashed, err := disktest.Run(func() error {
			_, err := release.In(home, c.Ops()).Put(from, release.Release{Build: "one", Built: noon(0)})
			told = err == nil
			return err
		})
		if err != nil || crashed != c.Crashed() {
			t.Fatalf("crashed = %v, err = %v", crashed, err)
		}
		f := release.In(home, disk.Ops{})
		all, err := f.List()
		if err != nil || len(all) > 1 || told && len(all) == 0 {
			t.Errorf("there are %v, %v", all, err)
		}
		for _, r := range all {
			program, _, err := f.Open(r.Digest)
			if err != nil {
				t.Fatalf("half a release: %v", err)
			}
			program.Close()
		}
		again, err := f.Put(from, release.Release{Build: "two", Built: noon(0)})
		if err != nil || len(all) == 1 && again.Build != "one" {
			t.Errorf("put again: %+v, %v", again, err)
		}
		if removed, err := f.Prune(5); err != nil || len(removed) > 0 {
			t.Errorf("removed %v, %v", removed, err)
		}
		if left := entries(t, f.Dir); !slices.Equal(left, []string{again.Digest}) {
			t.Errorf("left over: %q", left)
		}
	})
}

// What is mended has another in its place for no longer than it takes to move it aside.
func TestAReleaseThatIsMendedIsWholeOrMendedTheNextTime(t *testing.T) {
	from := built(t, "one")
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		home := t.TempDir()
		f := release.In(home, disk.Ops{})
		r := put(t, f, "one", 0)
		use(t, f, r.Digest)
		if err := rewrite(filepath.Join(f.Dir, r.Digest), "sallyport", "onE"); err != nil {
			t.Fatal(err)
		}
		if _, err := disktest.Run(func() error {
			_, err := release.In(home, c.Ops()).Put(from, release.Release{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Put(from, release.Release{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Prune(5); err != nil {
			t.Fatal(err)
		}
		if left := entries(t, f.Dir); len(left) != 2 || !slices.Contains(left, r.Digest) || !slices.Contains(left, "current") {
			t.Errorf("left over: %q", left)
		}
	})
}

func TestTheCurrentReleaseIsTheOldOneOrTheNewOne(t *testing.T) {
	for name, before := range map[string][]string{"none was used": nil, "one was used": {"a"}, "two were used": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				home := t.TempDir()
				f := release.In(home, disk.Ops{})
				old := ""
				for _, says := range before {
					old = put(t, f, says, 1).Digest
					use(t, f, old)
				}
				next := put(t, f, "next", 0).Digest
				if _, err := disktest.Run(func() error { return release.In(home, c.Ops()).Use(next) }); err != nil {
					t.Fatal(err)
				}
				now, err := f.Current()
				switch previous, missing := f.Previous(); {
				case now == old && (err == nil) == (old != ""):
				case now != next || err != nil:
					t.Errorf("current is %.12q, %v", now, err)
				case previous != old || old == "" && !errors.Is(missing, fs.ErrNotExist):
					t.Errorf("current is the new one, and previous is %.12q, %v", previous, missing)
				}
				use(t, f, next) // whoever has not heard does it again
				now, err = f.Current()
				if previous, missing := f.Previous(); now != next || err != nil || previous != old || (missing == nil) != (old != "") {
					t.Errorf("in the end current is %.12q, %v, and previous %.12q, %v", now, err, previous, missing)
				}
			})
		})
	}
}

func TestWhatIsPrunedIsWholeOrGone(t *testing.T) {
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		home := t.TempDir()
		f := release.In(home, disk.Ops{})
		stay, go1, go2 := put(t, f, "stays", 0).Digest, put(t, f, "goes", 1).Digest, put(t, f, "goes too", 2).Digest
		if err := os.Mkdir(filepath.Join(f.Dir, ".new-1234"), 0o700); err != nil { // what a crash has left
			t.Fatal(err)
		}
		if _, err := disktest.Run(func() error {
			_, err := release.In(home, c.Ops()).Prune(1)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, name := range entries(t, f.Dir) {
			if strings.HasPrefix(name, ".") {
				continue
			}
			if !slices.Contains([]string{stay, go1, go2}, name) {
				t.Errorf("there is %q", name)
			}
			program, _, err := f.Open(name)
			if err != nil {
				t.Fatalf("half a release: %v", err)
			}
			program.Close()
		}
		if _, err := f.Prune(1); err != nil {
			t.Error(err)
		}
		if left := entries(t, f.Dir); !slices.Equal(left, []string{stay}) {
			t.Errorf("left over: %q", left)
		}
	})
}

// before does something once, right before an operation.
func before(op string, do func()) disk.Ops {
	return disk.Ops{Around: func(name string, run func() error) error {
		if name == op && do != nil {
			first := do
			do = nil
			first()
		}
		return run()
	}}
}

func TestWhatIsUnderWayIsNotPruned(t *testing.T) {
	for _, op := range []string{"release:copy", "release:write", "release:put"} {
		home := t.TempDir()
		f := release.In(home, before(op, func() {
			if removed, err := release.In(home, disk.Ops{}).Prune(0); err != nil || len(removed) > 0 {
				t.Errorf("removed %v, %v", removed, err)
			}
		}))
		put(t, f, "one", 0)
		if all, err := f.List(); err != nil || len(all) != 1 {
			t.Errorf("%s: there are %v, %v", op, all, err)
		}
	}
}

func TestTheFirstOfTwoThatPutTheSameIsKept(t *testing.T) {
	for _, op := range []string{"release:copy", "release:write", "release:put"} {
		home := t.TempDir()
		var first release.Release
		f := release.In(home, before(op, func() { first = put(t, release.In(home, disk.Ops{}), "same", 1) }))
		second := put(t, f, "same", 0)
		all, err := f.List()
		if err != nil || len(all) != 1 || all[0].Digest != second.Digest || !all[0].Built.Equal(first.Built) {
			t.Errorf("%s: there are %+v, %v", op, all, err)
		}
		if left := entries(t, f.Dir); len(left) != 1 {
			t.Errorf("%s: left over: %q", op, left)
		}
	}
}

func TestManyPutAtOnce(t *testing.T) {
	f := release.In(t.TempDir(), disk.Ops{})
	from := []string{built(t, "one"), built(t, "two")}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if _, err := f.Put(from[n%2], release.Release{Built: noon(n)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	kept, err := f.List()
	if left := entries(t, f.Dir); err != nil || len(kept) != 2 || len(left) != 2 {
		t.Errorf("there are %q, %v", left, err)
	}
	for _, r := range kept {
		program, _, err := f.Open(r.Digest)
		if err != nil {
			t.Fatal(err)
		}
		program.Close()
	}
}

// A release that a loss of power empties would be found when it is needed: when the host has to go back to it.
func TestAReleaseIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		f := release.In(dir, disk.Ops{})
		a := put(t, f, "a", 1)
		disktest.Say("put")
		b := put(t, f, "b", 0)
		use(t, f, a.Digest)
		disktest.Say("used")
		use(t, f, b.Digest)
		disktest.Say("again")
		put(t, f, "c", 2)
		if _, err := f.Prune(0); err != nil {
			t.Error(err)
		}
		put(t, release.In(dir, before("release:put", func() { put(t, f, "d", 3); disktest.Say("other") })), "d", 3)
		disktest.Say("same")
	})
	const digest, coming = `\.state/releases/[0-9a-f]{64}`, `\.state/releases/\.new-\d+`
	for _, file := range []string{"sallyport", "sallyport-runner", "sallyport-tool", `release\.json`} {
		disktest.Ordered(t, calls, `fsync \.state`, `fsync `+coming+`/`+file, `fsync `+coming, `rename `+coming+` `+digest, `fsync \.state/releases`, `say put`)
	}
	disktest.Ordered(t, calls, `rename \.state/releases/\.current\.new \.state/releases/current`, `fsync \.state/releases`, `say used`,
		`rename \.state/releases/\.previous\.new \.state/releases/previous`, `fsync \.state/releases`,
		`rename \.state/releases/\.current\.new \.state/releases/current`, `fsync \.state/releases`, `say again`,
		`rename `+digest+` \.state/releases/\.old-[0-9a-f]{64}`, `fsync \.state/releases`, `remove \.state/releases/\.old-[0-9a-f]{64}`,
		`say other`, `fsync \.state/releases`, `say same`) // who came second says that it is there, too
}
