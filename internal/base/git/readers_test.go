package git_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// counted puts a git into the PATH that writes its process down when it is asked to read objects, and returns who they were so far.
func counted(t *testing.T) func() []int {
	t.Helper()
	is, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "pids")
	script := "#!/bin/sh\ncase \" $* \" in *' cat-file '*) echo $$ >> '" + log + "' ;; esac\nexec '" + is + "' \"$@\"\n"
	disktest.Put(t, filepath.Join(dir, "git"), script, 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() (pids []int) {
		text, _ := os.ReadFile(log) // none yet: none
		for line := range strings.Lines(string(text)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
}

// kept returns a context with readers, which end with the test.
func kept(t *testing.T) context.Context {
	t.Helper()
	r := &git.Readers{}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = r.Run(ended)
	})
	return r.In(t.Context())
}

func content(t *testing.T, ctx context.Context, d git.Dir, oid git.OID) string {
	t.Helper()
	r, err := d.Blob(ctx, oid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestManyQuestionsAreAnsweredByOneProcess(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	write(t, filepath.Join(top, "d/b"), "B")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)

	for range 3 {
		found, err := d.Lookup(ctx, head, []string{"a", "d/b"})
		if err != nil || content(t, ctx, d, found[1].OID) != "B" {
			t.Fatalf("%v, %v", found, err)
		}
		if tree, err := d.Tree(ctx, head); err != nil || string(tree) != run(t, top, "rev-parse", "HEAD^{tree}") {
			t.Fatalf("%q, %v", tree, err)
		}
		if err := d.Blobs(ctx, []git.OID{found[0].OID}, func(git.OID, int64, io.Reader) error { return errors.New("no") }); err == nil {
			t.Fatal("what the caller refuses is no error")
		}
		if none, err := d.Lookup(ctx, head, []string{"none"}); err != nil || !none[0].Absent() {
			t.Fatalf("%v, %v", none, err)
		}
	}
	if got := pids(); len(got) != 1 {
		t.Errorf("%d processes", len(got))
	}
	if _, err := d.Tree(t.Context(), head); err != nil || len(pids()) != 2 {
		t.Errorf("without readers a question has a process of its own: %d, %v", len(pids()), err)
	}
}

func TestAQuestionWithinAnAnswerIsAnsweredByAnother(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d := open(t, top)
	ctx := kept(t)
	found, err := d.Lookup(ctx, head, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Blobs(ctx, []git.OID{found[0].OID, found[0].OID}, func(oid git.OID, _ int64, r io.Reader) error {
		inner := content(t, ctx, d, oid)
		if outer, err := io.ReadAll(r); err != nil || inner != "A" || string(outer) != "A" {
			t.Errorf("%q within %q, %v", inner, outer, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAProcessThatDiedIsReplaced(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)
	for range 2 {
		if _, err := d.Tree(ctx, head); err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if got := pids(); len(got) != 2 {
		t.Errorf("%d processes", len(got))
	}
}

// The answer to a question that nobody waits for any more must never be taken for the answer to the next.
func TestAnEndedContextLeavesNoAnswerBehind(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "long"), strings.Repeat("x", 4<<20))
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	ctx := kept(t)
	found, err := d.Lookup(ctx, head, []string{"long", "a"})
	if err != nil {
		t.Fatal(err)
	}

	short, end := context.WithCancelCause(ctx)
	gone := errors.New("gone")
	err = d.Blobs(short, []git.OID{found[0].OID}, func(_ git.OID, _ int64, r io.Reader) error {
		if _, err := io.CopyN(io.Discard, r, 10); err != nil {
			t.Error(err)
		}
		end(gone)
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if !errors.Is(err, gone) {
		t.Errorf("the end of the context is told as %v", err)
	}
	if _, err := d.Tree(short, head); !errors.Is(err, gone) {
		t.Errorf("a question in an ended context: %v", err)
	}
	if got := content(t, ctx, d, found[1].OID); got != "A" {
		t.Errorf("the next answer is %.10q", got)
	}
	r, err := d.Blob(ctx, found[0].OID) // long, and hardly read
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got := content(t, ctx, d, found[1].OID); got != "A" {
		t.Errorf("after an answer that was not read: %.10q", got)
	}
	for _, pid := range pids()[:1] {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d, which nobody reads, is still there", pid)
		}
	}
}

func TestARepositoryThatChangedIsSeenAsItIs(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	run(t, top, "repack", "-adq")
	d := open(t, top)
	ctx := kept(t)
	if _, err := d.Tree(ctx, first); err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(top, "b"), "B")
	second := commit(t, top)
	for rev, want := range map[string]git.OID{"refs/heads/main": second, string(second) + "^{commit}": second} {
		if got, err := d.Resolve(ctx, rev); err != nil || got != want {
			t.Errorf("a new commit: %q is %q, %v", rev, got, err)
		}
	}

	run(t, top, "repack", "-adq")
	if got, err := d.Lookup(ctx, second, []string{"b"}); err != nil || got[0].Absent() {
		t.Errorf("packed anew: %v, %v", got, err)
	}

	other := person(t)
	write(t, filepath.Join(other, "c"), "C")
	third := commit(t, other)
	if got, err := d.Resolve(ctx, string(third)+"^{tree}"); err != nil || got != "" {
		t.Errorf("another's commit: %q, %v", got, err)
	}
	write(t, filepath.Join(top, ".git/objects/info/alternates"), filepath.Join(other, ".git/objects")+"\n")
	if got, err := d.Resolve(ctx, string(third)+"^{tree}"); err != nil || got == "" {
		t.Errorf("borrowed: %q, %v", got, err)
	}
}

// What a process holds open is not what the repository holds.
func TestWhatIsGoneFromARepositoryIsMissing(t *testing.T) {
	for _, then := range []func(t *testing.T, top string){
		func(t *testing.T, top string) { // what is not reached any more is dropped
			run(t, top, "update-ref", "-d", "refs/heads/main")
			run(t, top, "reflog", "expire", "--all", "--expire=now")
			if err := os.Remove(filepath.Join(top, ".git/index")); err != nil {
				t.Fatal(err)
			}
			run(t, top, "repack", "-adq")
			run(t, top, "prune", "--expire=now")
		},
		func(t *testing.T, top string) { // another repository takes its place
			if err := os.RemoveAll(top); err != nil {
				t.Fatal(err)
			}
			run(t, filepath.Dir(top), "init", "-q", top)
		},
	} {
		top := person(t)
		write(t, filepath.Join(top, "a"), "A")
		head := commit(t, top)
		run(t, top, "repack", "-adq")
		d := open(t, top)
		ctx := kept(t)
		if _, err := d.Tree(ctx, head); err != nil {
			t.Fatal(err)
		}
		then(t, top)
		if _, err := d.Tree(ctx, head); problem.KindOf(err) != problem.NotFound {
			t.Errorf("%v", err)
		}
	}
}

func TestWhatIsBorrowedNoMoreIsMissing(t *testing.T) {
	for _, gone := range []string{"own/.git/objects/info/alternates", "lender/.git/objects/pack"} {
		folder := t.TempDir()
		own, lender := filepath.Join(folder, "own"), filepath.Join(folder, "lender")
		run(t, folder, "init", "-q", own)
		if err := os.Rename(person(t), lender); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(lender, "a"), "A")
		head := commit(t, lender)
		run(t, lender, "repack", "-adq")
		write(t, filepath.Join(own, ".git/objects/info/alternates"), "../../../lender/.git/objects\n")
		d := open(t, own)
		ctx := kept(t)
		if _, err := d.Tree(ctx, head); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, gone), filepath.Join(folder, "gone")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Tree(ctx, head); problem.KindOf(err) != problem.NotFound {
			t.Errorf("without %s: %v", gone, err)
		}
	}
}

func TestReadersEndWithTheirOwner(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d, pids := open(t, top), counted(t)
	r := &git.Readers{}
	if _, err := d.Tree(r.In(t.Context()), head); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := r.Run(ctx); err != nil {
		t.Error(err)
	}
	if _, err := d.Tree(r.In(t.Context()), head); err != nil {
		t.Error(err)
	}
	got := pids()
	if len(got) != 2 {
		t.Fatalf("%d processes", len(got))
	}
	for _, pid := range got {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestANameOfTwoLinesIsNoQuestion(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	write(t, filepath.Join(top, "a"), "B")
	second := commit(t, top)
	d, ctx := open(t, top), kept(t)
	for _, name := range []string{"^{tree}\ninfo " + string(first), "\x00", "\n"} {
		if _, err := d.Lookup(ctx, git.OID(string(first)+name), []string{"a"}); err == nil {
			t.Errorf("%q was asked for", name)
		}
	}
	if got, err := d.Resolve(ctx, string(second)); err != nil || got != second {
		t.Errorf("asked for %s, got %s, %v", second, got, err)
	}
}

func TestAListOfBorrowedRepositoriesThatIsAPipeIsWaitedForByNobody(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d, list := open(t, top), filepath.Join(top, ".git/objects/info/alternates")
	if err := syscall.Mkfifo(list, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithCancel(kept(t))
	ended := make(chan error, 1)
	go func() {
		_, err := d.Resolve(ctx, string(head))
		ended <- err
	}()
	done() // git itself waits at the pipe, until it is ended
	if err := <-ended; err == nil {
		t.Error("git has read a pipe that nobody writes to")
	}
}

func TestWhatComesWithinASessionIsSeen(t *testing.T) {
	other := person(t)
	write(t, filepath.Join(other, "c"), "C")
	third := commit(t, other)
	tree := git.OID(run(t, other, "rev-parse", "HEAD^{tree}"))
	for rev, want := range map[string]git.OID{string(third): third, string(third) + "^{tree}": tree, "refs/heads/new^{tree}": tree} {
		top := person(t)
		write(t, filepath.Join(top, "a"), "A")
		own := commit(t, top)
		s := open(t, top).Session(kept(t))
		defer s.Close()
		for _, none := range []string{rev, "refs/heads/new"} {
			if got, err := s.Resolve(none); err != nil || got != "" {
				t.Errorf("before it comes %s is %q, %v", none, got, err)
			}
		}
		run(t, top, "update-ref", "refs/heads/new", string(own))
		if got, err := s.Resolve("refs/heads/new"); err != nil || got != own {
			t.Errorf("a ref that came is %q, %v", got, err)
		}
		write(t, filepath.Join(top, ".git/objects/info/alternates"), filepath.Join(other, ".git/objects")+"\n")
		run(t, top, "update-ref", "refs/heads/new", string(third))
		if got, err := s.Resolve(rev); err != nil || got != want {
			t.Errorf("%s, which is borrowed since, is %q, %v", rev, got, err)
		}
	}
}

func TestWhatReadsNothingOfALargeAnswerIsNoFailure(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "long"), strings.Repeat("x", 3<<20))
	head := commit(t, top)
	d, ctx := open(t, top), kept(t)
	found, err := d.Lookup(ctx, head, []string{"long"})
	if err != nil {
		t.Fatal(err)
	}
	pids := counted(t)
	if err := d.Blobs(ctx, []git.OID{found[0].OID}, func(git.OID, int64, io.Reader) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := d.Blobs(ctx, []git.OID{found[0].OID}, func(git.OID, int64, io.Reader) error { return io.ErrNoProgress }); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("what the caller says is told as %v", err)
	}
	if n := len(pids()); n != 0 {
		t.Errorf("%d processes began", n)
	}
}

func TestAProcessThatCannotReadSaysWhy(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	head := commit(t, top)
	d := open(t, top)
	for _, text := range []string{"echo no luck today >&2; exit 3", "read line; echo no luck today >&2; exit 3"} {
		t.Run(text, func(t *testing.T) {
			slowGit(t, "cat-file", text)
			for _, ctx := range []context.Context{t.Context(), kept(t)} {
				if _, err := d.Tree(ctx, head); err == nil || !strings.Contains(err.Error(), "no luck today") {
					t.Errorf("%v", err)
				}
			}
		})
	}
	gone := git.Dir{Path: t.TempDir() + "/gone"}
	if _, err := gone.Tree(t.Context(), head); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("where nothing is: %v", err)
	}
}

// An answer that is none, or that ends early, is never taken for what was asked for.
func TestAnAnswerThatEndsEarlyIsAFailure(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	commit(t, top)
	d := open(t, top)
	oid := run(t, top, "rev-parse", "HEAD:a")
	for _, answer := range []string{oid + " blob 9\\nshort", oid + " blob x\\n", oid + " blob 2\\nab"} {
		t.Run(answer, func(t *testing.T) {
			slowGit(t, "cat-file", "read line; printf '"+answer+"'; exit 0")
			if err := d.Blobs(t.Context(), []git.OID{git.OID(oid)}, func(git.OID, int64, io.Reader) error { return nil }); err == nil {
				t.Error("where nobody reads it, it is none")
			}
			r, err := d.Blob(t.Context(), git.OID(oid))
			if err != nil {
				return
			}
			text, err := io.ReadAll(r)
			if strings.Contains(answer, "short") && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("it is read to %q, %v", text, err)
			}
			if err = errors.Join(err, r.Close()); err == nil {
				t.Errorf("it is taken for %q", text)
			}
		})
	}
}
