package workspace_test

import (
	"fmt"
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
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// everyFormat runs a test with both kinds of object ids.
func everyFormat(t *testing.T, do func(t *testing.T, p git.Project)) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			top := t.TempDir()
			wt.Git(t, top, "init", "-q", "-b", "main", "--object-format="+format)
			wt.Files(t, top, base)
			p, _ := wt.Commit(t, top)
			do(t, p)
		})
	}
}

// commits makes n commits on the branch that is checked out, each a line longer in one file, and returns the last.
func commits(t *testing.T, p git.Project, n int) git.OID {
	t.Helper()
	old, err := os.ReadFile(filepath.Join(p.Top, "count"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	branch := wt.Git(t, p.Top, "symbolic-ref", "HEAD")
	from, words := "from "+branch+"^0\n", fmt.Sprint(time.Now().UnixNano()) // no two are one commit
	var stream strings.Builder
	for i := range n {
		text := string(old) + strings.Repeat("1\n", i+1)
		fmt.Fprintf(&stream, "commit %s\ncommitter P <p@example.org> %d +0000\ndata %d\n%s\n%sM 100644 inline count\ndata %d\n%s\n",
			branch, 1_700_000_000+len(old)+i, len(words), words, from, len(text), text)
		from = ""
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = p.Top, strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wt.Git(t, p.Top, "reset", "-q", "--hard")
	return git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
}

// seen says which of some objects a sandbox on a workspace can read.
func seen(t *testing.T, w workspace.Workspace, objects map[string]string) (names []string) {
	t.Helper()
	script := "true"
	for name, oid := range objects {
		script += fmt.Sprintf("; git cat-file -e %s 2>/dev/null && echo %q", oid, name)
	}
	return strings.Fields(wt.Edit(t, w, wt.Exec(script+"; true")))
}

func TestAnAgentSeesWhatItsBaseReachesAndNothingElse(t *testing.T) {
	wt.CanOverlay(t)
	everyFormat(t, func(t *testing.T, p git.Project) {
		m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
		old := commits(t, p, 3)
		wt.Files(t, p.Top, map[string]string{"count": "in a stash", "added": "once added"})
		stash := wt.Git(t, p.Top, "stash", "create")
		added := wt.Git(t, p.Top, "hash-object", "-w", "added")
		wt.Git(t, p.Top, "checkout", "-q", "-f", "-b", "gone")
		gone := commits(t, p, 1)
		wt.Git(t, p.Top, "checkout", "-q", "main")
		wt.Git(t, p.Top, "branch", "-q", "-D", "gone")
		head := commits(t, p, 2)

		_, err := m.Prepare(t.Context(), workspace.Spec{Change: "chg-00000002", Project: p, Base: gone, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		host, err := m.EnsureRepository(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		checkpoint, err := host.Import(t.Context(), "test:import", git.Import{
			Ref: repository.RefRoot("chg-00000002") + "checkpoints/1", From: gone, Parents: []git.OID{gone},
			Writes: []git.Write{{Path: "secret", Mode: git.File, Data: git.Text("of another change")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		objects := map[string]string{
			"stash": stash, "added": added, "deleted-branch": string(gone), "checkpoint": string(checkpoint.OID), "secret": string(checkpoint.Made[0].OID),
			"head": string(head), "old": string(old), "first": wt.Git(t, p.Top, "rev-list", "--max-parents=0", "HEAD"),
			"old-file": wt.Git(t, p.Top, "rev-parse", string(old)+":count"),
		}
		for _, at := range []struct {
			base git.OID
			want string
		}{{head, "first head old old-file"}, {old, "first old old-file"}} {
			w, err := m.MakeAnew(t.Context(), workspace.Spec{Change: "chg-00000001", Project: p, Base: at.base, Branch: "main", Owner: wt.Self()})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(slices.Sorted(slices.Values(seen(t, w, objects))), " "); got != at.want {
				t.Errorf("on %.8s it sees %q, want %q", at.base, got, at.want)
			}
			out := wt.Edit(t, w, wt.Exec("git fsck --connectivity-only 2>&1; git blame --porcelain count | grep -c ^author-time; git log --format=%s -- count | wc -l; git show --stat --format=%s HEAD | tail -1"))
			if strings.Contains(out, "missing") || strings.Contains(out, "error") {
				t.Errorf("git says %q", out)
			}
			if want := wt.Git(t, p.Top, "rev-list", "--count", string(at.base), "--", "count"); !strings.HasPrefix(out, want+"\n"+want+"\n") {
				t.Errorf("git counts otherwise than %s: %q", want, out)
			}
		}
	})
}

func TestABaseOutlivesWhatBecomesOfTheProject(t *testing.T) {
	everyFormat(t, func(t *testing.T, p git.Project) {
		m := manager(t)
		head := commits(t, p, 2)
		if err := m.Repositories.Keep(t.Context(), p, change, head); err != nil {
			t.Fatal(err)
		}
		borrowed, err := os.ReadFile(filepath.Join(m.Host(p).Path, "objects/info/alternates"))
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
		whole(t, m.Host(p).Path, head)
	})
}

// whole wants all that a commit reaches in a git directory that borrows nothing from elsewhere.
func whole(t *testing.T, gitDir string, commit git.OID) {
	t.Helper()
	if out := wt.Git(t, gitDir, "rev-list", "--objects", "--missing=print", string(commit)); strings.Contains(out, "?") {
		t.Errorf("missing: %s", out)
	}
	wt.Git(t, gitDir, "fsck", "--full", "--connectivity-only")
}

func TestAnAmendedOrRebasedBaseIsNotCopiedAsAWhole(t *testing.T) {
	p, _ := wt.Project(t, map[string]string{"large": strings.Repeat("x", 100)})
	m := manager(t)
	head := commits(t, p, 60)
	host, err := m.EnsureRepository(t.Context(), p, head)
	if err != nil {
		t.Fatal(err)
	}
	first := wt.Git(t, p.Top, "rev-list", "--max-parents=0", "HEAD")
	for _, c := range []struct{ back, shared string }{{"HEAD~1", wt.Git(t, p.Top, "rev-parse", "HEAD~1")}, {"HEAD~30", first}} {
		wt.Git(t, p.Top, "reset", "-q", "--hard", c.back)
		next := commits(t, p, 1)
		if _, err := m.EnsureRepository(t.Context(), p, next); err != nil {
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
		whole(t, host.Path, next)
	}
}

func TestABaseIsSeenThroughFewPacksHoweverManyGrewBeforeIt(t *testing.T) {
	p, _ := wt.Project(t, base)
	m := manager(t)
	commits(t, p, 40)
	for i, head := range strings.Fields(wt.Git(t, p.Top, "rev-list", "--reverse", "HEAD")) {
		host, err := m.EnsureRepository(t.Context(), p, git.OID(head))
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
			whole(t, host.Path, git.OID(head))
		}
	}
}

func TestALongHistoryIsCutAndGrowsOverMerges(t *testing.T) {
	p, first := wt.Project(t, base)
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Copy, History: 8})
	wt.Git(t, p.Top, "branch", "long-ago", string(first))
	head := commits(t, p, 20)
	look := func(base git.OID, least, most int) {
		t.Helper()
		w, err := m.MakeAnew(t.Context(), workspace.Spec{Change: change, Project: p, Base: base, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		out := wt.Edit(t, w, wt.Exec("git rev-list HEAD | wc -l; git rev-list --objects --missing=print HEAD | grep '^?' || git status --porcelain; git fsck --connectivity-only 2>&1 | grep -v ^dangling || true"))
		var n int
		if _, err := fmt.Sscanf(out, "%d\n", &n); err != nil || n < least || n > most || strings.Count(out, "\n") != 1 {
			t.Errorf("git says %q, want %d to %d commits", out, least, most)
		}
	}
	look(head, 8, 10)
	head = commits(t, p, 2)
	look(head, 8, 12)
	wt.Git(t, p.Top, "checkout", "-q", "long-ago")
	wt.Files(t, p.Top, map[string]string{"side": "1"})
	wt.Commit(t, p.Top)
	wt.Git(t, p.Top, "checkout", "-q", "main")
	wt.Git(t, p.Top, "merge", "-q", "-m", "merge", "long-ago")
	look(git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD")), 10, 14)
	wt.Git(t, p.Top, "checkout", "-q", "long-ago")
	commits(t, p, 12)
	wt.Git(t, p.Top, "checkout", "-q", "main")
	look(commits(t, p, 30), 8, 10)
	wt.Git(t, p.Top, "merge", "-q", "-s", "ours", "-m", "merge", "long-ago")
	head = git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
	look(head, 8, 12)
	packs, err := filepath.Glob(filepath.Join(m.Host(p).Path, "bases/views", string(head), "objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Errorf("what is new alone is more than is copied, and it is seen through %d packs, %v", len(packs), err)
	}
}

func TestAPartialCloneIsCopiedAsFarAsItIsThere(t *testing.T) {
	first, _ := wt.Project(t, base)
	commits(t, first, 5)
	wt.Git(t, first.Top, "config", "uploadpack.allowFilter", "true")
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--filter=blob:none", "file://"+first.Top, top)
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	m := manager(t)
	for range 2 {
		head := commits(t, p, 1)
		w, err := m.MakeAnew(t.Context(), workspace.Spec{Change: change, Project: p, Base: head, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		if got := wt.Edit(t, w, wt.Exec("git log --format=%H; git status --porcelain")); strings.TrimSpace(got) != string(head) {
			t.Errorf("git says %q", got)
		}
	}
	_, err = m.EnsureRepository(t.Context(), p, git.OID(wt.Git(t, top, "rev-parse", "HEAD~4")))
	if problem.KindOf(err) != problem.Refused {
		t.Errorf("a commit that is not there whole: %v", err)
	}
}

func TestACommitThatIsGoneIsNamed(t *testing.T) {
	p, _ := wt.Project(t, base)
	_, err := manager(t).EnsureRepository(t.Context(), p, git.OID(strings.Repeat("1", 40)))
	if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "111111111111") {
		t.Errorf("error is %v", err)
	}
}

func TestPowerLostWhileABaseIsCopiedLeavesItWholeOrAbsent(t *testing.T) {
	p, first := wt.Project(t, base)
	second := commits(t, p, 3)
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "state")
		weak := workspace.New(workspace.Config{Root: root, Ops: c.Ops()})
		_, err := disktest.Run(func() error {
			if _, err := weak.EnsureRepository(t.Context(), p, first); err != nil {
				return err
			}
			return weak.Repositories.Keep(t.Context(), p, change, second)
		})
		if err != nil {
			t.Fatal(err)
		}
		m := workspace.New(workspace.Config{Root: root})
		if err := m.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Repositories.Keep(t.Context(), p, change, second); err != nil {
			t.Fatal(err)
		}
		whole(t, m.Host(p).Path, second)
		if err := m.Repositories.Trim(t.Context(), m.Host(p)); err != nil {
			t.Fatal(err)
		}
		whole(t, m.Host(p).Path, second)
		if left, _ := filepath.Glob(filepath.Join(m.Host(p).Path, "bases/views/.new-*")); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

func TestCheckpointsOfAnOlderSallyportAreNotLostWithWhatTheyBorrowed(t *testing.T) {
	m := manager(t)
	p, head := wt.Project(t, base)
	host, err := m.EnsureRepository(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host.Path, "objects/info/alternates"), []byte(p.CommonDir+"/objects\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(host.Path, "bases")); err != nil {
		t.Fatal(err)
	}
	made, err := host.Import(t.Context(), "test:import", git.Import{
		Ref: repository.RefRoot(change) + "checkpoints/1", From: head, Parents: []git.OID{head}, Writes: []git.Write{{Path: "new", Mode: git.File, Data: git.Text("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.EnsureRepository(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(p.Top); err != nil {
		t.Fatal(err)
	}
	whole(t, host.Path, made.OID)
}

func TestOnlyWhatAProjectsOwnerReadsIsCopied(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can reach what an owner cannot: needs root")
	}
	secret, _ := wt.Project(t, base)
	hidden := commits(t, secret, 1)
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
	if _, err := manager(t).EnsureRepository(t.Context(), p, hidden); problem.KindOf(err) != problem.NotFound {
		t.Errorf("error is %v", err)
	}
}

func TestBasesThatNothingStandsOnGoAndNothingIsLostWithThem(t *testing.T) {
	p, first := wt.Project(t, base)
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Cache: workspace.Cache{Keep: time.Nanosecond}})
	if err := m.Repositories.Keep(t.Context(), p, change, first); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, p.Top, "checkout", "-q", "-b", "side")
	wt.Files(t, p.Top, map[string]string{"shared": "in the checkpoint too"})
	_, side := wt.Commit(t, p.Top)
	host, err := m.EnsureRepository(t.Context(), p, side)
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
	named := commits(t, p, 1)
	if err := m.Repositories.Keep(t.Context(), p, "chg-00000002", named); err != nil {
		t.Fatal(err)
	}
	last := commits(t, p, 3)
	if _, err := m.EnsureRepository(t.Context(), p, last); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, host.Path, "update-ref", "-d", repository.BaseRef(change)) // the checkpoint alone begins at its base now
	views := filepath.Join(host.Path, "bases/views")
	if err := os.Mkdir(filepath.Join(views, ".new-half-made"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.Repositories.Trim(t.Context(), host); err != nil {
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
		whole(t, host.Path, c)
	}
	if out, err := exec.Command("git", "-C", host.Path, "cat-file", "-e", string(side)).CombinedOutput(); err == nil {
		t.Errorf("the base that nothing stands on is there: %s", out)
	}
}
