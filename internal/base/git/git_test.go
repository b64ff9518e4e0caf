package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// person makes a repository as a person would, with their own configuration, and returns its work tree.
func person(t *testing.T, args ...string) string {
	t.Helper()
	top := t.TempDir()
	run(t, top, append([]string{"init", "-q", "-b", "main"}, args...)...)
	run(t, top, "config", "user.name", "P")
	run(t, top, "config", "user.email", "p@example.org")
	return top
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	disktest.Put(t, path, text, 0o644)
}

func commit(t *testing.T, top string) git.OID {
	t.Helper()
	run(t, top, "add", "-A")
	run(t, top, "commit", "-qm", "x")
	return git.OID(run(t, top, "rev-parse", "HEAD"))
}

// once is a person's repository with one commit, of a file.
func once(t *testing.T, args ...string) (top string, one git.OID) {
	t.Helper()
	top = person(t, args...)
	write(t, top+"/a", "1\n")
	return top, commit(t, top)
}

// twice is once, and a commit upon it that changes the file.
func twice(t *testing.T, args ...string) (top string, one, two git.OID) {
	t.Helper()
	top, one = once(t, args...)
	write(t, top+"/a", "2\n")
	return top, one, commit(t, top)
}

func open(t *testing.T, top string) git.Dir {
	t.Helper()
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	return p.Common(disk.Ops{})
}

func bytesOf(text string) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	}
}

var who = git.Signature{Name: "A <b>\n", Email: "a@example.org", At: time.Unix(1700000000, 0)}

func TestOpenNamesWhatIsNoRepository(t *testing.T) {
	bare := t.TempDir()
	run(t, bare, "init", "-q", "--bare")
	for name, dir := range map[string]string{"plain folder": t.TempDir(), "bare": bare, "absent": "/nonexistent/x"} {
		t.Run(name, func(t *testing.T) {
			_, err := git.Open(t.Context(), dir)
			if got := problem.Of(err); got.Kind != problem.Usage || !strings.Contains(got.Text, dir) || got.Next == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestABrokenRepositoryIsNotToBeMadeAnew(t *testing.T) {
	for name, breaks := range map[string]func(dot string) error{
		"no HEAD":           func(dot string) error { return os.Remove(filepath.Join(dot, "HEAD")) },
		"HEAD says nothing": func(dot string) error { return os.WriteFile(filepath.Join(dot, "HEAD"), nil, 0o644) },
		"no objects":        func(dot string) error { return os.RemoveAll(filepath.Join(dot, "objects")) },
		"a broken config":   func(dot string) error { return os.WriteFile(filepath.Join(dot, "config"), []byte("[core\n"), 0o644) },
		"a format of tomorrow": func(dot string) error {
			return os.WriteFile(filepath.Join(dot, "config"), []byte("[core]\nrepositoryFormatVersion = 99\n"), 0o644)
		},
		"a link to nowhere": func(dot string) error {
			return errors.Join(os.RemoveAll(dot), os.WriteFile(dot, []byte("gitdir: /nowhere\n"), 0o644))
		},
		"a dangling link": func(dot string) error { return errors.Join(os.RemoveAll(dot), os.Symlink("/nowhere", dot)) },
	} {
		t.Run(name, func(t *testing.T) {
			top := person(t)
			if err := breaks(filepath.Join(top, ".git")); err != nil {
				t.Fatal(err)
			}
			deep := filepath.Join(top, "deep/er")
			if err := os.MkdirAll(deep, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{top, deep} {
				_, err := git.Open(t.Context(), dir)
				p := problem.Of(err)
				if err == nil || p.Kind != problem.Refused || !strings.Contains(p.Text, filepath.Join(top, ".git")) || strings.Contains(p.Next, "init") {
					t.Errorf("%s %q, next %q", p.Kind, p.Text, p.Next)
				}
			}
		})
	}
}

// What a change brings below such a folder is the repository itself, and what git runs of it.
func TestNoRepositoryLiesAmongItsOwnFiles(t *testing.T) {
	for dir, inside := range map[string]bool{"top/.repo": true, "top/a/b": true, "beside.git": false} {
		at := t.TempDir()
		if err := os.MkdirAll(filepath.Join(at, "top/a"), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("git", "init", "-q", "--separate-git-dir", filepath.Join(at, dir), filepath.Join(at, "top")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, err := git.Open(t.Context(), filepath.Join(at, "top"))
		if (err != nil) != inside {
			t.Errorf("%s: %v", dir, err)
		}
		if p := new(problem.Problem); inside && errors.As(err, &p) && (!strings.Contains(p.Text, filepath.Join(at, dir)) || !strings.Contains(p.Next, "init --separate-git-dir ")) {
			t.Errorf("%s: %v, next %q", dir, err, p.Next)
		}
	}
}

func TestOpenFindsALinkedWorkTree(t *testing.T) {
	top, _ := once(t)
	linked := t.TempDir() + "/linked"
	run(t, top, "worktree", "add", "-q", linked)
	p, err := git.Open(t.Context(), linked)
	if err != nil {
		t.Fatal(err)
	}
	if p.Top != linked || p.CommonDir != top+"/.git" || p.GitDir != top+"/.git/worktrees/linked" || p.ObjectFormat != "sha1" {
		t.Errorf("got %+v", p)
	}
}

// The oracle is git itself: the same edits by add and commit give the same tree.
func TestImportMakesTheTreeThatGitMakes(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			top := person(t, "--object-format="+format)
			write(t, top+"/gone", "1\n")
			write(t, top+"/was a file", "1\n")
			write(t, top+"/dir/in", "1\n")
			write(t, top+"/keep/me", "1\n")
			base := commit(t, top)
			d := open(t, top)
			odd := "q\"uo\\te\n\x01 \xff"
			in := git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Message: "m\n", Author: who, Committer: who, Writes: []git.Write{
				{Path: "gone"},
				{Path: "was a file/now a folder", Mode: git.File, Data: bytesOf("x")},
				{Path: "was a file"},
				{Path: "dir/in"},
				{Path: "dir", Mode: git.Symlink, Data: bytesOf("keep")},
				{Path: odd, Mode: git.Executable, Data: bytesOf("\x00\n")},
			}}
			made, err := d.Import(t.Context(), "test:import", in)
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(top + "/gone")
			os.Remove(top + "/was a file")
			os.RemoveAll(top + "/dir")
			write(t, top+"/was a file/now a folder", "x")
			os.Symlink("keep", top+"/dir")
			write(t, top+"/"+odd, "\x00\n")
			os.Chmod(top+"/"+odd, 0o755)
			want := commit(t, top)
			if tree := run(t, top, "rev-parse", string(want)+"^{tree}"); tree != string(made.Tree) {
				t.Errorf("tree %s, git makes %s", made.Tree, tree)
			}
			if again, err := d.Import(t.Context(), "test:import", in); err != nil || again.OID != made.OID {
				t.Errorf("again: %s, %v; want %s", again.OID, err, made.OID)
			}
			edits, err := d.Edits(t.Context(), base, made.OID)
			if err != nil || len(edits) != 6 {
				t.Fatalf("%d edits, %v", len(edits), err)
			}
			var paths []string
			for _, e := range edits {
				paths = append(paths, e.Path)
			}
			found, err := d.Lookup(t.Context(), made.OID, paths)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range edits {
				if found[i] != e.New && !(e.New.Absent() && found[i].Mode == git.Folder) {
					t.Errorf("lookup %q: %+v, diff says %+v", e.Path, found[i], e.New)
				}
			}
		})
	}
}

func TestImportOfShortDataCommitsNothing(t *testing.T) {
	top, base := once(t)
	d := open(t, top)
	_, err := d.Import(t.Context(), "test:import", git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who, Writes: []git.Write{
		{Path: "b", Mode: git.File, Data: func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("short")), 10, nil }},
	}})
	if err == nil || !strings.Contains(err.Error(), "5 bytes instead of 10") {
		t.Errorf("got %v", err)
	}
	if oid, err := d.Resolve(t.Context(), "refs/sallyport/t"); oid != "" || err != nil {
		t.Errorf("ref is %q, %v", oid, err)
	}
}

func TestImportCanEmptyATree(t *testing.T) {
	top, base := once(t)
	made, err := open(t, top).Import(t.Context(), "test:import", git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who, Writes: []git.Write{{Path: "a"}}})
	if err != nil || made.Tree != git.EmptyTree("sha1") {
		t.Errorf("tree %s, %v", made.Tree, err)
	}
}

// Everything a repository can make git execute stays unexecuted.
func TestNothingThatARepositoryConfiguresIsExecuted(t *testing.T) {
	top, base := once(t)
	marker := t.TempDir() + "/ran"
	script := "#!/bin/sh\necho $0 >>" + marker + "\ncat\n"
	for _, hook := range []string{"reference-transaction", "post-commit", "post-index-change", "pre-commit", "fsmonitor-watchman"} {
		write(t, top+"/.git/hooks/"+hook, script)
		os.Chmod(top+"/.git/hooks/"+hook, 0o755)
	}
	write(t, top+"/prog", script)
	os.Chmod(top+"/prog", 0o755)
	for _, kv := range []string{"core.fsmonitor", "filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.external", "diff.x.command", "diff.x.textconv", "core.sshCommand", "core.pager", "core.alternateRefsCommand", "core.editor", "gpg.program"} {
		run(t, top, "config", kv, top+"/prog")
	}
	run(t, top, "config", "commit.gpgSign", "true")
	write(t, top+"/.git/info/attributes", "* filter=x diff=x\n")
	d := open(t, top)
	made, err := d.Import(t.Context(), "t:i", git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who, Writes: []git.Write{{Path: "a", Mode: git.File, Data: bytesOf("2\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.UpdateRefLog(t.Context(), "t:u", "refs/heads/main", made.OID, base, "land"); err != nil {
		t.Fatal(err)
	}
	var patch bytes.Buffer
	if err := d.Patch(t.Context(), &patch, base, made.OID, true); err != nil || !strings.Contains(patch.String(), "+2") {
		t.Errorf("patch %q, %v", patch.String(), err)
	}
	if _, err := d.Stat(t.Context(), base, made.OID, time.Minute); err != nil {
		t.Error(err)
	}
	if ran, err := os.ReadFile(marker); err == nil {
		t.Errorf("executed:\n%s", ran)
	}
	// The control: the traps work.
	if out, err := exec.Command("git", "-C", top, "update-ref", "refs/heads/x", string(base)).CombinedOutput(); err != nil {
		t.Log(string(out))
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("the control executed nothing: the traps prove nothing")
	}
}

func TestStatCountsLinesAndSeesRenames(t *testing.T) {
	top := person(t)
	write(t, top+"/old name", strings.Repeat("line\n", 20))
	write(t, top+"/bin", "\x00\x01")
	write(t, top+"/mode", "1\n")
	base := commit(t, top)
	os.Rename(top+"/old name", top+"/new\nname")
	write(t, top+"/bin", "\x00\x02")
	os.Chmod(top+"/mode", 0o755)
	write(t, top+"/added", "1\n2\n")
	to := commit(t, top)
	stats, err := open(t, top).Stat(t.Context(), base, to, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range stats {
		got = append(got, fmt.Sprintf("%s %q<%q +%d -%d %v", s.Status, s.Path, s.From, s.Added, s.Removed, s.Binary))
	}
	want := []string{`A "added"<"" +2 -0 false`, `M "bin"<"" +0 -0 true`, `M "mode"<"" +0 -0 false`, `R "new\nname"<"old name" +0 -0 false`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUpdateRefIsCompareAndSet(t *testing.T) {
	top, one, two := twice(t)
	d := open(t, top)
	steps := []struct {
		to, old git.OID
		ok      bool
	}{{one, "", true}, {two, "", false}, {two, two, false}, {two, one, true}, {"", one, false}, {"", two, true}}
	for i, s := range steps {
		if err := d.UpdateRef(t.Context(), "t:u", "refs/sallyport/x", s.to, s.old); (err == nil) != s.ok {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if refs, err := d.Refs(t.Context(), "refs/sallyport/"); err != nil || len(refs) != 0 {
		t.Errorf("left %v, %v", refs, err)
	}
}

func TestReceiveBringsWhatIsMissingAsAPackWhereThatIsMuch(t *testing.T) {
	top, base := once(t)
	theirs := open(t, top)
	ours, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", "sha1")
	if err != nil {
		t.Fatal(err)
	}
	write(t, ours.Path+"/objects/info/alternates", top+"/.git/objects\n")
	for i, files := range []int{97, 98} { // with a tree and a commit: 99 objects, 100
		in := git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who}
		for n := range files {
			in.Writes = append(in.Writes, git.Write{Path: fmt.Sprint("b", n), Mode: git.File, Data: bytesOf(fmt.Sprintln("new", i, n))})
		}
		made, err := ours.Import(t.Context(), "t:i", in)
		if err != nil {
			t.Fatal(err)
		}
		if oid, _ := theirs.Resolve(t.Context(), string(made.OID)+"^{commit}"); oid != "" {
			t.Fatal("it is there before")
		}
		if err := theirs.Receive(t.Context(), "t:r", ours, made.OID, []git.OID{base}); err != nil {
			t.Fatal(err)
		}
		if out := run(t, top, "show", string(made.OID)+":b0"); out != fmt.Sprint("new ", i, " 0") {
			t.Errorf("got %q", out)
		}
		if packs, _ := filepath.Glob(top + "/.git/objects/pack/*.pack"); len(packs) != i {
			t.Errorf("%d objects came as %d packs", files+2, len(packs))
		}
	}
}

func TestListAndBlobsReadWhatIsThere(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "one\n")
	write(t, top+"/d/b\nc", "two two\n")
	head := commit(t, top)
	d := open(t, top)
	var oids []git.OID
	var paths []string
	err := d.List(t.Context(), head, func(path string, e git.Entry, size int64) error {
		paths = append(paths, fmt.Sprintf("%q %d", path, size))
		oids = append(oids, e.OID)
		return nil
	})
	if err != nil || strings.Join(paths, ";") != `"a" 4;"d/b\nc" 8` {
		t.Errorf("%v, %v", paths, err)
	}
	var texts []string
	err = d.Blobs(t.Context(), oids, func(_ git.OID, size int64, r io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(r, 4)) // not all of it
		texts = append(texts, string(raw))
		return err
	})
	if err != nil || strings.Join(texts, "|") != "one\n|two " {
		t.Errorf("%q, %v", texts, err)
	}
	missing := git.OID(strings.Repeat("1", 40))
	if err := d.Blobs(t.Context(), []git.OID{missing}, nil); problem.KindOf(err) != problem.NotFound {
		t.Errorf("missing object: %v", err)
	}
	stop := errors.New("stop")
	if err := d.List(t.Context(), head, func(string, git.Entry, int64) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestACancelledCommandSaysWhy(t *testing.T) {
	top := person(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	d := open(t, top)
	why := errors.New("the person went home")
	cancel(why)
	if _, err := d.Resolve(ctx, "HEAD"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestWhatGitAdvisesDoesNotStandBeforeWhatWentWrong(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "f"), "text\n")
	head := commit(t, top)
	d := open(t, top)
	blob := run(t, top, "rev-parse", string(head)+":f")
	if err := os.Remove(filepath.Join(d.Path, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	_, err := d.Run(t.Context(), git.Cmd{Args: []string{"pack-objects", "--revs", "--stdout", "-q"}, Stdin: strings.NewReader(string(head) + "\n")})
	if err == nil || !strings.Contains(err.Error(), blob) || strings.Contains(err.Error(), "hint:") {
		t.Errorf("%v", err)
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	if _, err := git.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	fake := t.TempDir()
	for version, ok := range map[string]bool{"2.38.0": true, "2.9.5": false, "3.0": true, "2.37.9": false, "2.100.0.windows.1": true} {
		write(t, fake+"/git", "#!/bin/sh\necho git version "+version+"\n")
		os.Chmod(fake+"/git", 0o755)
		t.Setenv("PATH", fake+":/usr/bin:/bin")
		if _, err := git.Version(t.Context()); (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
	}
	for _, says := range []string{"hub version 3.0", "git 3.0", "git", ""} {
		write(t, fake+"/git", "#!/bin/sh\necho "+says+"\n")
		if _, err := git.Version(t.Context()); problem.KindOf(err) != problem.Unavailable {
			t.Errorf("%q: %v", says, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := git.Version(t.Context()); problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("without git: %v", err)
	}
}

func TestHashBlobIsGitsHash(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		top := person(t, "--object-format="+format)
		write(t, top+"/a", "some\r\nbytes\x00")
		got, err := git.HashBlob(format, 12, strings.NewReader("some\r\nbytes\x00"))
		if want := run(t, top, "hash-object", "--no-filters", "a"); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", format, got, err, want)
		}
		if _, err := git.HashBlob(format, 11, strings.NewReader("some\r\nbytes\x00")); err == nil {
			t.Error("a file that grew was hashed")
		}
	}
}

func TestARepositoryIsFoundFromAnyFolderOfIt(t *testing.T) {
	for _, name := range []string{"plain", "two\nlines"} {
		top := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(top, name, "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, top, "init", "-q")
		for folder, want := range map[string]string{"": "", name: name, name + "/x": name + "/x"} {
			p, at, err := git.Find(t.Context(), filepath.Join(top, folder))
			if err != nil || at != want || p.Top != top || p.GitDir != filepath.Join(top, ".git") || p.CommonDir != p.GitDir || p.ObjectFormat != "sha1" {
				t.Errorf("from %q: %+v, %q, %v", folder, p, at, err)
			}
		}
	}
}

// Ten large files that are alike would take twenty times as much memory as one has, of each thread: an agent's to choose.
func TestNoRepositorySaysHowMuchMemoryAPackTakes(t *testing.T) {
	top := person(t)
	run(t, top, "config", "pack.windowMemory", "0")
	out, err := open(t, top).Run(t.Context(), git.Cmd{Args: []string{"config", "--get", "--type=int", "pack.windowMemory"}})
	if got := strings.TrimSpace(string(out)); err != nil || got != "134217728" {
		t.Errorf("%q, %v", got, err)
	}
}
