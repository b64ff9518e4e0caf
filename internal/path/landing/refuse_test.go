package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// TestWhatCannotLandIsRefusedByNameAndLeftAlone has a row for every state a repository may be in that a
// landing must not touch. The whole repository, git directory included, is the same before and after.
func TestWhatCannotLandIsRefusedByNameAndLeftAlone(t *testing.T) {
	persontest.Ordinary(t, "what may not be read or written is refused, where root may do all")
	write := func(name, body string) func(*testing.T, repo, *landing.Order) {
		return func(t *testing.T, r repo, _ *landing.Order) { put(t, filepath.Join(r.Top, name), body, 0o644) }
	}
	run := func(lines ...string) func(*testing.T, repo, *landing.Order) {
		return func(t *testing.T, r repo, _ *landing.Order) {
			for _, l := range lines {
				if words, fails := strings.CutPrefix(l, "! "); fails {
					if out, err := tryGit(r.Top, "", strings.Fields(words)...); err == nil {
						t.Fatalf("git %s worked:\n%s", words, out)
					}
				} else {
					gitIn(t, r.Top, "", strings.Fields(l)...)
				}
			}
		}
	}
	w := &world{template: t.TempDir()}
	w.made, w.order = plainIn(t, w.template)
	for _, c := range []struct {
		name  string
		make  func(*testing.T, repo, *landing.Order)
		want  error
		words string // in the message, with the thing's name
		next  string // in the command to run next
	}{
		{"merge under way", run("! merge conflicting"), landing.ErrOddState, "a merge is under way", "merge --continue"},
		{"rebase under way", run("! rebase conflicting"), landing.ErrOddState, "a rebase is under way", "rebase --continue"},
		{"rebase --apply under way", run("! rebase --apply conflicting"), landing.ErrOddState, "a rebase is under way", "rebase --continue"},
		{"am under way", func(t *testing.T, r repo, _ *landing.Order) {
			patch := gitIn(t, r.Top, "", "format-patch", "--stdout", "-1", "conflicting")
			if _, err := tryGit(r.Top, patch, "am"); err == nil {
				t.Fatal("git am worked")
			}
		}, landing.ErrOddState, "git am is under way", "am --continue"},
		{"cherry-pick under way", run("! cherry-pick conflicting"), landing.ErrOddState, "a cherry-pick is under way", "cherry-pick --continue"},
		{"revert under way", run("! revert main~1"), landing.ErrOddState, "a revert is under way", "revert --continue"},
		{"several cherry-picks under way", func(t *testing.T, r repo, _ *landing.Order) {
			if err := os.Mkdir(filepath.Join(r.GitDir, "sequencer"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, landing.ErrOddState, "a cherry-pick or revert of several commits is under way", "status"},
		{"HEAD names no branch", write(".git/HEAD", "ref: refs/remotes/main\n"), landing.ErrOddState, `names "refs/remotes/main", which is no branch`, "status"},
		{"HEAD of a newer kind of repository", write(".git/HEAD", "ref: refs/heads/.invalid\n"), landing.ErrOddState, "which is no branch", "status"},
		{"index is no file", func(t *testing.T, r repo, _ *landing.Order) {
			os.Remove(filepath.Join(r.GitDir, "index"))
			if err := os.Mkdir(filepath.Join(r.GitDir, "index"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, landing.ErrOddState, "is not a regular file", "status"},
		{"bisect under way", run("bisect start", "bisect bad main"), landing.ErrOddState, "a bisect is under way", "bisect reset"},
		{"detached HEAD", run("checkout -q --detach"), landing.ErrOddState, "detached HEAD", "switch"},
		{"index locked", write(".git/index.lock", ""), landing.ErrOddState, "index.lock", "rm -i"},
		{"index in conflict", func(t *testing.T, r repo, o *landing.Order) {
			run("! merge conflicting")(t, r, o)
			os.Remove(filepath.Join(r.GitDir, "MERGE_HEAD"))
		}, landing.ErrOddState, "clash has conflicts", "status"},
		{"split index", run("update-index --split-index"), landing.ErrOddState, "is split", "--no-split-index"},
		{"split index by configuration", run("config core.splitIndex true", "update-index --split-index"), landing.ErrOddState, "core.splitIndex", "config core.splitIndex false; git"},
		{"sparse index", run("sparse-checkout set --cone --sparse-index other"), landing.ErrOddState, "is sparse", "sparse-checkout reapply --no-sparse-index"},
		{"touched path outside of a sparse checkout", run("sparse-checkout set --cone other"), landing.ErrOddState, "touches d2f/x, which the sparse checkout", "sparse-checkout add d2f"},
		{"reftable", func(t *testing.T, r repo, _ *landing.Order) {
			if err := os.Mkdir(filepath.Join(r.GitDir, "reftable"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, landing.ErrOddState, "in a reftable", "refs migrate"},
		{"touched path skip-worktree", run("update-index --skip-worktree a"), landing.ErrOddState, "touches a, which git is told to leave alone", "--no-skip-worktree a"},
		{"no symlinks", run("config core.symlinks false"), landing.ErrOddState, "core.symlinks", "config core.symlinks true"},
		{"touched path converted", write(".git/info/attributes", "a filter=x\n"), landing.ErrConverts, "a cannot land: git converts it between its store and the checkout (filter=x in .git/info/attributes); write it as a branch", "change branch"},
		{"touched paths converted", write(".git/info/attributes", "a filter=x\ndir/* filter=x\n"), landing.ErrConverts, "(filter=x in .git/info/attributes) (and 1 more); write it as a branch", "change branch"},
		{"touched path converted by what is not committed", write(".gitattributes", "d2f/* working-tree-encoding=UTF-16\n"), landing.ErrConverts, "d2f/x cannot land: git converts it", "change branch"},
		{"touched path converted by what is not committed beside it", write("dir/.gitattributes", "f working-tree-encoding=UTF-16\n"), landing.ErrConverts, "dir/f cannot land: git converts it", "change branch"},
		{"touched path converted by what the branch got", func(t *testing.T, r repo, o *landing.Order) {
			write(".gitattributes", "dir/* filter=x\n")(t, r, o)
			run("add .gitattributes", "commit -qm newer")(t, r, o)
		}, landing.ErrConverts, "dir/f cannot land: git converts it between its store and the checkout (filter=x in .gitattributes)", "change branch"},
		{"touched path converted in a sparse checkout", func(t *testing.T, r repo, o *landing.Order) {
			run("sparse-checkout set --no-cone /a /dir/f /new /d2f /gone")(t, r, o)
			write(".gitattributes", "dir/* eol=crlf\n")(t, r, o)
		}, landing.ErrConverts, "dir/f cannot land: git converts it", "change branch"},
		{"touched path converted by a file that a sparse checkout leaves out", func(t *testing.T, r repo, o *landing.Order) {
			write(".gitattributes", "dir/* eol=crlf\n")(t, r, o)
			run("add .gitattributes", "commit -qm newer", "sparse-checkout set --no-cone /a /dir/f /new /d2f /gone")(t, r, o)
			if _, err := os.Stat(filepath.Join(r.Top, ".gitattributes")); err == nil {
				t.Fatal(".gitattributes is checked out")
			}
		}, landing.ErrConverts, "dir/f cannot land: git converts it", "change branch"},
		{"touched path converted by configuration", run("config core.autocrlf true"), landing.ErrConverts, "core.autocrlf=true in git config", "change branch"},
		{"another branch checked out", run("switch -q conflicting"), landing.ErrBranch, `"conflicting" checked out`, "switch main"},
		{"branch checked out in another work tree too", func(t *testing.T, r repo, _ *landing.Order) {
			gitIn(t, r.Top, "", "worktree", "add", "-q", "--force", filepath.Join(t.TempDir(), "w"), "main")
		}, landing.ErrBranch, `"main" is checked out`, "worktree list"},
		{"branch checked out since", func(_ *testing.T, _ repo, o *landing.Order) { o.WorkTree = false }, landing.ErrBranch, `"main" was checked out`, "switch BRANCH"},
		{"branch being bisected in another work tree", func(t *testing.T, r repo, o *landing.Order) {
			w := filepath.Join(t.TempDir(), "w")
			gitIn(t, r.Top, "", "switch", "-qc", "elsewhere")
			gitIn(t, r.Top, "", "worktree", "add", "-q", w, "main")
			gitIn(t, w, "", "bisect", "start", "main", "main~2")
			o.WorkTree = false
		}, landing.ErrBranch, "in another work tree", "worktree list"},
		{"branch is another name of one", func(t *testing.T, r repo, o *landing.Order) {
			gitIn(t, r.Top, "", "symbolic-ref", "refs/heads/alias", "refs/heads/main")
			o.Branch, o.WorkTree = "alias", false
		}, landing.ErrBranch, `"alias" is only another name of a branch`, "branch --list"},
		{"branch being rebased in another work tree", func(t *testing.T, r repo, o *landing.Order) {
			w := filepath.Join(t.TempDir(), "w")
			gitIn(t, r.Top, "", "switch", "-qc", "elsewhere")
			gitIn(t, r.Top, "", "worktree", "add", "-q", w, "main")
			if _, err := tryGit(w, "", "rebase", "conflicting"); err == nil {
				t.Fatal("rebase worked")
			}
			o.WorkTree = false
		}, landing.ErrBranch, "being rebased", "worktree list"},
		{"branch gone", func(t *testing.T, r repo, o *landing.Order) {
			run("switch -q conflicting", "branch -qD main")(t, r, o)
			o.WorkTree = false
		}, landing.ErrBranch, `"main"`, "branch --list"},
		{"touched path changed on the branch", func(t *testing.T, r repo, o *landing.Order) {
			write("a", "newer\n")(t, r, o)
			run("commit -qam newer")(t, r, o)
		}, landing.ErrDrift, "a changed on main", "log main -- a"},
		{"new path came on the branch", func(t *testing.T, r repo, o *landing.Order) {
			write("new/n", "other\n")(t, r, o)
			run("add new/n", "commit -qm newer")(t, r, o)
		}, landing.ErrDrift, "new/n changed on main", "log main"},
		{"the branch has a file where a new path needs a folder", func(t *testing.T, r repo, o *landing.Order) {
			write("new", "a file\n")(t, r, o)
			run("add new", "commit -qm newer")(t, r, o)
		}, landing.ErrDrift, "new changed on main", "log main -- new"},
		{"the branch has more in a folder that becomes a file", func(t *testing.T, r repo, o *landing.Order) {
			write("d2f/more", "m")(t, r, o)
			run("add d2f", "commit -qm newer")(t, r, o)
		}, landing.ErrDrift, "d2f/more changed on main", "log main"},
		{"the branch has a folder where a file is to go", func(t *testing.T, r repo, o *landing.Order) {
			run("rm -q gone")(t, r, o)
			write("gone/x", "x")(t, r, o)
			run("add gone", "commit -qm newer")(t, r, o)
		}, landing.ErrDrift, "gone changed on main", "log main -- gone"},
		{"touched file edited", write("a", "mine\n"), landing.ErrDirty, "a has changes in the work tree", "diff -- a"},
		{"touched file deleted", func(t *testing.T, r repo, _ *landing.Order) { os.Remove(filepath.Join(r.Top, "a")) }, landing.ErrDirty, "a is deleted", "status -- a"},
		{"touched file's mode changed", func(t *testing.T, r repo, _ *landing.Order) { os.Chmod(filepath.Join(r.Top, "a"), 0o755) }, landing.ErrDirty, "a has changes", "diff -- a"},
		{"touched file staged", func(t *testing.T, r repo, o *landing.Order) {
			write("a", "mine\n")(t, r, o)
			run("add a")(t, r, o)
			write("a", "a\n")(t, r, o)
		}, landing.ErrDirty, "a has staged changes", "diff --cached -- a"},
		{"file to be deleted was edited", write("gone", "mine\n"), landing.ErrDirty, "gone has changes", "diff -- gone"},
		{"untracked file in the way", write("new/n", "mine\n"), landing.ErrDirty, "new/n is an untracked file", "mv -i"},
		{"ignored file in the way", func(t *testing.T, r repo, o *landing.Order) {
			write(".git/info/exclude", "new\n")(t, r, o)
			write("new/n", "mine\n")(t, r, o)
		}, landing.ErrDirty, "new/n is an untracked file", "mv -i"},
		{"announced with add -N", func(t *testing.T, r repo, o *landing.Order) {
			write("new/n", "n\n")(t, r, o)
			run("add -N new/n")(t, r, o)
		}, landing.ErrDirty, "new/n is added with git add -N", "status -- new/n"},
		{"a repository of its own where a folder is needed", func(t *testing.T, r repo, _ *landing.Order) {
			put(t, filepath.Join(r.Top, "new/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
		}, landing.ErrDirty, "new is in the way of new/n: it is a git repository of its own", "mv -i "},
		{"a linked work tree where a folder is needed", write("new/.git", "gitdir: /elsewhere\n"), landing.ErrDirty,
			"new is in the way of new/n: it is a git repository of its own", "mv -i "},
		{"a bare repository where a folder is needed", func(t *testing.T, r repo, _ *landing.Order) {
			for _, name := range []string{"HEAD", "objects/x", "refs/x"} {
				put(t, filepath.Join(r.Top, "new", name), "x", 0o644)
			}
		}, landing.ErrDirty, "new is in the way of new/n: it is a git repository of its own", "mv -i "},
		{"untracked file where a folder is needed", write("new", "mine\n"), landing.ErrDirty, "new is in the way", "ls -ld"},
		{"link where a folder is needed", func(t *testing.T, r repo, _ *landing.Order) {
			os.Symlink(t.TempDir(), filepath.Join(r.Top, "new"))
		}, landing.ErrDirty, "symbolic link", "ls -ld"},
		{"link in place of a touched file's folder", func(t *testing.T, r repo, _ *landing.Order) {
			os.Rename(filepath.Join(r.Top, "dir"), filepath.Join(r.Top, "moved"))
			os.Symlink("moved", filepath.Join(r.Top, "dir"))
		}, landing.ErrDirty, "dir is in the way of dir/f", "ls -ld"},
		{"folder in place of a touched file", func(t *testing.T, r repo, _ *landing.Order) {
			os.Remove(filepath.Join(r.Top, "a"))
			os.Mkdir(filepath.Join(r.Top, "a"), 0o755)
		}, landing.ErrDirty, "a is a folder", "status -- a"},
		{"folder in place of a file that is to go", func(t *testing.T, r repo, _ *landing.Order) {
			os.Remove(filepath.Join(r.Top, "gone"))
			put(t, filepath.Join(r.Top, "gone/mine"), "m", 0o644)
		}, landing.ErrDirty, "gone is a folder in the work tree, and the branch has a file there", "status -- gone"},
		{"untracked file in a folder that becomes a file", write("d2f/mine", "m"), landing.ErrDirty, "d2f/mine is untracked or ignored", "ls -la"},
		{"staged file in a folder that becomes a file", func(t *testing.T, r repo, o *landing.Order) {
			write("d2f/mine", "m")(t, r, o)
			run("add d2f/mine")(t, r, o)
			os.Remove(filepath.Join(r.Top, "d2f/mine"))
		}, landing.ErrDirty, "d2f/mine is staged", "diff --cached"},
		{"staged file where a folder is needed", func(t *testing.T, r repo, o *landing.Order) {
			write("new", "mine")(t, r, o)
			run("add new")(t, r, o)
			os.Remove(filepath.Join(r.Top, "new"))
		}, landing.ErrDirty, "new is staged and not committed, and new/n is to land in its place", "diff --cached -- new"},
		{"folder with work of theirs in a folder that becomes a file", write("d2f/deep/mine", "m"), landing.ErrDirty, "d2f/deep is untracked or ignored", "ls -la"},
		{"attributes that are not committed, and too many", write(".gitattributes", strings.Repeat("# words\n", 8<<10)+"#"), landing.ErrDirty, ".gitattributes is not committed and has more than 65536 bytes", "ls -l"},
		{"a path twice", func(_ *testing.T, _ repo, o *landing.Order) { o.Edits = append(o.Edits, o.Edits[0]) }, nil, "names that path twice", "status"},
		{"a path outside", func(_ *testing.T, _ repo, o *landing.Order) { o.Edits[0].Path = "../x" }, nil, `"../x" cannot land`, "status"},
		{"a path in .git", func(_ *testing.T, _ repo, o *landing.Order) { o.Edits[0].Path = "dir/.GIT/config" }, nil, "cannot land", "status"},
		{"a submodule", func(_ *testing.T, _ repo, o *landing.Order) { o.Edits[0].New.Mode = git.Submodule; o.Source = "" }, nil, "lands no submodule", "status"},
		{"other bytes than were approved", func(_ *testing.T, _ repo, o *landing.Order) { o.Edits[0].New = o.Edits[1].Old }, nil, "not what was approved", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, o := w.copy(t)
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
			computed := compute(t, l, o)
			c.make(t, r, &o)
			before := walk(t, r.Top)
			_, err := l.Compute(gittest.Context(t), o)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("compute says %v, want %v", err, c.want)
			}
			p := problem.Of(err)
			if !strings.Contains(p.Text, c.words) || !strings.Contains(p.Next, c.next) || c.want != nil && (p.Kind != problem.Refused || p.Next == "") {
				t.Errorf("message %q, next %q; want %q, %q", p.Text, p.Next, c.words, c.next)
			}
			if errors.Is(err, landing.ErrOddState) && !strings.HasPrefix(c.name, "touched path") { // of which a request does not know
				_, inspect := l.Inspect(gittest.Context(t), r.Project, "main")
				_, land := l.Land(gittest.Context(t), computed, (&journal{}).steps())
				for _, again := range []error{inspect, land} {
					if q := problem.Of(again); again == nil || q.Kind != p.Kind || q.Text != p.Text || q.Next != p.Next {
						t.Errorf("%q, next %q; at another time %v, next %q", p.Text, p.Next, again, q.Next)
					}
				}
			}
			if d := differTree(walk(t, r.Top), before); len(d) > 0 {
				t.Errorf("looking changed the repository: %q", d)
			}
		})
	}
}

// TestWhatIsNoRepositoryOfItsOwnIsLandedIn: a rollback is held up by none, nor is what the branch has files beside.
func TestWhatIsNoRepositoryOfItsOwnIsLandedIn(t *testing.T) {
	for name, c := range map[string]struct {
		lies []string
		had  string // a file of the branch
		back bool
	}{
		"an empty .git":          {[]string{"lib/.git/x"}, "a", false},
		"half a bare repository": {[]string{"lib/HEAD", "lib/objects/x"}, "a", false},
		"beside the branch's":    {[]string{"lib/.git/HEAD"}, "lib/g", false},
		"taken back":             {[]string{"lib/.git/HEAD"}, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRepo(t, map[string]blob{c.had: text("1\n")})
			o := r.order(t, map[string]blob{"lib/f": text("f\n")})
			o.Back = c.back
			for _, p := range c.lies {
				put(t, filepath.Join(r.Top, p), "x", 0o644)
			}
			r.land(t, o)
			if _, err := os.Stat(filepath.Join(r.Top, "lib/f")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEachEntryOfAFolderThatBecomesAFileIsLookedAt: a folder is read in any order, and theirs may come last.
func TestEachEntryOfAFolderThatBecomesAFileIsLookedAt(t *testing.T) {
	files, gone := map[string]blob{}, map[string]blob{"d2f": text("file\n")}
	for n := range 12 {
		for _, p := range []string{fmt.Sprintf("d2f/x%d", n), fmt.Sprintf("d2f/y%d/z", n)} {
			files[p], gone[p] = text("x\n"), blob{}
		}
	}
	r := testRepo(t, files)
	o := r.order(t, gone)
	l := &landing.Lander{Host: beside}
	for _, mine := range []string{"d2f/mine", "d2f/y7/mine"} {
		path := filepath.Join(r.Top, mine)
		put(t, path, "m", 0o644)
		for _, order := range []string{"the newest", "the oldest"} { // a file system in memory lists the newest first
			if _, err := l.Compute(gittest.Context(t), o); !errors.Is(err, landing.ErrDirty) || !strings.Contains(err.Error(), mine+" is untracked or ignored") {
				t.Errorf("%s, %s: %v", mine, order, err)
			}
			newer(t, filepath.Dir(path), filepath.Base(path))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	r.land(t, o)
}

// newer makes the entries of a folder newer ones than one of them.
func newer(t *testing.T, dir, oldest string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		at, aside := filepath.Join(dir, e.Name()), filepath.Join(filepath.Dir(dir), "aside")
		if e.Name() == oldest {
			continue
		}
		if err := errors.Join(os.Rename(at, aside), os.Rename(aside, at)); err != nil {
			t.Fatal(err)
		}
	}
}

// plain is a clean repository with a branch that conflicts, and a change that touches every kind of path.
func plain(t *testing.T) (repo, landing.Order) {
	t.Helper()
	return plainIn(t, t.TempDir())
}

func plainIn(t *testing.T, top string) (repo, landing.Order) {
	t.Helper()
	r := newRepo(t, top, map[string]blob{"a": text("a\n"), "clash": text("0\n"), "gone": text("g\n"), "dir/f": text("f\n"), "d2f/x": text("x\n")},
		map[string]blob{"clash": text("1\n")}, map[string]blob{"clash": text("2\n")})
	other := r.approve(t, r.commit(t, "main~2"), map[string]blob{"clash": text("other\n")})
	put(t, filepath.Join(r.CommonDir, "refs/heads/conflicting"), string(other)+"\n", 0o644)
	return r, r.order(t, map[string]blob{
		"a": text("b\n"), "gone": {}, "dir/f": text("f2\n"), "new/n": text("n\n"), "d2f/x": {}, "d2f": text("file\n"),
	})
}

// TestWhatChangesBetweenComputeAndLandIsRefusedToo runs the refusals again where they are decided.
func TestWhatChangesBetweenComputeAndLandIsRefusedToo(t *testing.T) {
	for name, meanwhile := range map[string]struct {
		do   func(repo)
		want error
	}{
		"the person commits": {func(r repo) { gitIn(t, r.Top, "", "commit", "-q", "--allow-empty", "-m", "x") }, landing.ErrStale},
		"the person edits":   {func(r repo) { put(t, filepath.Join(r.Top, "a"), "mine", 0o644) }, landing.ErrDirty},
		"the person merges":  {func(r repo) { _, _ = tryGit(r.Top, "", "merge", "conflicting") }, landing.ErrOddState},
		"they switch":        {func(r repo) { gitIn(t, r.Top, "", "switch", "-q", "conflicting") }, landing.ErrBranch},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
			computed := compute(t, l, o)
			meanwhile.do(r)
			before := walk(t, r.Top)
			j := &journal{}
			done, err := l.Land(gittest.Context(t), computed, j.steps())
			if !errors.Is(err, meanwhile.want) || done.State != "" || j.row != nil {
				t.Errorf("%q %v, want %v and no row", done.State, err, meanwhile.want)
			}
			if d := differTree(walk(t, r.Top), before); len(d) > 0 {
				t.Errorf("refusing changed the repository: %q", d)
			}
		})
	}
}

// TestWhatComesToBeConvertedWhileALandingIsUnderWayIsRefused: the index would call a file clean that their git would not have written.
func TestWhatComesToBeConvertedWhileALandingIsUnderWayIsRefused(t *testing.T) {
	for name, do := range map[string]func(repo){
		"index:lock": func(r repo) { put(t, filepath.Join(r.Top, ".gitattributes"), "a eol=crlf\n", 0o644) },
		"git:import": func(r repo) { gitIn(t, r.Top, "", "config", "core.autocrlf", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			var before picture
			j := &journal{}
			l := &landing.Lander{Host: beside, Ops: meddle(name, true, func() { do(r); before = look(t, r.Top) })}
			lands(t, l, o, j)
			if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "a cannot land: git converts it") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			unchanged(t, r, before)
			tidy(t, r)
		})
	}
}

// The way back of a trial writes the files that stood there, whatever a person has come to convert, and however long that takes to tell.
func TestWhatGoesBackIsNotHeldUpByWhatGitConvertsByNow(t *testing.T) {
	r, o := plain(t)
	put(t, filepath.Join(r.Top, ".git/info/attributes"), "a eol=crlf\n", 0o644)
	if err := attempt(t, &landing.Lander{Host: beside}, o, &journal{}); !errors.Is(err, landing.ErrConverts) {
		t.Fatalf("error is %v", err)
	}
	o.Back = true
	j := &journal{}
	if err := attempt(t, &landing.Lander{Host: beside}, o, j); err != nil || j.row.State != landing.Landed {
		t.Errorf("%s %q, %v", j.row.State, j.row.Reason, err)
	}
}

func TestAJournalThatCannotBeWrittenStopsEverything(t *testing.T) {
	for name, alone := range map[string]bool{"somebody waits": false, "nobody waits any more": true} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			before := look(t, r.Top)
			l := &landing.Lander{Host: beside}
			computed := compute(t, l, o)
			ctx, cancel := context.WithCancel(gittest.Context(t))
			defer cancel()
			no := errors.New("the database is read-only")
			done, err := l.Land(ctx, computed, landing.Steps{Journal: func(landing.Landing) error {
				if alone {
					cancel()
				}
				return no
			}})
			if !errors.Is(err, no) || done.State != "" {
				t.Errorf("%q, %v", done.State, err)
			}
			unchanged(t, r, before)
			if refs := refsBeside(t, r); refs != "" {
				t.Errorf("the try has left %s", refs)
			}
		})
	}
}

// TestABranchWhoseTreeIsLostIsNamed: nothing can be compared with what is not there.
func TestABranchWhoseTreeIsLostIsNamed(t *testing.T) {
	r, o := plain(t)
	tree := gitIn(t, r.Top, "", "rev-parse", "main^{tree}")
	if err := os.Remove(filepath.Join(r.CommonDir, "objects", tree[:2], tree[2:])); err != nil {
		t.Fatal(err)
	}
	_, err := (&landing.Lander{Host: beside}).Compute(gittest.Context(t), o)
	if p := problem.Of(err); problem.KindOf(err) != problem.NotFound || !strings.Contains(p.Text, string(o.Base)) || !strings.HasSuffix(p.Next, " fsck") {
		t.Errorf("%v, next %q", err, problem.Of(err).Next)
	}
}

func TestInspectNamesTheBranchThatIsCheckedOut(t *testing.T) {
	r, _ := plain(t)
	l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
	site, err := l.Inspect(gittest.Context(t), r.Project, "")
	if err != nil || site.Branch != "main" || !site.CheckedOut || string(site.Head) != gitIn(t, r.Top, "", "rev-parse", "main") {
		t.Errorf("%+v, %v", site, err)
	}
	if site, err = l.Inspect(gittest.Context(t), r.Project, "conflicting"); err != nil || site.CheckedOut {
		t.Errorf("%+v, %v", site, err)
	}
	if _, err = l.Inspect(gittest.Context(t), r.Project, "absent"); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), `"absent"`) {
		t.Error(err)
	}
	put(t, filepath.Join(r.GitDir, "MERGE_HEAD"), "x", 0o644)
	if _, err = l.Inspect(gittest.Context(t), r.Project, ""); !errors.Is(err, landing.ErrOddState) {
		t.Error(err)
	}
	empty := t.TempDir()
	gitIn(t, empty, "", "init", "-q", "-b", "main")
	if _, err = l.Inspect(gittest.Context(t), openRepo(t, empty).Project, ""); !errors.Is(err, landing.ErrBranch) || !strings.Contains(problem.Of(err).Next, "commit --allow-empty") {
		t.Errorf("a repository without commits: %v, next %q", err, problem.Of(err).Next)
	}
}

func TestTwoLandingsAtOnceGoOneAfterTheOther(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1"), "b": text("1")})
	orders := []landing.Order{r.order(t, map[string]blob{"a": text("2")}), r.order(t, map[string]blob{"b": text("2")})}
	inside, entered := make(chan struct{}), make(chan struct{}, 1)
	ops := disk.Ops{Around: func(op string, do func() error) error {
		if op == "desk:make" {
			entered <- struct{}{}
			<-inside
		}
		return do()
	}}
	first := make(chan error, 1)
	go func() { first <- attempt(t, &landing.Lander{Host: beside, Ops: ops}, orders[0], &journal{}) }()
	<-entered
	if err := attempt(t, &landing.Lander{Host: beside, Wait: 50 * time.Millisecond}, orders[1], &journal{}); !errors.Is(err, landing.ErrBusy) || !errors.Is(err, landing.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Fatalf("the second landing says %v, want busy, and who holds the lock", err)
	}
	second := make(chan error, 1)
	computed := compute(t, &landing.Lander{Host: beside}, orders[1])
	go func() {
		_, err := (&landing.Lander{Host: beside}).Land(context.Background(), computed, (&journal{}).steps())
		second <- err
	}()
	close(inside)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, landing.ErrStale) { // the branch has moved: computed anew it lands
		t.Fatalf("the second landing says %v, want drift", err)
	}
	r.land(t, orders[1])
	if got := gitIn(t, r.Top, "", "log", "--format=%s", "--first-parent"); strings.Count(got, "a summary") != 2 {
		t.Errorf("history:\n%s", got)
	}
	if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
		t.Errorf("status %q", out)
	}
}

func TestNoHookAndNoFilterOfTheRepositoryRuns(t *testing.T) {
	persontest.Ordinary(t, "git looks at who owns a repository")
	r := testRepo(t, map[string]blob{"a": text("1\n"), "c": text("1\n"), ".gitattributes": text("a text\n")})
	o := r.order(t, map[string]blob{"a": text("2 $Id$\r\n"), "b": text("n")})
	ran := filepath.Join(t.TempDir(), "ran")
	script := fmt.Sprintf("#!/bin/sh\necho $0 >> %s\ncat\n", ran)
	for _, h := range []string{"pre-commit", "post-commit", "reference-transaction", "post-index-change", "post-checkout", "post-merge", "commit-msg", "post-rewrite", "pre-auto-gc"} {
		put(t, filepath.Join(r.GitDir, "hooks", h), script, 0o755)
	}
	tool := filepath.Join(t.TempDir(), "tool")
	put(t, tool, script, 0o755)
	for _, key := range []string{"core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.external", "core.alternateRefsCommand", "gpg.program", "core.editor", "core.sshCommand"} {
		gitIn(t, r.Top, "", "config", key, tool)
	}
	gitIn(t, r.Top, "", "config", "commit.gpgSign", "true")
	put(t, filepath.Join(r.GitDir, "info/attributes"), "* filter=x ident\n[ab] !filter !ident\n", 0o644)
	done := r.land(t, o)
	r.land(t, r.back(t, done))
	if raw, err := os.ReadFile(ran); err == nil {
		t.Errorf("ran: %s", raw)
	}
	if raw, _ := os.ReadFile(filepath.Join(r.Top, "a")); string(raw) != "1\n" {
		t.Errorf("a holds %q", raw)
	}
}

// A git that waits would wait for ever, whoever has gone by then: a site's questions end with no request.
func TestWhereGitWouldWaitItIsNotAsked(t *testing.T) {
	r, _ := plain(t)
	l := &landing.Lander{Host: beside}
	pipe := filepath.Join(r.CommonDir, "objects/info/alternates")
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o755), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := l.Inspect(gittest.Context(t), r.Project, "main")
		done <- err
	}()
	select {
	case err := <-done:
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "alternates") {
			t.Error(err)
		}
	case <-time.After(3 * time.Minute):
		if other, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			other.Close() // git goes on
		}
		t.Errorf("git was asked, and waited: %v", <-done)
	}
}
