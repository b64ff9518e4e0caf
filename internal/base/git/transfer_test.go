package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// told puts a git into the PATH that writes its words down, and returns those of each process so far.
func told(t *testing.T) func() []string {
	t.Helper()
	is, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "words")
	script := "#!/bin/sh\necho \"$*\" >> '" + log + "'\nexec '" + is + "' \"$@\"\n"
	disktest.Put(t, filepath.Join(dir, "git"), script, 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() []string {
		text, _ := os.ReadFile(log) // none yet: none
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func bare(t *testing.T) git.Dir {
	t.Helper()
	d, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", "sha1")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestShortIsTheNameOfABranchAlone(t *testing.T) {
	for name, want := range map[string]string{"main": "main", "refs/heads/main": "main", "refs/heads/a/b": "a/b", "heads/main": "heads/main", "refs/heads/refs/x": "refs/x"} {
		if got, err := git.Short(name); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"refs/tags/v1", "refs/heads", "refs/remotes/o/main"} {
		if got, err := git.Short(name); got != "" || err == nil {
			t.Errorf("%q, which is no branch, is %q", name, got)
		}
	}
}

func TestABranchHasNoneAboveItAndNoneBelow(t *testing.T) {
	top, _ := once(t)
	run(t, top, "branch", "x/y/z")
	run(t, top, "branch", "deep")
	d := open(t, top)
	for name, want := range map[string]string{
		"x": "branches below", "x/y": "branches below", "x/y/z/w": `there is a branch "x/y/z"`, "deep/er/still": `there is a branch "deep"`,
		"-f": "no branch of this name", "a..b": "no branch of this name", "HEAD": "no branch of this name", "a/": "no branch of this name",
		"x/y/z": "", "x/y/w": "", "xy": "", "deeper": "",
	} {
		there, err := d.Branch(t.Context(), name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || there != (name == "x/y/z") {
			t.Errorf("%s: %v, %v", name, there, err)
		}
	}
	slowGit(t, "symbolic-ref", "exit 3")
	if there, err := d.Branch(t.Context(), "new"); there || err == nil {
		t.Errorf("where nobody can tell what the name stands for: %v, %v", there, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if there, err := d.Branch(ended, "main"); there || !errors.Is(err, context.Canceled) {
		t.Errorf("in an ended context: %v, %v", there, err)
	}
}

func TestAMoveOfARefSaysInTheLogWhy(t *testing.T) {
	top, one := once(t)
	d := open(t, top)
	if err := d.UpdateRef(t.Context(), "t:u", "refs/heads/x", "", ""); err != nil {
		t.Errorf("of nothing to nothing: %v", err)
	}
	if err := d.UpdateRefLog(t.Context(), "t:u", "refs/heads/x", one, "", "it landed"); err != nil {
		t.Fatal(err)
	}
	if log := run(t, top, "reflog", "show", "refs/heads/x"); !strings.HasSuffix(log, "it landed") {
		t.Errorf("the log says %q", log)
	}
	if err := d.UpdateRef(t.Context(), "t:u", "refs/heads/y", one, ""); err != nil {
		t.Fatal(err)
	}
	if refs, err := d.Refs(t.Context(), "refs/heads/"); err != nil || len(refs) != 3 || refs["refs/heads/x"] != one || refs["refs/heads/main"] != one {
		t.Errorf("%v, %v", refs, err)
	}
	// A ref that is a name for another is moved itself.
	run(t, top, "symbolic-ref", "refs/sallyport/link", "refs/heads/main")
	write(t, top+"/a", "2\n")
	two := git.OID(run(t, top, "commit-tree", "-p", string(one), "-m", "two", string(one)+"^{tree}"))
	if err := d.UpdateRef(t.Context(), "t:u", "refs/sallyport/link", two, one); err != nil {
		t.Fatal(err)
	}
	if main := run(t, top, "rev-parse", "refs/heads/main"); main != string(one) {
		t.Errorf("a branch was moved through a link to it, to %s", main)
	}
	if err := d.UpdateRef(t.Context(), "t:u", "refs/heads/x", two, two); err == nil || !strings.Contains(err.Error(), "refs/heads/x to "+string(two[:12])) {
		t.Errorf("%v, want which ref it was and where to", err)
	}
}

func TestTakeBringsOnePackAndNamesIt(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		top, _, head := twice(t, "--object-format="+format)
		theirs := open(t, top)
		ours, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", format)
		if err != nil {
			t.Fatal(err)
		}
		words := told(t)
		pack, err := ours.Take(t.Context(), "t:t", theirs, string(head)+"\n")
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(pack, "pack-")
		if !ok || !git.OID(name).Valid() {
			t.Errorf("the pack is %q", pack)
		}
		if _, err := os.Stat(filepath.Join(ours.Path, "objects/pack", pack+".pack")); err != nil {
			t.Error(err)
		}
		if log := run(t, ours.Path, "rev-list", "--count", string(head)); log != "2" {
			t.Errorf("%s commits came", log)
		}
		// What is shallow is not told by a graph that was written when it was not.
		shallow := bare(t)
		if format == "sha256" {
			continue
		}
		if _, err := shallow.Take(t.Context(), "t:t", theirs, "--shallow "+string(head)+"\n"+string(head)+"\n"); err != nil {
			t.Fatal(err)
		}
		var graphless []bool
		for _, line := range words() {
			if strings.Contains(line, " pack-objects ") {
				graphless = append(graphless, strings.Contains(line, "core.commitGraph=false"))
			}
		}
		if !slices.Equal(graphless, []bool{false, true}) {
			t.Errorf("a shallow pack is made by the graph, or one that is not is made without: %v", graphless)
		}
	}
}

func TestATransferThatFailsSaysWhichSideFailed(t *testing.T) {
	top, base, head := twice(t)
	theirs, ours := open(t, top), bare(t)
	nowhere := git.Dir{Path: t.TempDir() + "/gone"}
	missing := git.OID(strings.Repeat("1", 40))

	for name, err := range map[string]error{
		"of what is not there": ours.Receive(t.Context(), "t:r", theirs, missing, nil),
		"from nowhere":         ours.Receive(t.Context(), "t:r", nowhere, head, nil),
		"to nowhere":           nowhere.Receive(t.Context(), "t:r", theirs, head, []git.OID{base}),
	} {
		of := map[bool]string{true: string(missing), false: nowhere.Path}[name == "of what is not there"]
		if err == nil || !strings.Contains(err.Error(), of) || !strings.Contains(err.Error(), "copy ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if pack, err := nowhere.Take(t.Context(), "t:t", theirs, string(head)+"\n"); pack != "" || err == nil || !strings.Contains(err.Error(), nowhere.Path) {
		t.Errorf("taken to nowhere: %q, %v", pack, err)
	}
	if edits, err := nowhere.Bring(t.Context(), "t:b", theirs, head, base); edits != nil || err == nil || !strings.Contains(err.Error(), nowhere.Path) {
		t.Errorf("brought to nowhere: %v, %v", edits, err)
	}
	if edits, err := ours.Bring(t.Context(), "t:b", nowhere, head, base); edits != nil || err == nil || !strings.Contains(err.Error(), nowhere.Path) {
		t.Errorf("brought from nowhere: %v, %v", edits, err)
	}
	ended, end := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	end(gone)
	if err := ours.Receive(ended, "t:r", theirs, head, nil); !errors.Is(err, gone) {
		t.Errorf("in an ended context: %v", err)
	}
	if loose, _ := filepath.Glob(ours.Path + "/objects/??/*"); len(loose) > 0 {
		t.Errorf("it has left %q", loose)
	}
}

// What is written aside stays apart from what is there, and is not brought to disk one by one.
func TestWhatIsReceivedAsideIsNotAmongWhatIsThere(t *testing.T) {
	top, base, head := twice(t)
	theirs, ours := open(t, top), bare(t)
	if err := ours.Receive(t.Context(), "t:r", theirs, base, nil); err != nil {
		t.Fatal(err)
	}
	words := told(t)
	aside := ours
	aside.Objects = t.TempDir()
	if _, err := aside.Bring(t.Context(), "t:b", theirs, head, base); err != nil {
		t.Fatal(err)
	}
	if oid, err := ours.Resolve(t.Context(), string(head)+"^{commit}"); oid != "" || err != nil {
		t.Errorf("it is among what is there: %q, %v", oid, err)
	}
	if whole, err := aside.Whole(t.Context(), head, base); !whole || err != nil {
		t.Errorf("aside it is whole: %v, %v", whole, err)
	}
	for _, line := range words() {
		if strings.Contains(line, " unpack-objects ") && !strings.Contains(line, "core.fsyncMethod=batch") {
			t.Errorf("each object is brought to disk by itself: %q", line)
		}
	}
}

// A file that is there many times is brought once, and a submodule's commit is another repository's.
func TestBringBringsEachObjectOnceAndNoSubmodule(t *testing.T) {
	top, base := once(t)
	for i := range 150 {
		write(t, filepath.Join(top, "many", strconv.Itoa(i)), "the same\n")
	}
	run(t, top, "add", "-A")
	run(t, top, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	run(t, top, "commit", "-qm", "many")
	head := git.OID(run(t, top, "rev-parse", "HEAD"))
	ours := bare(t)
	theirs := open(t, top)
	if err := ours.Receive(t.Context(), "t:r", theirs, base, nil); err != nil {
		t.Fatal(err)
	}
	edits, err := ours.Bring(t.Context(), "t:b", theirs, head, base)
	if err != nil || len(edits) != 151 {
		t.Fatalf("%d edits, %v", len(edits), err)
	}
	loose, _ := filepath.Glob(ours.Path + "/objects/??/*")
	if len(loose) != 3+4 { // the base; a commit, two trees and a file
		t.Errorf("%d objects lie loose", len(loose))
	}
}

func TestAnOperationThatIsNotDoneIsNotTakenForDone(t *testing.T) {
	top, base, head := twice(t)
	theirs, ours := open(t, top), bare(t)
	no := errors.New("no power")
	var done []string
	ours.Ops = disk.Ops{Around: func(op string, _ func() error) error {
		done = append(done, op)
		return no
	}}
	_, imported := ours.Import(t.Context(), "t:import", git.Import{Ref: "refs/sallyport/t", Author: who, Committer: who})
	_, brought := ours.Bring(t.Context(), "t:bring", theirs, head, base)
	_, taken := ours.Take(t.Context(), "t:take", theirs, string(head)+"\n")
	_, upon := ours.Upon(t.Context(), "t:upon", head, base)
	for name, err := range map[string]error{
		"import": imported, "bring": brought, "take": taken,
		"receive": ours.Receive(t.Context(), "t:receive", theirs, head, nil),
		"move":    ours.UpdateRef(t.Context(), "t:move", "refs/sallyport/t", head, ""),
		"adopt":   ours.Adopt(t.Context(), "t:adopt", theirs, head),
	} {
		if !errors.Is(err, no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if problem.KindOf(upon) != problem.NotFound || len(done) != 6 {
		t.Errorf("operations %q; %v", done, upon)
	}
}

func TestUponPutsATreeUponAnotherCommitAndKeepsTheRest(t *testing.T) {
	top, one, two := twice(t)
	d := open(t, top)
	odd := run(t, top, "-c", "user.name=Odd", "commit-tree", "-p", string(one), "-p", string(two), "-m", "parent of\n\nparent none\ntree none\n", string(two)+"^{tree}")
	root := git.OID(run(t, top, "commit-tree", "-m", "root", string(two)+"^{tree}"))

	if made, err := d.Upon(t.Context(), "t:u", two, one); made != two || err != nil {
		t.Errorf("what is so already is %s, %v", made, err)
	}
	for _, c := range []git.OID{git.OID(odd), root} {
		made, err := d.Upon(t.Context(), "t:u", c, one)
		if err != nil || made == c {
			t.Fatalf("%s, %v", made, err)
		}
		format := "--format=%T%n%an%n%ae%n%at%n%cn%n%B"
		if got, want := run(t, top, "show", "-s", format, string(made)), run(t, top, "show", "-s", format, string(c)); got != want {
			t.Errorf("it is %q, was %q", got, want)
		}
		if parents := run(t, top, "show", "-s", "--format=%P", string(made)); parents != string(one) {
			t.Errorf("its parents are %q", parents)
		}
		run(t, top, "fsck", "--strict", string(made))
	}
	tree := git.OID(run(t, top, "rev-parse", "HEAD^{tree}"))
	if made, err := d.Upon(t.Context(), "t:u", tree, one); made != "" || err == nil || !strings.Contains(err.Error(), "not a commit") {
		t.Errorf("a tree put upon a commit: %q, %v", made, err)
	}
	ours := bare(t)
	if err := ours.Adopt(t.Context(), "t:a", d, two); err != nil {
		t.Fatal(err)
	}
	if kind := run(t, ours.Path, "cat-file", "-t", string(two)); kind != "commit" {
		t.Errorf("a %s was taken over", kind)
	}
	if loose, _ := filepath.Glob(ours.Path + "/objects/??/*"); len(loose) != 1 {
		t.Errorf("%d objects were taken over", len(loose))
	}
	if err := ours.Adopt(t.Context(), "t:a", d, tree); err == nil || !strings.Contains(err.Error(), "not a commit") {
		t.Errorf("a tree was taken over: %v", err)
	}
	other, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", "sha256")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Adopt(t.Context(), "t:a", d, two); err == nil {
		t.Error("a commit was taken over into a repository of another format")
	}
}

// A commit has as many parents as are said, the objects that are there already, and none of a signature's odd letters.
func TestImportMakesTheCommitThatIsSaid(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		top, one, two := twice(t, "--object-format="+format)
		d := open(t, top)
		blob := git.OID(run(t, top, "rev-parse", string(one)+":a"))
		in := git.Import{
			Ref: "refs/sallyport/t", From: two, Parents: []git.OID{two, one}, Message: "two\nlines\n", Author: git.Signature{Name: "A\x7f <b>\n", Email: "a@example.org", At: who.At}, Committer: who,
			Writes: []git.Write{{Path: "was", Mode: git.Executable, OID: blob}, {Path: "none"}, {Path: "a"}},
		}
		made, err := d.Import(t.Context(), "t:i", in)
		if err != nil {
			t.Fatal(err)
		}
		want := []git.Entry{{Mode: git.Executable, OID: blob}, {}, {}}
		if fmt.Sprint(made.Made) != fmt.Sprint(want) {
			t.Errorf("made %v, want %v", made.Made, want)
		}
		got := run(t, top, "show", "-s", "--format=%P|%an|%ae|%at|%ai|%B", string(made.OID))
		if got != fmt.Sprintf("%s %s|A b|a@example.org|1700000000|2023-11-14 22:13:20 +0000|two\nlines", two, one) {
			t.Errorf("the commit says %q", got)
		}
		if ref := run(t, top, "rev-parse", "refs/sallyport/t"); ref != string(made.OID) {
			t.Errorf("the ref is %s", ref)
		}
		if is := run(t, top, "ls-tree", "-r", string(made.OID)); is != "100755 blob "+string(blob)+"\twas" {
			t.Errorf("the tree is %q", is)
		}
		// With data and without, in any order, each is told with its own id.
		in.Writes = []git.Write{{Path: "x", Mode: git.File, Data: git.Text("x\n")}, {Path: "a"}, {Path: "was", Mode: git.File, OID: blob}, {Path: "y", Mode: git.Symlink, Data: git.Bytes([]byte("y"))}}
		if made, err = d.Import(t.Context(), "t:i", in); err != nil {
			t.Fatal(err)
		}
		found, err := d.Lookup(t.Context(), made.OID, []string{"x", "a", "was", "y"})
		if err != nil || fmt.Sprint(made.Made) != fmt.Sprint(found) || !found[1].Absent() || found[3].Mode != git.Symlink {
			t.Errorf("made %v, found %v, %v", made.Made, found, err)
		}
		// Of another tree than the parent's.
		in.From, in.Parents, in.Writes = one, []git.OID{two}, nil
		if made, err = d.Import(t.Context(), "t:i", in); err != nil || string(made.Tree) != run(t, top, "rev-parse", string(one)+"^{tree}") {
			t.Errorf("the tree of the one before is %s, %v", made.Tree, err)
		}
		// From nothing, upon a parent, and then upon none.
		in.From, in.Parents, in.Writes = "", []git.OID{two}, nil
		if made, err = d.Import(t.Context(), "t:i", in); err != nil || made.Tree != git.EmptyTree(format) {
			t.Errorf("%s: an empty commit upon another has the tree %s, %v", format, made.Tree, err)
		}
		in.Parents = nil
		if made, err = d.Import(t.Context(), "t:i", in); err != nil || made.Tree != git.EmptyTree(format) {
			t.Errorf("%s: an empty commit has the tree %s, %v", format, made.Tree, err)
		}
		in.From, in.Writes = git.OID(strings.Repeat("1", len(one))), nil
		if _, err = d.Import(t.Context(), "t:i", in); problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "import refs/sallyport/t") {
			t.Errorf("from what is not there: %v", err)
		}
	}
}

// closing counts how often it was closed.
type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

func TestImportClosesWhatItHasRead(t *testing.T) {
	top, base := once(t)
	for _, size := range []int64{4, 5} { // as it is, and less than was said
		closed := 0
		in := git.Import{Ref: "refs/sallyport/t", From: base, Author: who, Committer: who}
		for _, name := range []string{"b", "c"} {
			in.Writes = append(in.Writes, git.Write{Path: name, Mode: git.File, Data: func() (io.ReadCloser, int64, error) {
				return closing{strings.NewReader("text"), &closed}, size, nil
			}})
		}
		_, err := open(t, top).Import(t.Context(), "t:i", in)
		if (err == nil) != (size == 4) || closed != map[int64]int{4: 2, 5: 1}[size] {
			t.Errorf("%d bytes: %d were closed, %v", size, closed, err)
		}
	}
}

func TestImportTellsWhyItFailed(t *testing.T) {
	top, base := once(t)
	d := open(t, top)
	no := errors.New("no such file any more")
	missing := git.OID(strings.Repeat("1", 40))
	for name, c := range map[string]struct {
		in   git.Import
		want string
	}{
		"data that cannot be opened":  {git.Import{From: base, Writes: []git.Write{{Path: "b", Mode: git.File, Data: func() (io.ReadCloser, int64, error) { return nil, 0, no }}}}, `read "b": no such file`},
		"data that cannot be read":    {git.Import{From: base, Writes: []git.Write{{Path: "b", Mode: git.File, Data: func() (io.ReadCloser, int64, error) { return io.NopCloser(iotest.ErrReader(no)), 7, nil }}}}, `read "b": no such file`},
		"an object that is missing":   {git.Import{From: base, Writes: []git.Write{{Path: "b", Mode: git.File, OID: missing}}}, "fast-import: fatal"},
		"a ref that is none":          {git.Import{Ref: "refs/bad..ref", From: base}, "fast-import: fatal"},
		"data for a ref that is none": {git.Import{Ref: "refs/bad..ref", From: base, Writes: []git.Write{{Path: "b", Mode: git.File, Data: git.Text("x")}}}, "fast-import: fatal"},
	} {
		c.in.Author, c.in.Committer = who, who
		if c.in.Ref == "" {
			c.in.Ref = "refs/sallyport/t"
		}
		made, err := d.Import(t.Context(), "t:i", c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) || made.OID != "" {
			t.Errorf("%s: %q, %v", name, made.OID, err)
		}
		if refs, err := d.Refs(t.Context(), "refs/sallyport/"); err != nil || len(refs) > 0 {
			t.Errorf("%s: refs %v, %v", name, refs, err)
		}
	}
	gone := git.Dir{Path: t.TempDir() + "/gone"}
	if _, err := gone.Import(t.Context(), "t:i", git.Import{Ref: "refs/sallyport/t", Author: who, Committer: who}); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("into nowhere: %v", err)
	}
}
