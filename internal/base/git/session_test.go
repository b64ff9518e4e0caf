package git_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

func TestASessionAnswersAsSeparateProcessesDo(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	write(t, filepath.Join(top, "d/e/f"), "F")
	write(t, filepath.Join(top, "d/nl\n"), "odd")
	head := commit(t, top)
	d := open(t, top)
	s := d.Session(t.Context())
	defer s.Close()

	for rev, want := range map[string]git.OID{
		"refs/heads/main^{commit}": head, "refs/heads/none": "", "refs/heads/x y": "", "refs/heads/main\nHEAD": "",
		string(head) + "^{tree}": git.OID(run(t, top, "rev-parse", "HEAD^{tree}")),
	} {
		if got, err := s.Resolve(rev); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", rev, got, err, want)
		}
	}
	tree, _ := s.Resolve(string(head) + "^{tree}")
	paths := []string{"a", "d", "d/e/f", "d/nl\n", "none", "a/below", "d/e/none"}
	got, err := s.Lookup(tree, paths)
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.Lookup(t.Context(), head, paths)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
	var files []string
	if err := s.Files(got[1].OID, "d/", func(p string) { files = append(files, p) }); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(files); !slices.Equal(files, []string{"d/e/f", "d/nl\n"}) {
		t.Errorf("files %q", files)
	}

	blob := func(oid git.OID, each func(size int64, r io.Reader) error) error {
		return s.Blobs([]git.OID{oid}, func(_ git.OID, size int64, r io.Reader) error { return each(size, r) })
	}
	no := errors.New("no room")
	if err := blob(got[0].OID, func(int64, io.Reader) error { return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	if err := blob(got[1].OID, func(int64, io.Reader) error { return nil }); err == nil {
		t.Error("read a tree as a blob")
	}
	err = blob(got[0].OID, func(size int64, r io.Reader) error { // in step again after both
		raw, err := io.ReadAll(r)
		if string(raw) != "A" || size != 1 {
			t.Errorf("%q, %d", raw, size)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	run(t, top, "commit", "-q", "--allow-empty", "-m", "later")
	if now, err := s.Resolve("refs/heads/main"); err != nil || string(now) != run(t, top, "rev-parse", "main") {
		t.Errorf("a session that was open already sees %s, %v", now, err)
	}
}

func TestContainsTellsAnAncestorFromAnotherAndFromOneThatIsMissing(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	write(t, filepath.Join(top, "a"), "B")
	second := commit(t, top)
	d := open(t, top)
	forgotten := git.OID(strings.Repeat("1", 40))
	for _, c := range []struct {
		tip, commit git.OID
		want        bool
	}{{second, first, true}, {first, second, false}, {first, first, true}, {first, forgotten, false}} {
		if got, err := d.Contains(t.Context(), c.tip, c.commit); err != nil || got != c.want {
			t.Errorf("contains: %v, %v", got, err)
		}
	}
	for _, of := range []git.OID{first, forgotten} {
		if in, err := d.Contains(t.Context(), forgotten, of); err == nil || in {
			t.Errorf("a tip that is missing is an error, not a no: %v, %v", in, err)
		}
	}
	write(t, filepath.Join(top, "a"), "C")
	third := commit(t, top)
	if err := os.Remove(filepath.Join(top, ".git", "objects", string(second[:2]), string(second[2:]))); err != nil {
		t.Fatal(err)
	}
	if in, err := d.Contains(t.Context(), third, second); err == nil || in {
		t.Errorf("what a broken object hides is an error, not a no: %v, %v", in, err)
	}
	if in, err := d.Contains(t.Context(), first, git.OID(run(t, top, "rev-parse", "HEAD:a"))); err == nil || in {
		t.Errorf("what is no commit is an error, not a no: %v, %v", in, err)
	}
}

func TestFollowsIsNoOnceACommitWasTakenBack(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	write(t, filepath.Join(top, "a"), "B")
	second := commit(t, top)
	run(t, top, "checkout", "-q", "-b", "side")
	write(t, filepath.Join(top, "b"), "B")
	side := commit(t, top)
	run(t, top, "checkout", "-q", "main")
	run(t, top, "revert", "--no-edit", string(second))
	back := git.OID(run(t, top, "rev-parse", "HEAD"))
	run(t, top, "merge", "-q", "--no-ff", "-m", "merge", "side")
	merged := git.OID(run(t, top, "rev-parse", "HEAD"))
	run(t, top, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
	last := git.OID(run(t, top, "rev-parse", "HEAD"))
	d := open(t, top)
	forgotten := git.OID(strings.Repeat("1", 40))
	for i, c := range []struct {
		tip, commit git.OID
		want        bool
	}{
		{first, first, true}, {second, first, true}, {side, second, true}, {last, back, true}, {last, merged, true}, // empty words are no others
		{first, second, false}, {back, side, false}, {side, back, false}, {first, forgotten, false},
		{back, second, false}, {merged, side, false}, {last, first, false}, // since it something was taken back, also on another way
	} {
		if got, err := git.Follows(t.Context(), d, c.tip, c.commit); err != nil || got != c.want {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
	for words, want := range map[string]bool{
		"Revert \"B\"": false, "Undo B\n\nThis reverts merge request !12": false, "Undo\n\nThis reverts\ncommit 123.": false, "Back\n\nReverts acme/app#12": false,
		"revert: the menu": true, "Say what a reverted change leaves": true,
	} {
		run(t, top, "commit", "-q", "--allow-empty", "-m", words)
		if got, err := git.Follows(t.Context(), d, git.OID(run(t, top, "rev-parse", "HEAD")), last); err != nil || got != want {
			t.Errorf("%q: %v, %v", words, got, err)
		}
		run(t, top, "reset", "-q", "--hard", string(last))
	}
	if follows, err := git.Follows(t.Context(), d, forgotten, first); err == nil || follows {
		t.Errorf("a tip that is missing is an error, not a no: %v, %v", follows, err)
	}
}

// A path that was merged in came to be with the merge, where who reads the branch first saw it.
func TestLastAddedFindsWhereAPathCameToBeTheLastTime(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	run(t, top, "checkout", "-q", "-b", "side")
	write(t, filepath.Join(top, "in/b"), "B")
	commit(t, top)
	run(t, top, "checkout", "-q", "main")
	run(t, top, "merge", "-q", "--no-ff", "-m", "merge", "side")
	merged := git.OID(run(t, top, "rev-parse", "HEAD"))
	write(t, filepath.Join(top, "in/b"), "B2")
	commit(t, top)
	run(t, top, "mv", "a", "c")
	moved := commit(t, top)
	run(t, top, "mv", "c", "a")
	back := commit(t, top)
	d := open(t, top)
	for path, want := range map[string]git.OID{"in/b": merged, "c": moved, "a": back, "in": merged, "d": ""} {
		if got, err := git.LastAdded(t.Context(), d, back, path); err != nil || got != want {
			t.Errorf("%s came to be in %q, not in %q: %v", path, got, want, err)
		}
	}
	if got, err := git.LastAdded(t.Context(), d, moved, "a"); err != nil || got != first {
		t.Errorf("before it came back, it came to be in %q: %v", got, err)
	}
}

// Many questions are put before the first is answered. Whatever comes between, the answers stay with their questions.
func TestManyObjectsAreReadInOrderWhateverIsMissing(t *testing.T) {
	top := person(t)
	const n = 130
	text := func(i int) string { return strings.Repeat(strconv.Itoa(i)+" ", 1+i%7*3000) }
	for i := range n {
		write(t, filepath.Join(top, strconv.Itoa(i/10), strconv.Itoa(i)), text(i))
	}
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)
	paths := make([]string, n)
	for i := range paths {
		paths[i] = strconv.Itoa(i/10) + "/" + strconv.Itoa(i)
	}
	found, err := d.Lookup(ctx, head, paths)
	if err != nil {
		t.Fatal(err)
	}
	blobs := make([]git.OID, n)
	for i := range found {
		blobs[i] = found[i].OID
	}

	read := func(ctx context.Context, each func(i int) error) (int, error) {
		i := 0
		err := d.Blobs(ctx, blobs, func(oid git.OID, size int64, r io.Reader) error {
			var raw []byte
			if i%3 > 0 { // the rest is passed over
				var err error
				if raw, err = io.ReadAll(r); err != nil {
					return err
				}
			}
			if oid != blobs[i] || size != int64(len(text(i))) || i%3 > 0 && string(raw) != text(i) {
				t.Errorf("%d: %s, %d bytes, %.20q", i, oid, size, raw)
			}
			i++
			return each(i - 1)
		})
		return i, err
	}
	fine := func(int) error { return nil }
	if got, err := read(ctx, fine); got != n || err != nil {
		t.Errorf("%d read, %v", got, err)
	}
	if p := pids(); len(p) != 1 {
		t.Errorf("%d processes for what one can answer", len(p))
	}
	no := errors.New("no")
	if got, err := read(ctx, func(i int) error {
		if i == 50 {
			return no
		}
		return nil
	}); got != 51 || !errors.Is(err, no) {
		t.Errorf("%d read, %v; want the caller's error after 51", got, err)
	}
	if got, err := read(ctx, func(i int) error {
		if i == 60 {
			return syscall.Kill(pids()[len(pids())-1], syscall.SIGKILL)
		}
		return nil
	}); (got != n) != (err != nil) {
		t.Errorf("%d read past a process that was killed, %v", got, err)
	}

	file := filepath.Join(top, ".git/objects", string(blobs[70][:2]), string(blobs[70][2:]))
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(ctx, fine); got != 70 || problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), string(blobs[70])) {
		t.Errorf("%d read, %v; want the missing one by name after 70", got, err)
	}
	if whole, err := d.Whole(ctx, head, git.EmptyTree("sha1")); whole || err != nil {
		t.Errorf("whole %v, %v without an object", whole, err)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if whole, err := d.Whole(ctx, head, git.EmptyTree("sha1")); !whole || err != nil {
		t.Errorf("whole %v, %v with all", whole, err)
	}
	ended, end := context.WithCancelCause(ctx)
	if got, err := read(ended, func(i int) error {
		if i == 60 {
			end(no)
		}
		return nil
	}); got > n || !errors.Is(err, no) {
		t.Errorf("%d read after the end of the context, %v", got, err)
	}
	if got, err := read(ctx, fine); got != n || err != nil {
		t.Errorf("in the end %d read, %v", got, err)
	}
}

// away puts the object that a revision names aside, and returns what brings it back.
func away(t *testing.T, top, rev string) (back func()) {
	t.Helper()
	oid := run(t, top, "rev-parse", rev)
	file := filepath.Join(top, ".git/objects", oid[:2], oid[2:])
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASessionReadsEachTreeOnceAndNoneThatIsNotAskedFor(t *testing.T) {
	top := person(t)
	for _, name := range []string{"a", "d/b", "d/e/c", "f/g", "h/i/j"} {
		write(t, filepath.Join(top, name), name)
	}
	head := commit(t, top)
	s := open(t, top).Session(t.Context())
	defer s.Close()
	tree, err := s.Resolve(string(head) + "^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	back := away(t, top, "HEAD:d")
	if found, err := s.Lookup(tree, []string{"d", "a", "f/g"}); err != nil || found[0].Mode != git.Folder || found[2].Mode != git.File {
		t.Errorf("a folder that is only named is read: %v, %v", found, err)
	}
	if _, err := s.Lookup(tree, []string{"d/b"}); problem.KindOf(err) != problem.NotFound {
		t.Errorf("what lies in a folder that is missing: %v", err)
	}
	back()
	if found, err := s.Lookup(tree, []string{"d/b", "d/e"}); err != nil || found[0].Mode != git.File || found[1].Mode != git.Folder {
		t.Errorf("%v, %v", found, err)
	}
	back = away(t, top, "HEAD:d")
	if found, err := s.Lookup(tree, []string{"d/b"}); err != nil || found[0].Mode != git.File {
		t.Errorf("a folder is read twice: %v, %v", found, err)
	}
	back()
	files := func() (all []string, err error) {
		err = s.Files(tree, "", func(path string) { all = append(all, path) })
		slices.Sort(all)
		return all, err
	}
	back = away(t, top, "HEAD:h/i")
	if all, err := files(); problem.KindOf(err) != problem.NotFound {
		t.Errorf("without a folder its files are %q, %v", all, err)
	}
	back()
	if all, err := files(); err != nil || !slices.Equal(all, []string{"a", "d/b", "d/e/c", "f/g", "h/i/j"}) {
		t.Errorf("files %q, %v", all, err)
	}
	if err := s.Files(git.OID(run(t, top, "rev-parse", "HEAD:a")), "", func(string) {}); err == nil || !strings.Contains(err.Error(), "not a tree") {
		t.Errorf("a file as a folder: %v", err)
	}
}

// What is done with a repository gives its process back, however it ends.
func TestEachQuestionGivesItsProcessBack(t *testing.T) {
	top, base, head := twice(t)
	d, ours, ctx := open(t, top), bare(t), kept(t)
	if err := ours.Receive(ctx, "t:r", d, base, nil); err != nil {
		t.Fatal(err)
	}
	pids := counted(t)
	for name, ask := range map[string]func() error{
		"bring": func() error { _, err := ours.Bring(ctx, "t:b", d, head, base); return err },
		"whole": func() error { _, err := d.Whole(ctx, head, base); return err },
		"edits": func() error { _, err := d.Edits(ctx, head, base); return err },
		"far":   func() error { _, _ = d.EditsMax(ctx, head, base, 1); return nil },
		"upon":  func() error { _, err := d.Upon(ctx, "t:u", head, base); return err },
		"adopt": func() error { return ours.Adopt(ctx, "t:a", d, head) },
		"names": func() error { _, err := d.Names(ctx, head, ""); return err },
		"tree":  func() error { _, err := d.Tree(ctx, head); return err },
		"blobs": func() error { return d.Blobs(ctx, []git.OID{head}, nil) },
	} {
		if err := ask(); (err == nil) == (name == "blobs") {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(pids()); n != 1 {
			t.Errorf("%d processes after %s", n, name)
		}
	}
}
