package checkpoint_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
	"sallyport/internal/who/person/persontest"
)

const change = "chg-00000001"

var base = map[string]string{
	".gitignore": "out/\n", "README": "read me\n", "src/a.go": "package a\n", "src/b.go": "package b\n", "run.sh": "x+#!/bin/sh\n",
}

// ready is a workspace on base and what a checkpoint of it takes.
func ready(t testing.TB) checkpoint.Taking {
	t.Helper()
	return readyOn(t, base)
}

// readyOn is ready on files.
func readyOn(t testing.TB, files map[string]string) checkpoint.Taking {
	t.Helper()
	wt.CanOverlay(t)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	p, head := wt.Project(t, files)
	w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: change, Project: p, Base: head, Branch: "main", Owner: wt.Self()})
	if err != nil {
		t.Fatal(err)
	}
	host, err := m.EnsureRepository(gittest.Context(t), p)
	if err != nil {
		t.Fatal(err)
	}
	return taking(m, host, w)
}

func take(t *testing.T, with checkpoint.Taking) checkpoint.Taken {
	t.Helper()
	taken, err := checkpoint.Take(gittest.Context(t), with)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// broken lists violations as `file constraint`.
func broken(c checkpoint.Checkpoint) []string {
	var out []string
	for _, v := range c.Violations {
		out = append(out, v.File+" "+v.Constraint)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func paths(edits []git.Edit) []string {
	var out []string
	for _, e := range edits {
		out = append(out, e.Path)
	}
	return out
}

func TestAValidCheckpointIsKeptAndPromoted(t *testing.T) {
	with := ready(t)
	wt.Edit(t, with.Workspace, wt.Write("src/a.go", "package z\n"), wt.Rename("README", "docs/README"), wt.Write("out/x", "left over"), wt.Chmod("src/b.go", 0o600))
	taken := take(t, with)
	c := taken.Checkpoint
	if c.Status != checkpoint.Valid || c.Number != 1 || c.Previous != "" || c.Base != with.Workspace.Spec.Base {
		t.Errorf("checkpoint is %+v", c)
	}
	want := []string{"README", "docs/README", "src/a.go"}
	if c.FilesTotal != len(want) || !slices.Equal(c.FilesChanged, want) || !slices.Equal(paths(taken.Edits), want) {
		t.Errorf("changed %q, edits %q", c.FilesChanged, paths(taken.Edits))
	}
	if len(c.LeftOver) != 1 || c.LeftOver[0].Folder != "out" || c.LeftOver[0].Files != 1 {
		t.Errorf("left over %v", c.LeftOver)
	}
	refs, err := with.Host.Refs(gittest.Context(t), repository.RefRoot(change))
	if err != nil || refs[checkpoint.Ref(change, 1)] != c.Commit || refs[checkpoint.ValidRef(change)] != c.Commit {
		t.Errorf("refs %v, %v", refs, err)
	}

	var ops []string
	watched := with
	watched.Host.Ops = disk.Ops{Around: func(op string, do func() error) error {
		ops = append(ops, op)
		return do()
	}}
	if again := take(t, watched); again.Checkpoint.Commit != c.Commit || again.Checkpoint.ID != c.ID || slices.Contains(ops, "checkpoint:promote") {
		t.Errorf("taken twice: %s and %s, by %q", c.Commit, again.Checkpoint.Commit, ops)
	}

	with.Previous = &c
	wt.Edit(t, with.Workspace, wt.Write("src/a.go", "package a\n"), wt.Remove("docs"), wt.Write("README", "read me\n"))
	next := take(t, with)
	if next.Checkpoint.Number != 2 || next.Checkpoint.Previous != c.ID || len(next.Edits) != 0 {
		t.Errorf("the second is %+v with %v", next.Checkpoint, next.Edits)
	}
	if parent, _ := with.Host.Resolve(gittest.Context(t), string(next.Checkpoint.Commit)+"^"); parent != c.Commit {
		t.Errorf("parent is %s", parent)
	}
	if base, _ := with.Host.Tree(gittest.Context(t), c.Base); next.Checkpoint.Tree != base {
		t.Errorf("tree is %s, want the base's %s", next.Checkpoint.Tree, base)
	}
}

func TestWhatTheRulesIncludeIsTakenThoughGitIgnoresIt(t *testing.T) {
	with := ready(t)
	with.IncludeIgnored = []string{"out/kept"}
	wt.Edit(t, with.Workspace, wt.Write("out/kept", "1"), wt.Write("out/x", "left over"))
	taken := take(t, with)
	if want := []string{"out/kept"}; !slices.Equal(taken.Checkpoint.FilesChanged, want) || !slices.Equal(paths(taken.Edits), want) {
		t.Errorf("changed %q, edits %q", taken.Checkpoint.FilesChanged, paths(taken.Edits))
	}
	if left := taken.Checkpoint.LeftOver; len(left) != 1 || left[0].Files != 1 {
		t.Errorf("left over %+v", left)
	}
}

func TestEveryPathIsJudgedAndAnInvalidCheckpointIsKeptButNotPromoted(t *testing.T) {
	persontest.Ordinary(t, "files and folders without rights are shut to their owner")
	for name, c := range map[string]struct {
		ops  []wt.Op
		plan policy.Plan
		want []string // violations
		tree []string // paths that differ in the tree
	}{
		"fifo":               {ops: []wt.Op{wt.Fifo("pipe")}, want: []string{"pipe special_file"}},
		"fifo for a file":    {ops: []wt.Op{wt.Remove("README"), wt.Fifo("README")}, want: []string{"README special_file"}, tree: []string{"README"}},
		"fifo for a folder":  {ops: []wt.Op{wt.Remove("src"), wt.Fifo("src")}, want: []string{"src special_file"}, tree: []string{"src/a.go", "src/b.go"}},
		"socket":             {ops: []wt.Op{wt.Socket("s")}, want: []string{"s special_file"}},
		"hard link":          {ops: []wt.Op{wt.Write("one", "1"), wt.Link("one", "two")}, want: []string{"one hard_link", "two hard_link"}, tree: []string{"one", "two"}},
		"hard link to same":  {ops: []wt.Op{wt.Mkdir("out"), wt.Link("README", "out/x")}, want: []string{"README hard_link"}},
		"symlink":            {ops: []wt.Op{wt.Symlink("l", "/etc/passwd")}, want: []string{"l symlink"}, tree: []string{"l"}},
		"git inside":         {ops: []wt.Op{wt.Write("src/.git/config", "1")}, want: []string{"src/.git/config git_dir"}},
		"git in capitals":    {ops: []wt.Op{wt.Write(".GIT/config", "1"), wt.Write("git~1/x", "1")}, want: []string{".GIT/config git_dir", "git~1/x git_dir"}},
		"not UTF-8":          {ops: []wt.Op{wt.Write("\xff", "1")}, want: []string{`\xff name`}, tree: []string{"\xff"}},
		"control characters": {ops: []wt.Op{wt.Write("\x1b[31m", "1")}, want: []string{"\x1b[31m name"}, tree: []string{"\x1b[31m"}},
		"setuid":             {ops: []wt.Op{wt.Write("s", "1"), wt.Chmod("s", 0o4755)}, want: []string{"s setid"}, tree: []string{"s"}},
		"setuid on the same": {ops: []wt.Op{wt.Chmod("README", 0o4644)}, want: []string{"README setid"}},
		"too large":          {ops: []wt.Op{wt.Exec("truncate -s 1T sparse")}, want: []string{" change_bytes", "sparse file_bytes"}},
		"forbidden":          {ops: []wt.Op{wt.Write("src/a.go", "1"), wt.Write("ok", "1")}, plan: policy.Plan{Forbid: []string{"src/**"}}, want: []string{"src/a.go plan_forbid"}, tree: []string{"ok", "src/a.go"}},
		"deletion forbidden": {ops: []wt.Op{wt.Remove("src")}, plan: policy.Plan{Forbid: []string{"src/b.go"}}, want: []string{"src/b.go plan_forbid"}, tree: []string{"src/a.go", "src/b.go"}},
		"rename forbidden":   {ops: []wt.Op{wt.Rename("src/a.go", "z.go")}, plan: policy.Plan{Forbid: []string{"src/**"}}, want: []string{"src/a.go plan_forbid"}, tree: []string{"src/a.go", "z.go"}},
		"case":               {ops: []wt.Op{wt.Write("readme", "1")}, want: []string{"readme case_collision"}, tree: []string{"readme"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := ready(t)
			with.Plan = c.plan
			wt.Edit(t, with.Workspace, c.ops...)
			taken := take(t, with)
			if got := broken(taken.Checkpoint); !slices.Equal(got, c.want) {
				t.Errorf("violations %q, want %q", got, c.want)
			}
			if got := paths(taken.Edits); !slices.Equal(got, c.tree) {
				t.Errorf("edits %q, want %q", got, c.tree)
			}
			if taken.Checkpoint.Status != checkpoint.Invalid || taken.Checkpoint.Severity == "" {
				t.Errorf("status %q, severity %q", taken.Checkpoint.Status, taken.Checkpoint.Severity)
			}
			refs, err := with.Host.Refs(gittest.Context(t), repository.RefRoot(change))
			if err != nil || len(refs) != 1 || refs[checkpoint.Ref(change, 1)] != taken.Checkpoint.Commit {
				t.Errorf("refs %v, %v", refs, err)
			}
		})
	}
}

func TestWhatIsLeftOutOfTheTreeIsNamedEvenIfNoRuleNamesIt(t *testing.T) {
	persontest.Ordinary(t, "devices cannot be made, and folders without rights are shut")
	with := ready(t)
	with.Rules.ChangeBytesMax = 10
	wt.Edit(t, with.Workspace, wt.Write("a", "123456"), wt.Write("b", "123456"))
	taken := take(t, with)
	if got := broken(taken.Checkpoint); !slices.Equal(got, []string{" change_bytes", "b unreadable"}) {
		t.Errorf("violations %q", got)
	}
	if got := paths(taken.Edits); !slices.Equal(got, []string{"a"}) {
		t.Errorf("edits %q", got)
	}
}

func TestOneForbiddenFileAmongTenThousandIsNamed(t *testing.T) {
	with := ready(t)
	with.Plan.Forbid = []string{"**/secret.txt"}
	wt.Edit(t, with.Workspace, wt.Exec(`mkdir -p many/d1 many/d2; i=0; while [ $i -lt 5000 ]; do echo $i >many/d1/$i; echo $i >many/d2/$i; i=$((i+1)); done; echo >many/d2/secret.txt`))
	taken := take(t, with)
	if got := broken(taken.Checkpoint); !slices.Equal(got, []string{"many/d2/secret.txt plan_forbid"}) {
		t.Errorf("violations %q", got)
	}
	if len(taken.Edits) != 10_001 {
		t.Errorf("%d edits", len(taken.Edits))
	}
}

func TestASessionRunsAgainOnEveryWayOut(t *testing.T) {
	persontest.Ordinary(t, "a session is frozen without control groups")
	sentinel := errors.New("no")
	for name, c := range map[string]struct {
		freeze error
		spoil  bool
		thaw   error
		fails  bool
	}{
		"taken": {}, "not frozen": {freeze: sentinel, fails: true}, "not walked": {spoil: true, fails: true}, "not thawed": {thaw: sentinel, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			with := ready(t)
			thawed := 0
			with.Freeze = func(context.Context) error { return c.freeze }
			with.Thaw = func() error { thawed++; return c.thaw }
			if c.spoil {
				if err := with.Workspaces.Remove(gittest.Context(t), change); err != nil {
					t.Fatal(err)
				}
			}
			taken, err := checkpoint.Take(gittest.Context(t), with)
			if (err != nil) != c.fails || thawed != 1 {
				t.Errorf("error %v, thawed %d times", err, thawed)
			}
			if err != nil && taken.Checkpoint.Status != "" {
				t.Errorf("a verdict %q beside the error", taken.Checkpoint.Status)
			}
		})
	}
}

func TestACheckpointReadsBackByteForByte(t *testing.T) {
	persontest.Ordinary(t, "a workspace is mounted in a name space of the user's own")
	with := ready(t)
	body := "\x00\r\n\xff" + strings.Repeat("long line ", 10_000)
	wt.Edit(t, with.Workspace, wt.Write("bin", body), wt.Write("empty", ""), wt.Write("closed", "1"), wt.Chmod("closed", 0))
	taken := take(t, with)
	for path, want := range map[string]string{"bin": body, "empty": "", "closed": "1"} {
		found, err := with.Host.Lookup(gittest.Context(t), taken.Checkpoint.Commit, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		r, err := with.Host.Blob(gittest.Context(t), found[0].OID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, %v", path, len(got), err)
		}
	}
}

func TestPowerLostDuringACheckpointChangesNothingThatCounts(t *testing.T) {
	with := ready(t)
	wt.Edit(t, with.Workspace, wt.Write("new", "1"), wt.Write("closed/x", "1"), wt.Chmod("closed", 0))
	t.Cleanup(func() { // else an ordinary user's t.TempDir cannot remove it
		_ = os.Chmod(filepath.Join(with.Workspace.Tree.Upper, "closed"), 0o700)
	})
	whole := take(t, with)
	clean := func() {
		for _, ref := range []string{checkpoint.Ref(change, 1), checkpoint.ValidRef(change)} {
			refs, err := with.Host.Refs(gittest.Context(t), ref)
			if err != nil {
				t.Fatal(err)
			}
			if err := with.Host.UpdateRef(gittest.Context(t), "test:clean", ref, "", refs[ref]); err != nil {
				t.Fatal(err)
			}
		}
	}
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		clean()
		weak := with
		weak.Host.Ops = c.Ops()
		if _, err := disktest.Run(func() error { _, err := checkpoint.Take(gittest.Context(t), weak); return err }); err != nil {
			t.Fatal(err)
		}
		refs, err := with.Host.Refs(gittest.Context(t), repository.RefRoot(change))
		if err != nil {
			t.Fatal(err)
		}
		for ref, oid := range refs {
			if oid != whole.Checkpoint.Commit {
				t.Errorf("%s is %s", ref, oid)
			}
		}
		gittest.Restart(t)
		if again := take(t, with); again.Checkpoint.Commit != whole.Checkpoint.Commit || again.Checkpoint.Status != checkpoint.Valid {
			t.Errorf("after the crash: %+v", again.Checkpoint)
		}
	})
}
