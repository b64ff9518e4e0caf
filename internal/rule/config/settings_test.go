package config_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// house is a home whose files are written by hand.
type house struct {
	*testing.T
	top string
}

func newHouse(t *testing.T) house { return house{t, t.TempDir()} }

func (h house) says(name, text string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.top, name), []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// open is what the next daemon reads.
func (h house) open() *config.Settings {
	h.Helper()
	s, err := config.Open(h.top, disk.Ops{})
	if err != nil {
		h.Fatal(err)
	}
	return s
}

func (h house) kept(name string) string { return filepath.Join(h.top, ".state", "config", name) }

func TestAFileThatDoesNotLoadChangesNothing(t *testing.T) {
	h := newHouse(t)
	h.says("sallyport.yaml", "changes: {at_once: 7}\n")
	h.says("policy.yaml", "paths_max: 7\n")
	s := h.open()
	for text, line := range map[string]int{"": 0, "changes: [\n": 1, "\n\nsudo: yes\n": 3, "changes: {at_once: 0}\n": 1, "changes: &a {at_once: 3}\n": 1, strings.Repeat("#", 65<<10): 0} {
		h.says("sallyport.yaml", text)
		if s.Sallyport().Changes.AtOnce != 7 {
			t.Errorf("%.20q counts: %+v", text, s.Sallyport().Changes)
		}
		if s = h.open(); s.Sallyport().Changes.AtOnce != 7 {
			t.Errorf("%.20q counts after a restart: %+v", text, s.Sallyport().Changes)
		}
		all := s.Unloaded()
		if len(all) != 1 || all[0].File != "sallyport.yaml" || line > 0 && all[0].Line != line || all[0].Since.IsZero() || all[0].Kept != h.kept("sallyport.yaml") ||
			problem.Of(all[0].Why).Next != "${EDITOR:-vi} "+h.top+"/sallyport.yaml" {
			t.Errorf("%.20q: %+v", text, all)
		}
		if s.Decidable() != nil || s.Policy().PathsMax != 7 {
			t.Errorf("%.20q: of the other file: %v", text, s.Decidable())
		}
	}
	h.says("sallyport.yaml", "changes: {at_once: 8}\n")
	if s.Sallyport().Changes.AtOnce != 8 || len(s.Unloaded()) > 0 || h.open().Sallyport().Changes.AtOnce != 8 {
		t.Errorf("corrected: %+v, %+v", s.Sallyport().Changes, s.Unloaded())
	}
}

func TestNothingIsDecidedWhileThePolicyDoesNotLoad(t *testing.T) {
	h := newHouse(t)
	h.says("policy.yaml", "paths_max: 7\n")
	s := h.open()
	for name, spoil := range map[string]func() error{
		"a typo":   func() error { h.says("policy.yaml", "paths_max: 8\npaths_maxx: 7\n"); return nil },
		"a folder": func() error { return os.Mkdir(filepath.Join(h.top, "policy.yaml"), 0o700) },
		"a link to itself": func() error {
			return os.Symlink("policy.yaml", filepath.Join(h.top, "policy.yaml"))
		},
	} {
		if err := os.Remove(filepath.Join(h.top, "policy.yaml")); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // and over a restart
			err := s.Decidable()
			if p := problem.Of(err); !errors.Is(err, config.ErrUnloaded) || p.Kind != problem.Refused || !strings.Contains(p.Text, "policy.yaml") || p.Next == "" || strings.Contains(p.Text, "\n") {
				t.Errorf("%s: %v, next %q", name, err, p.Next)
			}
			if s.Policy().PathsMax != 7 {
				t.Errorf("%s: paths_max is %d", name, s.Policy().PathsMax)
			}
			s = h.open()
		}
	}
	if err := os.Remove(filepath.Join(h.top, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := s.Decidable(); err != nil || s.Policy().PathsMax != 0 || h.open().Policy().PathsMax != 0 {
		t.Errorf("a home without one has the defaults: %v, %d", err, s.Policy().PathsMax)
	}
	h.says("policy.yaml", "x: 1\n") // what loaded last were the defaults
	if s := h.open(); s.Decidable() == nil || s.Policy().PathsMax != 0 {
		t.Errorf("%v", s.Decidable())
	}
}

// What is kept counts only as it was written, by this user, for nobody else.
func TestWhatIsKeptIsTakenOnlyAsItWasWritten(t *testing.T) {
	good := func(t *testing.T) (house, string, []byte) {
		h := newHouse(t)
		h.says("policy.yaml", "approvals: {people: 2}\n")
		h.open()
		h.says("policy.yaml", "approvals: {people: 2\n")
		path := h.kept("policy.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return h, path, text
	}
	for name, craft := range map[string]func(path string, text []byte) error{
		"cut off":             func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)-1], 0o600) },
		"cut off in its head": func(path string, text []byte) error { return os.WriteFile(path, text[:20], 0o600) },
		"empty":               func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"gone":                func(path string, _ []byte) error { return os.Remove(path) },
		"more": func(path string, text []byte) error {
			return os.WriteFile(path, append(text, "paths_max: 1\n"...), 0o600)
		},
		"another": func(path string, text []byte) error {
			return os.WriteFile(path, []byte(strings.Replace(string(text), "people: 2", "people: 1", 1)), 0o600)
		},
		"without a head": func(path string, _ []byte) error {
			return os.WriteFile(path, []byte("approvals: {people: 1}\n"), 0o600)
		},
		"of another file": func(path string, _ []byte) error {
			return os.Rename(filepath.Join(filepath.Dir(path), "sallyport.yaml"), path)
		},
		"others write to it": func(path string, _ []byte) error { return os.Chmod(path, 0o620) },
		"others read it":     func(path string, _ []byte) error { return os.Chmod(path, 0o604) },
		"a folder":           func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link to what was": func(path string, _ []byte) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink("policy.yaml2", path))
		},
		"long beyond all limits": func(path string, text []byte) error {
			return os.WriteFile(path, append(text, make([]byte, 1<<20)...), 0o600)
		},
	} {
		h, path, text := good(t)
		if s := h.open(); s.Policy().Approvals.People != 2 {
			t.Fatalf("%s: before, it is %+v", name, s.Policy())
		}
		if err := craft(path, text); err != nil {
			t.Fatal(err)
		}
		_, err := config.Open(h.top, disk.Ops{})
		if p := problem.Of(err); p.Kind != problem.Refused || !strings.Contains(p.Text, h.top+"/policy.yaml:1:12") || p.Next != "${EDITOR:-vi} "+h.top+"/policy.yaml" {
			t.Errorf("%s is taken: %v", name, err)
		}
		if u := config.Look(h.top).Unloaded(); len(u) != 1 || u[0].Kept != "" || !strings.Contains(u[0].InForce(), "no daemon starts") {
			t.Errorf("%s: who looks sees %+v", name, u)
		}
	}
	if os.Geteuid() == 0 {
		h, path, _ := good(t)
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Open(h.top, disk.Ops{}); err == nil {
			t.Error("what another user wrote is taken")
		}
	}
}

// The owner hears once that a file does not load, and once that it loads again, whenever the daemon ends in between.
func TestTheOwnerIsToldOnceOverRestarts(t *testing.T) {
	h := newHouse(t)
	h.says("policy.yaml", "paths_max: 7\n")
	s := h.open()
	none := func(when string) {
		t.Helper()
		for range 3 {
			if n := s.News(); len(n) > 0 {
				t.Errorf("%s: %+v", when, n)
			}
		}
	}
	one := func(when string, loads bool) config.News {
		t.Helper()
		s.News()
		n := s.News()
		if len(n) != 1 || n[0].File != "policy.yaml" || n[0].Loads != loads {
			t.Fatalf("%s: %+v", when, n)
		}
		return n[0]
	}
	none("it loads")
	h.says("policy.yaml", "paths_max: [\n")
	if n := s.News(); len(n) > 0 {
		t.Errorf("it may be half written: %+v", n)
	}
	h.says("policy.yaml", "paths_max: 9\n")
	none("it was")
	h.says("policy.yaml", "paths_max: [\n")
	first := one("a typo", false)
	s = h.open()
	if again := one("nobody was told", false); !again.Since.Equal(first.Since) || first.Since.IsZero() {
		t.Errorf("since %s, then since %s", first.Since, again.Since)
	}
	if err := s.Told(first); err != nil {
		t.Fatal(err)
	}
	none("they know")
	s = h.open()
	none("they know over a restart")
	h.says("policy.yaml", "paths_max: {\n")
	none("it is another typo")
	if u := s.Unloaded(); len(u) != 1 || !u[0].Since.Equal(first.Since) {
		t.Errorf("%+v, not since %s", u, first.Since)
	}
	h.says("policy.yaml", "paths_max: 8\n")
	s = h.open()
	n := one("corrected", true)
	if err := s.Told(n); err != nil {
		t.Fatal(err)
	}
	none("they know that, too")
	if left, err := filepath.Glob(h.kept("*.unloaded")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	s = h.open()
	none("all is well")
}

// Power goes before and after each operation. The next daemon has what loaded last, or what stands in the file.
func TestWhatIsKeptIsWholeWhereverPowerGoes(t *testing.T) {
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		h := newHouse(t)
		h.says("policy.yaml", "paths_max: 7\n")
		h.open()
		h.says("policy.yaml", "paths_max: 8\n")
		_, _ = disktest.Run(func() error {
			s, err := config.Open(h.top, c.Ops())
			if err != nil {
				return err
			}
			h.says("policy.yaml", "paths_max: [\n")
			s.Policy()
			s.News()
			for _, n := range s.News() {
				if err := s.Told(n); err != nil {
					return err
				}
			}
			return nil
		})
		s := h.open()
		if got := s.Policy().PathsMax; got != 8 {
			t.Errorf("after %q paths_max is %d", c.Seen(), got)
		}
		for _, name := range []string{"policy.yaml", "policy.yaml.unloaded"} {
			if info, err := os.Stat(h.kept(name)); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %o", name, info.Mode())
			}
		}
	})
	if len(seen) == 0 {
		t.Error("nothing was kept")
	}
}

// TestHelperProcess is a daemon that reads a home's files. What kills it on the way comes from disktest.
func TestHelperProcess(t *testing.T) {
	home := os.Getenv("CONFIGTEST_HOME")
	if home == "" {
		t.Skip("only as a child of other tests")
	}
	ops, err := disktest.FromEnv()
	if err == nil {
		_, err = config.Open(home, ops)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A process that is killed in the middle of keeping what loads leaves what was kept before, or all of the new.
func TestAKilledProcessLeavesWhatLoadedLast(t *testing.T) {
	for at, dies := 0, true; dies; at++ {
		for _, when := range []string{"before", "after"} {
			h := newHouse(t)
			h.says("policy.yaml", "paths_max: 7\n")
			h.open()
			h.says("policy.yaml", "paths_max: 8\n")
			cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
			cmd.Env = append(os.Environ(), "CONFIGTEST_HOME="+h.top, fmt.Sprintf("%s=%d:%s", disktest.KillAt, at, when))
			out, err := cmd.CombinedOutput()
			if dies = cmd.ProcessState.ExitCode() == -1; !dies && err != nil {
				t.Fatalf("%v: %s", err, out)
			}

			h.says("policy.yaml", "paths_max: [\n")
			want := 8
			if dies && (at == 0 || at == 1 && when == "before") { // settings:write, settings:commit
				want = 7
			}
			if got := h.open().Policy().PathsMax; got != want {
				t.Errorf("killed %s operation %d, paths_max is %d, want %d", when, at, got, want)
			}
		}
	}
}

func TestWhatIsKeptIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		for name, text := range map[string]string{"policy.yaml": "paths_max: 7\n"} {
			disktest.Put(t, filepath.Join(dir, name), text, 0o600)
		}
		s, err := config.Open(dir, disk.Ops{})
		if err != nil {
			t.Fatal(err)
		}
		disktest.Private(t, filepath.Join(dir, ".state"), "config/policy.yaml")
		for _, text := range []string{"paths_max: [\n", "paths_max: 9\n"} {
			if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.Policy()
		}
		disktest.Say("mended")
	})
	disktest.Ordered(t, calls, `fsync \.state`, `fsync \.state/config/\.new-policy\.yaml`, `rename \.state/config/\.new-policy\.yaml \.state/config/policy\.yaml`, `fsync \.state/config`,
		`remove \.state/config/policy\.yaml\.unloaded`, `fsync \.state/config`, `say mended`)
}

// The kernel's clock is coarse: a file that is written twice in a moment may look the same.
func TestAFileThatMayBeAnotherIsReadAgain(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.top, "policy.yaml")
	h.says("policy.yaml", "paths_max: 7\n")
	s := h.open()
	at, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	h.says("policy.yaml", "paths_max: 8\n") // the same size
	if err := os.Chtimes(path, time.Time{}, at.ModTime()); err != nil {
		t.Fatal(err)
	}
	if s.Policy().PathsMax != 8 {
		t.Errorf("what was written in its first moment does not count: %d", s.Policy().PathsMax)
	}
}

// Settings say what agents may do, so nobody says them but the home's owner and root. What loaded last goes on.
func TestAFileThatAnotherUserMayHaveWrittenDoesNotLoad(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.top, "policy.yaml")
	h.says("policy.yaml", "paths_max: 7\n")
	s := h.open()
	is := func(want int, loads bool) {
		t.Helper()
		if all := s.Unloaded(); s.Policy().PathsMax != want || (len(all) == 0) != loads || !loads && problem.KindOf(all[0].Why) != problem.Refused {
			t.Errorf("paths_max is %d, and %+v", s.Policy().PathsMax, all)
		}
	}
	is(7, true)
	h.says("policy.yaml", "paths_max: 900\n")
	may := func(mode os.FileMode, uid int) {
		t.Helper()
		if err := errors.Join(os.Chmod(path, mode), os.Lchown(path, uid, -1)); err != nil {
			t.Fatal(err)
		}
	}
	may(0o646, -1)
	is(7, false)
	may(0o664, -1)
	is(900, true)
	h.says("policy.yaml", "paths_max: 8\n")
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	may(0o600, 4711)
	is(900, false)
	if err := os.Chown(path, 0, 4711); err != nil {
		t.Fatal(err)
	}
	may(0o660, 0)
	is(900, false)
	may(0o600, 0)
	is(8, true)
}

// What cannot be kept counts all the same, and that is told.
func TestWhatCannotBeKeptCountsAndIsTold(t *testing.T) {
	h := newHouse(t)
	h.says("policy.yaml", "paths_max: 7\n")
	full := errors.New("no space left on device")
	broken := true
	s, err := config.Open(h.top, disk.Ops{Around: func(op string, do func() error) error {
		if broken && op == "settings:write" {
			return full
		}
		return do()
	}})
	if err != nil || s.Policy().PathsMax != 7 || !errors.Is(s.Unkept(), full) {
		t.Fatalf("%v, %d, %v", err, s.Policy().PathsMax, s.Unkept())
	}
	broken = false
	s.News()
	if s.Unkept() != nil {
		t.Errorf("it is tried again: %v", s.Unkept())
	}
	h.says("policy.yaml", "paths_max: [\n")
	if h.open().Policy().PathsMax != 7 {
		t.Error("it was not kept")
	}
}
