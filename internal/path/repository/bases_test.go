package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestABaseOutlivesWhatBecomesOfTheProject(t *testing.T) {
	wt.EveryFormat(t, func(t *testing.T, p git.Project) {
		r := store(t)
		head := wt.Commits(t, p, 2)
		if err := r.Keep(t.Context(), p, change, head); err != nil {
			t.Fatal(err)
		}
		borrowed, err := os.ReadFile(filepath.Join(r.Host(p).Path, "objects/info/alternates"))
		if err != nil || strings.Contains(string(borrowed), p.CommonDir) {
			t.Errorf("the host borrows from %q, %v", borrowed, err)
		}
		wt.Git(t, p.Top, "commit", "-q", "--amend", "-m", "amended")
		wt.Git(t, p.Top, "reflog", "expire", "--expire=now", "--all")
		wt.Git(t, p.Top, "gc", "-q", "--prune=now")
		if _, err := os.Stat(filepath.Join(p.CommonDir, "refs/sallyport")); !os.IsNotExist(err) {
			t.Errorf("a ref of ours is in the project: %v", err)
		}
		if got := wt.Git(t, p.Top, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
			t.Errorf("refs are %q", got)
		}
		if err := os.RemoveAll(p.Top); err != nil {
			t.Fatal(err)
		}
		wt.Whole(t, r.Host(p).Path, head)
	})
}

func TestAnAmendedOrRebasedBaseIsNotCopiedAsAWhole(t *testing.T) {
	p, _ := wt.Project(t, map[string]string{"large": strings.Repeat("x", 100)})
	r := store(t)
	head := wt.Commits(t, p, 60)
	host, err := r.Open(t.Context(), p, head)
	if err != nil {
		t.Fatal(err)
	}
	first := wt.Git(t, p.Top, "rev-list", "--max-parents=0", "HEAD")
	for _, c := range []struct{ back, shared string }{{"HEAD~1", wt.Git(t, p.Top, "rev-parse", "HEAD~1")}, {"HEAD~30", first}} {
		wt.Git(t, p.Top, "reset", "-q", "--hard", c.back)
		next := wt.Commits(t, p, 1)
		if _, err := r.Open(t.Context(), p, next); err != nil {
			t.Fatal(err)
		}
		copies := 0
		packs, err := filepath.Glob(filepath.Join(host.Path, "bases/objects/pack/*.idx"))
		if err != nil {
			t.Fatal(err)
		}
		for _, idx := range packs {
			if strings.Contains(wt.Git(t, host.Path, "verify-pack", "-v", idx), c.shared) {
				copies++
			}
		}
		if copies != 1 {
			t.Errorf("after %s a commit that both share is in %d packs", c.back, copies)
		}
		wt.Whole(t, host.Path, next)
	}
}

func TestABaseIsSeenThroughFewPacksHoweverManyGrewBeforeIt(t *testing.T) {
	p, _ := wt.Project(t, base)
	r := store(t)
	wt.Commits(t, p, 40)
	for i, head := range strings.Fields(wt.Git(t, p.Top, "rev-list", "--reverse", "HEAD")) {
		host, err := r.Open(t.Context(), p, git.OID(head))
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []string{"bases/views/" + head, "bases"} { // its own, and what git opens for every base
			packs, err := filepath.Glob(filepath.Join(host.Path, of, "objects/pack/*.pack"))
			if err != nil || len(packs) > 6 {
				t.Fatalf("base %d: %d packs in %s, %v", i, len(packs), of, err)
			}
		}
		if i%13 == 0 {
			wt.Whole(t, host.Path, git.OID(head))
		}
	}
}

func TestACommitThatIsGoneIsNamed(t *testing.T) {
	p, _ := wt.Project(t, base)
	_, err := store(t).Open(t.Context(), p, git.OID(strings.Repeat("1", 40)))
	if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "111111111111") {
		t.Errorf("error is %v", err)
	}
}

func TestPowerLostWhileABaseIsCopiedLeavesItWholeOrAbsent(t *testing.T) {
	p, first := wt.Project(t, base)
	second := wt.Commits(t, p, 3)
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "repos")
		weak := at(root, repository.Config{Ops: c.Ops()})
		_, err := disktest.Run(func() error {
			if _, err := weak.Open(t.Context(), p, first); err != nil {
				return err
			}
			return weak.Keep(t.Context(), p, change, second)
		})
		if err != nil {
			t.Fatal(err)
		}
		r := at(root, repository.Config{})
		if err := r.Keep(t.Context(), p, change, second); err != nil {
			t.Fatal(err)
		}
		wt.Whole(t, r.Host(p).Path, second)
		if err := r.Trim(t.Context(), r.Host(p)); err != nil {
			t.Fatal(err)
		}
		wt.Whole(t, r.Host(p).Path, second)
		if left, _ := filepath.Glob(filepath.Join(r.Host(p).Path, "bases/views/.new-*")); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

func TestCheckpointsOfAnOlderSallyportAreNotLostWithWhatTheyBorrowed(t *testing.T) {
	r := store(t)
	p, head := wt.Project(t, base)
	host, err := r.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(host.Path, "objects/info/alternates"), p.CommonDir+"/objects\n", 0o644)
	if err := os.RemoveAll(filepath.Join(host.Path, "bases")); err != nil {
		t.Fatal(err)
	}
	made, err := host.Import(t.Context(), "test:import", git.Import{
		Ref: repository.RefRoot(change) + "checkpoints/1", From: head, Parents: []git.OID{head}, Writes: []git.Write{{Path: "new", Mode: git.File, Data: git.Text("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(p.Top); err != nil {
		t.Fatal(err)
	}
	wt.Whole(t, host.Path, made.OID)
}

func TestOnlyWhatAProjectsOwnerReadsIsCopied(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can reach what an owner cannot: needs root")
	}
	secret, _ := wt.Project(t, base)
	hidden := wt.Commits(t, secret, 1)
	if err := os.Chmod(secret.Top, 0o700); err != nil {
		t.Fatal(err)
	}
	p, _ := wt.Project(t, base)
	for at := p.Top; len(at) > len("/tmp"); at = filepath.Dir(at) { // a test's folder is closed to others
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wt.Files(t, p.Top, map[string]string{".git/objects/info/alternates": filepath.Join(secret.CommonDir, "objects") + "\n"})
	p.UID, p.GID = 65534, 65534
	wt.Git(t, p.Top, "update-ref", "refs/heads/theirs", string(hidden))
	if _, err := store(t).Open(t.Context(), p, hidden); problem.KindOf(err) != problem.NotFound {
		t.Errorf("error is %v", err)
	}
}

func TestBasesThatNothingStandsOnGoAndNothingIsLostWithThem(t *testing.T) {
	p, first := wt.Project(t, base)
	r := at(filepath.Join(t.TempDir(), "repos"), repository.Config{Keeps: time.Nanosecond})
	if err := r.Keep(t.Context(), p, change, first); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, p.Top, "checkout", "-q", "-b", "side")
	wt.Files(t, p.Top, map[string]string{"shared": "in the checkpoint too"})
	_, side := wt.Commit(t, p.Top)
	host, err := r.Open(t.Context(), p, side)
	if err != nil {
		t.Fatal(err)
	}
	made, err := host.Import(t.Context(), "test:import", git.Import{ // git finds this blob among what bases reach
		Ref: repository.RefRoot(change) + "checkpoints/1", From: first, Parents: []git.OID{first},
		Writes: []git.Write{{Path: "own", Mode: git.File, Data: git.Text("in the checkpoint too")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wt.Git(t, p.Top, "checkout", "-q", "main")
	named := wt.Commits(t, p, 1)
	if err := r.Keep(t.Context(), p, "chg-00000002", named); err != nil {
		t.Fatal(err)
	}
	last := wt.Commits(t, p, 3)
	if _, err := r.Open(t.Context(), p, last); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, host.Path, "update-ref", "-d", repository.BaseRef(change)) // the checkpoint alone begins at its base now
	views := filepath.Join(host.Path, "bases/views")
	if err := os.Mkdir(filepath.Join(views, ".new-half-made"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Trim(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(views)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{string(first), string(named), string(last)} // what a checkpoint begins at, what a change names, the last used
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q, %v", left, want, err)
	}
	for _, c := range []git.OID{first, made.OID, named, last} {
		wt.Whole(t, host.Path, c)
	}
	if out, err := exec.Command("git", "-C", host.Path, "cat-file", "-e", string(side)).CombinedOutput(); err == nil {
		t.Errorf("the base that nothing stands on is there: %s", out)
	}
}
