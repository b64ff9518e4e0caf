package proposal_test

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/path/proposal"
)

// Every way in which an edit meets a branch that moved, at one path each: what the file is then, and what the agent is told.
func TestAChangeIsDoneAgainPathByPath(t *testing.T) {
	dir := repository(t)
	file := func(data string) content { return content{git.File, data} }
	long := func(first, last string) content { return file(first + strings.Repeat("a line\n", 9) + last) }
	large := strings.Repeat("0123456\n", 1<<17) // exactly as large as is merged
	fits := func(first, last string) content { return file(first + large[:len(large)-32] + last) }
	var none content
	type way struct {
		base, here, there content
		want              content
		why               proposal.Misfit // "" = it applies, or is there
	}
	ways := map[string]way{
		"came":            {none, file("1"), none, file("1"), ""},
		"went":            {file("1"), none, file("1"), none, ""},
		"changed":         {file("1"), file("2"), file("1"), file("2"), ""},
		"run":             {file("1"), content{git.Executable, "1"}, file("1"), content{git.Executable, "1"}, ""},
		"theirs":          {file("1"), file("1"), file("2"), file("2"), ""},
		"same":            {file("1"), file("2"), file("2"), file("2"), ""},
		"wentboth":        {file("1"), none, none, none, ""},
		"wentthere":       {file("1"), file("2"), none, none, "you changed it, and it was deleted there"},
		"wenthere":        {file("1"), none, file("2"), file("2"), "you deleted it, and it was changed there"},
		"joined":          {long("a\n", "z\n"), long("b\n", "z\n"), long("a\n", "y\n"), long("b\n", "y\n"), ""},
		"lines":           {file("a\n"), file("b\n"), file("c\n"), file("c\n"), "both sides changed the same lines"},
		"camebothother":   {none, file("b\n"), file("c\n"), file("c\n"), "both sides changed the same lines"},
		"link":            {content{git.Symlink, "a"}, content{git.Symlink, "b"}, content{git.Symlink, "c"}, content{git.Symlink, "c"}, "both sides changed it, and it is no ordinary file"},
		"waslink":         {content{git.Symlink, "a"}, file("b"), file("c"), file("c"), "both sides changed it, and it is no ordinary file"},
		"linkthere":       {file("a"), file("b"), content{git.Symlink, "c"}, content{git.Symlink, "c"}, "both sides changed it, and it is no ordinary file"},
		"data":            {file("\x00a"), file("\x00b"), file("\x00c"), file("\x00c"), "both sides changed it, and it cannot be merged line by line"},
		"full":            {fits("0000000\n", "0000000\n"), fits("1111111\n", "0000000\n"), fits("0000000\n", "2222222\n"), fits("1111111\n", "2222222\n"), ""},
		"toolarge":        {file(large + "a\n"), file(large + "b\n"), file("c\n" + large + "a\n"), file("c\n" + large + "a\n"), "both sides changed it, and it is too large to merge"},
		"folderthere":     {file("1"), file("2"), none, none, "a folder is there now"},
		"folderthere/x":   {none, none, file("x"), file("x"), ""},
		"wentfolder":      {file("1"), none, none, none, ""},
		"wentfolder/x":    {none, none, file("x"), file("x"), ""},
		"deep/folder/a":   {file("1"), file("2"), none, none, "a file is there now where its folder was"},
		"deep/folder":     {none, none, file("f"), file("f"), ""},
		"becamefolder":    {file("1"), none, file("1"), none, ""},
		"changedfolder":   {file("1"), none, file("2"), file("2"), "you deleted it, and it was changed there"},
		"changedfolder/x": {none, file("x"), none, none, "a file is there now where its folder was"},
		"new/folder/x":    {none, file("x"), none, file("x"), ""},
		"becamefolder/in": {none, file("x"), none, file("x"), ""},
	}
	side := func(of func(way) content) map[string]content {
		files := map[string]content{}
		for p, w := range ways {
			if c := of(w); c.mode != "" {
				files[p] = c
			}
		}
		return files
	}
	base := commit(t, dir, "refs/heads/base", git.Commit{}, side(func(w way) content { return w.base }))
	here := commit(t, dir, "refs/heads/here", git.Commit{}, side(func(w way) content { return w.here }))
	there := commit(t, dir, "refs/heads/there", git.Commit{}, side(func(w way) content { return w.there }))
	edits, err := dir.Edits(t.Context(), base.OID, here.OID)
	if err != nil {
		t.Fatal(err)
	}
	again := proposal.Reapplying{Host: dir, Change: "chg-00000001", Branch: "main", Edits: edits, Onto: there.OID, Author: git.Signature{Name: "n", Email: "e", At: day}}
	got, err := proposal.Reapply(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}

	paths := slices.Sorted(maps.Keys(ways))
	found, err := dir.Lookup(t.Context(), got.Commit, paths)
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]proposal.Unapplied{}
	for _, u := range got.Not {
		why[u.Path] = u
	}
	writes := 0
	for i, p := range paths {
		w := ways[p]
		if w.want != w.there {
			writes++
		}
		if why[p].Why != w.why {
			t.Errorf("%s: the agent is told %q, want %q", p, why[p].Why, w.why)
		}
		if found[i].Mode == git.Folder {
			found[i] = git.Entry{}
		}
		if text := textOf(t, dir, found[i]); found[i].Mode != w.want.mode || text != w.want.data {
			t.Errorf("%s is %s %.40q, want %s %.40q", p, found[i].Mode, text, w.want.mode, w.want.data)
		}
	}
	if got.Onto != there.OID || got.Writes != writes {
		t.Errorf("%d writes on %s, want %d on %s", got.Writes, got.Onto, writes, there.OID)
	}
	if want := "<<<<<<< main\nc\n=======\nb\n>>>>>>> your edit\n"; why["lines"].Hunks != want {
		t.Errorf("the lines are told as %q, want %q", why["lines"].Hunks, want)
	}
	words := got.Words("main")
	for _, want := range []string{"the files are as main has them", "\n- lines: both sides changed the same lines\n<<<<<<< main\n", "\n- toolarge: both"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %q", want, words)
		}
	}

	again.Onto, again.Edits = base.OID, nil
	if none, err := proposal.Reapply(t.Context(), again); err != nil || none.Commit != base.OID || none.Writes != 0 || none.Words("main") != "All your edits were applied there." {
		t.Errorf("nothing to do again: %+v, %v", none, err)
	}
	again.Onto, again.Edits = "0123456789012345678901234567890123456789", edits
	if lost, err := proposal.Reapply(t.Context(), again); err == nil {
		t.Errorf("on a commit that is not there: %+v", lost)
	}
}

// What both sides say of one file, and of all, is bounded: it is an agent's and a branch's words, and goes into a prompt.
func TestWhatIsToldOfAMergeIsBounded(t *testing.T) {
	dir := repository(t)
	var sides [3]map[string]content
	for i := range sides {
		sides[i] = map[string]content{}
		for _, p := range "abcdefghij" {
			sides[i][string(p)] = content{git.File, strings.Repeat(string(rune('0'+i))+" a line\n", 1000)}
		}
	}
	base := commit(t, dir, "refs/heads/base", git.Commit{}, sides[0])
	here := commit(t, dir, "refs/heads/here", git.Commit{}, sides[1])
	there := commit(t, dir, "refs/heads/there", git.Commit{}, sides[2])
	edits, err := dir.Edits(t.Context(), base.OID, here.OID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := proposal.Reapply(t.Context(), proposal.Reapplying{Host: dir, Change: "chg-00000001", Branch: "main", Edits: edits, Onto: there.OID, Author: git.Signature{Name: "n", Email: "e", At: day}})
	if err != nil || len(got.Not) != 10 || got.Commit != there.OID {
		t.Fatalf("%+v, %v", got, err)
	}
	all := 0
	for _, u := range got.Not {
		if all += len(u.Hunks); len(u.Hunks) > 5<<10 {
			t.Errorf("%s is told in %d bytes", u.Path, len(u.Hunks))
		}
	}
	if all < 20<<10 || all > 25<<10 || !strings.HasSuffix(got.Not[0].Hunks, "\n… (cut)\n") || got.Not[9].Why != "both sides changed it, and it cannot be merged line by line" {
		t.Errorf("%d bytes are told: %+v", all, got.Not)
	}
}

// textOf reads what an entry holds; "" of none.
func textOf(t *testing.T, dir git.Dir, e git.Entry) string {
	t.Helper()
	if e.Absent() {
		return ""
	}
	blob, err := dir.Blob(t.Context(), e.OID)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	raw, err := io.ReadAll(blob)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
