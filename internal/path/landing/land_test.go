package landing_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

func TestALandingIsWhatWasApprovedAndNothingElse(t *testing.T) {
	persontest.Ordinary(t, "files are the user's own, and nothing is given to an owner")
	top := t.TempDir()
	r, o := rich(t, top)
	before := look(t, top)
	done := r.land(t, o)

	if got := gitIn(t, top, "", "rev-parse", "main^{tree}"); got != gitIn(t, top, "", "rev-parse", string(o.Source)+"^{tree}") || got != string(done.NewTree) {
		t.Errorf("main's tree is %s, approved was another", got)
	}
	if parent := gitIn(t, top, "", "rev-parse", "main^"); parent != string(o.Base) {
		t.Errorf("parent is %s, want %s", parent, o.Base)
	}
	if out := gitIn(t, top, "", "status", "--porcelain=v1", "-z"); out != " M dirty.txt\x00MM staged.txt\x00?? untracked.txt\x00" {
		t.Errorf("status is %q", out)
	}
	if out := gitIn(t, top, "", "diff-files", "--name-only"); out != "dirty.txt\nstaged.txt" {
		t.Errorf("without a refresh git sees as changed: %q", out)
	}
	after := look(t, top)
	for _, p := range []string{"dirty.txt", "staged.txt", "untracked.txt", "dir/build.log", "dir/keep"} {
		if before.tree[p] != after.tree[p] {
			t.Errorf("%s became %q", p, after.tree[p])
		}
	}
	if st, err := os.Stat(filepath.Join(top, "a.txt")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("a.txt has mode %v, want the 0640 of the file it replaced", st.Mode())
	}
	if _, err := os.Stat(filepath.Join(top, "only")); !os.IsNotExist(err) {
		t.Error("the emptied folder is still there")
	}
	tidy(t, r)
	if log := gitIn(t, top, "", "reflog", "-1", "--format=%gs", "HEAD"); log != "sallyport: land chg-test0001" {
		t.Errorf("reflog of HEAD says %q", log)
	}
	if msg := gitIn(t, top, "", "log", "-1", "--format=%B"); !strings.HasPrefix(msg, "a summary\n") ||
		gitIn(t, top, "", "log", "-1", "--format=%(trailers:key=Sallyport-Change,valueonly)%(trailers:key=Approved-by,valueonly)%(trailers:key=Co-authored-by,valueonly)") !=
			"chg-test0001\nP <p@example.org>\nreplay <replay@agents.invalid>\n" {
		t.Errorf("message is %q", msg)
	}
	gitIn(t, top, "", "fsck", "--strict")

	back := r.land(t, r.back(t, done))
	if d := differ(look(t, top), before); !strings.HasPrefix(d, "refs:") || strings.Count(d, "\n") != 3 {
		t.Errorf("after rolling back, more than the branch differs:\n%s", d)
	}
	if back.NewTree != done.NewTree && gitIn(t, top, "", "rev-parse", "main^{tree}") != gitIn(t, top, "", "rev-parse", string(o.Base)+"^{tree}") {
		t.Error("rolled back to another tree")
	}
}

func TestPathsThatAreAsApprovedAlreadyAreSkipped(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1"), "b": text("1"), "c": text("1")})
	o := r.order(t, map[string]blob{"a": text("2"), "b": text("2"), "new": text("n")})
	put(t, filepath.Join(r.Top, "a"), "2", 0o644) // in the branch already
	gitIn(t, r.Top, "", "commit", "-qam", "same")
	put(t, filepath.Join(r.Top, "b"), "2", 0o644)   // in the work tree already
	put(t, filepath.Join(r.Top, "new"), "n", 0o644) // there, but untracked
	done := r.land(t, o)
	if len(done.Skip) != 1 || done.Skip[0] != "a" || len(done.Edits) != 2 {
		t.Errorf("skipped %q, edited %v", done.Skip, done.Edits)
	}
	if out := gitIn(t, r.Top, "", "status", "--porcelain=v1"); out != "" {
		t.Errorf("status: %q", out)
	}
	again := r.orderFrom(t, o.Base, o.Source)
	if done = r.land(t, again); len(done.Edits) != 0 || done.NewCommit != done.Head {
		t.Errorf("landing it twice made %s on %s", done.NewCommit, done.Head)
	}
}

// TestWhatIsStagedAsApprovedAlreadyIsLeftAndTheRestIsStaged: it comes first in the index.
func TestWhatIsStagedAsApprovedAlreadyIsLeftAndTheRestIsStaged(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1"), "b": text("1"), "c": text("1")})
	o := r.order(t, map[string]blob{"a": text("2"), "b": {}, "c": text("2"), "d": text("2")})
	put(t, filepath.Join(r.Top, "a"), "2", 0o644)
	gitIn(t, r.Top, "", "add", "a")
	done := r.land(t, o)
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "" || len(done.Edits) != 4 {
		t.Errorf("status %q, edited %v", status, done.Edits)
	}
}

func TestABranchThatIsNotCheckedOutMovesAlone(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1")})
	gitIn(t, r.Top, "", "switch", "-qc", "other")
	put(t, filepath.Join(r.Top, "a"), "mine", 0o644)
	before, head := look(t, r.Top), gitIn(t, r.Top, "", "reflog", "HEAD")
	o := r.order(t, map[string]blob{"a": text("2")})
	o.WorkTree = false
	done := r.land(t, o)
	after := look(t, r.Top)
	if log := gitIn(t, r.Top, "", "reflog", "HEAD"); log != head {
		t.Errorf("the reflog of HEAD says %q", log)
	}
	if d := differ(after, before); !strings.HasPrefix(d, "refs:") || strings.Count(d, "\n") != 3 {
		t.Errorf("more than the branch moved:\n%s", d)
	}
	if got := gitIn(t, r.Top, "", "rev-parse", "main"); got != string(done.NewCommit) {
		t.Errorf("main is %s", got)
	}
}

// TestWhatTheBranchHasDeletedItselfIsSkipped, also where a file of theirs has taken the place of the folder.
func TestWhatTheBranchHasDeletedItselfIsSkipped(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1"), "dir/f": text("1")})
	o := r.order(t, map[string]blob{"a": text("2"), "dir/f": {}})
	gitIn(t, r.Top, "", "rm", "-q", "dir/f")
	put(t, filepath.Join(r.Top, "dir"), "theirs", 0o644)
	gitIn(t, r.Top, "", "add", "dir")
	gitIn(t, r.Top, "", "commit", "-qm", "theirs")
	if done := r.land(t, o); !slices.Equal(done.Skip, []string{"dir/f"}) || len(done.Edits) != 1 {
		t.Errorf("skipped %q, edited %v", done.Skip, done.Edits)
	}
	if raw, _ := os.ReadFile(filepath.Join(r.Top, "dir")); string(raw) != "theirs" {
		t.Errorf("dir holds %q", raw)
	}
	if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
		t.Errorf("status %q", out)
	}
}

// TestAFileThatHasBecomeAFolderAsApprovedIsTakenAsItIs: in the work tree, or on the branch too.
func TestAFileThatHasBecomeAFolderAsApprovedIsTakenAsItIs(t *testing.T) {
	for name, committed := range map[string]bool{"in the work tree": false, "on the branch": true} {
		t.Run(name, func(t *testing.T) {
			r := testRepo(t, map[string]blob{"a": text("1"), "f2d": text("file")})
			o := r.order(t, map[string]blob{"a": text("2"), "f2d": {}, "f2d/in/side": text("s")})
			if err := os.Remove(filepath.Join(r.Top, "f2d")); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(r.Top, "f2d/in/side"), "s", 0o644)
			if committed {
				gitIn(t, r.Top, "", "add", "-A")
				gitIn(t, r.Top, "", "commit", "-qm", "theirs")
			}
			done := r.land(t, o)
			if want := map[bool]int{true: 2, false: 0}[committed]; len(done.Skip) != want {
				t.Errorf("skipped %q", done.Skip)
			}
			if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
				t.Errorf("status %q", out)
			}
			if got := gitIn(t, r.Top, "", "rev-parse", "main^{tree}"); got != gitIn(t, r.Top, "", "rev-parse", string(o.Source)+"^{tree}") {
				t.Error("it is not what was approved")
			}
		})
	}
}

// TestAFileMakesWayForAFolderOfItsName, also as the first path of a change: it is no drift, for the change itself deletes it.
func TestAFileMakesWayForAFolderOfItsName(t *testing.T) {
	r := testRepo(t, map[string]blob{"f2d": text("file")})
	o := r.order(t, map[string]blob{"f2d": {}, "f2d/in/side": text("s")})
	r.land(t, o)
	if got := gitIn(t, r.Top, "", "rev-parse", "main^{tree}"); got != gitIn(t, r.Top, "", "rev-parse", string(o.Source)+"^{tree}") {
		t.Error("it is not what was approved")
	}
	if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
		t.Errorf("status %q", out)
	}
}

// TestWhatIsToBeSignedLandsSignedOrNotAtAll: a program that fails leaves the branch and the host's refs as they were.
func TestWhatIsToBeSignedLandsSignedOrNotAtAll(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("SKIPPED: ssh-keygen is not installed")
	}
	r, o := plain(t)
	home := t.TempDir()
	key := filepath.Join(home, "key")
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	put(t, filepath.Join(home, ".gitconfig"), "[gpg]\n\tformat = ssh\n[commit]\n\tgpgsign = true\n[user]\n\tsigningkey = "+key+"\n", 0o600)
	if o.Signing, err = r.Project.Signing(gittest.Context(t), home); err != nil || o.Signing == nil {
		t.Fatalf("%+v, %v", o.Signing, err)
	}
	if err := os.Rename(key, key+"-away"); err != nil {
		t.Fatal(err)
	}
	before := look(t, r.Top)
	j := &journal{}
	if err := attempt(t, &landing.Lander{Host: beside}, o, j); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport approve chg-test0001 --unsigned" || j.row != nil {
		t.Errorf("%v, next %q, row %+v", err, problem.Of(err).Next, j.row)
	}
	unchanged(t, r, before)
	if refs := refsBeside(t, r); refs != "" {
		t.Errorf("the try has left %s", refs)
	}

	if err := os.Rename(key+"-away", key); err != nil {
		t.Fatal(err)
	}
	done := r.land(t, o)
	if raw := gitIn(t, r.Top, "", "cat-file", "commit", "main"); !strings.Contains(raw, "\ngpgsig -----BEGIN SSH SIGNATURE-----") {
		t.Errorf("it landed as %s", raw)
	}
	if refs := refsBeside(t, r); refs != string(done.NewCommit)+" commit\t"+done.Ref() {
		t.Errorf("the host keeps %q, landed is %s", refs, done.NewCommit)
	}
}
