package policy_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/rule/policy"
)

func TestAreas(t *testing.T) {
	for name, test := range map[string]struct {
		rules policy.Rules
		plan  policy.Plan
		in    []policy.Change
		want  []string
	}{
		"allowed areas hold for every path":       {policy.Rules{AllowedAreas: []string{"src", "docs/*.md"}}, policy.Plan{}, []policy.Change{added("src/a/b.go"), added("docs/a.md"), added("docs/sub/a.md"), added("x")}, []string{"docs/sub/a.md allowed_area error", "x allowed_area error"}},
		"a merged policy wants every list":        {policy.Rules{AllowedAreas: []string{"src"}, AllowedAlso: [][]string{{"**/*.go"}}}, policy.Plan{}, []policy.Change{added("src/a.go"), added("src/a.c"), added("b.go")}, []string{"b.go allowed_area error", "src/a.c allowed_area error"}},
		"forbidden wins over allowed":             {policy.Rules{AllowedAreas: []string{"src"}, ForbiddenAreas: []string{"src/gen"}}, policy.Plan{}, []policy.Change{added("src/gen/x"), added("src/generic")}, []string{"src/gen/x forbidden_area error"}},
		"a deletion is judged like an addition":   {policy.Rules{ForbiddenAreas: []string{"keep"}}, policy.Plan{}, []policy.Change{deleted("keep/a"), added("b")}, []string{"keep/a forbidden_area error"}},
		"both sides of a rename":                  {policy.Rules{AllowedAreas: []string{"src"}}, policy.Plan{}, []policy.Change{deleted("lib/a.go"), added("src/a.go")}, []string{"lib/a.go allowed_area error"}},
		"protected is critical":                   {policy.Default(), policy.Plan{}, []policy.Change{added(".env"), added("sub/.env.local"), added(".state/db"), added(".environment")}, []string{".env protected_area critical", ".state/db protected_area critical", "sub/.env.local protected_area critical"}},
		"the plan allows":                         {policy.Rules{}, policy.Plan{Allow: []string{"a", "b/**"}}, []policy.Change{added("a"), added("b/c/d"), added("c")}, []string{"c plan_allow error"}},
		"the plan forbids":                        {policy.Rules{}, policy.Plan{Allow: []string{"."}, Forbid: []string{"**/secret"}}, []policy.Change{added("x/secret/y"), added("x/secrets")}, []string{"x/secret/y plan_forbid error"}},
		"every broken rule is named":              {policy.Rules{ForbiddenAreas: []string{"x"}, ProtectedAreas: []string{"x"}}, policy.Plan{Forbid: []string{"x"}}, []policy.Change{added("x")}, []string{"x forbidden_area error", "x plan_forbid error", "x protected_area critical"}},
		"a pattern forbids all below its folders": {policy.Rules{ForbiddenAreas: []string{"docs/*"}}, policy.Plan{}, []policy.Change{added("docs/a/b")}, []string{"docs/a/b forbidden_area error"}},
		"a pattern allows what it says":           {policy.Rules{AllowedAreas: []string{"docs/*"}}, policy.Plan{}, []policy.Change{added("docs/a"), added("docs/b/c")}, []string{"docs/b/c allowed_area error"}},
		"backslashes forbid too":                  {policy.Rules{ForbiddenAreas: []string{"docs"}}, policy.Plan{}, []policy.Change{added(`docs\a`)}, []string{`docs\a forbidden_area error`}},
		"backslashes do not allow":                {policy.Rules{AllowedAreas: []string{"*.md"}}, policy.Plan{}, []policy.Change{added(`docs\a.md`)}, []string{`docs\a.md allowed_area error`}},
		"a rule that cannot be applied refuses":   {policy.Rules{ForbiddenAreas: []string{"a["}}, policy.Plan{Allow: []string{"/abs"}}, []policy.Change{}, []string{"rule error", "rule error"}},
		"what was touched but not changed is not": {policy.Rules{AllowedAreas: []string{"src"}, ForbiddenAreas: []string{"x"}}, policy.Plan{}, []policy.Change{change("x", file("a"), file("a"))}, nil},
		"an unknown word is no rule":              {policy.Rules{Executables: "yes"}, policy.Plan{}, nil, []string{"rule error"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := base().input(test.rules, test.in...)
			in.Plan = test.plan
			expect(t, in, test.want...)
		})
	}
}

func TestEntries(t *testing.T) {
	exe := func(p string, from git.Entry) policy.Change { return change(p, from, entry(git.Executable, "new")) }
	links := policy.Rules{AllowSymlinks: true}
	refuse := policy.Rules{Executables: policy.Refuse, AllowExecutable: []string{"scripts"}, AllowExecutableAlso: [][]string{{"**/*.sh"}}}
	b := base("dir/f", "a/b/c", "x")
	b["out"] = entry(git.Symlink, "/etc")
	b["sub"] = entry(git.Submodule, "1")
	b["dir/out"] = entry(git.Symlink, "/etc")
	for name, test := range map[string]struct {
		rules policy.Rules
		in    []policy.Change
		want  []string
	}{
		"a symlink is critical":                  {policy.Default(), []policy.Change{link("l", "x")}, []string{"l symlink critical"}},
		"a changed symlink too":                  {policy.Default(), []policy.Change{change("out", b["out"], entry(git.Symlink, "x"))}, []string{"out symlink critical"}},
		"a removed symlink is not":               {policy.Default(), []policy.Change{change("out", b["out"], git.Entry{})}, nil},
		"a relative link inside, where allowed":  {links, []policy.Change{link("dir/l", "../a/b/c"), link("m", "dir"), link("a/b/n", "./c")}, nil},
		"an absolute link":                       {links, []policy.Change{link("l", "/etc/passwd")}, []string{"l symlink critical"}},
		"a link out":                             {links, []policy.Change{link("a/l", "../../x")}, []string{"a/l symlink critical"}},
		"a link that goes up after a name":       {links, []policy.Change{link("a/l", "b/../../x")}, []string{"a/l symlink critical"}},
		"a link into a git directory":            {links, []policy.Change{link("l", ".git/config"), link("a/l", "../.GIT")}, []string{"a/l symlink critical", "l symlink critical"}},
		"a link through a link of the base":      {links, []policy.Change{link("l", "out/passwd"), link("m", "out")}, []string{"l symlink critical", "m symlink critical"}},
		"a link through a link of the change":    {links, []policy.Change{link("k", "dir"), link("l", "k/f")}, []string{"l symlink critical"}},
		"a link that goes up twice":              {links, []policy.Change{link("a/b/l", "../../x"), link("a/b/m", "./../c"), link("a/b/n", "..//b/c")}, nil},
		"a link through a link beside it":        {links, []policy.Change{link("dir/k", "f"), link("dir/l", "k/f")}, []string{"dir/l symlink critical"}},
		"a link to what the change wrote":        {links, []policy.Change{added("dir/new"), link("l", "dir/new")}, nil},
		"a link through a submodule":             {links, []policy.Change{change("n", git.Entry{}, entry(git.Submodule, "3")), link("l", "n/f"), link("m", "sub/f")}, []string{"l symlink critical", "m symlink critical", "n submodule error"}},
		"a link without a target":                {links, []policy.Change{link("l", "")}, []string{"l symlink critical"}},
		"a link where git reads a file":          {links, []policy.Change{link("a/.gitattributes", "b/c")}, []string{"a/.gitattributes symlink critical"}},
		"a path through a symlink of the base":   {policy.Default(), []policy.Change{added("out/x/y")}, []string{"out/x/y symlinked_parent critical"}},
		"a path through a link further down":     {policy.Default(), []policy.Change{added("dir/out/x/y")}, []string{"dir/out/x/y symlinked_parent critical"}},
		"what goes away below a symlink":         {policy.Default(), []policy.Change{deleted("out/x")}, nil},
		"what is no path is no path of a link":   {policy.Default(), []policy.Change{added("out/./x")}, []string{"out/./x name critical"}},
		"a path through a symlink of the change": {links, []policy.Change{link("k", "dir"), added("k/x")}, []string{"k/x symlinked_parent critical"}},
		"a folder in place of a symlink":         {policy.Default(), []policy.Change{change("out", b["out"], git.Entry{}), added("out/x")}, nil},
		"a path below a file":                    {policy.Default(), []policy.Change{added("x/y")}, []string{"x/y path_conflict error"}},
		"a folder in place of a file":            {policy.Default(), []policy.Change{deleted("x"), added("x/y")}, nil},
		"hard links":                             {policy.Default(), []policy.Change{with(added("h"), policy.Fact{HardLinks: 2}), with(change("x", file("1"), file("1")), policy.Fact{HardLinks: 2})}, []string{"h hard_link critical", "x hard_link critical"}},
		"special files":                          {policy.Default(), []policy.Change{with(change("p", git.Entry{}, git.Entry{}), policy.Fact{Special: "fifo"}), with(deleted("x"), policy.Fact{Special: "socket"})}, []string{"p special_file critical", "x special_file critical"}},
		"a path below a special file":            {policy.Default(), []policy.Change{with(deleted("x"), policy.Fact{Special: "fifo"}), added("x/y")}, []string{"x special_file critical", "x/y path_conflict error"}},
		"setuid":                                 {policy.Default(), []policy.Change{with(exe("s", git.Entry{}), policy.Fact{SetID: true})}, []string{"s setid critical"}},
		"what cannot be read":                    {policy.Default(), []policy.Change{with(change("u", git.Entry{}, git.Entry{}), policy.Fact{Unreadable: "permission denied"})}, []string{"u unreadable error"}},
		"a new executable is for the card":       {policy.Default(), []policy.Change{exe("run", git.Entry{}), exe("x", file("base"))}, nil},
		"or a violation where policy says so":    {refuse, []policy.Change{exe("run", git.Entry{}), exe("x", file("base")), exe("scripts/a.sh", git.Entry{}), exe("scripts/b", git.Entry{}), exe("old", entry(git.Executable, "1"))}, []string{"run executable warning", "scripts/b executable warning", "x executable warning"}},
		"submodules":                             {policy.Default(), []policy.Change{change("sub", b["sub"], entry(git.Submodule, "2")), change("n", git.Entry{}, entry(git.Submodule, "3"))}, []string{"n submodule error", "sub submodule error"}},
		"a removed submodule":                    {policy.Default(), []policy.Change{change("sub", b["sub"], git.Entry{})}, []string{"sub submodule error"}},
		"a path inside a submodule":              {policy.Default(), []policy.Change{added("sub/f")}, []string{"sub/f submodule error"}},
		"a mode that git does not know":          {policy.Default(), []policy.Change{change("m", git.Entry{}, entry("100664", "x"))}, []string{"m mode error"}},
		"a mode that was taken away":             {policy.Default(), []policy.Change{change("x", entry(git.Executable, "1"), file("1"))}, nil},
		"one path twice":                         {policy.Default(), []policy.Change{added("n"), modified("n")}, []string{"n duplicate error"}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, b.input(test.rules, test.in...), test.want...) })
	}
}

func TestSizes(t *testing.T) {
	sized := func(p string, n int64) policy.Change { return with(added(p), policy.Fact{Size: n, HardLinks: 1}) }
	small := policy.Rules{FileBytesMax: 10, ChangeBytesMax: 25, PathsMax: 3}
	expect(t, base().input(small, sized("a", 10), sized("b", 10), sized("c", 5)))
	expect(t, base().input(small, sized("a", 11)), "a file_bytes error")
	expect(t, base().input(small, sized("a", 10), sized("b", 10), sized("c", 6)), "change_bytes critical")
	expect(t, base().input(small, sized("a", 1), sized("b", 1), sized("c", 1), deleted("d")), "paths error")
	expect(t, base().input(small, with(deleted("d"), policy.Fact{Size: 99})))
	expect(t, base().input(small, sized("a", -1)), "a unreadable error")
	expect(t, base().input(policy.Rules{}, sized("a", policy.FileBytesMaxDefault)))
	expect(t, base().input(policy.Rules{}, sized("a", policy.FileBytesMaxDefault+1)), "a file_bytes error")
	expect(t, base().input(policy.Rules{}, sized("a", math.MaxInt64), sized("b", math.MaxInt64)), "change_bytes critical", "a file_bytes error", "b file_bytes error")
}

func TestWithoutABaseNothingPasses(t *testing.T) {
	expect(t, policy.Input{Rules: policy.Default()}, "rule critical")
	in := base().input(policy.Default())
	expect(t, policy.Input{Rules: policy.Default(), Base: in.Base}, "rule critical")
	expect(t, policy.Input{Rules: policy.Default(), Names: in.Names}, "rule critical")
}

func TestOneForbiddenFileAmongTenThousandIsFound(t *testing.T) {
	in := base("vault/key")
	changes := []policy.Change{modified("vault/key")}
	for i := range 10_000 {
		changes = append(changes, added(fmt.Sprintf("src/%d/%d.go", i%97, i)))
	}
	expect(t, in.input(policy.Rules{ForbiddenAreas: []string{"vault"}}, changes...), "vault/key forbidden_area error")
}

// anything draws a change from a small world, so that paths meet.
func anything(t *rapid.T) policy.Change {
	p := rapid.SampledFrom([]string{"a", "A", "a/b", "a/B", "b", "b/c", "src/x", "src/y/z", "SRC/x", ".git/x", "../x", "l", "l/x", "docs/m\n", "docs/\xff"}).Draw(t, "path")
	sides := []git.Entry{{}, file("1"), file("2"), entry(git.Executable, "1"), entry(git.Symlink, "1"), entry(git.Submodule, "1")}
	c := change(p, rapid.SampledFrom(sides).Draw(t, "old"), rapid.SampledFrom(sides).Draw(t, "new"))
	c.Fact.LinkTarget = rapid.SampledFrom([]string{"", "b", "../x", "/x", "l/x"}).Draw(t, "target")
	c.Fact.Size = rapid.Int64Range(0, 20).Draw(t, "size")
	c.Fact.Special = rapid.SampledFrom([]string{"", "", "", "fifo"}).Draw(t, "special")
	c.Fact.HardLinks = rapid.IntRange(1, 2).Draw(t, "links")
	return c
}

func someRules(t *rapid.T, label string) policy.Rules {
	globs := func(l string) []string {
		return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b/**", "src/*", "**/x", ".", "docs"}), 0, 2).Draw(t, label+l)
	}
	return policy.Rules{
		AllowedAreas: globs("allowed"), ForbiddenAreas: globs("forbidden"), ProtectedAreas: globs("protected"),
		AllowSymlinks: rapid.Bool().Draw(t, label+"links"), AllowExecutable: globs("exec"),
		Executables:    rapid.SampledFrom([]policy.Executables{"", policy.Review, policy.Refuse}).Draw(t, label+"executables"),
		FileBytesMax:   rapid.Int64Range(1, 30).Draw(t, label+"file"),
		ChangeBytesMax: rapid.Int64Range(1, 60).Draw(t, label+"change"),
		PathsMax:       rapid.IntRange(1, 8).Draw(t, label+"paths"),
	}
}

func distinct(changes []policy.Change) []policy.Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(changes, func(c policy.Change) bool {
		twice := seen[c.Path]
		seen[c.Path] = true
		return twice
	})
}

func TestTheVerdictDoesNotDependOnOrderNorOnHowOftenItIsAsked(t *testing.T) {
	b := base("a/b", "src/x", "b")
	b["l"] = entry(git.Symlink, "b")
	rapidtest.Check(t, func(t *rapid.T) {
		changes := distinct(rapid.SliceOfN(rapid.Custom(anything), 0, 12).Draw(t, "changes"))
		rules := someRules(t, "rules")
		first := policy.Validate(b.input(rules, changes...))
		before := slices.Clone(changes)
		shuffled := rapid.Permutation(changes).Draw(t, "order")
		if again := policy.Validate(b.input(rules, shuffled...)); !reflect.DeepEqual(first, again) {
			t.Fatalf("in another order\n%v\nfirst\n%v", again, first)
		}
		if again := policy.Validate(b.input(rules, changes...)); !reflect.DeepEqual(first, again) || !reflect.DeepEqual(before, changes) {
			t.Fatalf("asked again\n%v\nfirst\n%v", again, first)
		}
	})
}

// Merging is the union of what either refuses, neither more nor less; only the words
// for a size, which name the limit, and the reason of a link may differ.
func TestMergedRulesRefuseExactlyWhatEitherRefuses(t *testing.T) {
	b := base("a/b", "src/x", "b")
	b["l"] = entry(git.Symlink, "b")
	rapidtest.Check(t, func(t *rapid.T) {
		changes := distinct(rapid.SliceOfN(rapid.Custom(anything), 0, 12).Draw(t, "changes"))
		home, repo := someRules(t, "home "), someRules(t, "repo ")
		want := append(said(policy.Validate(b.input(home, changes...))), said(policy.Validate(b.input(repo, changes...)))...)
		got := said(policy.Validate(b.input(policy.Merge(home, repo), changes...)))
		slices.Sort(want)
		slices.Sort(got)
		want, got = slices.Compact(want), slices.Compact(got)
		if !slices.Equal(want, got) {
			t.Fatalf("merged refuses\n  %s\neither refuses\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		if policy.Digest(policy.Merge(home, repo), policy.Plan{}) != policy.Digest(policy.Merge(repo, home), policy.Plan{}) {
			t.Fatal("which file a rule stands in changes the digest")
		}
	})
}

func TestARepositoryThatIsSilentChangesNothing(t *testing.T) {
	home := policy.Rules{AllowedAreas: []string{"src"}, AllowSymlinks: true, Executables: policy.Refuse, AllowExecutable: []string{"bin"}, FileBytesMax: 200 << 20, PathsMax: 7}
	if policy.Digest(policy.Merge(home, policy.Silent()), policy.Plan{}) != policy.Digest(home, policy.Plan{}) {
		t.Errorf("merged: %+v", policy.Merge(home, policy.Silent()))
	}
}

// A home that says nothing of a size has the usual one, and not none.
func TestASizeOfARepositoryHoldsWhereTheHomeSaysNothing(t *testing.T) {
	got := policy.Merge(policy.Rules{}, policy.Rules{FileBytesMax: 1, ChangeBytesMax: 2, PathsMax: 3})
	if got.FileBytesMax != 1 || got.ChangeBytesMax != 2 || got.PathsMax != 3 || got.Marks != policy.MarksAsk {
		t.Errorf("%+v", got)
	}
	more := policy.Merge(policy.Rules{}, policy.Rules{FileBytesMax: math.MaxInt64, ChangeBytesMax: math.MaxInt64, PathsMax: math.MaxInt})
	if more.FileBytesMax != policy.FileBytesMaxDefault || more.ChangeBytesMax != policy.ChangeBytesMaxDefault || more.PathsMax != policy.PathsMaxDefault {
		t.Errorf("%+v", more)
	}
}

func TestDigestNamesTheMeaningOfRules(t *testing.T) {
	r := policy.Rules{AllowedAreas: []string{"a", "b"}, ForbiddenAreas: []string{"c", "d", "c"}}
	same := policy.Rules{AllowedAreas: []string{"b", "a"}, ForbiddenAreas: []string{"d", "c"}, Executables: policy.Review, FileBytesMax: policy.FileBytesMaxDefault, AllowExecutable: []string{"no effect"}, Marks: policy.MarksAsk}
	plan := policy.Plan{Allow: []string{"x", "y"}}
	if policy.Digest(r, plan) != policy.Digest(same, policy.Plan{Allow: []string{"y", "x"}}) {
		t.Error("the same rules in another order have another digest")
	}
	seen := map[string]string{policy.Digest(r, plan): "r"}
	for name, other := range map[string]policy.Rules{
		"allowed":    {AllowedAreas: []string{"a"}, ForbiddenAreas: r.ForbiddenAreas},
		"forbidden":  {AllowedAreas: r.AllowedAreas, ForbiddenAreas: []string{"c"}},
		"protected":  {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, ProtectedAreas: []string{"c"}},
		"links":      {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, AllowSymlinks: true},
		"executable": {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, Executables: policy.Refuse},
		"except":     {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, Executables: policy.Refuse, AllowExecutable: []string{"x"}},
		"file":       {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, FileBytesMax: 1},
		"change":     {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, ChangeBytesMax: 1},
		"paths":      {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, PathsMax: 1},
		"marks":      {AllowedAreas: r.AllowedAreas, ForbiddenAreas: r.ForbiddenAreas, Marks: policy.MarksShow},
		"also":       {AllowedAreas: r.AllowedAreas, AllowedAlso: [][]string{{"c"}}, ForbiddenAreas: r.ForbiddenAreas},
	} {
		d := policy.Digest(other, plan)
		if twin, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, twin)
		}
		seen[d] = name
	}
	if policy.Digest(r, plan) == policy.Digest(r, policy.Plan{Forbid: plan.Allow}) {
		t.Error("allow and forbid have the same digest")
	}
}

func TestWorstIsTheLoudest(t *testing.T) {
	v := func(s policy.Severity) policy.Violation { return policy.Violation{Severity: s} }
	if got := policy.Worst([]policy.Violation{v(policy.Warning), v(policy.Critical), v(policy.Error)}); got != policy.Critical {
		t.Errorf("got %q", got)
	}
	if got := policy.Worst(nil); got != "" {
		t.Errorf("got %q", got)
	}
	if got := policy.Worst([]policy.Violation{v("odd"), v(policy.Critical)}); got != "odd" {
		t.Errorf("one that is not known is not the loudest: %q", got)
	}
	for at, want := range map[[2]policy.Severity]policy.Severity{
		{policy.Info, policy.Error}: policy.Error, {policy.Critical, policy.Error}: policy.Critical, {policy.Error, policy.Error}: policy.Error,
		{"odd", policy.Error}: "odd", {policy.Info, ""}: policy.Info, {"", ""}: "",
	} {
		if got := policy.AtLeast(at[0], at[1]); got != want {
			t.Errorf("%q, and at least %q: %q", at[0], at[1], got)
		}
	}
}

// What happened to a submodule is said: files inside its folder are neither its removal nor a move.
func TestAViolationSaysWhatBecameOfASubmodule(t *testing.T) {
	is, none := entry(git.Submodule, "1"), git.Entry{}
	b := base()
	b["sub"] = is
	for want, changes := range map[string][]policy.Change{
		"it is a submodule, and files were written inside its folder, such as sub/x": {change("sub", is, none), added("sub/x")},
		"the submodule is removed":                      {change("sub", is, none), added("subs/x")},
		"the submodule points to another commit":        {change("sub", is, entry(git.Submodule, "2"))},
		"the submodule is replaced by a file or a link": {change("sub", is, file("3"))},
		"a submodule is added here":                     {change("new", none, entry(git.Submodule, "4"))},
	} {
		all := policy.Validate(b.input(policy.Default(), changes...))
		if len(all) != 1 || all[0].Constraint != policy.SubmoduleChange || all[0].Message != want || !strings.Contains(all[0].Suggestion, "is changed in its own repository") {
			t.Errorf("%+v, want %q", all, want)
		}
	}
}
