package workspace_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// everyWay runs one contract on each way of copying.
func everyWay(t *testing.T, contract func(t *testing.T, m *workspace.Manager)) {
	for _, s := range []workspace.Strategy{workspace.Overlay, workspace.Reflink, workspace.Copy} {
		t.Run(string(s), func(t *testing.T) {
			if s == workspace.Overlay {
				wt.CanOverlay(t)
			}
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: s})
			contract(t, m)
		})
	}
}

// base is a tree with something of everything.
var base = map[string]string{
	"README":        "read me\n",
	"run.sh":        "x+#!/bin/sh\n",
	"link":          "->README",
	"src/a.go":      "package a\n",
	"src/b.go":      "package b\n",
	"src/deep/c.go": "package c\n",
	"src/deep/d.go": "package d\n",
	"docs/x.md":     "x\n",
}

func prepare(t *testing.T, m *workspace.Manager, files map[string]string) workspace.Workspace {
	t.Helper()
	p, head := wt.Project(t, files)
	w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// show writes a diff as one line per path.
func show(d workspace.Diff) []string {
	var out []string
	for _, f := range d.Changes {
		what := string(f.Mode)
		switch {
		case f.Fact.Special != "":
			what = f.Fact.Special
		case f.Fact.Unreadable != "":
			what = "unreadable"
		case f.Deleted():
			what = "gone"
		}
		if f.Fact.HardLinks > 1 {
			what += fmt.Sprintf(" %d names", f.Fact.HardLinks)
		}
		out = append(out, fmt.Sprintf("%s %s", f.Path, what))
	}
	return out
}

func walk(t *testing.T, m *workspace.Manager, w workspace.Workspace) workspace.Diff {
	t.Helper()
	d, err := m.Walk(gittest.Context(t), w)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWalkFindsWhatChangedAndNothingElse(t *testing.T) {
	edits := map[string]struct {
		ops  []wt.Op
		want []string
	}{
		"nothing": {nil, nil},
		"write": {[]wt.Op{wt.Write("src/a.go", "package z\n"), wt.Write("new/file", "n")},
			[]string{"new/file 100644", "src/a.go 100644"}},
		"same size and time":         {[]wt.Op{wt.Exec("touch -r src/a.go /tmp/stamp.$$ && printf 'package q\n' >src/a.go && touch -r /tmp/stamp.$$ src/a.go && rm /tmp/stamp.$$")}, []string{"src/a.go 100644"}},
		"remove file":                {[]wt.Op{wt.Remove("src/a.go")}, []string{"src/a.go gone"}},
		"remove folder":              {[]wt.Op{wt.Remove("src")}, []string{"src/a.go gone", "src/b.go gone", "src/deep/c.go gone", "src/deep/d.go gone"}},
		"make and remove":            {[]wt.Op{wt.Write("x/y/z", "1"), wt.Remove("x")}, nil},
		"empty folders":              {[]wt.Op{wt.Mkdir("e/f/g")}, nil},
		"folder made anew":           {[]wt.Op{wt.Remove("src"), wt.Write("src/deep/c.go", "other\n"), wt.Write("src/n", "n")}, []string{"src/a.go gone", "src/b.go gone", "src/deep/c.go 100644", "src/deep/d.go gone", "src/n 100644"}},
		"file becomes folder":        {[]wt.Op{wt.Remove("README"), wt.Write("README/in", "1")}, []string{"README gone", "README/in 100644"}},
		"folder becomes file":        {[]wt.Op{wt.Remove("src"), wt.Write("src", "1")}, []string{"src 100644", "src/a.go gone", "src/b.go gone", "src/deep/c.go gone", "src/deep/d.go gone"}},
		"folder becomes link":        {[]wt.Op{wt.Remove("docs"), wt.Symlink("docs", "src")}, []string{"docs 120000", "docs/x.md gone"}},
		"link becomes file":          {[]wt.Op{wt.Remove("link"), wt.Write("link", "1")}, []string{"link 100644"}},
		"link becomes folder":        {[]wt.Op{wt.Remove("link"), wt.Write("link/a", "1")}, []string{"link gone", "link/a 100644"}},
		"rename":                     {[]wt.Op{wt.Rename("src/a.go", "src/z.go")}, []string{"src/a.go gone", "src/z.go 100644"}},
		"rename folder":              {[]wt.Op{wt.Rename("src/deep", "flat")}, []string{"flat/c.go 100644", "flat/d.go 100644", "src/deep/c.go gone", "src/deep/d.go gone"}},
		"executable":                 {[]wt.Op{wt.Chmod("README", 0o755), wt.Chmod("run.sh", 0o644)}, []string{"README 100755", "run.sh 100644"}},
		"fifo":                       {[]wt.Op{wt.Fifo("pipe")}, []string{"pipe fifo"}},
		"fifo in the place of files": {[]wt.Op{wt.Remove("src"), wt.Fifo("src")}, []string{"src fifo", "src/a.go gone", "src/b.go gone", "src/deep/c.go gone", "src/deep/d.go gone"}},
		"socket":                     {[]wt.Op{wt.Socket("s")}, []string{"s socket"}},
		"hard links":                 {[]wt.Op{wt.Write("one", "1"), wt.Link("one", "two")}, []string{"one 100644 2 names", "two 100644 2 names"}},
		"closed folders":             {[]wt.Op{wt.Write("src/closed/in/x", "1"), wt.Chmod("src/closed/in", 0), wt.Chmod("src/closed", 0o200)}, []string{"src/closed/in/x 100644"}},
		"closed top":                 {[]wt.Op{wt.Write("x", "1"), wt.Chmod(".", 0)}, []string{"x 100644"}},
		"odd names":                  {[]wt.Op{wt.Write("-rf", "1"), wt.Write("a\nb", "1"), wt.Write("\x1b[31m", "1"), wt.Write("\xff\xfe", "1"), wt.Write(" ", "1")}, []string{"\x1b[31m 100644", "  100644", "-rf 100644", "a\nb 100644", "\xff\xfe 100644"}},
		"git spellings":              {[]wt.Op{wt.Write("src/.git/config", "1"), wt.Write(".GIT/config", "1")}, []string{".GIT/config 100644", "src/.git/config 100644"}},
	}
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := wt.Project(t, base)
		for _, name := range slices.Sorted(maps.Keys(edits)) {
			t.Run(name, func(t *testing.T) {
				spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
				w, err := m.MakeAnew(gittest.Context(t), spec)
				if err != nil {
					t.Fatal(err)
				}
				wt.Edit(t, w, edits[name].ops...)
				d := walk(t, m, w)
				if got := show(d); !slices.Equal(got, edits[name].want) {
					// What was touched and is as before may be told too; here nothing is.
					t.Errorf("found %q, want %q", got, edits[name].want)
				}
			})
		}
	})
}

func TestAMarkThatAnAgentSetsHidesNothing(t *testing.T) {
	wt.CanOverlay(t)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	w := prepare(t, m, base)
	wt.Edit(t, w,
		wt.Write("new/x", "1"),
		wt.Write("new/empty", ""),
		wt.Write("src/a.go", "changed\n"),
		wt.Setxattr("new", "user.overlay.opaque", "y"),
		wt.Setxattr("src", "user.overlay.opaque", "x"),
		wt.Setxattr("src", "user.overlay.redirect", "/docs"),
		wt.Setxattr("new/empty", "user.overlay.whiteout", "y"),
		wt.Setxattr("src/a.go", "user.overlay.metacopy", ""),
	)
	want := []string{"new/empty 100644", "new/x 100644", "src/a.go 100644"}
	if got := show(walk(t, m, w)); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestTheModeOfAClosedFolderIsAsItWas(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		t.Cleanup(func() {
			if err := m.Remove(context.Background(), w.Spec.Change); err != nil {
				t.Error(err)
			}
		})
		wt.Edit(t, w, wt.Write("closed/x", "1"), wt.Chmod("closed", 0))
		walk(t, m, w)
		side := w.Tree.Dir
		if side == "" {
			side = w.Tree.Upper
		}
		st, err := os.Stat(filepath.Join(side, "closed"))
		if err != nil || st.Mode().Perm() != 0 {
			t.Errorf("mode is %v, %v", st.Mode(), err)
		}
		r, err := m.Reader(w)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if f, size, err := r.Open("closed/x"); err != nil || size != 1 {
			t.Errorf("open: size %d, %v", size, err)
		} else {
			f.Close()
		}
	})
}

func TestReaderOpensNothingButRegularFilesBelowTheTop(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		wt.Edit(t, w, wt.Fifo("pipe"), wt.Symlink("etc", "/etc"), wt.Symlink("passwd", "/etc/passwd"), wt.Symlink("up", ".."))
		r, err := m.Reader(w)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, path := range []string{"pipe", "etc/passwd", "passwd", "up/workspace.json", "../workspace.json", "/etc/passwd", "."} {
			if f, _, err := r.Open(path); err == nil {
				f.Close()
				t.Errorf("opened %q", path)
			}
		}
	})
}

func TestLimitsAreToldByName(t *testing.T) {
	wt.CanOverlay(t)
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay, Limits: workspace.Limits{Entries: 10, Depth: 3}})
	w := prepare(t, m, base)
	wt.Edit(t, w, wt.Write("a/b/c/d/e", "1"))
	d := walk(t, m, w)
	if len(d.Changes) != 1 || d.Changes[0].Path != "a/b/c/d" || !strings.Contains(d.Changes[0].Fact.Unreadable, "more than 3 deep") {
		t.Errorf("found %+v", d.Changes)
	}
	wt.Edit(t, w, wt.Exec("for i in 1 2 3 4 5 6 7 8 9 10; do echo >$i; done"))
	if _, err := m.Walk(gittest.Context(t), w); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "10 entries") {
		t.Errorf("error is %v", err)
	}
	m = workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay, Limits: workspace.Limits{PathBytes: 1000}})
	w = prepare(t, m, base)
	wt.Edit(t, w, wt.Write(strings.Repeat("long", 60)+"/x/y/z", "1"))
	if _, err := m.Walk(gittest.Context(t), w); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	wt.Edit(t, w, wt.Write(strings.Repeat("long", 60)+"/more", "1"))
	if _, err := m.Walk(gittest.Context(t), w); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "1000 bytes together (limit path bytes)") {
		t.Errorf("error is %v", err)
	}
}

// What links lead to is kept in memory as paths are, and no rule about sizes of files counts it.
func TestWhatLinksLeadToCountsAsPathsDo(t *testing.T) {
	limits := workspace.Limits{PathBytes: 10_000}
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Copy, Limits: limits})
	w := prepare(t, m, base)
	target := strings.Repeat("a/", 2000)
	for i := range 2 {
		wt.Edit(t, w, wt.Symlink(strconv.Itoa(i), target))
	}
	if _, err := m.Walk(gittest.Context(t), w); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	for i := range 4 {
		wt.Edit(t, w, wt.Symlink("more"+strconv.Itoa(i), target))
	}
	if _, err := m.Walk(gittest.Context(t), w); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "10000 bytes together (limit path bytes)") {
		t.Errorf("error is %v", err)
	}
}

// Git tries the ways in which stars may be filled one after the other.
func TestAPatternCannotHangAWalk(t *testing.T) {
	files := maps.Clone(base)
	files[".gitignore"] = "/" + strings.Repeat("**/*a*/", 30) + "b\n"
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Copy, Limits: workspace.Limits{IgnoreTime: 500 * time.Millisecond}})
	w := prepare(t, m, files)
	wt.Edit(t, w, wt.Write(strings.Repeat("a/", 100)+"c", "1"))
	if _, err := m.Walk(gittest.Context(t), w); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "its patterns take too long to match") {
		t.Errorf("error is %v", err)
	}
}

func TestIgnoredAndUntrackedFilesAreLeftOver(t *testing.T) {
	files := maps.Clone(base)
	files[".gitignore"] = "out/\n*.log\n/src/deep/*\n"
	files["src/.gitignore"] = "!kept.log\n"
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, files)
		wt.Edit(t, w,
			wt.Write("out/a", "12"), wt.Write("out/b/c", "3"), wt.Fifo("out/pipe"), wt.Symlink("out/l", "/etc"),
			wt.Write("x.log", "4"), wt.Write("src/kept.log", "5"),
			wt.Write("src/deep/c.go", "tracked\n"), wt.Write("src/deep/new.go", "6"),
			wt.Remove("link"), wt.Write("link/x.log", "7"), wt.Write("link/y", "8"),
			wt.Write("sub/.git/x.log", "9"),
			wt.Write(".gitignore", "nothing\n"),
			wt.Write("nothing", "counts from the next base on"),
		)
		d := walk(t, m, w)
		want := []string{".gitignore 100644", "link gone", "link/y 100644", "nothing 100644", "src/deep/c.go 100644", "src/kept.log 100644"}
		if got := show(d); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
		left := []workspace.LeftOver{{"link", 1, 1}, {"out", 4, 3}, {"src", 1, 1}, {"sub", 1, 1}, {".", 1, 1}}
		if !slices.Equal(d.LeftOver, left) {
			t.Errorf("left over %v, want %v", d.LeftOver, left)
		}
		w.Spec.IncludeIgnored = []string{"out/**/c", "*.log"}
		want = append(want, "out/b/c 100644", "x.log 100644")
		slices.Sort(want)
		if got := show(walk(t, m, w)); !slices.Equal(got, want) {
			t.Errorf("with globs found %q, want %q", got, want)
		}
	})
}

func TestWhatAnAgentPutsInItsOwnGitDirectoryIsSaidToBeLeftOut(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		if d := walk(t, m, w); len(d.LeftOver) != 0 {
			t.Errorf("left over before anything was done: %v", d.LeftOver)
		}
		for _, name := range []string{"hooks/pre-commit", "info/exclude"} {
			path := filepath.Join(w.Tree.GitDir, name)
			disktest.Put(t, path, "12345", 0o755)
		}
		if d := walk(t, m, w); len(d.Changes) != 0 || !slices.Equal(d.LeftOver, []workspace.LeftOver{{".git", 2, 10}}) {
			t.Errorf("found %q, left over %v", show(d), d.LeftOver)
		}
		if err := os.RemoveAll(filepath.Join(w.Tree.GitDir, "hooks")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc", filepath.Join(w.Tree.GitDir, "hooks")); err != nil {
			t.Fatal(err)
		}
		if d := walk(t, m, w); !slices.Equal(d.LeftOver, []workspace.LeftOver{{".git", 1, 5}}) {
			t.Errorf("through a link: %v", d.LeftOver)
		}
	})
}

func TestTheProjectsOwnExcludeIsHonoured(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := wt.Project(t, base)
		disktest.Put(t, filepath.Join(p.GitDir, "info", "exclude"), "mine\n", 0o644)
		w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		wt.Edit(t, w, wt.Write("mine", "1"), wt.Write("yours", "1"))
		if got := show(walk(t, m, w)); !slices.Equal(got, []string{"yours 100644"}) {
			t.Errorf("found %q", got)
		}
	})
}
