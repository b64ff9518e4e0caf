package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/rule/policy"
)

func TestWhatTheScannerFoundBreaksARuleUntilItIsGone(t *testing.T) {
	found := func(file string) policy.Secret {
		return policy.Secret{File: file, Kind: "aws-access-key", Line: 3}
	}
	place := func(file string) policy.Secret { return policy.Secret{File: file, Kind: "*.pem", Path: true} }
	failed := func(file string) policy.Secret { return policy.Secret{File: file, Failed: "it is too large"} }
	for name, c := range map[string]struct {
		rules   policy.Rules
		in      []policy.Change
		secrets []policy.Secret
		want    []string
	}{
		"nothing found":           {in: []policy.Change{added("a")}},
		"found":                   {in: []policy.Change{added("a")}, secrets: []policy.Secret{found("a")}, want: []string{"a secret critical"}},
		"a place":                 {in: []policy.Change{added("a.pem")}, secrets: []policy.Secret{place("a.pem")}, want: []string{"a.pem secret_path critical"}},
		"not scanned":             {in: []policy.Change{added("a")}, secrets: []policy.Secret{failed("a")}, want: []string{"a not_scanned critical"}},
		"a deletion":              {in: []policy.Change{deleted("a.pem")}, secrets: []policy.Secret{place("a.pem"), found("a.pem")}},
		"a place that is allowed": {rules: policy.Rules{AllowSecretPaths: []string{"x"}}, in: []policy.Change{added("x/a.pem"), added("y/a.pem")}, secrets: []policy.Secret{place("x/a.pem"), place("y/a.pem")}, want: []string{"y/a.pem secret_path critical"}},
		"content of such a place": {rules: policy.Rules{AllowSecretPaths: []string{"x"}}, in: []policy.Change{added("x/a.pem")}, secrets: []policy.Secret{place("x/a.pem"), found("x/a.pem"), failed("x/a.pem")}, want: []string{"x/a.pem not_scanned critical", "x/a.pem secret critical"}},
		"a glob that is none":     {rules: policy.Rules{AllowSecretPaths: []string{"["}}, in: []policy.Change{added("a.pem")}, secrets: []policy.Secret{place("a.pem")}, want: []string{"a.pem secret_path critical", "rule error"}},
		"none, says the home":     {rules: policy.Rules{AllowSecrets: []string{"docs/**"}}, in: []policy.Change{added("docs/a"), added("a")}, secrets: []policy.Secret{found("docs/a"), found("a")}, want: []string{"a secret critical"}},
		"none in this content":    {rules: policy.Rules{AllowSecrets: []string{"a@" + oidOf(added("a"))}}, in: []policy.Change{added("a")}, secrets: []policy.Secret{found("a")}},
		"other content there":     {rules: policy.Rules{AllowSecrets: []string{"a@0123456789ab"}}, in: []policy.Change{added("a")}, secrets: []policy.Secret{found("a")}, want: []string{"a secret critical"}},
		"none, and not scanned":   {rules: policy.Rules{AllowSecrets: []string{"a"}}, in: []policy.Change{added("a")}, secrets: []policy.Secret{failed("a")}, want: []string{"a not_scanned critical"}},
		"of another path":         {in: []policy.Change{added("a")}, secrets: []policy.Secret{found("b")}, want: []string{"b rule critical"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := base().input(c.rules, c.in...)
			in.Secrets = c.secrets
			got := said(policy.Validate(in))
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// oidOf is what a refusal tells the home's owner to write behind the @.
func oidOf(c policy.Change) string {
	return string(c.New.OID)[:12]
}

// The line that a refusal names makes it go on, for exactly this content.
func TestARefusalOfASecretNamesTheLineThatAllowsIt(t *testing.T) {
	in := base().input(policy.Rules{}, added("docs/a.md"))
	in.Secrets = []policy.Secret{{File: "docs/a.md", Kind: "jwt", Line: 3}}
	vs := policy.Validate(in)
	_, entry, _ := strings.Cut(vs[0].Suggestion, "allow_secrets: [\"")
	entry, _, ok := strings.Cut(entry, "\"]")
	if !ok {
		t.Fatalf("it says %q", vs[0].Suggestion)
	}
	in.Rules.AllowSecrets = []string{entry}
	if vs := policy.Validate(in); len(vs) > 0 {
		t.Errorf("with %q: %v", entry, vs)
	}
	in.Changes[0].New.OID = "ffff" + in.Changes[0].New.OID[4:]
	if vs := policy.Validate(in); len(vs) != 1 {
		t.Errorf("with %q and other content: %v", entry, vs)
	}

	for _, p := range []string{"docs/[a].md", "docs/a b.md"} { // as a pattern it names another file; it is shown in quotes
		in = base().input(policy.Rules{}, added(p))
		in.Secrets = []policy.Secret{{File: p, Kind: "jwt", Line: 3}}
		if vs := policy.Validate(in); !strings.Contains(vs[0].Suggestion, `allow_secrets: ["PATH@`) {
			t.Errorf("of %q it says %q", p, vs[0].Suggestion)
		}
	}
}

// TestOnlyTheContentThatWasLookedAtIsAllowed holds that what begins like an entry of allow_secrets is not taken for it.
func TestOnlyTheContentThatWasLookedAtIsAllowed(t *testing.T) {
	const blob = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		file, entry string
		want        bool
	}{
		{"docs/a.md", "docs/a.md", true}, {"docs/a.md", "docs/a.md@" + blob, true}, {"docs/a.md", "docs/a.md@" + blob[:12], true}, {"docs/a.md", "docs/*@" + blob[:12], true},
		{"docs/a.md", "docs/a.md@" + blob[:11], false}, {"docs/a.md", "docs/a.md@", false}, {"docs/a.md", "docs/a.md@" + blob[1:13], false},
		{"docs/a.md", "docs/b.md@" + blob[:12], false}, {"docs/a.md", "docs/a.md@" + strings.ToUpper(blob[:12]), false},
		{"docs/a@b.md", "docs/a@b.md", true}, {"docs/a", "docs/a@b.md", false}, {"docs/a@b.md", "docs/a@b.md@" + blob[:12], true},
	} {
		in := base().input(policy.Rules{AllowSecrets: []string{c.entry}}, added(c.file))
		in.Changes[0].New.OID = blob
		in.Secrets = []policy.Secret{{File: c.file, Kind: "jwt", Line: 3}}
		if vs := policy.Validate(in); (len(vs) == 0) != c.want {
			t.Errorf("%s by %q: %v", c.file, c.entry, vs)
		}
	}
}

func TestWhereASecretStandsIsSaidAndNothingOfIt(t *testing.T) {
	for want, s := range map[string]policy.Secret{
		"it is a secret: jwt":                                {},
		"a secret: jwt, line 3":                              {Line: 3},
		`a secret: jwt, line 3 of "b.txt" in it in its name`: {Line: 3, Inside: "b.txt", Name: true},
		`scan it for secrets: of "b.txt" in it, too large`:   {Inside: "b.txt", Failed: "too large"},
		"scan it for secrets: too large":                     {Failed: "too large"},
		"a secret: jwt, in its name":                         {Name: true},
	} {
		in := base().input(policy.Rules{}, added("a"))
		s.File, s.Kind = "a", "jwt"
		in.Secrets = []policy.Secret{s}
		if vs := policy.Validate(in); len(vs) != 1 || !strings.HasSuffix(vs[0].Message, want) {
			t.Errorf("%+v: %v, not %q", s, vs, want)
		}
	}
}

func TestSecretsWithoutEndAreCountedNotListed(t *testing.T) {
	in := base().input(policy.Rules{}, added("a"))
	for i := range 10_000 {
		in.Secrets = append(in.Secrets, policy.Secret{File: "a", Kind: "jwt", Line: i + 1})
	}
	got := policy.Validate(in)
	if len(got) > 100 || !slices.ContainsFunc(got, func(v policy.Violation) bool { return strings.Contains(v.Message, "9950 more") }) {
		t.Errorf("%d violations: %v", len(got), got[0])
	}

	in = base().input(policy.Rules{})
	for i := range 1002 {
		in.Changes = append(in.Changes, added(fmt.Sprint("a", i)))
		in.Secrets = append(in.Secrets, policy.Secret{File: fmt.Sprint("a", i), Kind: "jwt"})
	}
	got = policy.Validate(in)
	if len(got) != 1001 || !slices.ContainsFunc(got, func(v policy.Violation) bool { return strings.Contains(v.Message, "2 more") }) {
		t.Errorf("%d violations: %v", len(got), got[0])
	}
}

func TestWhereSecretsMayBeKeptIsTheHomesToSay(t *testing.T) {
	home, repo := policy.Default(), policy.Silent()
	repo.AllowSecretPaths = []string{"**"}
	if got := policy.Merge(home, repo).AllowSecretPaths; len(got) > 0 {
		t.Errorf("a repository allows itself %q", got)
	}
	home.AllowSecretPaths = []string{"internal/rule/secret"}
	if got := policy.Merge(home, policy.Silent()).AllowSecretPaths; fmt.Sprint(got) != "[internal/rule/secret]" {
		t.Errorf("the home allows %q", got)
	}
	if policy.Digest(home, policy.Plan{}) == policy.Digest(policy.Default(), policy.Plan{}) {
		t.Error("the digest does not name it")
	}
}
