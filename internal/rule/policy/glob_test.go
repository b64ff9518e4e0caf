package policy_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
)

func TestGlobsThatCannotBeUsedAreNamed(t *testing.T) {
	for _, p := range []string{"", "/abs", "!no", "a//b", "a/../b", "..", "./..", "a[", "a{b", "a}", strings.Repeat("[{],", 9), `a\`, "a\nb", "\xff", strings.Repeat("a", 1001), strings.Repeat("{a,b}", 9)} {
		if err := policy.CheckGlob(p); err == nil {
			t.Errorf("%q was taken", p)
		} else if strings.ContainsAny(err.Error(), "\n\xff") {
			t.Errorf("%q: the message is not inert: %s", p, err)
		}
	}
	for _, p := range []string{"a", ".", "./src/", "src/**", "**/*.{go,md}", "[a-z]*", `\!x`, strings.Repeat("a", 1000), strings.Repeat(`\{a,b\}`, 9), "{a,b}{c,d}", ".env.*"} {
		if err := policy.CheckGlob(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestGlobsMatchAsDocumented(t *testing.T) {
	for _, test := range []struct {
		glob, path string
		want       bool
	}{
		{"docs", "docs/a/b", true}, {"docs", "docs", true}, {"docs", "docsx", false}, {"docs", "a/docs", false},
		{"docs/", "docs/a", true}, {"./docs", "docs/a", true}, {".", "any/thing", true}, {"./", "x", true},
		{"**/testdata", "a/testdata/x", true}, {"**/testdata", "testdata", true}, {"**/testdata", "testdatax", false},
		{"docs/*", "docs/a", true}, {"docs/*", "docs/a/b", false}, {"docs/*/", "docs/a/b", true},
		{"docs/**", "docs/a/b", true}, {"*.md", "a.md", true}, {"*.md", "d/a.md", false}, {"**/*.md", "d/e/a.md", true},
		{"{a,b}/x", "b/x/y", true}, {"*/x", "q/x/y", true}, {`a\*`, "a*", true}, {`a\*`, "ab", false}, {"a[0-9]", "a5", true},
	} {
		in := base().input(policy.Rules{AllowedAreas: []string{test.glob}}, added(test.path))
		if got := len(policy.Validate(in)) == 0; got != test.want {
			t.Errorf("%q allows %q: %v, want %v", test.glob, test.path, got, test.want)
		}
	}
}

// A hostile pattern may be slow to expand, never exponentially so.
func TestAGlobCannotHangTheValidator(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := strings.Repeat("{a,aa}", 8) + strings.Repeat("*a", 50) + "b"
		if err := policy.CheckGlob(p); err != nil {
			t.Error(err)
		}
		policy.Validate(base().input(policy.Rules{ForbiddenAreas: []string{p, strings.Repeat("**/a*/", 100) + "b"}}, added(strings.Repeat("a", 255)), added(strings.Repeat("aa/", 1000)+"c")))
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}

func TestReachNamesAuthorityAndNothingElse(t *testing.T) {
	exe := entry(git.Executable, "x")
	got := policy.Reach([]policy.Change{
		modified("src/main.go"), modified(".sallyport.yaml"), added("sub/AGENTS.md"), deleted(".GitHub/Workflows/ci.yml"),
		change("run.sh", git.Entry{}, exe), change("tool", exe, file("x")), link("l\x1b", "/etc"), modified("go.sum"),
		added("db/Migrations/1.sql"), modified("a/Makefile"), modified("a/Dockerfile.prod"), added(".husky/pre-commit"), change("CLAUDE.md", file("1"), file("1")),
		modified("policy.yaml.md"), added("docs/.claude/x"),
	})
	want := []string{
		"the rules change (this change was judged by the rules before it): .sallyport.yaml",
		"what agents are told changes: docs/.claude/x (new), sub/AGENTS.md (new)",
		"new executable: run.sh (new)",
		"no longer executable: tool",
		`symbolic link: $'l\x1b' → /etc`,
		"what CI runs, or who must review, changes: .GitHub/Workflows/ci.yml (removed)",
		"what git does with files, or runs, changes: .husky/pre-commit (new)",
		"what is depended on changes: go.sum",
		"what a build runs changes: a/Dockerfile.prod, a/Makefile",
		"database migrations change: rollback may be lossy if migration is non-reversible: db/Migrations/1.sql (new)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := policy.Reach([]policy.Change{modified("a"), added("b.md"), deleted("src/c.go")}); len(got) != 0 {
		t.Errorf("ordinary files have reach: %q", got)
	}
}

func TestReachCountsWhatItDoesNotName(t *testing.T) {
	var all []policy.Change
	for _, c := range "abcdefghijklmno" {
		all = append(all, modified(string(c)+"/go.mod"))
	}
	got := policy.Reach(all)
	if len(got) != 1 || !strings.HasSuffix(got[0], "l/go.mod and 3 more") {
		t.Errorf("got %q", got)
	}
	if got := policy.Reach(all[:12]); len(got) != 1 || !strings.HasSuffix(got[0], ", l/go.mod") {
		t.Errorf("got %q", got)
	}
}
