package bwrap_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/port/sandbox/sandboxtest"
	"sallyport/internal/who/person/persontest"
)

// pair is this test as sallyport, and beside it a runner that can be told from it.
type pair struct{ self, runner string }

// newPair lays the runner's content, or if it is nil this test with one byte more, beside a copy of this test.
func newPair(t *testing.T, content []byte) pair {
	t.Helper()
	dir := t.TempDir()
	persontest.OpenWay(t, dir)
	own, err := os.ReadFile(unwatched(t))
	if err != nil {
		t.Fatal(err)
	}
	if content == nil {
		content = append(slices.Clone(own), '\n')
	}
	p := pair{filepath.Join(dir, "sallyport"), filepath.Join(dir, "sallyport-runner")}
	for path, raw := range map[string][]byte{p.self: own, p.runner: content} {
		disktest.Put(t, path, raw, 0o755)
	}
	return p
}

// sum returns the SHA-256 of a file.
func sum(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

func (p pair) driver(t *testing.T, expected string) *bwrap.Driver {
	t.Helper()
	return bwrap.New(bwrap.Config{Self: p.self, Root: t.TempDir()}).WithRunner(expected)
}

// inside returns the SHA-256 of what a sandbox shows as its init.
func inside(t *testing.T, d *bwrap.Driver) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Lchown(dir, int(owner().UID), int(owner().GID)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "which", Owner: owner(), Tree: sandbox.Tree{Dir: dir}, Env: []string{"PATH=/usr/bin"},
		Argv: []string{"sha256sum", sandbox.InitPath}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		t.Fatal(exit, err)
	}
	found, _, _ := strings.Cut(out.String(), " ")
	return found
}

// runnerLine is what the probe says of the runner.
func runnerLine(t *testing.T, d *bwrap.Driver) sandbox.Check {
	t.Helper()
	r, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Name == "runner" {
			return c
		}
	}
	t.Fatal("the probe does not name the runner")
	return sandbox.Check{}
}

func TestTheRunnerThatWasBuiltWithTheProgramIsWhatRunsAndWhatIsShown(t *testing.T) {
	needBwrap(t)
	p := newPair(t, nil)
	d := p.driver(t, sum(t, p.runner))
	if c := runnerLine(t, d); !c.OK || c.Detail != p.runner {
		t.Errorf("%+v", c)
	}
	if inside(t, d) != sum(t, p.runner) {
		t.Error("the sandbox shows another program")
	}
}

func TestARunnerThatIsNotExactlyTheExpectedOneIsNeverUsed(t *testing.T) {
	needBwrap(t)
	for _, row := range []struct {
		name, says, fix string
		spoil           func(t *testing.T, p pair) error
	}{
		{"of another build", "not built with this program", "make build", func(_ *testing.T, p pair) error { return appendTo(p.runner, "x") }},
		{"gone", "not beside", "make build", func(_ *testing.T, p pair) error { return os.Remove(p.runner) }},
		{"writable by a group", "0775", "chmod go-w ", func(_ *testing.T, p pair) error { return os.Chmod(p.runner, 0o775) }},
		{"writable by all", "0757", "chmod go-w ", func(_ *testing.T, p pair) error { return os.Chmod(p.runner, 0o757) }},
		{"no program", "no program", "make build", func(_ *testing.T, p pair) error { return os.Chmod(p.runner, 0o644) }},
		{"a link to the right one", "open", "make build", func(_ *testing.T, p pair) error {
			if err := os.Rename(p.runner, p.runner+"-real"); err != nil {
				return err
			}
			return os.Symlink(p.runner+"-real", p.runner)
		}},
		{"somebody else's", "belongs to uid 64999", "sudo chown root ", func(t *testing.T, p pair) error {
			if os.Geteuid() != 0 {
				t.Skip("SKIPPED: only root can give a file away")
			}
			return os.Lchown(p.runner, 64999, 64999)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil)
			d := p.driver(t, sum(t, p.runner))
			if c := d.CheckRunner(); !c.OK { // so that what is known of it is old
				t.Fatalf("%+v", c)
			}
			if err := row.spoil(t, p); err != nil {
				t.Fatal(err)
			}
			if inside(t, d) != sum(t, p.self) {
				t.Error("it was used")
			}
			if c := d.CheckRunner(); c.OK || !strings.Contains(c.Detail, row.says) || !strings.HasPrefix(c.Fix, row.fix) {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestAProgramThatWasBuiltAloneUsesNoRunner(t *testing.T) {
	needBwrap(t)
	p := newPair(t, nil)
	d := p.driver(t, "")
	if c := runnerLine(t, d); !c.OK || !strings.Contains(c.Detail, "sallyport itself") {
		t.Errorf("%+v", c)
	}
	if inside(t, d) != sum(t, p.self) {
		t.Error("a runner that nobody knows was used")
	}
}

// The real small program, which links less than this test does, keeps every promise as well.
func TestTheRealRunnerHoldsThePortsPromises(t *testing.T) {
	needBwrap(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: go is not installed")
	}
	built := filepath.Join(t.TempDir(), "runner")
	cmd := exec.Command("go", "build", "-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-o", built, "sallyport/cmd/sallyport-runner")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
		// Where an ordinary user cannot read the modules, what `make build` made does as well.
		if built, err = filepath.Abs("../../../../bin/sallyport-runner"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(built); err != nil {
			t.Skip("SKIPPED: go cannot build here, and `make build` was not run: ", err)
		}
	}
	content, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	p := newPair(t, content)
	d := p.driver(t, sum(t, p.runner))
	parts := sandboxtest.Parts()
	if testing.Short() { // as root it held all, and an ordinary user's driver does with the test as its runner
		parts = disktest.Sample(t, parts, 4)
	}
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Setup {
		return sandboxtest.Setup{Driver: d, Owner: owner(), Root: t.TempDir(), Images: d.Images()}
	}, parts...)
	if c := runnerLine(t, d); c.Detail != p.runner {
		t.Errorf("%+v", c)
	}
}

// Init is never as easily hit as while it forks, with all signals blocked.
func TestNoSignalFromInsideEndsInit(t *testing.T) {
	needBwrap(t)
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()})
	dir := t.TempDir()
	if err := os.Lchown(dir, int(owner().UID), int(owner().GID)); err != nil {
		t.Fatal(err)
	}
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "signals", Owner: owner(), Tree: sandbox.Tree{Dir: dir}, Env: []string{"PATH=/usr/bin"},
		// 32 to 34 belong to the thread libraries, and nobody catches them.
		Argv: []string{"bash", "-c", `until test -e stop; do for n in $(seq 31) $(seq 35 64); do kill -$n 1 || exit 4; done; done; exit 3`}})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Attach(t.Context(), []string{"true"}, nil, "", null)
		null.Close()
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := a.Wait(); err != nil || exit.Code != 0 {
			t.Fatal(exit, err)
		}
	}
	disktest.Put(t, filepath.Join(dir, "stop"), "", 0o644)
	if exit, err := p.Wait(); err != nil || exit.Code != 3 {
		t.Fatal(exit, err)
	}
}

// What init does to its own signals is not what its children begin with.
func TestAProgramBeginsWithNoSignalIgnoredOrBlocked(t *testing.T) {
	needBwrap(t)
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()})
	dir := t.TempDir()
	if err := os.Lchown(dir, int(owner().UID), int(owner().GID)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "begins", Owner: owner(), Tree: sandbox.Tree{Dir: dir}, Env: []string{"PATH=/usr/bin"},
		Argv: []string{"grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		t.Fatal(exit, err)
	}
	for line := range strings.Lines(out.String()) {
		if name, mask, _ := strings.Cut(strings.TrimSpace(line), ":\t"); name != "SigCgt" && strings.Trim(mask, "0") != "" {
			t.Errorf("%s %s", name, mask)
		}
	}
	if !strings.Contains(out.String(), "SigIgn") {
		t.Errorf("%q", out.String())
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}

// A service manager or a script may start the daemon with signals blocked, which a child inherits.
func TestASignalThatTheDaemonHasBlockedIsHeardInside(t *testing.T) {
	needBwrap(t)
	blocked := exec.Command("env", "--block-signal=WINCH", self(t), "-test.run", "^TestAProgramBeginsWithNoSignalIgnoredOrBlocked$", "-test.v")
	out, err := blocked.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestAProgramBeginsWithNoSignalIgnoredOrBlocked")) {
		t.Fatalf("%v: %s", err, out)
	}
}
