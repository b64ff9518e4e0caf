package git_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

func TestABlobIsNoOtherObject(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "A")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)
	for _, oid := range []git.OID{head, git.OID(run(t, top, "rev-parse", "HEAD^{tree}"))} {
		if r, err := d.Blob(ctx, oid); r != nil || err == nil || !strings.Contains(err.Error(), "not a blob") {
			t.Errorf("%s as a blob: %v", oid, err)
		}
	}
	if got := content(t, ctx, d, git.OID(run(t, top, "rev-parse", "HEAD:a"))); got != "A" || len(pids()) != 1 {
		t.Errorf("%q, of %d processes", got, len(pids()))
	}
	r, err := d.Blob(ctx, git.OID(run(t, top, "rev-parse", "HEAD:a")))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // as the second time
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Tree(ctx, head); err != nil || len(pids()) != 1 {
		t.Errorf("after what was not read, %d processes, %v", len(pids()), err)
	}
	missing := git.OID(strings.Repeat("1", 40))
	if r, err := d.Blob(ctx, missing); r != nil || problem.KindOf(err) != problem.NotFound {
		t.Errorf("one that is missing: %v", err)
	}
}

func TestWhatAsksForNothingStartsNoProcess(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "A")
	head := commit(t, top)
	run(t, top, "update-ref", "refs/heads/deep/er", "HEAD")
	run(t, top, "symbolic-ref", "HEAD", "refs/heads/deep/er")
	d, words := open(t, top), told(t)
	if err := d.Blobs(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if got, err := d.Lookup(t.Context(), head, nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := d.Head(t.Context()); got != head || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got := words(); got[0] != "" {
		t.Errorf("git was asked: %q", got)
	}
}

// A head that names no branch leads to no file that lies elsewhere.
func TestAHeadIsReadFromNoFileButABranch(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "A")
	head := commit(t, top)
	d := open(t, top)
	write(t, filepath.Join(d.Path, "other"), string(head)+"\n")
	for _, name := range []string{"refs/heads/../../other", "refs/heads/"} {
		write(t, filepath.Join(d.Path, "HEAD"), "ref: "+name+"\n")
		if got, _ := d.Head(t.Context()); got != "" {
			t.Errorf("%s is %s", name, got)
		}
	}
	if err := os.Remove(filepath.Join(d.Path, "HEAD")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Head(t.Context()); got != "" || err == nil {
		t.Errorf("without one it is %q, %v", got, err)
	}
}

func TestNamesAreThoseOfOneFolder(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "A")
	write(t, top+"/d/b", "B")
	write(t, top+"/d/e/c", "C")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)
	b, err := d.Browse(ctx, head)
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{"": {"a", "d"}, "d": {"b", "e"}, "d/e": {"c"}, "a": nil, "none": nil, "a/below": nil} {
		got, err := d.Names(ctx, head, folder)
		var names []string
		for name, e := range got {
			names = append(names, name)
			if e.Mode != git.File && e.Mode != git.Folder {
				t.Errorf("%s is %+v", name, e)
			}
		}
		if slices.Sort(names); err != nil || !slices.Equal(names, want) || (got == nil) != (want == nil) {
			t.Errorf("%q has %q, %v", folder, names, err)
		}
		if seen := b.Names(folder); !slices.Equal(seen, want) {
			t.Errorf("looking around, %q has %q", folder, seen)
		}
	}
	if e, ok := b.Entry("d/b"); !ok || e.Mode != git.File || b.Err() != nil {
		t.Errorf("%+v, %v, %v", e, ok, b.Err())
	}
	if _, ok := b.Entry("d/none"); ok {
		t.Error("what is not there is")
	}
	b.Close()
	for range 2 { // one looks around while the other is asked
		other, err := d.Browse(ctx, head)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	if n := len(pids()); n != 2 {
		t.Errorf("%d processes", n)
	}
	missing := git.OID(strings.Repeat("1", 40))
	if got, err := d.Names(ctx, missing, ""); got != nil || problem.KindOf(err) != problem.NotFound {
		t.Errorf("%v, %v", got, err)
	}
	for range 3 {
		if b, err := d.Browse(ctx, missing); b != nil || problem.KindOf(err) != problem.NotFound {
			t.Errorf("%v, %v", b, err)
		}
	}
	before := len(pids())
	if _, err := d.Tree(ctx, head); err != nil || len(pids()) != before {
		t.Errorf("the process that found nothing was not given back: %v", err)
	}
}

func TestLookingAroundEndsWithTheFirstFailure(t *testing.T) {
	top := person(t)
	write(t, top+"/d/e/c", "C")
	write(t, top+"/f/g", "G")
	head := commit(t, top)
	d := open(t, top)
	for _, gone := range []string{"HEAD:d", "HEAD:d/e"} {
		oid := run(t, top, "rev-parse", gone)
		file := filepath.Join(d.Path, "objects", oid[:2], oid[2:])
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		b, err := d.Browse(t.Context(), head)
		if err != nil {
			t.Fatal(err)
		}
		if names := b.Names("d/e"); len(names) > 0 || problem.KindOf(b.Err()) != problem.NotFound {
			t.Errorf("without %s: %q, %v", gone, names, b.Err())
		}
		if _, ok := b.Entry("f/g"); ok {
			t.Error("after a failure an answer is given")
		}
		b.Close()
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListEndsAsGitOrItsReaderDoes(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "A")
	commit(t, top)
	d := open(t, top)
	missing := git.OID(strings.Repeat("1", 40))
	if err := d.List(t.Context(), missing, func(string, git.Entry, int64) error { return nil }); err == nil || !strings.Contains(err.Error(), "git ls-tree") {
		t.Errorf("of what is missing: %v", err)
	}
	blob := run(t, top, "rev-parse", "HEAD:a")
	var lines strings.Builder // more than git can say while nobody reads
	for i := range 8000 {
		fmt.Fprintf(&lines, "100644 %s\tfolder/a file with a name that is somewhat longer %d\n", blob, i)
	}
	pipe(t, top, lines.String(), "update-index", "--add", "--index-info")
	run(t, top, "commit", "-qm", "many")
	if err := d.List(t.Context(), "HEAD", func(string, git.Entry, int64) error { return io.ErrShortWrite }); err != io.ErrShortWrite {
		t.Errorf("whose reader ends: %v", err)
	}
}
