package workspace_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

const change = "chg-00000001"

func manager(t *testing.T) *workspace.Manager {
	return workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
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
	wt.EveryFormat(t, func(t *testing.T, p git.Project) {
		m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
		old := wt.Commits(t, p, 3)
		wt.Files(t, p.Top, map[string]string{"count": "in a stash", "added": "once added"})
		stash := wt.Git(t, p.Top, "stash", "create")
		added := wt.Git(t, p.Top, "hash-object", "-w", "added")
		wt.Git(t, p.Top, "checkout", "-q", "-f", "-b", "gone")
		gone := wt.Commits(t, p, 1)
		wt.Git(t, p.Top, "checkout", "-q", "main")
		wt.Git(t, p.Top, "branch", "-q", "-D", "gone")
		head := wt.Commits(t, p, 2)

		_, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000002", Project: p, Base: gone, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		host, err := m.EnsureRepository(gittest.Context(t), p)
		if err != nil {
			t.Fatal(err)
		}
		checkpoint, err := host.Import(gittest.Context(t), "test:import", git.Import{
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
			w, err := m.MakeAnew(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: at.base, Branch: "main", Owner: wt.Self()})
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

func TestALongHistoryIsCutAndGrowsOverMerges(t *testing.T) {
	p, first := wt.Project(t, base)
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Copy, History: 8})
	wt.Git(t, p.Top, "branch", "long-ago", string(first))
	head := wt.Commits(t, p, 20)
	look := func(base git.OID, least, most int) {
		t.Helper()
		w, err := m.MakeAnew(gittest.Context(t), workspace.Spec{Change: change, Project: p, Base: base, Branch: "main", Owner: wt.Self()})
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
	head = wt.Commits(t, p, 2)
	look(head, 8, 12)
	wt.Git(t, p.Top, "checkout", "-q", "long-ago")
	wt.Files(t, p.Top, map[string]string{"side": "1"})
	wt.Commit(t, p.Top)
	wt.Git(t, p.Top, "checkout", "-q", "main")
	wt.Git(t, p.Top, "merge", "-q", "-m", "merge", "long-ago")
	look(git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD")), 10, 14)
	wt.Git(t, p.Top, "checkout", "-q", "long-ago")
	wt.Commits(t, p, 12)
	wt.Git(t, p.Top, "checkout", "-q", "main")
	look(wt.Commits(t, p, 30), 8, 10)
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
	wt.Commits(t, first, 5)
	wt.Git(t, first.Top, "config", "uploadpack.allowFilter", "true")
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--filter=blob:none", "file://"+first.Top, top)
	p, err := git.Open(gittest.Context(t), top)
	if err != nil {
		t.Fatal(err)
	}
	m := manager(t)
	for range 2 {
		head := wt.Commits(t, p, 1)
		w, err := m.MakeAnew(gittest.Context(t), workspace.Spec{Change: change, Project: p, Base: head, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		if got := wt.Edit(t, w, wt.Exec("git log --format=%H; git status --porcelain")); strings.TrimSpace(got) != string(head) {
			t.Errorf("git says %q", got)
		}
	}
	_, err = m.EnsureRepository(gittest.Context(t), p, git.OID(wt.Git(t, top, "rev-parse", "HEAD~4")))
	if problem.KindOf(err) != problem.Refused {
		t.Errorf("a commit that is not there whole: %v", err)
	}
}

func TestAShallowCloneWorks(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := shallow(t)
		host, err := m.EnsureRepository(gittest.Context(t), p, head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Projects.Fit(gittest.Context(t), p.Common(disk.Ops{}), p, head); err != nil {
			t.Fatal(err)
		}
		w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		if got := wt.Edit(t, w, wt.Exec("git log --format=%s; git status --porcelain")); strings.TrimSpace(got) != "x" {
			t.Errorf("git says %q", got)
		}
		made, err := host.Import(gittest.Context(t), "test:import", git.Import{
			Ref: repository.RefRoot(w.Spec.Change) + "checkpoints/1", From: head, Parents: []git.OID{head},
			Writes: []git.Write{{Path: "new", Mode: git.File, Data: git.Text("1")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Common(disk.Ops{}).Receive(gittest.Context(t), "test:receive", host, made.OID, []git.OID{head}); err != nil {
			t.Fatal(err)
		}
		if got := wt.Git(t, p.Top, "show", string(made.OID)+":new"); got != "1" {
			t.Errorf("the project received %q", got)
		}
	})
}

func shallow(t *testing.T) (git.Project, git.OID) {
	t.Helper()
	first, _ := wt.Project(t, base)
	wt.Files(t, first.Top, map[string]string{"more": "1"})
	_, head := wt.Commit(t, first.Top)
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--depth", "1", "file://"+first.Top, top)
	p, err := git.Open(gittest.Context(t), top)
	if err != nil {
		t.Fatal(err)
	}
	return p, head
}

func TestAnAgentSeesWhatWasTakenAlongAsCommitted(t *testing.T) {
	m := manager(t)
	p, head := wt.Project(t, base)
	wt.Files(t, p.Top, map[string]string{"README": "changed\n", "new": "1\n"})
	made, err := m.Projects.IncludeDirty(gittest.Context(t), p, change, head, time.Unix(1, 0), conversion.Settings{}, func(git.Dir, []git.Write) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: change, Project: p, Base: made, Branch: "main", Owner: wt.Self()})
	if err != nil {
		t.Fatal(err)
	}
	if out := wt.Edit(t, w, wt.Exec("git status --porcelain; git log --format=%H")); out != string(made)+"\n"+string(head)+"\n" {
		t.Errorf("git says %q", out)
	}
}
