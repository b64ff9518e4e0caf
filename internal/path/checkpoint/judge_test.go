package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
)

// named lists violations as `file constraint`.
func named(all []policy.Violation) []string { return broken(checkpoint.Checkpoint{Violations: all}) }

// What was valid when it was taken is judged by the rules of now, and of the objects alone.
func TestACommitIsJudgedByAllThatItsObjectsSay(t *testing.T) {
	h := wt.NewHistory(t)
	files := map[string]string{"README": "read me\n", "run.sh": "x+#!/bin/sh\n"}
	from := h.Commit(files)
	large := strings.Repeat("x", 101)
	files["one"], files["again"], files["small"] = large, large, strings.Repeat("x", 100)
	files["inside"], files["outside"], files["new.sh"], files["src/secret.txt"] = "->README", "->../../etc/passwd", "x+#!/bin/sh\n", "key = "+awsKey+"\n"
	delete(files, "run.sh")
	to := h.Commit(files)
	for name, c := range map[string]struct {
		rules policy.Rules
		want  []string
	}{
		"no links, small files": {policy.Rules{FileBytesMax: 100, Executables: policy.Review},
			[]string{"again file_bytes", "inside symlink", "one file_bytes", "outside symlink", "src/secret.txt secret"}},
		"links that stay inside": {policy.Rules{FileBytesMax: 1000, AllowSymlinks: true, Executables: policy.Review}, []string{"outside symlink", "src/secret.txt secret"}},
		"no executables":         {policy.Rules{AllowSymlinks: true, Executables: policy.Refuse}, []string{"new.sh executable", "outside symlink", "src/secret.txt secret"}},
		"all together too large": {policy.Rules{AllowSymlinks: true, ChangeBytesMax: 300}, []string{" change_bytes", "outside symlink", "src/secret.txt secret"}},
	} {
		got, err := checkpoint.Judge(gittest.Context(t), h.Host, from, to, policy.Plan{}, c.rules, nil, nil)
		if err != nil || !slices.Equal(named(got), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, named(got), err, c.want)
		}
	}

	plan := policy.Plan{Forbid: []string{"run.sh"}}
	load := func(_ context.Context, _ git.Dir, of git.OID, edits []git.Edit) ([]policy.Violation, error) {
		return []policy.Violation{{File: "rules", Constraint: policy.Rule, Message: fmt.Sprint(of == to, len(edits))}}, nil
	}
	got, err := checkpoint.Judge(gittest.Context(t), h.Host, from, to, plan, policy.Rules{AllowSymlinks: true}, nil, load)
	if want := []string{"outside symlink", "rules " + policy.Rule, "run.sh plan_forbid", "src/secret.txt secret"}; err != nil || !slices.Equal(named(got), want) || !slices.ContainsFunc(got, func(v policy.Violation) bool { return v.Message == "true 8" }) {
		t.Errorf("%+v, %v; want %q", got, err, want)
	}
}

// What cannot be read is no verdict.
func TestACommitOfWhichAFileIsMissingIsNotJudged(t *testing.T) {
	p, head := wt.Project(t, base)
	lost := strings.Repeat("1", 40)
	wt.Git(t, p.Top, "update-index", "--add", "--cacheinfo", "100644,"+lost+",lost")
	to := wt.Git(t, p.Top, "commit-tree", "-p", string(head), "-m", "lost", wt.Git(t, p.Top, "write-tree", "--missing-ok"))
	got, err := checkpoint.Judge(gittest.Context(t), p.Common(disk.Ops{}), head, git.OID(to), policy.Plan{}, policy.Rules{}, nil, nil)
	if got != nil || err == nil || !strings.Contains(err.Error(), "read what changed") || !strings.Contains(err.Error(), lost) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestASubmoduleIsJudgedThoughItsCommitIsNotThere(t *testing.T) {
	p, head := wt.Project(t, base)
	wt.Git(t, p.Top, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",libs/sub")
	wt.Git(t, p.Top, "commit", "-qm", "sub")
	got, err := checkpoint.Judge(gittest.Context(t), p.Common(disk.Ops{}), head, git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD")), policy.Plan{}, policy.Default(), nil, nil)
	if want := []string{"libs/sub submodule"}; err != nil || !slices.Equal(named(got), want) {
		t.Errorf("%q, %v; want %q", named(got), err, want)
	}
}

func TestWhatAPersonHasNotCommittedIsLookedThroughForSecretsAlone(t *testing.T) {
	h := wt.NewHistory(t)
	head := h.Commit(map[string]string{"README": "read me\n", "old.txt": "key = " + oldKey + "\n", "keep.key": "was here\n", "link": "->README", "folder.pem/x": "1", "tool": "x+key = " + oldKey + "\n", "token": "->" + github})
	text := func(path, text string) git.Write { return git.Write{Path: path, Mode: git.File, Data: git.Text(text)} }
	for name, c := range map[string]struct {
		write git.Write
		allow []string
		want  []string
	}{
		"a key":                          {text("new.txt", "key = "+awsKey+"\n"), nil, []string{"new.txt secret"}},
		"one that the head holds":        {text("old.txt", "key = "+oldKey+"\nmore\n"), nil, nil},
		"another beside it":              {text("old.txt", "key = "+oldKey+"\nkey = "+awsKey+"\n"), nil, []string{"old.txt secret"}},
		"one that the head has not here": {text("other.txt", "key = "+oldKey+"\n"), nil, []string{"other.txt secret"}},
		"in a link's target":             {git.Write{Path: "link", Mode: git.Symlink, Data: git.Text(github)}, nil, []string{"link secret"}},
		"a link for a file":              {git.Write{Path: "old.txt", Mode: git.Symlink, Data: git.Text(github)}, nil, []string{"old.txt secret"}},
		"one of an executable":           {git.Write{Path: "tool", Mode: git.Executable, Data: git.Text("key = " + oldKey + "\nmore\n")}, nil, nil},
		"one of a link":                  {git.Write{Path: "token", Mode: git.Symlink, Data: git.Text(github)}, nil, nil},
		"a file for a link that had it":  {text("token", github), nil, []string{"token secret"}},
		"a link that is new":             {git.Write{Path: "new", Mode: git.Symlink, Data: git.Text(github)}, nil, []string{"new secret"}},
		"a place of secrets":             {text("config/secrets/a.txt", "1"), nil, []string{"config/secrets/a.txt secret_path"}},
		"one that the home allows":       {text("config/secrets/a.txt", "1"), []string{"config"}, nil},
		"one that the head has":          {text("keep.key", "other\n"), nil, nil},
		"a folder of that name":          {text("folder.pem", "1"), nil, []string{"folder.pem secret_path"}},
		"what cannot be scanned":         {text("a.zip", "PK\x03\x04 and no more"), nil, []string{"a.zip not_scanned"}},
		"what is gone":                   {git.Write{Path: "keep.key"}, nil, nil},
		"what only other rules refuse":   {git.Write{Path: "out", Mode: git.Symlink, Data: git.Text("/etc/passwd")}, nil, nil},
		"nothing odd":                    {text("README", "read me again\n"), nil, nil},
	} {
		rules := policy.Rules{AllowSecretPaths: c.allow}
		got, err := checkpoint.Uncommitted(gittest.Context(t), h.Host, head, []git.Write{text("plain", "1"), c.write}, rules, nil)
		if err != nil || !slices.Equal(named(got), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, named(got), err, c.want)
		}
		for _, v := range got {
			if strings.Contains(v.Message+v.File, awsKey) || strings.Contains(v.Message+v.File, github) {
				t.Errorf("%s: the message holds it: %q", name, v.Message)
			}
		}
	}

	several := []git.Write{{Path: "README"}, text("z", "key = "+awsKey+"\n"), {Path: "link"}, text("a", "key = "+awsKey+"\n")}
	got, err := checkpoint.Uncommitted(gittest.Context(t), h.Host, head, several, policy.Rules{}, nil)
	if want := []string{"a secret", "z secret"}; err != nil || !slices.Equal(named(got), want) {
		t.Errorf("among what is gone: %q, %v; want %q", named(got), err, want)
	}

	gone, cancel := context.WithCancel(gittest.Context(t))
	cancel()
	if _, err := checkpoint.Uncommitted(gone, h.Host, head, []git.Write{text("a", "1")}, policy.Rules{}, nil); err == nil {
		t.Error("a search that was cut short found nothing, and says so as if it had looked")
	}
}

func TestACheckpointSaysHowBadWhenAndHowMuch(t *testing.T) {
	with := ready(t)
	with.Floor, with.At = policy.Critical, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	with.Plan.Forbid = []string{"src/**"}
	wt.Edit(t, with.Workspace, wt.Write("src/a.go", "1"), wt.Symlink("l", "/etc/passwd"), wt.Write("ok", "1"))
	taken := take(t, with)
	for _, v := range taken.Checkpoint.Violations {
		if v.Severity != policy.Critical {
			t.Errorf("%s counts as %s", v.File, v.Severity)
		}
	}
	if !slices.Equal(taken.Breaking, []string{"l", "src/a.go"}) || !slices.Equal(taken.Links, []string{"l"}) || taken.Checkpoint.SinceLast != 3 {
		t.Errorf("breaking %q, links %q, %d since the last", taken.Breaking, taken.Links, taken.Checkpoint.SinceLast)
	}
	if at := wt.Git(t, with.Host.Path, "show", "-s", "--format=%at %ct", string(taken.Checkpoint.Commit)); at != fmt.Sprintf("%d %d", with.At.Unix(), with.At.Unix()) {
		t.Errorf("its commit is of %s", at)
	}

	with.Previous = &taken.Checkpoint
	wt.Edit(t, with.Workspace, wt.Remove("l"))
	if next := take(t, with); next.Checkpoint.SinceLast != 1 || len(next.Edits) != 2 || len(next.Links) != 0 {
		t.Errorf("%d since the last, %d in all, links %q", next.Checkpoint.SinceLast, len(next.Edits), next.Links)
	}
}

// A checkpoint that nobody judged is no yes.
func TestWhatIsNotJudgedIsSkippedAndNeverOffered(t *testing.T) {
	for name, path := range map[string]string{"it breaks a rule": "src/a.go", "it breaks none": "ok"} {
		with := ready(t)
		with.Unjudged, with.Plan.Forbid = true, []string{"src/**"}
		wt.Edit(t, with.Workspace, wt.Write(path, "1"))
		c := take(t, with).Checkpoint
		if c.Status != checkpoint.Skipped || len(c.Violations) != 0 || c.Severity != "" {
			t.Errorf("%s: %+v", name, c)
		}
		if refs, err := with.Host.Refs(gittest.Context(t), repository.RefRoot(change)); err != nil || refs[checkpoint.ValidRef(change)] != "" || refs[checkpoint.Ref(change, 1)] != c.Commit {
			t.Errorf("%s: refs %v, %v", name, refs, err)
		}
	}
}

func TestFoldersOfWhatIsLeftOverAreAddedUpWhereTheyAreMany(t *testing.T) {
	for _, n := range []int{200, 201, 250} {
		with := readyOn(t, map[string]string{".gitignore": "out*/\n"})
		wt.Edit(t, with.Workspace, wt.Exec(fmt.Sprintf("for i in $(seq %d); do mkdir out$i; echo 123 >out$i/f; done", n)))
		left := take(t, with).Checkpoint.LeftOver
		files, bytes := 0, int64(0)
		for _, l := range left {
			files += l.Files
			bytes += l.Bytes
		}
		if want := min(n, 201); len(left) != want || files != n || bytes != int64(4*n) {
			t.Fatalf("of %d folders %d are named, with %d files of %d bytes", n, len(left), files, bytes)
		}
		if last := left[len(left)-1].Folder; n > 200 && last != fmt.Sprintf("%d more folders", n-200) {
			t.Errorf("of %d the last is %q", n, last)
		}
	}
}

// Whoever judges gives back what they read through: else each look would leave a process or a file behind.
func TestToJudgeAgainLeavesNothingOpen(t *testing.T) {
	h := wt.NewHistory(t)
	from := h.Commit(map[string]string{"README": "read me\n"})
	to := h.Commit(map[string]string{"README": "read me again\n", "new": "1"})
	with := ready(t)
	wt.Edit(t, with.Workspace, wt.Write("new", "1"))
	ctx := gittest.Context(t)
	for name, judge := range map[string]func() error{
		"a commit": func() error {
			_, err := checkpoint.Judge(ctx, h.Host, from, to, policy.Plan{}, policy.Rules{}, nil, nil)
			return err
		},
		"what is not committed": func() error {
			write := git.Write{Path: "README", Mode: git.File, Data: git.Text("read me again\n")}
			_, err := checkpoint.Uncommitted(ctx, h.Host, from, []git.Write{write}, policy.Rules{}, nil)
			return err
		},
		"a workspace": func() error {
			_, err := checkpoint.Take(ctx, with)
			return err
		},
	} {
		if err := judge(); err != nil {
			t.Fatal(err)
		}
		before, open := children(t), filesOpen(t)
		for range 3 {
			if err := judge(); err != nil {
				t.Fatal(err)
			}
		}
		if after := children(t); after > before {
			t.Errorf("%s leaves %d processes", name, after-before)
		}
		if after := filesOpen(t); after > open {
			t.Errorf("%s leaves %d files open", name, after-open)
		}
	}
}

// children says how many processes this one has that run.
func children(t *testing.T) (n int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		raw, _ := os.ReadFile(list) // a thread may have ended meanwhile
		n += len(strings.Fields(string(raw)))
	}
	return n
}

// filesOpen says how many files this process has open.
func filesOpen(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
