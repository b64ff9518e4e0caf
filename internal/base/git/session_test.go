package git_test

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
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

	no := errors.New("no room")
	if err := s.Blob(got[0].OID, func(int64, io.Reader) error { return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	if err := s.Blob(got[1].OID, func(int64, io.Reader) error { return nil }); err == nil {
		t.Error("read a tree as a blob")
	}
	err = s.Blob(got[0].OID, func(size int64, r io.Reader) error { // in step again after both
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
	for _, c := range []struct {
		tip, commit git.OID
		want        bool
	}{{second, first, true}, {first, second, false}, {first, first, true}} {
		if got, err := d.Contains(t.Context(), c.tip, c.commit); err != nil || got != c.want {
			t.Errorf("contains: %v, %v", got, err)
		}
	}
	if _, err := d.Contains(t.Context(), first, git.OID(strings.Repeat("1", 40))); err == nil {
		t.Error("an object that is missing is an error, not a no")
	}
}
