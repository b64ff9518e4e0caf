package policy_test

import (
	"path"
	"strings"
	"testing"

	"sallyport/internal/rule/policy"
)

func TestAPlainChangeBreaksNoRule(t *testing.T) {
	b := base("src/a.go", "README.md")
	expect(t, b.input(policy.Default(), modified("src/a.go"), added("src/naïve 日本.go"), added("new/deep/er.txt"), deleted("README.md"), added("-rf"), added("a b"), added(".gitignore"), added("git~x"), added(strings.Repeat("x", 255)), added(strings.Repeat("d/", 2047)+"xx"), added("digit~1")))
}

func TestNamesThatLeadOutAreRefusedOnEverySide(t *testing.T) {
	for p, want := range map[string]string{
		"":                          "name critical",
		"/etc/passwd":               "/etc/passwd name critical",
		"..":                        ".. name critical",
		"../x":                      "../x name critical",
		"a/../../x":                 "a/../../x name critical",
		`a\..\x`:                    `a\..\x name critical`,
		`\x`:                        `\x name critical`,
		"a//b":                      "a//b name critical",
		"a/./b":                     "a/./b name critical",
		"./a":                       "./a name critical",
		"a/":                        "a/ name critical",
		".":                         ". name critical",
		".git/config":               ".git/config git_dir critical",
		".git":                      ".git git_dir critical",
		"a/.git":                    "a/.git git_dir critical",
		"a/.GiT/hooks/x":            "a/.GiT/hooks/x git_dir critical",
		"git~1/x":                   "git~1/x git_dir critical",
		"GIT~12":                    "GIT~12 git_dir critical",
		".git. ./x":                 ".git. ./x git_dir critical",
		".git /x":                   ".git /x git_dir critical",
		".git::$INDEX_ALLOCATION/x": ".git::$INDEX_ALLOCATION/x git_dir critical",
		`sub\.git\hooks`:            `sub\.git\hooks git_dir critical`,
	} {
		for _, c := range []policy.Change{added(p), deleted(p), modified(p)} {
			expect(t, base().input(policy.Default(), c), want)
		}
	}
	expect(t, base().input(policy.Default(), added(".g\u200cit/x")), ".g\u200cit/x git_dir critical", ".g\u200cit/x name error")
	expect(t, base().input(policy.Default(), added("a\x00b")), "a\x00b name error", "a\x00b name critical")
}

func TestANameFromAnybodySaysWhatIsWrongWithIt(t *testing.T) {
	for p, want := range map[string]string{
		"a/b": "", "": "the path is empty", "/a": "the path is absolute", "\x00a": "the path holds a zero byte", "a/.GIT/x": ".GIT is a spelling of .git", ".git": ".git is a spelling of .git",
		"a\xff": "UTF-8",
	} {
		if got := policy.NameFault(p); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, not %q", p, got, want)
		}
	}
}

func TestNamesThatMisleadMayOnlyGoAway(t *testing.T) {
	for _, p := range []string{"a\nb", "a\x1b[31mb", "a\u202eb", "a\u2066b", "a\u200bb", "a\u0085b", "a\u2028b", strings.Repeat("x", 256), strings.Repeat("d/", 2048) + "x"} {
		expect(t, base().input(policy.Default(), added(p)), p+" name error")
		expect(t, base(p).input(policy.Default(), modified(p)), p+" name error")
		expect(t, base(p).input(policy.Default(), deleted(p)))
	}
	// What is not UTF-8 cannot be written down, so not even its removal can be approved.
	for _, c := range []policy.Change{added("a\xffb"), deleted("a\xffb")} {
		expect(t, base().input(policy.Default(), c), `a\xffb name error`)
	}
}

func TestNamesThatDifferByCaseAloneCollide(t *testing.T) {
	for name, test := range map[string]struct {
		base tree
		in   []policy.Change
		want []string
	}{
		"with a sibling in the base":     {base("README.md"), []policy.Change{added("Readme.md")}, []string{"Readme.md case_collision error"}},
		"among the changes":              {base(), []policy.Change{added("a/X"), added("a/x")}, []string{"a/X case_collision error", "a/x case_collision error"}},
		"in a folder above":              {base("docs/a"), []policy.Change{added("Docs/b")}, []string{"Docs/b case_collision error"}},
		"folders among the changes":      {base(), []policy.Change{added("A/1"), added("a/2")}, []string{"A/1 case_collision error", "a/2 case_collision error"}},
		"beyond ASCII":                   {base("straße/É"), []policy.Change{added("straße/é")}, []string{"straße/é case_collision error"}},
		"a file renamed by case":         {base("README.md"), []policy.Change{deleted("README.md"), added("Readme.md")}, nil},
		"a folder renamed by case":       {base("docs/a", "docs/b/c"), []policy.Change{deleted("docs/a"), deleted("docs/b/c"), added("Docs/a"), added("Docs/b/c")}, nil},
		"a folder renamed in part":       {base("docs/a", "docs/b/c"), []policy.Change{deleted("docs/a"), added("Docs/a")}, []string{"Docs/a case_collision error"}},
		"what collided before may be":    {base("A", "a", "d/x"), []policy.Change{modified("A"), added("b"), added("d/y")}, nil},
		"folders that collided before":   {base("A/x", "a/y"), []policy.Change{added("A/z")}, nil},
		"other folders have other names": {base("a/x"), []policy.Change{added("b/X")}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect(t, test.base.input(policy.Default(), test.in...), test.want...) })
	}
}

func TestACollisionNamesTheLeastOfTheOthers(t *testing.T) {
	for _, p := range []string{"Readme", "ReadMe"} {
		vs := expect(t, base("readme", "README").input(policy.Default(), added(p)), p+" case_collision error")
		if want := p + " differs from README by case alone"; vs[0].Message != want {
			t.Errorf("%q, want %q", vs[0].Message, want)
		}
	}
	vs := expect(t, base("readme").input(policy.Default(), added("README")), "README case_collision error")
	if want := "README differs from readme by case alone"; vs[0].Message != want {
		t.Errorf("%q, want %q", vs[0].Message, want)
	}
}

func FuzzAPathThatPassesStaysInside(f *testing.F) {
	for _, p := range []string{"a/b", "..", "/a", `a\..\b`, ".git/x", "a/.GIT. /x", "\xff", "a//b", "git~1", ".g\u200dit", ""} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if len(policy.Validate(base().input(policy.Default(), added(p)))) > 0 {
			return
		}
		for _, sep := range []string{"/", `\`} {
			r := strings.ReplaceAll(p, sep, "/")
			if r != p && sep == "/" || path.IsAbs(r) || path.Clean("/top/"+r) == "/top" || !strings.HasPrefix(path.Clean("/top/"+r), "/top/") {
				t.Errorf("%q leads out", p)
			}
			for _, part := range strings.Split(r, "/") {
				if part == ".." || strings.EqualFold(strings.TrimRight(part, " ."), ".git") {
					t.Errorf("%q passed with component %q", p, part)
				}
			}
		}
		if strings.ContainsAny(p, "\x00\n\x1b\u202e") {
			t.Errorf("%q passed", p)
		}
	})
}
