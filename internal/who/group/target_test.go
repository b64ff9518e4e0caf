package group_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

func TestWhereAPathLiesDecidesItsClassAndItsTarget(t *testing.T) {
	for p, want := range map[string]group.Mapped{
		"groups/ada/AGENTS.md":            {Class: right.Group},                                                                                           // SM-061
		"groups/ada/runner/runner.yaml":   {Class: right.Group, Runs: true},                                                                               // SM-061
		"groups/ada/notes/runner/x":       {Class: right.Group},                                                                                           // SM-061
		"groups/ada":                      {Class: right.Group},                                                                                           // SM-061
		"template/runner/prompts/a.md":    {Class: right.Group, Runs: true, Target: "groups/ada/runner/prompts/a.md"},                                     // SM-062
		"template/runner":                 {Class: right.Group, Runs: true, Target: "groups/ada/runner"},                                                  // SM-062
		"template/skills/cook/SKILL.md":   {Class: right.Group, Runs: true, Target: "groups/ada/skills/cook/SKILL.md"},                                    // SM-063
		"template/skills/groups/bob/x":    {Class: right.Group, Runs: true, Target: "groups/ada/skills/groups/bob/x"},                                     // SM-063
		`template\runner\runner.yaml`:     {Path: "template/runner/runner.yaml", Class: right.Group, Runs: true, Target: "groups/ada/runner/runner.yaml"}, // SM-074
		"template/AGENTS.md":              {Class: right.Host},                                                                                            // SM-071
		"template/runners/x":              {Class: right.Host},                                                                                            // SM-071
		"src/main.go":                     {Class: right.Host},                                                                                            // SM-064
		"src/template/runner/x":           {Class: right.Host},                                                                                            // SM-064
		"scripts/x":                       {Class: right.Host},                                                                                            // SM-065
		"setup/x":                         {Class: right.Host},                                                                                            // SM-065
		"package.json":                    {Class: right.Host},                                                                                            // SM-066
		"go.mod":                          {Class: right.Host},                                                                                            // SM-066
		"sallyport.yaml":                  {Class: right.Host, Rules: true},                                                                               // SM-066, SM-919
		"policy.yaml":                     {Class: right.Host, Rules: true},                                                                               // SM-066, SM-919
		".sallyport.yaml":                 {Class: right.Host, Rules: true},                                                                               // SM-071, SM-919
		"docs/policy.yaml":                {Class: right.Host},                                                                                            // SM-069
		"image/Dockerfile":                {Class: right.Host},                                                                                            // SM-067
		"migrations/0001.sql":             {Class: right.Host, Lossy: true},                                                                               // SM-068
		"Migrations/0001.sql":             {Class: right.Host, Lossy: true},                                                                               // SM-068
		"docs/a.md":                       {Class: right.Host},                                                                                            // SM-069
		"README.md":                       {Class: right.Host},                                                                                            // SM-069
		"groups/bob/AGENTS.md":            {Class: right.Host, Others: true},                                                                              // SM-070
		"groups/ada-2/runner/x":           {Class: right.Host, Others: true},                                                                              // SM-070
		"groups/bob":                      {Class: right.Host, Others: true},                                                                              // SM-070
		"groups":                          {Class: right.Host, Others: true},                                                                              // SM-070
		"groups/README.md":                {Class: right.Host},                                                                                            // SM-071
		"anything":                        {Class: right.Host},                                                                                            // SM-071
		"src/.envrc":                      {Class: right.Host},                                                                                            // SM-071
		"src/environment":                 {Class: right.Host},                                                                                            // SM-071
		"src/state":                       {Class: right.Host},                                                                                            // SM-071
		strings.Repeat("a/", 2_000) + "b": {Class: right.Host},                                                                                            // SM-071
	} {
		if want.Path == "" {
			want.Path = p
		}
		if want.Target == "" {
			want.Target = p
		}
		got, err := group.Target("ada", p)
		if err != nil || got != want {
			t.Errorf("%.80q is %+v, not %+v; %v", p, got, want, err)
		}
	}
}

func TestAPathThatNoChangeMayHaveRefusesTheWholeDiff(t *testing.T) {
	for p, want := range map[string]string{
		"":                             "the path is empty",
		"/etc/passwd":                  "the path is absolute",
		`\etc\passwd`:                  "the path is absolute",
		"..":                           `the path holds ".."`,
		"template/runner/../../../x":   `the path holds ".."`,
		`template\runner\..\..\x`:      `the path holds ".."`,
		"template//runner":             "the path is not clean",
		"./template":                   "the path is not clean",
		"template/":                    "the path is not clean",
		"a\x00b":                       "the path holds a zero byte",
		"a\xff":                        "the name is not UTF-8",
		"template/runner/.git/hooks/x": "is a spelling of .git",
		"a/.GIT /x":                    "is a spelling of .git",
		"git~1":                        "is a spelling of .git",
		".state":                       "which no change has", // SM-073 from here
		".state/sallyport.db":          "which no change has",
		".State/x":                     "which no change has",
		".state./x":                    "which no change has",
		".state::$INDEX_ALLOCATION/x":  "which no change has",
		"STATE~1/x":                    "which no change has",
		"\u200b.state/x":               "which no change has",
		".\u017ftate/x":                "which no change has", // a long s
		`groups\ada\.state\x`:          "which no change has",
		".env":                         "which no change has",
		".ENV":                         "which no change has",
		".env.local":                   "which no change has",
		".env ":                        "which no change has",
		".Env.x/y":                     "which no change has",
		"template/runner/.env":         "which no change has",
		"\uff0e\uff45nv":               "which no change has", // full width
		"env~1":                        "which no change has",
		"Groups/bob/x":                 "another spelling of groups",
		"groups./bob/x":                "another spelling of groups",
		"groups/Ada/x":                 "another spelling of ada",
		"groups/ada /x":                "another spelling of ada",
		"groups/ada/Runner/x":          "another spelling of runner",
		"Template/runner/x":            "another spelling of template",
		"template/RUNNER":              "another spelling of runner",
		"template/s\u212aills/x":       "another spelling of skills", // a Kelvin sign
		"template/runner/" + strings.Repeat("a/", 2_039) + "b": "too long",
	} {
		_, err := group.Target("ada", p)
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), want) || problem.Of(err).Next == "" {
			t.Errorf("%.80q: %.200v; must say %q", p, err, want)
		}
	}
}

// holdsTarget says what is wrong with how a path was mapped.
func holdsTarget(p string) (m group.Mapped, wrong string) {
	m, err := group.Target("ada", p)
	if err != nil {
		if problem.KindOf(err) != problem.Refused || !utf8.ValidString(err.Error()) {
			return m, "it is refused by " + err.Error()
		}
		return group.Mapped{}, ""
	}
	own := m.Target == "groups/ada" || strings.HasPrefix(m.Target, "groups/ada/")
	folded := strings.ToLower(m.Target)
	switch {
	case m.Target == "" || path.Clean(m.Target) != m.Target || path.IsAbs(m.Target) || m.Target == ".." || strings.HasPrefix(m.Target, "../"):
		wrong = "the target escapes"
	case !utf8.ValidString(m.Target) || strings.ContainsAny(m.Target, "\\\x00"):
		wrong = "the target is hostile"
	case own != (m.Class == right.Group) || m.Class != right.Group && m.Class != right.Host:
		wrong = "the class does not fit the target"
	case m.Relocated() && !m.Runs, m.Runs && m.Class != right.Group, m.Others && m.Class != right.Host:
		wrong = "the flags do not fit"
	case slices.ContainsFunc(strings.Split(folded, "/"), func(part string) bool {
		return part == ".git" || part == ".state" || part == ".env" || strings.HasPrefix(part, ".env.")
	}):
		wrong = "the target is the host's own"
	}
	if again, err := group.Target("ada", m.Target); err != nil || again.Target != m.Target || again.Class != m.Class || again.Runs != m.Runs {
		wrong = "the target is not its own"
	}
	return m, wrong
}

var (
	pathParts = []string{"groups", "ada", "bob", "template", "runner", "skills", "src", "migrations", ".env", ".state", "..", ".", "", "a", "A", "Groups",
		"ADA", "\u200brunner", "runner.", "é", "e\u0301", ".git", "policy.yaml", "\xff", "x\x00"}
	anyPath = rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom(pathParts), 0, 5).Draw(t, "parts")
		return strings.Join(parts, rapid.SampledFrom([]string{"/", "/", "/", `\`}).Draw(t, "separator"))
	})
)

func TestNoPathsOfAChangeMeetAndNoneEscapes(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		one, other := anyPath.Draw(t, "one"), anyPath.Draw(t, "other")
		m, wrong := holdsTarget(one)
		n, wrongToo := holdsTarget(other)
		if wrong+wrongToo != "" {
			t.Fatalf("%q and %q: %s %s: %+v, %+v", one, other, wrong, wrongToo, m, n)
		}
		if m.Target == "" || m.Path == n.Path || m.Target != n.Target {
			return
		}
		if m.Relocated() == n.Relocated() || m.Class != right.Group || n.Class != right.Group {
			t.Fatalf("%q and %q both stand for %q", one, other, m.Target) // Map refuses the pairs that are left, by name
		}
	})
}

func FuzzAnyPathIsMappedInsideTheHomeOrRefused(f *testing.F) {
	for _, p := range []string{"template/runner/x", `groups\ada\x`, ".env.x", "../x", "Template/skills/x", "\xff", ".\u017ftate"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if m, wrong := holdsTarget(p); wrong != "" {
			t.Errorf("%q: %s: %+v", p, wrong, m)
		}
	})
}
