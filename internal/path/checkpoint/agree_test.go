package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
)

// A file that is left out stays as the base has it: only what a rule names may be, and each limit is its own.
func TestWhatIsTooMuchIsLeftOutAndNothingElse(t *testing.T) {
	found := func(path string, size int64) workspace.Found {
		return workspace.Found{Path: path, Mode: git.File, Fact: policy.Fact{Size: size}}
	}
	closed := found("closed", 1)
	closed.Fact.Unreadable = "permission denied"
	for name, c := range map[string]struct {
		rules policy.Rules
		found []workspace.Found
		want  string
	}{
		"as large as one may be":    {policy.Rules{FileBytesMax: 10}, []workspace.Found{found("a", 10)}, ""},
		"one byte more":             {policy.Rules{FileBytesMax: 10}, []workspace.Found{found("a", 11), found("b", 1)}, "a"},
		"as much as all may be":     {policy.Rules{ChangeBytesMax: 10}, []workspace.Found{found("a", 5), found("b", 5)}, ""},
		"one byte more in all":      {policy.Rules{ChangeBytesMax: 10}, []workspace.Found{found("a", 5), found("b", 6), found("c", 5)}, "b"},
		"what is out is not summed": {policy.Rules{FileBytesMax: 6, ChangeBytesMax: 10}, []workspace.Found{found("a", 7), found("b", 5), found("c", 5)}, "a"},
		"the usual of one":          {policy.Rules{}, []workspace.Found{found("a", policy.FileBytesMaxDefault), found("b", policy.FileBytesMaxDefault+1)}, "b"},
		"the usual of all":          {policy.Rules{FileBytesMax: 2 << 30}, []workspace.Found{found("a", policy.ChangeBytesMaxDefault), found("b", 1)}, "b"},
		"what nobody can read":      {policy.Rules{}, []workspace.Found{closed, found("b", 1)}, "closed"},
		"a name that no tree holds": {policy.Rules{}, []workspace.Found{found("a/.git/b", 1), found("b", 1)}, "a/.git/b"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(leftOut(c.found, c.rules))), " "); got != c.want {
			t.Errorf("%s: %q is left out, want %q", name, got, c.want)
		}
	}
}

// A tree that git made otherwise than it was told is no checkpoint.
func TestATreeHoldsExactlyWhatWasWritten(t *testing.T) {
	one, two := git.Entry{Mode: git.File, OID: "1"}, git.Entry{Mode: git.File, OID: "2"}
	module, none := git.Entry{Mode: git.Submodule, OID: "3"}, git.Entry{}
	edit := func(path string, from, to git.Entry) git.Edit { return git.Edit{Path: path, Old: from, New: to} }
	for name, c := range map[string]struct {
		writes map[string]git.Entry // what the host made of each
		edits  []git.Edit
		good   bool
	}{
		"as it was written":            {map[string]git.Entry{"a": one, "b": none}, []git.Edit{edit("a", none, one), edit("b", two, none)}, true},
		"the same as in the base":      {map[string]git.Entry{"a": one}, nil, true},
		"another content":              {map[string]git.Entry{"a": one}, []git.Edit{edit("a", none, two)}, false},
		"another mode":                 {map[string]git.Entry{"a": one}, []git.Edit{edit("a", none, git.Entry{Mode: git.Executable, OID: "1"})}, false},
		"where nothing was written":    {map[string]git.Entry{"a": one}, []git.Edit{edit("a", none, one), edit("b", two, none)}, false},
		"files in a submodule's place": {map[string]git.Entry{"m/a": one}, []git.Edit{edit("m", module, none), edit("m/a", none, one)}, true},
		"a submodule that went alone":  {map[string]git.Entry{"ma": one}, []git.Edit{edit("m", module, none), edit("ma", none, one)}, false},
		"a file in its place":          {map[string]git.Entry{"f/a": one}, []git.Edit{edit("f", two, none), edit("f/a", none, one)}, false},
		"another wrong one after it":   {map[string]git.Entry{"m/a": one}, []git.Edit{edit("m", module, none), edit("m/a", none, two)}, false},
		"a submodule that moved":       {map[string]git.Entry{"m/a": one}, []git.Edit{edit("m", module, two), edit("m/a", none, one)}, false},
	} {
		s := &snapshot{edits: c.edits}
		var writes []git.Write
		for _, path := range slices.Sorted(maps.Keys(c.writes)) {
			writes = append(writes, git.Write{Path: path})
			s.commit.Made = append(s.commit.Made, c.writes[path])
		}
		if err := s.agree(writes); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who corrects a change is told each path that breaks a rule, and whether one is broken that is about no single path.
func TestThePathsThatBreakARuleAreNamed(t *testing.T) {
	s := &snapshot{search: &search{}, judged: []policy.Change{{Edit: git.Edit{Path: "a"}}, {Edit: git.Edit{Path: "b"}}}}
	for want, files := range map[string][]string{" false": nil, "b false": {"b", "b"}, "a b false": {"b", "a"}, "a true": {"a", ""}, " true": {""}} {
		var violations []policy.Violation
		for _, file := range files {
			violations = append(violations, policy.Violation{File: file})
		}
		paths, whole := s.breaking(violations)
		if got := fmt.Sprint(strings.Join(paths, " "), " ", whole); got != want {
			t.Errorf("of %q %s, want %s", files, got, want)
		}
	}
}

// A path that git sees no edit at is judged as the base has it, or as what was not read. A folder is nothing that a file was.
func TestWhatIsNoEditIsJudgedAsTheBaseHasIt(t *testing.T) {
	h := wt.NewHistory(t)
	head := h.Commit(map[string]string{"a": "1", "b": "2", "folder/x": "3", "run.sh": "x+4"})
	base, err := h.Host.Browse(gittest.Context(t), head)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	entry := func(path string) git.Entry {
		e, ok := base.Entry(path)
		if !ok {
			t.Fatalf("%s is not in the base", path)
		}
		return e
	}
	linked, odd := policy.Fact{HardLinks: 2}, policy.Fact{Special: "fifo"}
	s := &snapshot{
		out:   map[string]bool{"b": true, "new": true},
		edits: []git.Edit{{Path: "z", New: entry("a")}},
		diff: workspace.Diff{Changes: []workspace.Found{
			{Path: "z", Mode: git.File, Fact: linked}, {Path: "run.sh", Mode: git.Executable, Fact: linked}, {Path: "b", Mode: git.File},
			{Path: "new", Mode: git.File}, {Path: "folder", Fact: odd}, {Path: "a", Fact: odd}, {Path: "plain", Mode: git.File},
		}},
	}
	want := []policy.Change{
		{Edit: git.Edit{Path: "a", Old: entry("a")}, Fact: odd},
		{Edit: git.Edit{Path: "b", Old: entry("b"), New: git.Entry{Mode: git.File, OID: unread}}},
		{Edit: git.Edit{Path: "folder"}, Fact: odd},
		{Edit: git.Edit{Path: "new", New: git.Entry{Mode: git.File, OID: unread}}},
		{Edit: git.Edit{Path: "run.sh", Old: entry("run.sh"), New: entry("run.sh")}, Fact: linked},
		{Edit: git.Edit{Path: "z", New: entry("a")}, Fact: linked},
	}
	if got := s.changes(base); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What was left out and named by a rule is not named once more, however odd its name. What no rule named is named here.
func TestWhatWasLeftOutIsNamedOnce(t *testing.T) {
	for path, name := range map[string]string{"large": "large", "\xff": `\xff`, "\x1b[31m": "\x1b[31m"} {
		s := &snapshot{out: map[string]bool{path: true}, diff: workspace.Diff{Changes: []workspace.Found{{Path: "in"}, {Path: path}}}}
		if got := s.unnamed([]policy.Violation{{File: name, Constraint: policy.FileBytes}}); got != nil {
			t.Errorf("%q is named once more: %+v", path, got)
		}
		got := s.unnamed([]policy.Violation{{File: "in", Constraint: policy.FileBytes}})
		if len(got) != 1 || got[0].File != name || got[0].Constraint != policy.Unreadable || got[0].Severity != policy.Error {
			t.Errorf("%q, which no rule named, is named so: %+v", path, got)
		}
	}
}

// What a path that git sees no edit at has to be looked at for.
func TestAPathThatIsAsTheBaseHasItIsPlain(t *testing.T) {
	s := &snapshot{out: map[string]bool{"out": true}}
	for f, want := range map[*workspace.Found]bool{
		{Path: "a"}: true,
		{Path: "a", Fact: policy.Fact{HardLinks: 1}}:    true,
		{Path: "a", Fact: policy.Fact{HardLinks: 2}}:    false,
		{Path: "a", Fact: policy.Fact{SetID: true}}:     false,
		{Path: "a", Fact: policy.Fact{Special: "fifo"}}: false,
		{Path: "out"}: false,
	} {
		if got := s.plain(*f); got != want {
			t.Errorf("%+v is plain: %t", *f, got)
		}
	}
}

func TestARecordNamesAsMuchAsItMayAndNoMore(t *testing.T) {
	files := func(n, bytes int) []string { return slices.Repeat([]string{strings.Repeat("x", bytes)}, n) }
	for name, row := range map[string]struct {
		changed []string
		want    int
	}{
		"nothing":            {nil, 0},
		"the most files":     {files(filesNamed, 1), filesNamed},
		"a file more":        {files(filesNamed+1, 1), filesNamed},
		"the most bytes":     {files(64, filesNamedBytes/64), 64},
		"a byte more":        {append(files(64, filesNamedBytes/64), "x"), 64},
		"a name that is all": {files(1, filesNamedBytes+1), 0},
	} {
		c := Checkpoint{FilesChanged: row.changed}
		if c.bound(); len(c.FilesChanged) != row.want || c.Total() != len(row.changed) {
			t.Errorf("%s: %d of %d are named", name, len(c.FilesChanged), c.Total())
		}
	}
	for more, want := range map[int]workspace.LeftOver{
		0: {Folder: "f", Files: 1, Bytes: 2}, 1: {Folder: "1 more folders", Files: 1, Bytes: 2}, 3: {Folder: "3 more folders", Files: 3, Bytes: 6},
	} {
		c := Checkpoint{LeftOver: slices.Repeat([]workspace.LeftOver{{Folder: "f", Files: 1, Bytes: 2}}, foldersNamed+more)}
		c.LeftOver = slices.Clip(c.LeftOver)
		if c.bound(); len(c.LeftOver) != foldersNamed+min(more, 1) || c.LeftOver[len(c.LeftOver)-1] != want {
			t.Errorf("%d folders, the last %+v", len(c.LeftOver), c.LeftOver[len(c.LeftOver)-1])
		}
	}
	for more, want := range map[int]string{0: "", 1: "1 more violations are not listed", 5: "5 more violations are not listed"} {
		c := Checkpoint{Violations: slices.Repeat([]policy.Violation{{Constraint: "usual"}}, violationsNamed+more)}
		c.Violations[len(c.Violations)-1].Constraint = "rare"
		c.bound()
		last := len(c.Violations) - min(more, 1)
		if last != violationsNamed || c.Violations[last-1].Constraint != "rare" || want != "" && c.Violations[last].Message != want {
			t.Errorf("%d more: %d violations, the last of them %+v", more, last, c.Violations[last-1:])
		}
	}
}
