package workspace_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/inside/runner"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/port/sandbox/sandboxtest"
)

// The test binary is the second process of a fixture, and the launcher and init of a real sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "runner" {
		os.Exit(runner.Main(os.Args[2:]))
	}
	wt.Main(m)
}

// agent is a shell in a real sandbox that does what it is told.
type agent struct {
	sandbox.Process
	tell io.WriteCloser
	mu   sync.Mutex
	said strings.Builder
}

func (a *agent) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.Write(p)
}

// do has the agent run a script and returns what it printed.
func (a *agent) do(t *testing.T, script string) string {
	t.Helper()
	a.mu.Lock()
	a.said.Reset()
	a.mu.Unlock()
	if _, err := io.WriteString(a.tell, script+"\necho '<end>'\n"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(sandboxtest.Patience); ; <-tick.C {
		a.mu.Lock()
		said, done := strings.CutSuffix(a.said.String(), "<end>\n")
		a.mu.Unlock()
		if done {
			return said
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent does not answer: %q", said)
		}
	}
}

// settle starts an agent on a workspace whose base belongs to root, as in production, or to us.
func settle(t *testing.T, m *workspace.Manager, root string) (*studio, *agent) {
	t.Helper()
	p, head := wt.Project(t, base)
	return settleOn(t, m, root, p, head)
}

func settleOn(t *testing.T, m *workspace.Manager, root string, p git.Project, head git.OID) (*studio, *agent) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("SKIPPED: bubblewrap is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := wt.Self()
	if owner.UID == 0 {
		owner = sandbox.Owner{UID: 64124, GID: 64124}
	}
	s := &studio{m: m}
	if s.w, err = m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: owner}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Remove(context.Background(), s.w.Spec.Change); err != nil {
			t.Error(err)
		}
	})
	if s.host, err = m.EnsureRepository(gittest.Context(t), p); err != nil {
		t.Fatal(err)
	}
	orders, tell := io.Pipe()
	a := &agent{tell: tell}
	d := bwrap.New(bwrap.Config{Self: self, Root: root})
	a.Process, err = d.Start(gittest.Context(t), sandbox.Spec{
		ID: "restore", Owner: owner, Tree: s.w.Tree, Argv: []string{"sh"}, Env: []string{"PATH=/usr/bin:/bin"},
		Stdin: orders, Stdout: a, Stderr: a, Limits: sandbox.Limits{Timeout: 2 * sandboxtest.Patience},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tell.Close()
		a.Kill()
		if _, err := a.Wait(); err != nil {
			t.Error(err)
		}
	})
	return s, a
}

// back restores a running sandbox, frozen meanwhile.
func (s *studio) back(t *testing.T, a *agent, to git.OID) {
	t.Helper()
	if err := a.Freeze(gittest.Context(t)); err != nil {
		t.Fatal(err)
	}
	view, err := a.View(gittest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := s.m.Restore(gittest.Context(t), s.w, view, s.host, to, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Thaw(); err != nil {
		t.Fatal(err)
	}
}

const ( // what an agent does in five steps; printf, for a shell's echo differs
	step1 = `printf 'one\n' >src/a.go; printf '\000\377\r\n' >bin.dat; mkdir new; printf n >new/x`
	step2 = `chmod 755 README; ln -s ../README new/link; rm src/b.go; mv new/x new/moved`
	step3 = `rm -r docs; printf 'a file' >docs; rm README; mkdir README; printf i >README/in`
	step4 = `rm -r src; ln -s /etc src; mkfifo pipe; chmod 644 run.sh; printf '\001' >bin.dat`
	step5 = `rm -r ./[a-z]* README; mkdir -p src/.git shut; printf x >src/.git/config; printf y >shut/in; ln shut/in twin; chmod 0 shut`
)

func TestARunningSandboxGoesBackAndWhatItsAgentWritesNextIsFound(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s, a := settle(t, m, t.TempDir())
		var states []git.OID
		for _, step := range []string{step1, step2, step3, step4, step5} {
			if said := a.do(t, step); said != "" {
				t.Fatalf("the agent said %q", said)
			}
			states = append(states, s.keep(t))
		}
		for _, to := range []git.OID{states[1], states[4], states[0], states[3], states[1]} {
			s.back(t, a, to)
			if edits, err := s.host.Edits(gittest.Context(t), to, s.keep(t)); err != nil || len(edits) > 0 {
				t.Fatalf("the next checkpoint differs: %v, %v", edits, err)
			}
		}
		look := `cat src/a.go; od -An -tx1 bin.dat; readlink new/link; stat -c '%a %U %n' README run.sh new/moved src; ls -d new/x src/b.go shut twin src/.git pipe 2>/dev/null; cat docs/x.md`
		want := "one\n 00 ff 0d 0a\n../README\n755 agent README\n755 agent run.sh\n644 agent new/moved\n755 agent src\nx\n"
		if got := a.do(t, look); got != want {
			t.Errorf("the agent sees %q, want %q", got, want)
		}
		if said := a.do(t, "printf more >>src/a.go; printf more >>src/deep/c.go; rm new/moved; printf n >docs/n; mv run.sh docs/run.sh"); said != "" {
			t.Errorf("the agent said %q", said)
		}
		var differs []string
		edits, err := s.host.Edits(gittest.Context(t), states[1], s.keep(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edits {
			differs = append(differs, e.Path)
		}
		if want := []string{"docs/n", "docs/run.sh", "new/moved", "run.sh", "src/a.go", "src/deep/c.go"}; !slices.Equal(differs, want) {
			t.Errorf("the walk after it found %q, want %q", differs, want)
		}
		if got := a.do(t, "cat src/a.go"); got != "one\nmore" {
			t.Errorf("the agent reads %q", got)
		}
	})
}

// The agent goes on although it should stand still: it exchanges folders and files for links
// to what is the host's, which exists by the same names in its own view.
func TestAnAgentThatRunsOnWhileItIsRestoredReachesNothingOfTheHost(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s, a := settle(t, m, t.TempDir())
		outside := t.TempDir()
		for _, name := range []string{"a.go", "x.md", "deep/c.go"} {
			if err := os.MkdirAll(filepath.Join(outside, filepath.Dir(name)), 0o777); err != nil {
				t.Fatal(err)
			}
			disktest.Put(t, filepath.Join(outside, name), "the host's\n", 0o666)
		}
		before := wt.Photo(t, outside)
		state := s.keep(t)
		a.do(t, "ln -s "+outside+" trap; (trap exit TERM; while :; do mv -T src was; mv -T trap src; printf x >docs/x.md; mv -T src trap; mv -T was src; ln -sf "+outside+"/x.md docs/x.md; rm -f docs/x.md; mkdir docs/x.md; rmdir docs/x.md; done) >/dev/null 2>&1 & loop=$!")
		view, err := a.View(gittest.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		for range 25 {
			_ = s.m.Restore(gittest.Context(t), s.w, view, s.host, state, nil) // fails or not, as the race goes
		}
		a.do(t, "kill $loop; wait $loop 2>/dev/null") // it ends behind a command, so that none of its goes on alone
		if after := wt.Photo(t, outside); after != before {
			t.Fatalf("outside was %s, is %s", before, after)
		}
		s.back(t, a, state)
		if edits, err := s.host.Edits(gittest.Context(t), state, s.keep(t)); err != nil || len(edits) > 0 {
			t.Errorf("the next checkpoint differs: %v, %v", edits, err)
		}
		var st unix.Stat_t
		if err := unix.Fstatat(int(view.Fd()), "src/a.go", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Uid != s.w.Spec.Owner.UID {
			t.Errorf("src/a.go belongs to uid %d, %v", st.Uid, err)
		}
	})
}

// A real sandbox, under a uid of its own where there is one, on a base of three layers that hide and replace.
func TestARunningSandboxSeesABaseOfSeveralLayersAsOneAndGoesBackOnIt(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := wt.Project(t, base)
		for i, change := range []func(){
			func() {
				wt.Git(t, p.Top, "rm", "-rq", "docs", "README", "src/b.go")
				wt.Files(t, p.Top, map[string]string{"README/in": "1\n", "docs": "a file\n"})
			},
			func() {
				wt.Git(t, p.Top, "rm", "-q", "docs", "src/a.go")
				wt.Files(t, p.Top, map[string]string{"docs/again": "1\n", "src/b.go": "package again\n"})
			},
		} {
			if _, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: id.Change(fmt.Sprintf("chg-0000001%d", i)), Project: p, Base: head, Owner: wt.Self()}); err != nil {
				t.Fatal(err)
			}
			change()
			_, head = wt.Commit(t, p.Top)
		}
		s, a := settleOn(t, m, t.TempDir(), p, head)
		if n := len(s.w.BaseFolders()); n != 3 {
			t.Fatalf("%d layers", n)
		}
		look := `find . -path ./.git -prune -o -type f -print | sort | tr '\n' ' '; cat docs/again src/b.go README/in; stat -c '%a %U' src/b.go src`
		want := "./README/in ./docs/again ./run.sh ./src/b.go ./src/deep/c.go ./src/deep/d.go 1\npackage again\n1\n644 agent\n755 agent\n"
		if got := a.do(t, look); got != want {
			t.Fatalf("the agent sees %q, want %q", got, want)
		}
		if said := a.do(t, "printf more >>src/b.go; rm -r docs src/deep; mkdir docs; printf x >docs/x; printf y >src/a.go; rm link"); said != "" {
			t.Fatalf("the agent said %q", said)
		}
		d, err := m.Walk(gittest.Context(t), s.w)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(show(d), " "), "docs/again gone docs/x 100644 link gone src/a.go 100644 src/b.go 100644 src/deep/c.go gone src/deep/d.go gone"; got != want {
			t.Errorf("the walk finds %q, want %q", got, want)
		}
		s.back(t, a, head)
		if got := a.do(t, look); got != want {
			t.Errorf("back again the agent sees %q, want %q", got, want)
		}
	})
}
